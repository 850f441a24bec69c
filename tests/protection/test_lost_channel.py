"""A primary that crashes while its channel is lost: the backup takes over as it was when the channel failed.

Judged from outside: what entered the guest, what the world saw, when.  Wires take no time, so that what a guest issues
at an instant is seen at that instant if nothing holds it.
"""

from itertools import pairwise

import pytest

from vftsim.platform.protection import channel
from vftsim.spec.units import MS, US
from vftsim.testing.plant import ENGINES, OWN, Plant, play

from .sets import A
from .spoilt import replaced
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


BACKLOG = {
    "kind": "lockstep",
    "log": {"timer_rate": 0.0, "packet_entry": 0, "framing": 0, "transport_overhead": 1.0, "buffer": 1_000_000},
    "cost": {"entry": 0, "kibibyte": 0, "output": 0, "batch": 0},
    "channel": {"rate": 10_000_000, "latency": 0, "ack": 0},
    "secondary": {"entry_cost": 2 * MS, "buffer": 1_000_000},
    "reprotection": None,
}
BACKLOG_BYTES, OUTPUT_BYTES = 100_000, 32


def backlog(engine_type, lost_for_ns):
    """A packet of 80 ms on the wire enters at 10 ms, its output's entry is behind it; the channel is lost at 30 ms."""
    faults = [{"kind": "channel_loss", "at": "30 ms", **({"duration": f"{lost_for_ns} ns"} if lost_for_ns else {})}]
    return play(
        protection=BACKLOG,
        asks=[10 * MS],
        size_bytes=BACKLOG_BYTES,
        guest_runs=False,
        until_ns=6000 * MS,
        faults=faults,
        engine_type=engine_type,
    ).run


@pytest.mark.parametrize("engine_type", ENGINES)
@pytest.mark.parametrize("lost_for_ns", [1, 40 * MS, 90 * MS, 700 * MS])
def test_what_had_not_left_when_the_channel_failed_takes_its_time_again(engine_type, lost_for_ns):
    """Of 100,032 B at 0.8 us each those of 20 ms have left; the others wait, however long it is away."""
    world = backlog(engine_type, lost_for_ns)
    whole_ns = (BACKLOG_BYTES + OUTPUT_BYTES) * 800
    assert [t for t, _ in world.seen] == [10 * MS + whole_ns + lost_for_ns]
    assert world.summary["log_bytes"] == BACKLOG_BYTES + OUTPUT_BYTES
    assert world.summary["secondary_cpu_s"] == pytest.approx(4e-3)


@pytest.mark.parametrize("engine_type", ENGINES)
def test_what_waits_for_room_at_the_secondary_is_no_longer_on_the_wire_than_it_is(engine_type):
    """3 packets of 1,000 B, 50 ms each, into a buffer of 2,000 B: the third and the outputs wait until 111 ms.

    They need 1 ms of the wire: a loss from 20 to 25 ms costs nothing.
    """
    secondary = {"entry_cost": 50 * MS, "buffer": 2000}
    channel = {"rate": 8_000_000, "latency": 0, "ack": 0}
    world = Plant(
        {**BACKLOG, "secondary": secondary, "channel": channel},
        asks=[10 * MS] * 3,
        size_bytes=1000,
        service_ns=1 * MS,
        guest_runs=False,
        until_ns=900 * MS,
        faults=[{"kind": "channel_loss", "at": "20 ms", "duration": "5 ms"}],
        engine_type=engine_type,
    ).run()
    assert [t for t, _ in world.seen] == [111 * MS] * 3
    assert world.summary["log_bytes"] == 3 * (1000 + OUTPUT_BYTES)


def test_the_auditor_sees_a_log_that_leaves_while_its_channel_is_lost():
    """The wire carries on what it has taken in: the output leaves 40 ms too early."""
    goes_on = replaced(channel.take_back, lambda old, namespace: lambda channel, from_ns, most_bytes: 0)
    fault = {"kind": "channel_loss", "at": "30 ms", "duration": "40 ms"}
    common = {"protection": BACKLOG, "asks": [10 * MS], "size_bytes": BACKLOG_BYTES, "until_ns": 200 * MS}
    spoilt = Plant(**common, faults=[fault], guest_runs=False, spoil=goes_on).run()
    assert [t // MS for t, _ in spoilt.seen] == [90]
    assert spoilt.audit.breaches == 1


@pytest.mark.parametrize("engine_type", ENGINES)
def test_what_was_on_its_way_when_the_channel_failed_for_good_is_not_replayed(engine_type):
    """The secondary has got neither entry: it has nothing to execute; the output leaves when the primary goes on."""
    world = backlog(engine_type, 0)
    assert world.seen[0][0] == world.moments["primary goes on alone"]
    assert world.summary["secondary_cpu_s"] == 0.0
    assert world.summary["log_bytes"] == 20 * MS // 800
