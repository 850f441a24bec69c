"""What a lost channel delays, an interval that follows single outputs, what a copy costs and when it ends: by hand."""

import pytest

from vftsim.composition.run import run_model
from vftsim.platform.protection.checkpoint import checkpoint
from vftsim.platform.protection.migration import ReprotectionSpec, plan_copy
from vftsim.spec.units import MS, US
from vftsim.study.runs.model import load_model
from vftsim.testing.plant import OWN, Plant, play, watched

from .sets import A

WATCHED = watched(checkpoint)
CHUNK_NS = 10 * MS
RUN_NS = 25 * MS
TAKEN_NS = RUN_NS
SENT_NS = TAKEN_NS + A.fixed_pause + round(A.page_pause * A.pages(RUN_NS))
WIRE_NS = A.wire(RUN_NS)
LOSS_NS = 10 * MS


# The channel works again


@pytest.mark.parametrize(
    ("lost_ns", "rest_ns"),
    [
        (SENT_NS - 100 * US, WIRE_NS),
        (SENT_NS, WIRE_NS),
        (SENT_NS + 3 * MS, WIRE_NS - 3 * MS),
        (SENT_NS + WIRE_NS, 0),
        (SENT_NS + WIRE_NS + A.round_trip // 2 + 1, 0),
    ],
    ids=["before it is sent", "as it is sent", "under way", "on the wire", "acknowledgement on the wire"],
)
def test_a_state_goes_on_where_the_channel_has_left_it(lost_ns, rest_ns):
    """What had not left leaves when the channel works again, what was on the wire is sent once more; then outputs."""
    fault = {"kind": "channel_loss", "at": f"{lost_ns} ns", "duration": f"{LOSS_NS} ns"}
    plant = Plant(A.parameters(), chunk_ns=CHUNK_NS, chunk_is_output=True, until_ns=80 * MS, faults=[fault]).run()
    assert plant.seen[:2] == [(lost_ns + LOSS_NS + rest_ns + A.round_trip, OWN + number) for number in (1, 2)]


def test_a_loss_while_nothing_is_sent_delays_nothing():
    fault = {"kind": "channel_loss", "at": "1 ms", "duration": f"{LOSS_NS} ns"}
    seen = [
        Plant(A.parameters(), chunk_ns=CHUNK_NS, chunk_is_output=True, until_ns=80 * MS, faults=faults).run().seen
        for faults in ([], [fault])
    ]
    assert seen[0] == seen[1]
    assert seen[0][0] == (SENT_NS + WIRE_NS + A.round_trip, OWN + 1)


@pytest.mark.parametrize("disk_rate", [0, 400_000_000])
def test_a_backup_goes_live_when_its_disk_has_applied_what_came_after_the_loss(disk_rate):
    """400 MB of writes a second of running, applied at 60 MB/s: 10 MB take 167 ms from when they have come."""
    setting = A.but(disk_rate=disk_rate)
    mended_ns = SENT_NS + 3 * MS + LOSS_NS
    arrived_ns = mended_ns + setting.wire(RUN_NS) - 3 * MS + setting.round_trip // 2
    faults = [
        {"kind": "channel_loss", "at": f"{SENT_NS + 3 * MS} ns", "duration": f"{LOSS_NS} ns"},
        {"kind": "primary_crash", "at": f"{arrived_ns} ns"},
    ]
    mechanism = setting.parameters(failover={"detection": {"timeout": 100 * MS}, "activation_record": 0, "go_live": 0})
    world = play(protection=mechanism, chunk_ns=CHUNK_NS, until_ns=800 * MS, faults=faults).run
    applied_ns = arrived_ns + disk_rate * RUN_NS // 10**9 * 1000 // 60
    assert abs(world.moments["state restored"] - max(arrived_ns + 100 * MS, applied_ns)) <= 1


# An interval that adapts


def suspensions(asks, until_ns):
    mechanism = A.but(rate=10_000_000_000, working_set=0).parameters(adaptive={"longest": "400 ms"})
    plant = Plant(mechanism, part=WATCHED, asks=asks, until_ns=until_ns).run()
    return [time_ns // MS for time_ns, _ in plant.stops]


def test_one_output_shortens_the_interval_and_silence_lengthens_it_again():
    """0.5 ms at 5 %: 10 ms after an epoch with one output, then twice as long each time."""
    assert suspensions([12 * MS], 180 * MS) == [25, 35, 55, 95, 175]
    assert suspensions([12 * MS, 30 * MS], 120 * MS) == [25, 35, 45, 65, 105]
    assert suspensions([], 180 * MS) == [25, 75, 175]


# A copy


COPY = {
    "delay": 20 * MS,
    "memory": 50_000_000,
    "rate": 800_000_000,
    "dirty_rate": 8_000_000,
    "resume": 1 * MS,
    "stop_below": 1_000_000,
}
PULSE_NS, TAKEN_BY_PULSE_NS = 10 * MS, 1 * MS
"""At the default, a tenth of the CPU."""


def copying(until_ns, *faults, **copy):
    mechanism = A.parameters(initial_copy=True, reprotection={**COPY, **copy})
    return Plant(mechanism, chunk_ns=100 * US, chunk_is_output=True, until_ns=until_ns, faults=list(faults)).run()


def taken_by_copy_ns(plant):
    """What the guest's CPU did beside its computation, to a chunk."""
    return plant.run_ns - len(plant.issued) * plant.chunk_ns


def test_a_copy_takes_its_share_until_the_guest_stops_for_its_last_round():
    plan = plan_copy(copying(1).spec.reprotection)
    for until_ns in (55 * MS, 305 * MS):
        pulses = until_ns // PULSE_NS + 1
        assert 0 <= taken_by_copy_ns(copying(until_ns)) - pulses * TAKEN_BY_PULSE_NS <= 100 * US
    assert copying(305 * MS, cpu_share=0.0).run_ns - 3050 * 100 * US <= 100 * US
    done = copying(plan.live_ns + plan.downtime_ns + 1)
    assert done.moments == {"copy begins": 0, "protected": plan.live_ns + plan.downtime_ns}
    assert round(done.summary["stopped_s"] * 1e9) == plan.downtime_ns
    later = copying(plan.live_ns + plan.downtime_ns + 20 * MS)
    assert taken_by_copy_ns(later) - taken_by_copy_ns(done) <= 100 * US


@pytest.mark.parametrize(("card", "copy"), [(400_000_000, 800_000_000), (800_000_000, 400_000_000)])
def test_a_copy_is_no_quicker_than_the_card_of_the_channel(card, copy):
    """The slower of both counts: as a migration at 400 Mbit/s, whose last round the guest stands still for."""
    plant = Plant(
        A.but(rate=card).parameters(initial_copy=True, reprotection={**COPY, "rate": copy}),
        chunk_ns=100 * US,
        chunk_is_output=True,
    )
    plan = plan_copy(plant.spec.reprotection.model_copy(update={"rate": 400_000_000}))
    plant.until_ns = plan.live_ns + plan.downtime_ns + 1
    assert plant.run().moments == {"copy begins": 0, "protected": plan.live_ns + plan.downtime_ns}


@pytest.mark.parametrize("shared", [False, True])
def test_the_disk_is_copied_before_the_memory(tmp_path, shared):
    """33 MB at 66 Mbit/s take 4 s, then the memory alone at 80 Mbit/s: 1 MB in 0.1 s, nothing dirtied, 1 ms of resume.

    On a line that others use each piece takes what its rate says, too.
    """
    copy = (
        "{delay: 0 ms, disk: 33 MB, disk_rate: 66 Mbit/s, memory: 1 MB, rate: 80 Mbit/s, dirty_rate: 0, resume: 1 ms}"
    )
    channel = "{network: lan}" if shared else "{rate: 100 Mbit/s}"
    text = f"""
networks: {{lan: {{rate: 100 Mbit/s}}}}
domains:
  vm:
    interfaces: {{eth0: {{path: {{kind: native}}}}}}
    applications: {{job: {{kind: batch}}}}
    protection: {{kind: checkpoint, initial_copy: true, channel: {channel}, reprotection: {copy}}}
measure: {{warm_up: 0 s, duration: 5 s}}
"""
    path = tmp_path / "copied.yaml"
    path.write_text(text, encoding="utf-8")
    record = run_model(load_model(str(path)).spec, 1, 0)
    moments = {what: time_ns for time_ns, what in record.timelines["vm"]}
    assert moments["copy begins"] == 0
    assert moments["protected"] == pytest.approx(4101 * MS, abs=MS)
    sizes = {"disk": 33_000_000, "memory": 10**6, "dirty_rate": 0, "resume": MS}
    plan = plan_copy(ReprotectionSpec(disk_rate=66_000_000, rate=80_000_000, **sizes))
    assert (plan.disk_ns, plan.live_ns, plan.downtime_ns) == (4000 * MS, 4100 * MS, MS)


def test_a_copy_that_loses_its_target_begins_anew():
    """After the delay, with one train of pulses; the first attempt neither ends nor goes on."""
    crash_ns = 205 * MS
    plan = plan_copy(copying(1).spec.reprotection)
    fault = {"kind": "backup_crash", "at": f"{crash_ns} ns"}
    again_ns = crash_ns + COPY["delay"]
    done = copying(again_ns + plan.live_ns + plan.downtime_ns + 1, fault)
    assert [what for _, what in done.timeline] == ["copy begins", "backup crash", "copy begins", "protected"]
    assert done.moments["protected"] == again_ns + plan.live_ns + plan.downtime_ns
    pulses = crash_ns // PULSE_NS + 1 + 405 * MS // PULSE_NS + 1
    assert 0 <= taken_by_copy_ns(copying(again_ns + 405 * MS, fault)) - pulses * TAKEN_BY_PULSE_NS <= 100 * US


def test_a_target_lost_in_the_last_round_lets_the_guest_run():
    plan = plan_copy(copying(1).spec.reprotection)
    crash_ns = plan.live_ns + plan.downtime_ns // 2
    fault = {"kind": "backup_crash", "at": f"{crash_ns} ns"}
    plant = copying(crash_ns + 10 * MS, fault)
    assert "protected" not in plant.moments
    assert round(plant.summary["stopped_s"] * 1e9) == plan.downtime_ns // 2
