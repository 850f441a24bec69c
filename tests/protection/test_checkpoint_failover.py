"""Failovers, false suspicion, split brain and lost backups under checkpoints, by hand."""

from contextlib import nullcontext

import pytest
from pydantic import ValidationError

from vftsim.errors import RunFailure
from vftsim.platform.protection._replication_parameters import StateSilenceSpec
from vftsim.platform.protection.checkpoint import CheckpointSpec
from vftsim.spec.units import MS, US, S
from vftsim.testing.plant import ENGINES, Plant, play

from .sets import A

COPY = {"delay": 20 * MS, "memory": 1_000_000, "resume": 1 * MS}
FAILOVER = {
    "activation_record": 4 * MS,
    "go_live": 30 * MS,
    "announcement": 7 * MS,
}
CRASH = {"kind": "primary_crash", "at": "203.3 ms"}
# The state of 200 ms has not gone through: the one of 175 ms survives, its wire was quiet until 200 ms + pause.
HEARD_NS = 203_300_000 + 75_000


def run(*faults, failover=None, timeout=50 * MS, until_ns=500 * MS, engine_type=ENGINES[0], chunk_ns=371_713, **more):
    parameters = A.parameters(
        reprotection=COPY,
        **{
            "failover": {**FAILOVER, "detection": {"timeout": timeout, "backup_timeout": 50 * MS}, **(failover or {})},
            **more,
        },
    )
    return play(
        protection=parameters,
        chunk_ns=chunk_ns,
        chunk_is_output=True,
        faults=list(faults),
        until_ns=until_ns,
        engine_type=engine_type,
    )


@pytest.mark.parametrize("engine_type", ENGINES)
def test_the_parts_of_an_outage_make_the_whole(engine_type):
    played = run(CRASH, engine_type=engine_type)
    declared = HEARD_NS + 50 * MS
    assert played.run.timeline == [
        (0, "protected"),
        (203_300_000, "primary crash"),
        (declared, "failure declared"),
        (declared + 4 * MS, "state restored"),
        (declared + 34 * MS, "secondary live"),
        (declared + 41 * MS, "reachable"),
        (declared + 54 * MS, "copy begins"),
        (declared + 66 * MS, "protected"),
    ]
    cut = played.cuts[0]
    assert (cut.rollback_ns, cut.outputs_underivable) == (28_300_000, 0)
    assert played.run.summary["rollback_ns"] == cut.rollback_ns
    assert played.run.summary["outputs_lost_at_crash"] == cut.outputs_lost > 0
    assert played.run.summary["failovers"] == 1


def test_what_a_rollback_undoes_is_in_nanoseconds_and_counts_have_no_unit():
    plant = run(CRASH).run
    units = {entry.column: entry.unit for entry in plant.spec.measured(plant.engine, plant.guard).entries()}
    assert (units["rollback_ns"], units["execution_lost_ns"]) == ("ns", "ns")
    assert (units["outputs_lost_at_crash"], units["failovers"]) == ("", "")


@pytest.mark.parametrize("engine_type", ENGINES)
def test_a_second_crash_after_protection_was_restored(engine_type):
    played = run(CRASH, {"kind": "primary_crash", "at": "703.3 ms"}, until_ns=S, engine_type=engine_type)
    assert [cut.crash_ns for cut in played.cuts] == [203_300_000, 703_300_000]
    assert played.run.summary["failovers"] == 2
    numbers = [number for _, number in played.run.seen]
    assert numbers == sorted(numbers), "every life goes on where the one before was cut"


def test_a_crash_without_passes_is_refused_with_the_remedy():
    with pytest.raises(RunFailure, match=r"vftsim\.platform\.protection\.passes"):
        Plant(A.parameters(), faults=[CRASH], until_ns=S).run()


def test_a_crash_while_unprotected_ends_the_service():
    played = run(CRASH, {"kind": "primary_crash", "at": "300 ms"})
    assert played.run.timeline[-1] == (300 * MS, "primary crash")
    assert max(time_ns for time_ns, _ in played.run.seen) < 300 * MS


def test_a_backup_that_crashes_during_its_takeover_takes_the_service_with_it():
    played = run(CRASH, {"kind": "backup_crash", "at": "260 ms"})
    assert "secondary live" not in played.run.moments
    assert max(time_ns for time_ns, _ in played.run.seen) < 203_300_000


def test_the_disk_of_the_backup_is_waited_for():
    """A disk that needs 100 times the epoch to apply what it writes: the takeover waits, though detection is over."""
    disk = {"write_rate": 1_000_000, "apply_rate": 100_000}
    run_of_disk = run(CRASH, until_ns=5 * S, disk=disk).run
    cut_ns = 175 * MS
    applied_ns = run_of_disk.moments["state restored"] - 4 * MS
    assert applied_ns > run_of_disk.moments["failure declared"]
    # All 7 states wrote 1 MB a second of run time; the disk has been busy since the first one arrived.
    assert applied_ns == pytest.approx(25 * MS + cut_ns * 10, rel=0.05)


