"""The credit scheduler against schedules recorded from Xen's own code: every switch, to the nanosecond."""

from functools import cache

import pytest

from tests.platform.cpu.xen_traces import VERSIONS, Replay, loads, merged, traces_kernel
from vftsim.kernel import Linked
from vftsim.kernel.choose import make_engine

LOADS = loads()
CASES = [(load, tag) for load in LOADS for tag in VERSIONS]
_EVERY_NTH = 7


@cache
def kernel() -> Linked:
    return traces_kernel()


def _check(load, tag: str, engine: str) -> None:
    replay = Replay(make_engine(kernel(), engine), load, VERSIONS[tag]).run()
    found, recorded = replay.switches(), merged(load["traces"][tag]["switches"])
    first = next((n for n, pair in enumerate(zip(found, recorded, strict=False)) if pair[0] != pair[1]), -1)
    assert found == recorded, f"switch {first}: recorded {recorded[first]}, found {found[first]}"
    assert replay.run_ns() == load["traces"][tag]["run_ns"]


@pytest.mark.parametrize(
    ("load", "tag"),
    [
        pytest.param(load, tag, id=f"{load['name']}-{tag}", marks=() if n % _EVERY_NTH == 0 else pytest.mark.slow)
        for n, (load, tag) in enumerate(CASES)
    ],
)
def test_schedule_as_recorded(load, tag: str):
    _check(load, tag, "simpy")


@pytest.mark.slow
def test_schedules_as_recorded_compiled():
    for load, tag in CASES:
        _check(load, tag, "compiled")
