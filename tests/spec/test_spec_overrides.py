"""Changes from the command line."""

from pathlib import Path

import pytest
from cases import BASE, place, refused
from small_model import CreditSpec, DomainSpec, Model, RtdsSpec

from vftsim.spec import load, read_document


@pytest.mark.parametrize(
    ("assignment", "read", "value"),
    [
        ("domains.sut.weight=100", lambda m: m.domains["sut"].weight, 100),
        ("domains.sut.pinned.1=7", lambda m: m.domains["sut"].pinned, (1, 7)),
        ("domains.sut.pinned.0=null", lambda m: m.domains["sut"].pinned, (2,)),
        ("domains.sut.pinned=[3]", lambda m: m.domains["sut"].pinned, (3,)),
        ("latency=25 ms", lambda m: m.latency, 25_000_000),
        ("latency=null", lambda m: m.latency, 0),
        ("scheduler.kind=credit", lambda m: m.scheduler, CreditSpec()),
        ("scheduler={kind: credit, cap: 50 %}", lambda m: m.scheduler, CreditSpec(cap=50.0)),
        ("scheduler.kind=rtds", lambda m: m.scheduler, RtdsSpec(period=10_000_000)),
        ("domains.new={memory: 1 B}", lambda m: m.domains["new"], DomainSpec(memory=1)),
        ("name=a=b", lambda m: m.name, "a=b"),
    ],
)
def test_values(write, assignment, read, value):
    assert read(load(write(BASE), Model, [assignment])) == value


def test_a_key_of_a_part_left_to_its_default(write):
    path = write("name: x\narrivals: 1 /s\n")
    assert load(path, Model, ["scheduler.slice_ns=5 ms"]).scheduler == CreditSpec(slice_ns=5_000_000)


def test_later_ones_see_earlier_ones_and_the_document_stays(write):
    document = read_document(write(BASE))
    changed = document.override(Model, ["scheduler.kind=credit"]).override(Model, ["scheduler.cap=5 %"])
    assert changed.validate(Model).scheduler == CreditSpec(cap=5.0)
    assert document.validate(Model).scheduler == RtdsSpec(period=10_000_000)


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        (
            "domains.stu.weight=5",
            "unknown key 'stu' in 'domains'; did you mean 'sut'? allowed: dom0, sut",
        ),
        (
            "shceduler.period=5 ms",
            "unknown key 'shceduler'; did you mean 'scheduler'? allowed: arrivals, clock",
        ),
        (
            "scheduler.perod=5 ms",
            "unknown key 'perod'; did you mean 'period'? allowed: kind, period, budget",
        ),
        ("arivals=5 /s", "unknown key 'arivals'; did you mean 'arrivals'?"),
        ("pinned=[0]", "unknown key 'pinned'; did you mean 'domains.sut.pinned'?"),
        ("sut.weight=5", "unknown key 'sut.weight'; did you mean 'domains.sut.weight'?"),
        ("period=5 ms", "unknown key 'period'; did you mean 'scheduler.period'?"),
        ("domains.sut.weight.x=1", "'domains.sut.weight' is 512, not a mapping"),
        ("domains.sut.pinned.2=1", "'domains.sut.pinned' is a list of 2; '2' is none of its indices"),
        ("domains.sut.pinned.-1=1", "'-1' is none of its indices"),
        ("domains.sut.weight=0", "'weight' must be > 0, got 0"),
        ("latency=25", "25 has no unit"),
        ("scheduler.kind=fifo", "unknown scheduler kind 'fifo'; kinds: credit, rtds"),
        ("scheduler={kind: rtds}", "required key 'period' is missing"),
        ("latency", "is not of the form path.to.key=value"),
        ("=5", "is not of the form path.to.key=value"),
        ("a..b=5", "is not of the form path.to.key=value"),
        ("latency=", "has no value; write 'null' to remove a key"),
        ("latency=[1", "the value is not well-formed YAML"),
        ("latency=!!python/name:os.system", "the value has the YAML tag"),
        ("other.cap=5 %", "'kind' of the scheduler is missing"),
        ("driver=nobody", "no domain 'nobody'"),
    ],
)
def test_refusals_name_the_assignment(write, assignment, message):
    error = refused(write(BASE), "name=fine", assignment)
    assert message in error.message
    assert place(error) == ("--set", 0, assignment)


def test_they_come_before_the_file(write):
    error = refused(write(BASE.replace("base", "7")), "domains.sut.weight=0")
    assert place(error) == ("--set", 0, "domains.sut.weight=0")
    assert error.message.endswith("(and 1 more: 'name')")


def test_what_an_override_takes_away_is_blamed_on_it_and_not_on_the_file(write):
    error = refused(write(BASE), "latency=2 ms", "arrivals=null", "domains.sut.weight=100")
    assert place(error) == ("--set", 0, "arrivals=null")
    assert "arrivals" in error.message.removeprefix("arrivals: ")


def test_a_file_that_is_wrong_by_itself_is_blamed_whatever_is_set(write):
    error = refused(write(BASE.replace("arrivals: 50 /s\n", "")), "latency=2 ms")
    assert (Path(error.file).suffix, error.key) == (".yaml", "arrivals")
