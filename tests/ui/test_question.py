"""An address is a question, and a question is a command line."""

import random
from urllib.parse import parse_qsl

import pytest

from vftsim.cli.main import main
from vftsim.errors import UsageError, VftsimError
from vftsim.spec import read_document
from vftsim.study.runs.model import load_model
from vftsim.ui.knobs import knobs_of
from vftsim.ui.question import QUESTIONS, Question, checked, read_question

MODELS = ["lab-virtual", "xen-media"]


def read(text):
    return read_question(parse_qsl(text, keep_blank_values=True), MODELS)


def test_a_question_has_one_address_and_is_read_from_it():
    draw = random.Random(1)
    keys = [*knobs_of(load_model("lab-virtual").spec)]
    for _ in range(300):
        columns = tuple(
            {key: draw.choice(["1", "4 us", "[0, 1]", "a&b=c", "ü", "null"]) for key in sorted(draw.sample(keys, k))}
            for k in draw.choices(range(4), k=4)
        )
        question = Question(
            "xen-media",
            draw.choice(["", *QUESTIONS]),
            draw.randint(1, 50),
            draw.randint(0, 10**9 - 1),
            draw.random() < 0.5,
            draw.choice(["none", "none,lockstep"]),
            draw.choice(["", "outage <= 3 s"]),
            columns=columns,
        )
        assert read(question.address) == question
        assert len(question.configurations) == 1 + sum(map(bool, columns[1:]))


def test_what_is_left_empty_or_as_it_is_by_default_is_not_in_the_address():
    question = read("model=lab-virtual&ask=run&n=3&seed=1&quick=1&0.a.b=&1.a.b= 2 &knob=a.b&knob=c.d")
    assert question.address == "model=lab-virtual&ask=run&knob=c.d&1.a.b=2"


def test_a_variant_has_the_changes_of_today_and_kinds_of_parts_come_first():
    question = read("ask=capacity&0.a.interval=3&0.z.kind=x&1.a.interval=4")
    today, variant = question.configurations
    assert today.assignments == ("z.kind=x", "a.interval=3")
    assert variant.assignments == ("z.kind=x", "a.interval=4")
    assert question.words(variant, "m.yaml")[-4:] == ["--set", "z.kind=x", "--set", "a.interval=4"]


@pytest.mark.parametrize(
    "text",
    [
        "model=/etc/passwd",
        "ask=sweep",
        "n=0",
        "n=51",
        "n=٣",
        "seed=-1",
        "seed=1e3",
        "quick=yes",
        "other=1",
        "4.a=1",
        "protection=all of it",
        "objective=fast",
        "0.a=" + "x" * 301,
        "0." + "a" * 200 + "=1",
        "0.a=%00",
        "0.a=1%0a2",
        "&".join(f"knob=k{n}" for n in range(201)),
    ],
)
def test_what_is_no_question_is_refused(text):
    with pytest.raises(UsageError):
        read(text)


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "x"},
        {"extends": "/etc/passwd"},
        {"domains.sut.vcpus": "65"},
        {"domains.sut.vcpus": "{a: 1}"},
        {"domains.sut.protection.kind": "magic"},
        {"domains.sut.protection.interval": "10 ms"},
        {"workloads.calls.to": "other"},
        {"domains.sut.interfaces.eth0.path": "{kind: native}"},
    ],
)
def test_what_is_no_knob_or_no_value_of_one_is_refused(changes):
    (configuration,) = Question("lab-virtual", columns=(changes, {}, {}, {})).configurations
    with pytest.raises(VftsimError):
        checked(configuration, read_document("lab-virtual"), "lab-virtual")


def test_a_part_of_another_kind_has_its_own_knobs():
    changes = {"domains.sut.protection.kind": "checkpoint", "domains.sut.protection.interval": "40 ms"}
    (configuration,) = Question("lab-virtual", columns=(changes, {}, {}, {})).configurations
    model, knobs = checked(configuration, read_document("lab-virtual"), "lab-virtual")
    assert model.resolved()["domains"]["sut"]["protection"]["interval"] == "40 ms"
    assert "domains.sut.protection.interval" in knobs


@pytest.mark.parametrize("ask", QUESTIONS)
def test_the_command_line_takes_what_a_question_says(ask, capsys):
    """A limit of time of 0 is refused behind everything that is read before."""
    question = read(f"ask={ask}&n=2&seed=7&quick=0&objective=outage <= 3 s&0.domains.sut.vcpus=2")
    words = question.words(question.configurations[0], "lab-virtual")
    assert main([*words, "--max-time", "0 s"]) == 2
    assert "--max-time: above 0" in capsys.readouterr().err
