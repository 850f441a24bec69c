"""A primary that crashes while its channel is lost: the backup takes over as it was when the channel failed.

Judged from outside: what entered the guest, what the world saw, when.  Wires take no time, so that what a guest issues
at an instant is seen at that instant if nothing holds it.
"""

from itertools import pairwise

import pytest

from vftsim.spec.units import MS, US
from vftsim.testing.plant import ENGINES, OWN, play

from .sets import A
from .test_coarse_lockstep import parameters as coarse
from .test_event_sync import parameters as events
from .test_hypervisor_epoch import parameters as epochs

WAY_NS = 75 * US
TAKEOVER = {"go_live": 20 * MS, "announcement": 7 * MS}
SILENCE = {"timeout": 90 * MS, "backup_timeout": 90 * MS}
STATES = {**TAKEOVER, "detection": SILENCE}
BEATING = {**TAKEOVER, "detection": {**SILENCE, "heartbeat_interval": 7 * MS}}
LOCKSTEP = {
    "kind": "lockstep",
    "reprotection": None,
    "channel": {"rate": 20_000_000, "latency": WAY_NS, "ack": 0},
    "failover": {**TAKEOVER, "detection": {"heartbeat_interval": 7 * MS, "timeout": 90 * MS}},
}
MECHANISMS = {
    "lockstep": LOCKSTEP,
    "checkpoint": A.parameters(reprotection=None, failover=STATES),
    "event_sync": events(reprotection=None, failover=BEATING),
    "original": epochs("original", failover=BEATING),
    "revised": epochs("revised", failover=BEATING),
    "coarse_lockstep": coarse(failover=BEATING),
}
ROLLS_BACK = ("checkpoint", "event_sync")
AT_MOST_ONCE = ("checkpoint",)
LOST_NS, BACK_NS = 100_300_000, 130_300_000
CHUNK_NS = 1_700_001
ASKS = [700_003 * i for i in range(1, 500)]


def run(kind, *faults, until_ns=400 * MS, protection=None, **more):
    return play(
        protection=protection or MECHANISMS[kind],
        asks=ASKS,
        chunk_ns=CHUNK_NS,
        chunk_is_output=True,
        until_ns=until_ns,
        faults=list(faults),
        **more,
    ).run


def loss(at_ns=LOST_NS, until_ns=BACK_NS):
    return {"kind": "channel_loss", "at": f"{at_ns} ns", "duration": f"{until_ns - at_ns} ns"}


def fault(what, at_ns):
    return {"kind": what, "at": f"{at_ns} ns"}


def judge(kind, crash_ns, world, lost_ns=LOST_NS):
    """What is wrong after a crash that the backup knows nothing of that came after ``lost_ns``."""
    lives = [t for t, what in world.timeline if what == "secondary live"]
    if len(lives) != 1:
        return [f"went live at {lives}"]
    issued = {n: t for t, n in world.issued}
    wrong = [f"{n} came after the loss and was seen" for t, n in world.seen if t <= crash_ns and issued[n] > lost_ns]
    wrong += ["something left between two lives" for t, _ in world.seen if crash_ns < t < lives[0]]
    wrong += ["a request that the backup cannot have entered" for t, _ in world.entered if lost_ns < t < lives[0]]
    chunks = [n for _, n in world.seen if n > OWN]
    if kind not in AT_MOST_ONCE and set(chunks) != set(range(OWN + 1, max(chunks) + 1)):
        wrong.append("an output was never issued")
    if max(t for t, n in world.seen if n > OWN) < world.until_ns - 40 * MS:
        wrong.append("the second life does not go on")
    return wrong


