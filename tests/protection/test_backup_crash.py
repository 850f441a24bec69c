"""For how long clients hear nothing when the backup's host crashes: until that is noticed, whatever the mechanism.

Those without a backup (restart, copies on the host itself) refuse the fault: composition/test_wrong_compositions.py.
"""

from itertools import pairwise

import pytest

from vftsim.composition.model import ModelSpec
from vftsim.composition.run import run_model
from vftsim.spec.units import MS, US
from vftsim.testing.plant import play

from .sets import A
from .test_coarse_lockstep import parameters as coarse
from .test_event_sync import parameters as events
from .test_hypervisor_epoch import parameters as epochs

SILENCE_NS, BEAT_NS, LOCK_NS, CHUNK_NS = 90 * MS, 7 * MS, 5 * MS, 1_700_001
STATES = {"detection": {"timeout": 90 * MS, "backup_timeout": SILENCE_NS}}
BEATING = {"detection": {**STATES["detection"], "heartbeat_interval": BEAT_NS}}
BY_LOG = {"detection": {"timeout": SILENCE_NS, "heartbeat_interval": BEAT_NS}, "storage_latency": LOCK_NS}
SHIPPED = A.parameters("micro_checkpoint", reprotection=None, failover=STATES, shipped=True)
MECHANISMS = {
    "lockstep": {"kind": "lockstep", "reprotection": None, "failover": BY_LOG},
    "checkpoint": A.parameters(reprotection=None, failover=STATES),
    "event_sync": events(reprotection=None, failover=BEATING),
    "original": epochs("original", reprotection=None, failover=BEATING),
    "revised": epochs("revised", reprotection=None, failover=BEATING),
    "micro_checkpoint": {key: value for key, value in SHIPPED.items() if key not in ("rule", "suspend_request")},
    # Nobody asks for an acknowledgement within the test.
    "coarse_lockstep": coarse(reprotection=None, failover=BEATING, divergence_rate=0.001, period=20_000 * MS),
}
CRASHES_NS = [100 * MS + 3_700_003 * n for n in range(12)]
WAY_NS = 200 * US
"""Above a round trip and what is on the wire."""


def gaps(kind, *faults):
    """The longest time without an output, and when the primary goes on alone."""
    world = play(
        protection=MECHANISMS[kind],
        chunk_ns=CHUNK_NS,
        chunk_is_output=True,
        until_ns=500 * MS,
        faults=list(faults),
    ).run
    times = [time_ns for time_ns, _ in world.seen if time_ns > 50 * MS]
    return max(later - before for before, later in pairwise([*times, world.until_ns])), world.moments


@pytest.mark.parametrize("kind", MECHANISMS)
def test_clients_wait_until_the_crash_is_noticed_and_no_longer(kind):
    """Silence, and the lock; where only states tell, the time until the next one has left, an interval at most.

    Before and after it what they wait anyway.
    """
    usual_ns, _ = gaps(kind)
    state_ns = A.interval + 5 * MS
    parts_ns = {"lockstep": LOCK_NS, "checkpoint": state_ns, "micro_checkpoint": state_ns}.get(kind, 0)
    for time_ns in CRASHES_NS:
        longest_ns, moments = gaps(kind, {"kind": "backup_crash", "at": f"{time_ns} ns"})
        alone_ns = moments["primary goes on alone"]
        assert SILENCE_NS - BEAT_NS <= alone_ns - time_ns <= SILENCE_NS + parts_ns + WAY_NS, (kind, time_ns)
        assert longest_ns <= alone_ns - time_ns + usual_ns + WAY_NS, (kind, time_ns)


def test_a_primary_misses_its_backup_by_its_last_heartbeat():
    """Sent at 98 ms, and there after the latency of the channel."""
    _, moments = gaps("coarse_lockstep", {"kind": "backup_crash", "at": "100300 us"})
    assert moments["primary goes on alone"] == 98 * MS + 75 * US + SILENCE_NS


