"""Timeouts that a primary in order runs into, or that another one is always ahead of."""

import pytest
from pydantic import TypeAdapter, ValidationError

from vftsim.platform.protection.mechanism import protections
from vftsim.spec.units import MS, US, S
from vftsim.testing.plant import Plant, play

from .sets import A

SILENCE_NS = {
    "checkpoint": 200 * MS + 500 * US + 100 * US,
    "micro_checkpoint": 50 * MS + 100 * US,
    "event_sync": 100 * MS,
    "hypervisor_epoch": 100 * MS,
    "coarse_lockstep": 100 * MS,
}
"""Interval, pause and request to suspend, or the period of heartbeats: by default."""


def timeout(silence, **more):
    return {"detection": {"timeout": silence, **more}}


def checked(kind, **fields):
    mechanism = {"shipped": True} if kind == "micro_checkpoint" else {}
    return TypeAdapter(protections()[kind]).validate_python({"kind": kind, **mechanism, **fields})


@pytest.mark.parametrize("kind", SILENCE_NS)
def test_a_timeout_within_the_silence_of_a_primary_that_works_is_refused(kind):
    checked(kind, failover=timeout(SILENCE_NS[kind] + 1))
    with pytest.raises(
        ValidationError, match=r"failover\.detection\.timeout \(20 ms\) must be above the .* takes over"
    ):
        checked(kind, failover=timeout(20 * MS))
    with pytest.raises(ValidationError, match="must be above"):
        checked(kind, failover=timeout(SILENCE_NS[kind]))


def test_just_above_it_nothing_is_taken_for_a_crash():
    """An idle guest dirties nothing: 25.5 ms of silence at the start, less beside each state."""
    mechanism = A.parameters(failover=timeout(25 * MS + 500 * US + 1))
    plant = Plant(mechanism, until_ns=300 * MS, guest_runs=False).run()
    assert [what for _, what in plant.timeline] == ["protected"]


def test_heartbeats_that_the_log_is_always_ahead_of_are_said():
    """The log of a host that fails stops with it: 3 s of its silence are over before 5 s of heartbeats'."""
    found = checked("lockstep", failover=timeout("5 s", log_timeout="3 s")).without_effect()
    assert "log_timeout is always over first" in found["failover.detection.timeout"]
    for mechanism in ({}, timeout("5 s"), timeout("4 s", log_timeout="3 s")):
        assert "failover.detection.timeout" not in checked("lockstep", failover=mechanism).without_effect()


@pytest.mark.parametrize("kind", sorted(kind for kind, spec in protections().items() if spec.protects))
def test_one_setting_says_when_a_crash_is_noticed_whatever_the_mechanism(kind):
    """Two silences that are 300 ms apart, of the same crash, a ms after a heartbeat and in the midst of an epoch."""
    mechanism = {"shipped": True} if kind == "micro_checkpoint" else {}
    declared = [
        play(
            protection={"kind": kind, **mechanism, "failover": timeout(silence_ns)},
            faults=[{"kind": "primary_crash", "at": "71 ms"}],
            until_ns=2 * S,
            guest_runs=False,
        ).run.moments["failure declared"]
        for silence_ns in (1200 * MS, 1500 * MS)
    ]
    assert declared[1] - declared[0] == 300 * MS
    assert 1200 * MS <= declared[0] <= 71 * MS + 1200 * MS


FAR = {
    "kind": "lockstep",
    "channel": {"latency": "20 ms"},
    "failover": timeout("2 s", log_timeout="1200 ms"),
}
"""Entries of 120 B each ms over 1 Gbit/s and 20 ms: they come 20.00096 ms later, and 64 B of answer 20.000512 ms."""


@pytest.mark.parametrize(
    ("fault", "moment", "last_heard_ns"),
    [
        ("primary_crash", "failure declared", 71 * MS + 20_000_960 + 10 * MS),
        ("backup_crash", "primary goes on alone", 51 * MS + 20_000_960 + 20_000_512 + 5 * MS),
    ],
)
def test_what_was_on_the_way_at_a_crash_is_heard_before_the_silence(fault, moment, last_heard_ns):
    """A crash at 71.5 ms: the entry of 71 ms, and the answer to that of 51 ms, the last that had come.

    The secondary waits 10 ms longer; the primary takes the lock in 5 ms.
    """
    run = play(protection=FAR, faults=[{"kind": fault, "at": "71.5 ms"}], until_ns=2 * S, guest_runs=False).run
    assert run.moments[moment] == last_heard_ns + 1200 * MS
