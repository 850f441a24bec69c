"""Xen's credit schedulers against schedules recorded from their own code: every switch, to the nanosecond."""

from functools import cache
from typing import Any

import pytest

from tests.platform.cpu.xen_traces import VERSIONS, Replay, loads, merged, traces_kernel
from vftsim.kernel import Linked
from vftsim.kernel.choose import make_engine
from vftsim.platform.cpu.parameters import SchedulerSpec
from vftsim.platform.cpu.schedulers.credit import Credit
from vftsim.platform.cpu.schedulers.credit2 import Credit2

_EVERY_NTH = 7


def _credit(loads_of_credit: list[Any]) -> list[tuple[Any, str, SchedulerSpec]]:
    return [
        (load, tag, Credit.model_validate({"version": VERSIONS[tag]}))
        for load in loads_of_credit
        for tag in load["traces"]
    ]


CREDIT = _credit(loads("xen_credit/traces.json.gz"))
TIES = _credit(loads("xen_credit/ties.json.gz"))
CREDIT2 = [(load, tag, Credit2()) for load in loads("xen_credit2/traces.json.gz") for tag in load["traces"]]


@cache
def kernel(spec: type[SchedulerSpec]) -> Linked:
    return traces_kernel(spec)


def _check(load: dict[str, Any], tag: str, spec: SchedulerSpec, engine: str) -> None:
    replay = Replay(make_engine(kernel(type(spec)), engine), load, spec).run()
    found, recorded = replay.switches(), merged(load["traces"][tag]["switches"])
    first = next((n for n, pair in enumerate(zip(found, recorded, strict=False)) if pair[0] != pair[1]), -1)
    assert found == recorded, f"{load['name']}, switch {first}: recorded {recorded[first]}, found {found[first]}"
    assert replay.run_ns() == load["traces"][tag]["run_ns"]


def each(cases: list[tuple[Any, str, SchedulerSpec]], quick_every: int = 1) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        ("load", "tag", "spec"),
        [
            pytest.param(
                *case, id=f"{case[0]['name']}-{case[1]}", marks=() if n % quick_every == 0 else pytest.mark.slow
            )
            for n, case in enumerate(cases)
        ],
    )


def test_everything_recorded_is_played():
    assert [len(cases) for cases in (CREDIT, TIES, CREDIT2)] == [24 * 5, 5 * 4, 24]


@each(CREDIT, _EVERY_NTH)
def test_credit_as_recorded(load: Any, tag: str, spec: SchedulerSpec):
    _check(load, tag, spec, "simpy")


@each(TIES)
def test_credit_at_ties_as_recorded(load: Any, tag: str, spec: SchedulerSpec):
    """Two pCPUs out of work at one instant, and a choice within 100 ns of a dispatch."""
    _check(load, tag, spec, "simpy")


@each(CREDIT2)
def test_credit2_as_recorded(load: Any, tag: str, spec: SchedulerSpec):
    _check(load, tag, spec, "simpy")


@pytest.mark.slow
@pytest.mark.parametrize("cases", [CREDIT + TIES, CREDIT2], ids=["credit", "credit2"])
def test_schedules_as_recorded_compiled(cases: list[tuple[Any, str, SchedulerSpec]]):
    for load, tag, spec in cases:
        _check(load, tag, spec, "compiled")