def test_a_primary_misses_it_when_the_channel_is_lost_for_good_and_not_when_it_comes_back():
    _, moments = gaps("coarse_lockstep", {"kind": "channel_loss", "at": "100300 us"})
    assert moments["primary goes on alone"] == 98 * MS + 75 * US + SILENCE_NS
    longest_ns, moments = gaps("coarse_lockstep", {"kind": "channel_loss", "at": "100300 us", "duration": "50 ms"})
    assert "primary goes on alone" not in moments
    assert longest_ns > 45 * MS


@pytest.mark.parametrize("kind", MECHANISMS)
def test_a_backup_that_fails_before_protection_is_turned_on_changes_nothing(kind):
    """There is none yet: nothing is copied, and every output leaves as if it had not happened."""
    copy = {"delay": 10 * MS, "memory": 1_000_000}
    mechanism = {**MECHANISMS[kind], "active_from": "200 ms", "reprotection": copy}
    fault = {"kind": "backup_crash", "at": "50 ms"}
    struck, spared = (
        play(protection=mechanism, chunk_ns=CHUNK_NS, chunk_is_output=True, until_ns=400 * MS, faults=faults).run
        for faults in ([fault], [])
    )
    assert struck.seen == spared.seen
    assert struck.moments == {**spared.moments, "backup crash": 50 * MS}


def test_a_secondary_that_dies_before_it_would_live_beside_its_primary_never_does():
    """Without fencing each declares the other dead after the loss of the channel; a dead one declares nothing."""
    unfenced = {"kind": "lockstep", "reprotection": None, "failover": {**BY_LOG, "fencing": False}}

    def played(*faults):
        return play(
            protection=unfenced, chunk_ns=CHUNK_NS, chunk_is_output=True, until_ns=500 * MS, faults=list(faults)
        )

    loss = {"kind": "channel_loss", "at": "100300 us"}
    live_ns = played(loss).run.moments["secondary live too"]
    for time_ns in (101 * MS, 150 * MS, live_ns - 1, live_ns + MS):
        world = played(loss, {"kind": "backup_crash", "at": f"{time_ns} ns"})
        assert ("secondary live too" in world.run.moments) == (time_ns > live_ns)
        alone_ns = world.run.moments["primary goes on alone"]
        issued = [number for at_ns, number in world.run.seen if at_ns >= alone_ns]
        assert (len(issued) > len(set(issued))) <= (time_ns > live_ns), "twice by nobody"


KINDS = ("lockstep", "checkpoint", "micro_checkpoint", "event_sync", "hypervisor_epoch", "coarse_lockstep")


def left_by(kind, rate, crash_ms, until_ms):
    """Bytes that have left the primary's host by an instant; its backup has died at 500 ms, and it dies later."""
    own = {"interval": "25 ms"} if kind == "checkpoint" else {"shipped": True} if kind == "micro_checkpoint" else {}
    protection = {"kind": kind, "channel": {"rate": rate, "latency": "20 ms"}, "reprotection": None, **own}
    faults = [{"kind": "backup_crash", "at": "500 ms"}, {"kind": "primary_crash", "at": f"{crash_ms} ms"}]
    data = {
        "networks": {"lan": {"latency": "10 us"}},
        "domains": {
            "vm": {
                "interfaces": {"eth0": {"path": {"kind": "moderated"}}},
                "applications": {"server": {"kind": "service", "demand": "50 us", "threads": 4}},
                "protection": protection,
            }
        },
        "workloads": {"load": {"kind": "open_requests", "to": "vm", "rate": "900 /s", "retries": 0}},
        "faults": faults,
        "measure": {"warm_up": "0 s", "duration": until_ms * MS},
    }
    found = run_model(ModelSpec.model_validate(data), 1, 0).whole.outcomes
    assert found["domains.vm.protection"].breaches == 0
    return found["networks.lan.from_host"].sent_bytes


@pytest.mark.parametrize(("kind", "rate"), [*((kind, "100 Mbit/s") for kind in KINDS), ("lockstep", "1500 kbit/s")])
def test_nothing_leaves_a_primary_that_has_crashed(kind, rate):
    """Acknowledgements are 20 ms under way when it does, and its log, on the slower line, has waited for long."""
    assert left_by(kind, rate, 505, 600) == left_by(kind, rate, 505, 506)