def instants(kind):
    """In the loss, around its ends, and at what happens in it without a crash."""
    ends = (LOST_NS, (LOST_NS + BACK_NS) // 2, BACK_NS)
    inside = [a + i * (b - a) // 8 for a, b in pairwise(ends) for i in range(1, 8)]
    return sorted({t + d for t in ends for d in (-1, 0, 1)} | set(inside) - {BACK_NS, BACK_NS + 1})


@pytest.mark.parametrize("kind", MECHANISMS)
def test_the_backup_takes_over_as_it_was_when_the_channel_failed(kind):
    for crash_ns in (LOST_NS, LOST_NS + 1, LOST_NS + 13 * MS, BACK_NS - 1):
        assert judge(kind, crash_ns, run(kind, loss(), fault("primary_crash", crash_ns))) == [], crash_ns


@pytest.mark.thorough
@pytest.mark.parametrize("kind", MECHANISMS)
def test_at_stratified_crashes(kind):
    wrong = {}
    for crash_ns in instants(kind):
        world = run(kind, loss(), fault("primary_crash", crash_ns))
        if LOST_NS <= crash_ns < BACK_NS:
            wrong[crash_ns] = judge(kind, crash_ns, world)
        else:
            wrong[crash_ns] = judge(kind, crash_ns, world, lost_ns=crash_ns)
    assert {t: why for t, why in wrong.items() if why} == {}


@pytest.mark.parametrize("after_ns", [0, 1, 100 * US, 2 * MS])
def test_a_crash_before_the_log_that_was_held_back_has_left_again(after_ns):
    """Over 20 Mbit/s the log of 30 ms takes 5 ms and more; what has not left by the crash dies with the primary."""
    crash_ns = BACK_NS + after_ns
    assert judge("lockstep", crash_ns, run("lockstep", loss(), fault("primary_crash", crash_ns))) == []


@pytest.mark.parametrize("lost_ns", [LOST_NS, LOST_NS - 80 * US])
def test_a_second_loss_before_the_log_has_arrived_keeps_it_from_the_secondary(lost_ns):
    """With nothing on its way at the first loss, and with an entry that is."""
    second_ns = BACK_NS + 1 * MS
    crash_ns = second_ns + 3 * MS
    faults = (loss(lost_ns), loss(second_ns, second_ns + 20 * MS), fault("primary_crash", crash_ns))
    assert judge("lockstep", crash_ns, run("lockstep", *faults), lost_ns=lost_ns) == []


def test_a_log_that_has_left_again_is_not_lost():
    """Nothing that entered while the channel was lost is asked for again: its answer leaves."""
    crash_ns = BACK_NS + 60 * MS
    world = run("lockstep", loss(), fault("primary_crash", crash_ns), until_ns=600 * MS)
    assert any(LOST_NS < t < BACK_NS for t, _ in world.entered)
    assert judge("lockstep", crash_ns, world, lost_ns=crash_ns) == []


@pytest.mark.parametrize("kind", MECHANISMS)
def test_a_dead_backup_is_given_up_though_the_channel_works_again(kind):
    """Whichever comes first: nothing that leaves before the primary goes on alone came after the loss."""
    for first_ns, second_ns in ((LOST_NS, LOST_NS + 9 * MS), (LOST_NS, LOST_NS)):
        world = run(kind, loss(first_ns), fault("backup_crash", second_ns), until_ns=600 * MS)
        alone_ns = [t for t, what in world.timeline if what == "primary goes on alone"]
        assert len(alone_ns) == 1
        issued = {n: t for t, n in world.issued}
        assert [n for t, n in world.seen if issued[n] > LOST_NS and t < alone_ns[0]] == []
        chunks = [n for _, n in world.seen if n > OWN]
        assert chunks == list(range(OWN + 1, OWN + 1 + len(chunks)))
        assert max(t for t, _ in world.seen) > 560 * MS


@pytest.mark.parametrize("kind", MECHANISMS)
def test_without_either_host_the_service_ends(kind):
    """The backup dies beyond the lost channel, then the primary."""
    faults = (loss(), fault("backup_crash", LOST_NS + 9 * MS), fault("primary_crash", LOST_NS + 14 * MS))
    world = run(kind, *faults)
    assert "secondary live" not in world.moments
    assert max(t for t, _ in world.seen) <= LOST_NS + 14 * MS


@pytest.mark.parametrize("kind", [kind for kind in MECHANISMS if kind != "lockstep"])
def test_a_backup_that_fences_its_primary_goes_on_from_the_loss(kind):
    """The guest serves until the channel fails, not only until protection begins, and again once the backup is live."""
    failover = MECHANISMS[kind]["failover"]
    mechanism = {
        **MECHANISMS[kind],
        "failover": {**failover, "fencing": True, "detection": {**failover["detection"], "timeout": 40 * MS}},
    }
    world = play(
        protection=mechanism,
        asks=ASKS,
        chunk_ns=CHUNK_NS,
        chunk_is_output=True,
        until_ns=400 * MS,
        faults=[{"kind": "channel_loss", "at": f"{LOST_NS} ns"}],
    ).run
    fenced_ns = world.moments["primary fenced"]
    assert len([t for t, _ in world.seen if t < LOST_NS]) > 15
    assert judge(kind, fenced_ns, world) == []


@pytest.mark.thorough
def test_both_engines_agree():
    for kind, crash_ns in [(kind, t) for kind in MECHANISMS for t in (LOST_NS, LOST_NS + 13 * MS)]:
        worlds = [run(kind, loss(), fault("primary_crash", crash_ns), engine_type=engine) for engine in ENGINES]
        assert worlds[0].seen == worlds[1].seen, (kind, crash_ns)
        assert worlds[0].timeline == worlds[1].timeline, (kind, crash_ns)
        assert worlds[0].summary == worlds[1].summary, (kind, crash_ns)


OVERLAPPING = [
    ([loss(LOST_NS, BACK_NS - 5 * MS), loss(LOST_NS + 10 * MS)], [loss()]),
    ([loss(LOST_NS + 10 * MS), loss(LOST_NS, BACK_NS - 5 * MS)], [loss()]),
    ([loss(), loss(LOST_NS + 10 * MS, LOST_NS + 20 * MS)], [loss()]),
    ([loss(LOST_NS, LOST_NS + 10 * MS), loss(LOST_NS + 10 * MS)], [loss()]),
    ([loss(), fault("channel_loss", LOST_NS + 10 * MS)], [fault("channel_loss", LOST_NS)]),
    ([loss(), fault("channel_loss", BACK_NS + 90 * MS)], [loss(), fault("channel_loss", BACK_NS + 90 * MS)]),
]


@pytest.mark.parametrize("kind", MECHANISMS)
@pytest.mark.parametrize(("several", "whole"), OVERLAPPING, ids=range(len(OVERLAPPING)))
def test_losses_that_overlap_are_one_loss(kind, several, whole):
    """Whatever is seen from outside is as if the channel was lost once, from the first begin to the last end."""
    found, expected = run(kind, *several), run(kind, *whole)
    assert found.seen == expected.seen
    assert found.entered == expected.entered


@pytest.mark.parametrize("kind", ["event_sync", "original", "revised", "coarse_lockstep"])
def test_a_primary_is_fenced_wherever_its_guest_stands_when_the_channel_is_lost(kind):
    """Also where it has waited for an acknowledgement since before, so that it has nothing to send that is lost.

    The last of the heartbeats that leave each 7 ms and cross is that of 98 ms.
    """
    silence = {"timeout": 90 * MS, "backup_timeout": 300 * MS, "heartbeat_interval": 7 * MS}
    failover = {**TAKEOVER, "detection": silence, "fencing": True}
    for loss_ns in range(99 * MS, 104 * MS, 330_001):
        lost = {"kind": "channel_loss", "at": f"{loss_ns} ns"}
        found = run(kind, lost, until_ns=300 * MS, protection={**MECHANISMS[kind], "failover": failover})
        assert found.moments["primary fenced"] == 98 * MS + WAY_NS + 90 * MS
        assert found.audit.breaches == 0
        assert found.seen[-1][0] > found.moments["secondary live"]
