"""Faults in model files and in runs of the lab."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from vftsim.composition.model import ModelSpec
from vftsim.composition.views import ramp_of
from vftsim.platform.protection.migration import plan_copy
from vftsim.platform.protection.when import Instant
from vftsim.workloads.sip.messages import Scenario

from .sip import GuardedLab, guarded_spec

S = 1_000_000_000
LOAD = {
    "pre_registration": {"duration": 4 * S, "transient": 0},
    "stir": {"duration": 3 * S},
    "steps": {"initial": 20.0, "increment": 5.0, "duration": 20 * S, "transient": 1 * S, "most": 1},
    "hold_time": 5 * S,
    "ring_time": 1 * S,
}


def lab(protection, *faults, load=None, replication=0, server=None, **fields):
    spec = guarded_spec(protection, faults, {**LOAD, **(load or {})}, server or {"touch_cost": "1 ms"}, **fields)
    return GuardedLab(spec, 7, replication)


def crash(at="step 1 + 8.3 s"):
    return {"kind": "primary_crash", "at": at}


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("20 s", Instant("run", 20 * S)),
        ("step 2 + 300 s", Instant("step 2", 300 * S)),
        ("step 12", Instant("step 12", 0)),
        ("stir+1 ms", Instant("stir", 1_000_000)),
        ("pre-registration + 1 min", Instant("pre-registration", 60 * S)),
    ],
)
def test_instants_are_read_and_written(text, instant):
    spec = lab({"kind": "none"}, crash(text), load={"steps": {"most": 12}}).spec
    assert spec.faults[0].at == instant
    again = ModelSpec.model_validate(spec.model_dump(mode="json"))
    assert again.faults == spec.faults


@pytest.mark.parametrize("text", ["", "step 0", "step", "step 2 +", "noon", "5", "step 2 + 5", "step 99", 5, "x" * 200])
def test_wrong_instants_are_refused(text):
    with pytest.raises(ValidationError):
        lab({"kind": "none"}, crash(text))


def test_faults_that_cannot_be_are_refused():
    with pytest.raises(ValidationError, match="backup or its channel"):
        lab({"kind": "none"}, {"kind": "channel_loss", "at": "1 s"})
    with pytest.raises(ValidationError, match="1 vCPU at most"):
        lab({"kind": "lockstep"}, vcpus=2)
    with pytest.raises(ValidationError, match="heartbeat_interval"):
        lab({"kind": "lockstep", "failover": {"detection": {"timeout": "1 ms"}}})


def test_phases_begin_where_the_benchmark_begins_them():
    run = lab(
        {"kind": "none"},
        {"kind": "pause", "at": "step 2 + 1 s", "duration": "1 ms"},
        load={"steps": {**LOAD["steps"], "most": 2}},
    )
    phases = {p.name: p.start_ns for p in run.play()}
    assert phases["step_1"] == ramp_of(run.spec).time_of("step 1", 0) == 7 * S
    assert phases["step_2"] == run.spec.time_of(Instant("step 2", 0))
    assert run.timeline == [(28 * S, "pause"), (28 * S + 1_000_000, "pause over")]


@pytest.mark.thorough
def test_unharmed_lockstep_delays_by_a_round_trip_and_costs_cpu():
    plain, protected = lab({"kind": "none"}), lab({"kind": "lockstep"})
    before, after = plain.play()[-1], protected.play()[-1]
    assert before.attempts == after.attempts
    assert sum(after.series["cpu_percent"]) > sum(before.series["cpu_percent"])
    added = after.delays["PMM1"].percentile(50) - before.delays["PMM1"].percentile(50)
    assert 2 * 150_000 * 0.8 < added < 2 * 150_000 * 4  # two passes; CPU cost and histogram width on top


def test_failover_takes_detection_replay_and_go_live():
    """Last entry at 15.3 s (7 s + 8.3 s), heard 75.46 us later, 2 s + 10 ms timeout, 5 ms storage, 100 ms go-live,
    10 ms MAC."""
    run = lab({"kind": "lockstep", "failover": {"detection": {"log_timeout": "2 s"}}}, crash())
    step = run.play()[-1]
    timeline = {what: time_ns for time_ns, what in run.timeline}
    assert timeline["primary crash"] == 15_300_000_000
    assert timeline["failure declared"] == 17_310_075_460
    assert timeline["secondary live"] == 17_415_075_460
    assert timeline["reachable"] == 17_425_075_460
    assert run.lost_while_down > 0
    assert 0 < sum(step.inadequate) < sum(step.attempts) // 5
    assert run.state == "unprotected"


def test_heartbeats_can_be_silent_first():
    """Last beat at 15 s, heard 74.5 us + 0.96 us later, 3 s timeout: before 3 s without log entries."""
    run = lab({"kind": "lockstep"}, crash())
    run.run()
    assert (18 * S + 75_460, "failure declared") in run.timeline


@pytest.mark.thorough
@given(st.integers(0, 26 * S), st.sampled_from(["1 Gbit/s", "1 Mbit/s"]))
@settings(max_examples=6, deadline=None)
def test_a_crash_at_any_instant_of_a_run_keeps_all_invariants(at_ns, rate):
    """The auditor and the conservation laws watch; the service goes on."""
    run = lab({"kind": "lockstep", "channel": {"rate": rate}, "reprotection": None}, crash(f"{at_ns} ns"))
    run.run()
    assert run.counters["failovers"] == 1
    assert run.under_way == 0


def test_protection_comes_back_and_survives_a_second_crash():
    quick = {"delay": "1 s", "memory": "100 MB", "rate": "800 Mbit/s", "dirty_rate": "80 Mbit/s"}
    run = lab({"kind": "lockstep", "reprotection": quick}, crash("step 1 + 5 s"), crash("step 1 + 15 s"))
    run.run()
    assert run.counters["failovers"] == 2
    copied = [t for t, what in run.timeline if what in ("copy begins", "protected")]
    plan = plan_copy(run.protection.reprotection)
    assert copied[2] - copied[1] == plan.live_ns + plan.downtime_ns


def test_a_crash_before_protection_is_back_ends_the_service():
    run = lab({"kind": "lockstep"}, crash("step 1 + 5 s"), crash("step 1 + 10 s"))
    step = run.play()[-1]
    assert run.machine.dead
    assert step.inadequate[Scenario.IMS_MSGC] > step.attempts[Scenario.IMS_MSGC] // 4


@pytest.mark.parametrize("kind", ["backup_crash", "channel_loss"])
def test_losing_the_backup_holds_outputs_until_the_timeout(kind):
    run = lab(
        {"kind": "lockstep", "failover": {"detection": {"log_timeout": "2 s"}}}, {"kind": kind, "at": "step 1 + 8.3 s"}
    )
    run.run()
    timeline = {what: time_ns for time_ns, what in run.timeline}
    assert 2 * S - 2_000_000 < timeline["primary goes on alone"] - 15_300_000_000 < 2 * S + 6_000_000
    assert run.counters["outputs_held_for_detection"] > 20
    assert run.lost_while_down == 0


def test_a_short_channel_loss_only_delays():
    run = lab({"kind": "lockstep"}, {"kind": "channel_loss", "at": "step 1 + 8.3 s", "duration": "1 s"})
    step = run.play()[-1]
    assert [what for _, what in run.timeline] == ["protected", "channel loss", "channel works again"]
    assert run.state == "protected"
    assert sum(step.inadequate) == 0


@pytest.mark.thorough
def test_without_fencing_both_live():
    fault = {"kind": "channel_loss", "at": "step 1 + 8.3 s"}
    slow = {"latency": "20 ms"}  # so that some output is always on its way
    run = lab({"kind": "lockstep", "channel": slow, "failover": {"fencing": False}}, fault)
    run.run()
    assert run.state == "split"
    assert run.counters["outputs_issued_by_both"] >= 1
    assert run.counters["outputs_while_split"] > 100
    fenced = lab({"kind": "lockstep", "channel": slow}, fault)
    fenced.run()
    assert "outputs_while_split" not in fenced.counters


def restart(boot_time):
    failover = {"detection": {"timeout": "3 s"}, "placement": "1 s", "boot_time": boot_time}
    return {"kind": "ha_restart", "failover": failover}


def test_restart_loses_what_was_in_memory_and_comes_back():
    """Beats at whole seconds: silent since 15 s, declared at 18 s, 1 s placement, 2 s boot."""
    ha = restart("2 s")
    run = lab(ha, crash())
    step = run.play()[-1]
    timeline = {what: time_ns for time_ns, what in run.timeline}
    assert timeline["failure declared"] == 18 * S
    assert timeline["booted"] == 21 * S
    alone = lab({"kind": "lockstep"}, crash()).play()[-1]
    assert sum(step.inadequate) > sum(alone.inadequate) > 0
    assert step.inadequate[Scenario.IMS_UAC] < step.attempts[Scenario.IMS_UAC]


def test_a_restart_loses_datagrams_and_accounts_for_all_of_them():
    """A full server crashes: arrived = served + dropped + lost in the crash + in the buffer, over both boots."""
    ha = restart("2 s")
    server = {"touch_cost": "20 ms", "register_touch_cost": "20 ms", "socket_buffer": "20 KiB"}
    run = lab(ha, crash(), server=server)
    step = run.play()[-1]
    server = run.server
    assert server.boots == 2
    assert server.lost_in_crash > 0
    buffered = server.buffer.length + run.spec.domains["sut"].applications["proxy"].processes - server.idle.length
    arrived = run.received - run.lost_while_down - run.ring_dropped - run.waiting
    dropped = run.buffer_dropped
    assert arrived == server.taken + dropped + server.lost_in_crash + buffered
    assert 0 < step.dropped <= dropped + run.ring_dropped


def test_a_dead_server_answers_nobody():
    """Its timers would give up 32 s after the crash and send 408s; it is booted after a minute."""
    ha = restart("60 s")
    load = {"steps": {"initial": 20.0, "duration": 65 * S, "transient": 1 * S, "most": 1}}
    run = lab(ha, crash(), load=load)
    sent = []
    for time_ns in (15_310_000_000, 70_000_000_000):
        run.at(time_ns, lambda: sent.append(run.sent))
    run.run()
    assert sent[0] == sent[1] > 0


def test_a_pause_fills_the_ring_and_drops_what_does_not_fit():
    pause = {"kind": "pause", "at": "step 1 + 8 s", "duration": "4 s"}
    small = lab({"kind": "none"}, pause, path={"ring": 16})
    small.run()
    assert small.ring_dropped > 0
    large = lab({"kind": "none"}, pause, path={"ring": 4096})
    large.run()
    assert large.ring_dropped == 0
    assert large.machine.stopped_ns == 4 * S


def test_protection_can_begin_with_a_phase():
    run = lab({"kind": "lockstep", "active_from": "step 1"})
    run.run()
    assert run.timeline == [(7 * S, "protected")]


@pytest.mark.thorough
def test_same_seed_same_run():
    first, second = (lab({"kind": "lockstep"}, crash()) for _ in range(2))
    assert first.play()[-1].series == second.play()[-1].series
    assert first.summary == second.summary


@pytest.mark.parametrize(("begin", "length", "all_ns"), [("8500", "700", 1_200_000_000), ("8200", "500", S)])
def test_a_guest_goes_on_when_all_pauses_are_over(begin, length, all_ns):
    """Beside one of 1 s from 8 s on: another one that ends later, and one that ends earlier."""
    first = {"kind": "pause", "at": "step 1 + 8 s", "duration": "1 s"}
    run = lab({"kind": "none"}, first, {"kind": "pause", "at": f"step 1 + {begin} ms", "duration": f"{length} ms"})
    run.run()
    assert run.machine.stopped_ns == all_ns
    assert [what for _, what in run.timeline] == ["pause", "pause", "pause over"]