@pytest.mark.parametrize("engine_type", ENGINES)
def test_a_timeout_shorter_than_the_silence_between_two_states_suspects_a_live_primary(engine_type):
    """Pages make the first pause 0.95 ms, silence 25.95 ms: fenced, the primary is halted; unfenced, both live."""
    fenced = run(failover={"fencing": True}, timeout=25_600_000, until_ns=60 * MS, engine_type=engine_type)
    assert fenced.cuts[0].is_fenced
    assert fenced.run.timeline[1:3] == [(25_675_000, "primary fenced"), (25_675_000, "failure declared")]
    split = run(timeout=25_600_000, until_ns=300 * MS, engine_type=engine_type)
    assert split.cuts == ()
    assert "secondary live too" in split.run.moments
    assert split.run.summary["outputs_while_split"] > 100
    calm = run(timeout=18 * MS + 25 * MS, until_ns=300 * MS, engine_type=engine_type)
    assert calm.run.timeline == [(0, "protected")]


def test_the_primary_goes_on_alone_without_its_backup_and_loses_nothing():
    played = run({"kind": "backup_crash", "at": "203.3 ms"})
    moments = played.run.moments
    # The state of 200 ms is on the wire: its acknowledgement never comes.
    assert moments["primary goes on alone"] - 50 * MS == pytest.approx(208_916_333, abs=1000)
    numbers = [number for _, number in played.run.seen]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))


@pytest.mark.parametrize(
    ("rule", "way_ms", "silence_ms"),
    [
        ("suspend", 10, 203),
        ("suspend", 150, 303),
        ("resume", 150, 303),
        ("after_ack", 10, 221),
        ("after_ack", 150, 501),
    ],
)
def test_a_timeout_is_refused_below_the_silence_of_a_primary_that_works(rule: str, way_ms: int, silence_ms: int):
    """The interval is 200 ms, the request 1 ms and the pause 2; the next state waits for an acknowledgement.

    Its two ways come before all of the interval, or lie in it; states of no pages take 5 us on the wire.
    """
    free = {"interval": "200 ms", "suspend_request": "1 ms", "pause": {"fixed": "2 ms"}, "memory": {"working_set": 0}}
    channel = {"rate": "100 Gbit/s", "latency": f"{way_ms} ms"}
    fields = {"kind": "checkpoint", "rule": rule, **free, "channel": channel, "reprotection": None}
    patient = CheckpointSpec.model_validate({**fields, "failover": {"detection": {"timeout": "10 s"}}})
    for more_us, is_dead in ((-50, True), (50, False)):
        timeout = {"timeout": f"{silence_ms * 1000 + more_us} us"}
        takeover = patient.failover.model_copy(update={"detection": StateSilenceSpec.model_validate(timeout)})
        plant = Plant(mechanism=patient.model_copy(update={"failover": takeover}), until_ns=4 * S).run()
        assert ("failure declared" in plant.moments) is is_dead
        with pytest.raises(ValidationError, match="a primary that works") if is_dead else nullcontext():
            CheckpointSpec.model_validate({**fields, "failover": {"detection": timeout}})


@pytest.mark.parametrize("fencing", [False, True])
def test_both_paths_lost(fencing):
    """The backup hears the silence first and wins the lock; without one, both live and the promise is broken."""
    loss = {"kind": "channel_loss", "at": "203.3 ms"}
    played = run(loss, failover={"fencing": fencing}, timeout=52 * MS)
    if fencing:
        assert played.run.moments["primary fenced"] == 203_300_000 + 52 * MS
        assert played.run.summary["failovers"] == 1
    else:
        assert played.run.moments["secondary live too"] > 0
        assert played.run.summary["outputs_while_split"] > 100


def test_a_short_loss_of_the_channel_delays_and_loses_nothing():
    loss = {"kind": "channel_loss", "at": "203.3 ms", "duration": "30 ms"}
    played = run(loss)
    assert played.run.timeline == [
        (0, "protected"),
        (203_300_000, "channel loss"),
        (233_300_000, "channel works again"),
    ]
    numbers = [number for _, number in played.run.seen]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert max(played.run.holds()) > 55 * MS


def test_packets_past_the_queue_break_the_promise_and_are_counted():
    """Those seen since the state of 175 ms come from a future that never was."""
    played = run(CRASH, real_time_below=10_000)
    assert played.run.summary["outputs_past_the_queue"] > 400
    assert played.cuts[0].outputs_underivable == pytest.approx(played.cuts[0].execution_ns / 371_713, abs=1)
    assert played.run.summary["outputs_underivable"] == played.cuts[0].outputs_underivable


def test_protection_begins_after_a_first_copy():
    """1 MB at 800 Mbit/s: 10 ms and a stop of 1 ms and more; until then outputs leave at once."""
    played = run(initial_copy=True, until_ns=200 * MS)
    assert played.run.timeline[0] == (0, "copy begins")
    begin_ns = played.run.moments["protected"]
    assert 11 * MS < begin_ns < 13 * MS
    issued = {number: time_ns for time_ns, number in played.run.issued}
    assert all(time_ns == issued[number] for time_ns, number in played.run.seen if issued[number] < 10 * MS)
    assert max(played.run.holds()) > 20 * MS


def test_a_guest_that_stands_still_dirties_nothing():
    idle = Plant(A.parameters(), until_ns=S, guest_runs=False).run()
    assert idle.summary["dirty_pages"] == 0
    assert idle.summary["state_bytes"] == 65536 * (idle.summary["states_taken"] - 0)
    assert idle.summary["longest_pause_ms"] == 500 * US / MS
