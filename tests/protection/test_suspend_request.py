"""A guest stops when it has come to the request: at once where it has its pCPUs, else when it is let run again."""

from typing import Any

import pytest

from vftsim.composition.model import ModelSpec
from vftsim.composition.record import RunRecord
from vftsim.composition.run import run_model

ENGINES = ("compiled", "simpy")
JOB = {"kind": "batch", "demand": "1 s"}
"""It computes without end."""


def played(
    engine: str = "compiled", *, vcpus: int = 1, hogs: int = 1, faults: Any = (), seconds: int = 10, **protection: Any
) -> RunRecord:
    """Return a run of a guest that computes without end beside others, each vCPU on the only pCPU, 10 ms a turn."""
    jobs = {f"hog{n}": {"applications": {"job": JOB}} for n in range(hogs)}
    mechanism = {"kind": "checkpoint", "interval": "25 ms", "pause": {"fixed": "500 us", "page": "0 us"}, **protection}
    vm = {"vcpus": vcpus, "applications": {"job": {**JOB, "processes": vcpus}}, "protection": mechanism}
    spec = {
        "hosts": {"host": {"pcpus": 1, "scheduler": {"kind": "round_robin", "quantum": "10 ms"}}},
        "domains": {"vm": vm, **jobs},
        "faults": list(faults),
        "measure": {"warm_up": "1 s", "duration": f"{seconds} s"},
    }
    return run_model(ModelSpec.model_validate(spec), 1, 0, engine=engine)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("beside", "period_ms", "cpu_ms"),
    [
        # Alone it has its pCPU: 25 ms, and 0.1 ms to the stop.
        ({"hogs": 0}, 25.1, 24.6),
        # The other one begins at the stop; the guest has 10 to 20 ms, is asked at 25 ms, and hears of it at 30 ms.
        ({"hogs": 1}, 30.1, 10.1),
        # It has 20 to 30 ms.
        ({"hogs": 2}, 25.1, 5.1),
        # Its turn comes after 30 ms, and ends with the stop.
        ({"hogs": 3}, 30.1, 0.1),
        # Stopped by the hypervisor: in the middle of the other one's turn, 5 ms later in each period.
        ({"hogs": 1, "suspend_request": 0}, 25.0, None),
    ],
)
def test_a_guest_without_its_pcpu_stops_when_it_is_let_run(beside, period_ms, cpu_ms, engine):
    found = played(engine, **beside).whole.outcomes
    assert found["domains.vm.protection"].states == pytest.approx(10_000 / period_ms, abs=1)
    if cpu_ms is not None:
        assert found["domains.vm"].cpu == pytest.approx(100 * cpu_ms / period_ms, abs=0.2)


def test_all_vcpus_of_a_guest_have_to_come_to_the_request():
    """Two on one pCPU, and a third one's turn: each is let run before the guest stops."""
    found = played(vcpus=2).whole.outcomes
    # From a stop on: 10 ms of the other one, 10 of each vCPU (asked at 25 ms, when the second has the pCPU), 10 of the
    # other one, and the first one's turn begins.
    assert found["domains.vm.protection"].states == pytest.approx(10_000 / 40.1, abs=1)


@pytest.mark.parametrize("kind", ["primary_crash", "backup_crash", "channel_loss", "pause"])
def test_a_failure_while_the_guest_waits_leaves_nothing_behind(kind):
    """From 28 ms after a stop, when it has been asked and waits, in both engines."""
    lasting = {"duration": "40 ms"} if kind in ("channel_loss", "pause") else {}
    for at_us in (3_001_000, 3_008_000, 3_016_000, 3_024_000):
        faults = [{"kind": kind, "at": f"{at_us} us", **lasting}]
        runs = [played(engine, faults=faults, seconds=5) for engine in ENGINES]
        states = [run.whole.outcomes["domains.vm.protection"].states for run in runs]
        assert runs[0].timelines == runs[1].timelines
        assert states[0] == states[1] >= 50
