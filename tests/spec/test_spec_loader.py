"""Loading: what a file means, and the exact file, line and key of what is wrong in it."""

import pickle

import pytest
from cases import BASE, place, refused
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mutations import to_yaml
from small_model import GOOD, CreditSpec, DomainSpec, Model, RtdsSpec

from vftsim.errors import ModelFileError, UsageError
from vftsim.spec import load
from vftsim.spec.yaml_source import parse_yaml


def test_reads_every_kind_of_value(write):
    model = load(write(to_yaml(GOOD).decode()), Model)
    assert model == Model(
        name="small",
        clock=3_160_000_000,
        link=100_000_000,
        arrivals=50.0,
        latency=100,
        mode="paravirtual",
        scheduler=RtdsSpec(period=10_000_000, budget=4_000_000),
        other=CreditSpec(slice_ns=30_000_000, cap=50.0),
        domains={
            "dom0": DomainSpec(weight=512, memory=2**29, pinned=(0,), is_driver=True),
            "sut": DomainSpec(memory=2**32, pinned=(1, 2), ratio=1.25),
        },
        phases=(60_000_000_000, 90_000_000_000),
        driver="dom0",
    )
    assert type(model.domains["dom0"].weight) is int
    assert type(model.domains["sut"].ratio) is float
    assert type(model.domains["dom0"].pinned[0]) is int


schedulers = st.one_of(
    st.builds(CreditSpec, slice_ns=st.integers(1, 10**12), cap=st.none() | st.floats(0, 100)),
    st.builds(RtdsSpec, period=st.integers(10**9, 10**12), budget=st.integers(1, 10**9)),
)
domains = st.builds(
    DomainSpec,
    weight=st.integers(1, 65_535),
    memory=st.integers(0, 2**40),
    pinned=st.lists(st.integers(-5, 10**9)).map(tuple),
    ratio=st.floats(0, 1e9),
    is_driver=st.booleans(),
)
# YAML text cannot hold the C0 and C1 controls but tab and newline, nor lone surrogates.
texts = st.text(st.characters(exclude_categories=["Cs", "Cc", "Cn"], exclude_characters="\ufeff"))
models = st.builds(
    Model,
    name=texts,
    arrivals=st.just(0.0) | st.floats(1e-9, 1e12),
    latency=st.integers(0, 10**17),
    scheduler=schedulers,
    other=st.none() | schedulers,
    domains=st.dictionaries(texts.filter(lambda key: key not in ("<<",)), domains, max_size=3),
    phases=st.lists(st.integers(1, 10**15), max_size=4).map(tuple),
    driver=st.none(),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(model=models)
def test_a_dumped_model_is_a_loadable_file(tmp_path_factory, model):
    path = tmp_path_factory.mktemp("dump") / "model.yaml"
    path.write_bytes(to_yaml(model.model_dump(mode="json")))
    assert load(path, Model) == model


def test_yaml_1_2_scalars():
    text = "a: yes\nb: 0o17\nc: 0x1f\nd: 2024-01-01\ne: 1_000\nf: 012\ng: TRUE\nh: ~\ni: '5'\nj: 1e3\nk: !!str 5\n"
    assert parse_yaml(text, "t").plain() == {
        "a": "yes",
        "b": 15,
        "c": 31,
        "d": "2024-01-01",
        "e": "1_000",
        "f": 12,
        "g": True,
        "h": None,
        "i": "5",
        "j": 1000.0,
        "k": "5",
    }


def test_aliases_repeat_a_value_and_report_where_it_stands(write):
    text = BASE.replace("  sut:\n", "  twin: &d\n    memory: 1 GiB\n    wieght: 1\n  copy: *d\n  sut:\n")
    error = refused(write(text))
    assert place(error) == ("model.yaml", 12, "domains.twin.wieght")
    assert error.message.endswith("(and 1 more: unknown key 'domains.copy.wieght')")


def test_what_has_to_be_a_mapping_is_told_with_its_keys(write):
    error = refused(write(BASE.replace("  sut:\n", "  twin: 5\n  sut:\n")))
    assert place(error) == ("model.yaml", 10, "domains.twin")
    assert "must be a mapping (lines 'key: value'), got 5; keys: weight, memory, pinned, ratio" in error.message


@pytest.mark.parametrize(
    ("old", "new", "line", "key", "message"),
    [
        (
            "    weight: 512",
            "    wieght: 512",
            11,
            "domains.sut.wieght",
            "unknown key 'wieght'; did you mean 'weight'?",
        ),
        (
            "    weight: 512",
            "    wieght: 512",
            11,
            "domains.sut.wieght",
            "allowed: weight, memory, pinned, ratio",
        ),
        ("weight: 512", "weight: -3", 11, "domains.sut.weight", "'weight' must be > 0, got -3"),
        ("weight: 512", "weight: 65536", 11, "domains.sut.weight", "'weight' must be <= 65535, got 65536"),
        ("weight: 512", "weight: 5.5", 11, "domains.sut.weight", "'weight' must be a whole number, got 5.5"),
        (
            "weight: 512",
            "weight:",
            11,
            "domains.sut.weight",
            "must be a whole number, got nothing (null); give a value",
        ),
        (
            "weight: 512",
            "weight: '512'",
            11,
            "domains.sut.weight",
            "got '512' as text; write it as a plain number",
        ),
        (
            "[1, 2]",
            "[1, two]",
            13,
            "domains.sut.pinned.1",
            "item 1 of 'pinned' must be a whole number, got 'two'",
        ),
        ("[1, 2]", "\n    - 1\n    - two", 15, "domains.sut.pinned.1", "must be a whole number"),
        ("name: base", "name: 7", 1, "name", "'name' must be text, got 7; put it in quotes"),
        (
            "1 ms",
            "25",
            3,
            "latency",
            "'latency' 25 has no unit; write a duration with its unit, e.g. '25 ms'",
        ),
        ("1 ms", "25 MB", 3, "latency", "'MB' in '25 MB' is not a unit of a duration"),
        (
            "kind: rtds",
            "kind: rdts",
            5,
            "scheduler.kind",
            "unknown scheduler kind 'rdts'; did you mean 'rtds'?",
        ),
        ("kind: rtds", "kind: fifo", 5, "scheduler.kind", "kinds: credit, rtds"),
        (
            "  kind: rtds\n",
            "",
            4,
            "scheduler.kind",
            "'kind' of the scheduler is missing or no text; kinds: credit",
        ),
        (
            "  period: 10 ms\n",
            "",
            4,
            "scheduler.period",
            "required key 'period' is missing (Period of the deferrable",
        ),
        (
            "period: 10 ms",
            "period: 10 ms\n  budget: 2 s",
            7,
            "scheduler.budget",
            "'budget' must be <= 1 s, got '2 s'",
        ),
        ("period: 10 ms", "period: 1 ms", 4, "scheduler", "budget is longer than period"),
        ("name: base\n", "name: base\ndriver: dom1\n", 2, "driver", "no domain 'dom1'; domains: dom0, sut"),
        ("name: base\n", "", 1, "name", "required key 'name' is missing"),
        ("name: base\n", "nmae: base\n", 1, "nmae", "unknown key 'nmae'; did you mean 'name'?"),
        (
            "name: base\n",
            "name: base\nmode: native2\n",
            2,
            "mode",
            "must be one of native, paravirtual, got 'native2'",
        ),
        ("name: base\n", "name: base\nname: b\n", 2, "name", "key 'name' is given twice, first on line 1"),
        (
            "    pinned",
            "    memory: 1 B\n    pinned",
            13,
            "domains.sut.memory",
            "given twice, first on line 12",
        ),
        ("[1 s, 2 s]", "[1 s, 0 s]", 14, "phases.1", "must be greater than 0"),
        ("[1 s, 2 s]", "1 s", 14, "phases", "'phases' must be a list, got '1 s'"),
        ("[1 s, 2 s]", "\n\t- 1 s", 15, "", "indent with spaces, not tabs"),
        (
            "[1 s, 2 s]",
            "!!python/object:os.system [a]",
            14,
            "phases",
            "has the YAML tag '!!python/object:os.system'",
        ),
    ],
)
def test_place_and_words(write, old, new, line, key, message):
    assert BASE.count(old) == 1
    error = refused(write(BASE.replace(old, new)))
    assert message in error.message
    assert place(error) == ("model.yaml", line, key)


def test_the_first_problem_in_the_file_and_the_number_of_others(write):
    text = BASE.replace("weight: 512", "weight: 0").replace("latency: 1 ms", "latency: 1").replace("[1 s, 2 s]", "[x]")
    error = refused(write(text))
    assert place(error) == ("model.yaml", 3, "latency")
    assert error.message.endswith(" (and 2 more: 'domains.sut.weight', 'phases.0')")


def test_errors_survive_pickling(write):
    error = refused(write(BASE.replace("weight: 512", "weight: 0")))
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error)


def test_a_file_that_is_not_there_is_a_wrong_request():
    with pytest.raises(UsageError, match="no file 'no-such-model'"):
        load("no-such-model", Model)


def test_a_folder_cannot_be_read(tmp_path):
    with pytest.raises(ModelFileError) as caught:
        load("x", Model, search=lambda name: tmp_path)
    assert caught.value.message == "cannot be read: Is a directory"


@pytest.mark.parametrize(
    "text", ["!!bool 4", "!!null 4", "!!int 4.5", "!!int x", "!!float yes", "!!bool yes", "!!null no"]
)
def test_a_value_that_is_not_what_its_tag_says_is_refused(text):
    with pytest.raises(
        ModelFileError, match=rf"has the YAML tag '{text.split()[0]}', which '{text.split()[1]}' is not"
    ):
        parse_yaml(f"a: {text}\n", "x")


def test_a_value_may_say_what_it_is():
    text = "a: !!int 4\nb: !!float 4\nc: !!bool true\nd: !!null ~\ne: !!float 4.5\n"
    assert parse_yaml(text, "x").plain() == {"a": 4, "b": 4.0, "c": True, "d": None, "e": 4.5}
    assert isinstance(parse_yaml(text, "x").plain()["b"], float)


@pytest.mark.parametrize(
    "number", ["9223372036854775808", "-9223372036854775808", "18446744073709551616", "0x8000000000000000"]
)
def test_a_whole_number_that_no_field_of_a_run_holds_is_refused(number):
    assert parse_yaml("a: 9223372036854775807\n", "x").plain() == {"a": 2**63 - 1}
    with pytest.raises(ModelFileError, match=r"beyond the largest whole number of a model"):
        parse_yaml(f"a: {number}\n", "x")
