"""What a lab of one's own may need: no challenge, script work by message, wake-ups, answers at once, stops again."""

from __future__ import annotations

import pytest
from bench import MS, US, Bench, S, plain_server
from pydantic import ValidationError
from small_lab import fingerprint, run, small_lab

from vftsim.composition.run import Run
from vftsim.platform.protection.faults import Pause, RepeatSpec
from vftsim.workloads.ims_bench.workload import ImsBenchSpec
from vftsim.workloads.sip.messages import Message, Scenario

SCRIPT = {"cost": 1 * US, "registration": 70, "invite": 200, "ack": 60, "bye": 120, "message": 30, "reply": 40}


def test_a_registration_that_is_not_challenged_is_one_request_of_two_touches() -> None:
    bench = Bench(plain_server(challenges=False))
    bench.attempt(Scenario.IMS_REREG)
    assert bench.run(5_000) == [(1_000, "server", "REGISTER"), (2_200, "agents", "OK_REGISTER")]
    assert bench.busy_ns() == 200 * US
    assert bench.delays_us("REG2") == (1, 2_200)
    assert bench.record.delays["REG1"].count == 0


def test_the_script_costs_its_units_once_for_each_new_message() -> None:
    """13 touches of 100 us and 500 us of script; a message repeated pays its price of two touches, no script."""
    bench = Bench(plain_server(script=SCRIPT, repeated_request_cost=0.5))
    bench.attempt(Scenario.IMS_UAC)
    bench.run(3_000_000)
    assert bench.busy_ns() == 1_300 * US + (200 + 3 * 40 + 60 + 120) * US
    # The BYE's 200 is lost on its way to the caller once: the caller repeats it, the server answers from memory.
    again = Bench(
        plain_server(script=SCRIPT, repeated_request_cost=0.5),
        loses=lambda to, message, nth: to == "agents" and message == Message.OK_BYE and nth == 1,
    )
    again.attempt(Scenario.IMS_UAC)
    again.run(3_000_000)
    assert again.busy_ns() - bench.busy_ns() == 100 * US


def test_a_wake_up_is_paid_by_the_first_message_after_a_rest_of_all_workers() -> None:
    """Two registrations, 50 ms apart; a rest of 2 ms is long enough."""
    bench = Bench(plain_server(wakeup_cost=300 * US, wakeup_idle=2 * MS))
    bench.attempt(Scenario.IMS_REG)
    bench.attempt(Scenario.IMS_REG, at_us=50_000)
    bench.run(100_000)
    # First REGISTER at 1 ms, after 1 ms of rest: no wake-up; its credentials at 3.2 ms, after 2 ms: one. At 51 ms: two.
    assert bench.busy_ns() == 8 * 100 * US + 3 * 300 * US


def test_messages_that_find_a_worker_at_work_pay_no_wake_up() -> None:
    bench = Bench(plain_server(wakeup_cost=300 * US, challenges=False))
    for number in range(4):
        bench.attempt(Scenario.IMS_REREG, at_us=50 * number)
    bench.run(100_000)
    assert bench.busy_ns() == 4 * 200 * US + 300 * US


def test_answers_at_once_and_the_time_that_user_agents_take() -> None:
    """There, INVITE 300 us, there, reaction 90 us (180 and 200 at once), back, 180 and 200 in turn, back."""
    bench = Bench(plain_server(), ImsBenchSpec(to="server", ring_time=0, reaction_time=90 * US))
    bench.attempt(Scenario.IMS_UAC, ring_us=0)
    log = bench.run(100_000)
    assert (2_300, "agents", "INVITE") in log
    assert [time for time, where, _ in log if where == "server"][1:3] == [3_390, 3_390]
    assert bench.delays_us("SES2") == (1, 2_300)
    assert bench.delays_us("invite200") == (1, 4_790)  # 3,390 + 2 x 200 of one CPU + 1,000
    assert bench.agents.completed == 1


def test_constant_times_are_constant_and_none_are_none() -> None:
    steps = {"most": 1, "duration": 4 * S, "transient": 1 * S}
    calls = {"ims_rereg": 0.0, "ims_reg": 0.0, "ims_uac": 100.0, "ims_dereg": 0.0, "ims_msgc": 0.0}
    _, phases = run(
        small_lab(steps=steps, workload={"mix": calls, "ring_time": 0, "hold_time": 100 * MS, "time_cv": 0.0})
    )
    step = phases[-1]
    assert step.delays["invite200"].count == step.attempts[Scenario.IMS_UAC] > 50
    # What is completed in the measured seconds: every call that began some 0.1 s before, within their number.
    assert sum(step.series["completed"]) == pytest.approx(sum(step.attempts), abs=25)


REPEATED = RepeatSpec(every=50 * MS, most=10_000)


def test_a_stop_that_comes_again_stops_the_guest_each_time() -> None:
    """10 ms every 50 ms, a fifth of the time: an INVITE that meets a stop waits for its rest, 1 ms on average."""
    steps = {"most": 1, "duration": 10 * S, "transient": 2 * S, "initial": 30.0}
    quiet, stopped = (
        run(
            small_lab({"touch_cost": 10 * US, "register_touch_cost": 10 * US, "demand_cv": 0.0}, steps).model_copy(
                update={"faults": faults}
            )
        )[1][-1]
        for faults in ((), (Pause(kind="pause", at="step 1", duration=10 * MS, repeat=REPEATED),))
    )
    apart_ms = (stopped.delays["SES2"].mean - quiet.delays["SES2"].mean) / MS
    assert apart_ms == pytest.approx(10 * 10 / 2 / 50, rel=0.4)  # n about 120, sd 2.6 ms
    assert stopped.delays["SES2"].max / MS == pytest.approx(10, abs=1)
    with pytest.raises(ValidationError, match="every must be longer than the fault"):
        Pause(kind="pause", at="1 s", duration=10 * MS, repeat=RepeatSpec(every=10 * MS))


def test_work_that_falls_with_utilization_stops_falling() -> None:
    """Factor 1 - 0.5 x min(U, 40 %): 0.99 at 2 %, 0.8 at 100 %."""
    bench = Bench(plain_server(growth_with_utilization=-0.5, growth_up_to=40.0, utilization_time=1, challenges=False))
    bench.attempt(Scenario.IMS_REREG)
    for number in range(3):
        bench.attempt(Scenario.IMS_REREG, at_us=10_000 + number)
    bench.run(100_000)
    # Averaged over 1 ns, U is that of the time since the last look: 0 for the first, 200 us of 10 ms for the second,
    # and 1 for the third and fourth, which come 1 us after the one before.
    assert bench.busy_ns() == (200 + 198 + 160 + 160) * US


def test_outputs_that_are_held_leave_together_at_multiples() -> None:
    """Held for 40 ms: an INVITE waits between 0 and 40 ms more, a BYE's way there and its 200 back each as long."""
    steps = {"most": 1, "duration": 10 * S, "transient": 2 * S, "initial": 30.0}
    server = {"touch_cost": 10 * US, "register_touch_cost": 10 * US, "demand_cv": 0.0}
    at_once = run(small_lab(server, steps))[1][-1]
    held = run(small_lab(server, steps, path={"release_every": 40 * MS}))[1][-1]
    for delay, crossings in (("SES2", 1), ("REL1", 2)):
        n, apart_ms = held.delays[delay].count, (held.delays[delay].mean - at_once.delays[delay].mean) / MS
        # One crossing waits evenly between 0 and 40 ms; the second of a BYE is half a millisecond after a release.
        expected_ms, sd_ms = (20.0, 11.5) if crossings == 1 else (20.0 + 39.6, 11.5)
        assert n > 60
        assert apart_ms == pytest.approx(expected_ms, abs=4 * sd_ms / n**0.5)
    assert held.delays["SES2"].max / MS < 41


@pytest.mark.slow
def test_both_engines_do_the_same() -> None:
    """Everything at once: script, wake-ups, growth, no challenge, reactions, constant times, stops, held outputs."""
    spec = small_lab(
        {
            "script": SCRIPT,
            "wakeup_cost": 300 * US,
            "wakeup_idle": 1 * MS,
            "growth_with_utilization": -0.5,
            "growth_up_to": 40.0,
            "challenges": False,
        },
        {"most": 1, "duration": 6 * S, "transient": 1 * S},
        {"ring_time": 0, "hold_time": 100 * MS, "time_cv": 0.0, "reaction_time": 90 * US},
        {"release_every": 20 * MS, "moderation": 0},
    ).model_copy(update={"faults": (Pause(kind="pause", at="step 1", duration=5 * MS, repeat=REPEATED),)})
    both = [fingerprint(Run(spec, 7, 0, engine=engine).run().played()) for engine in ("simpy", "compiled")]
    assert both[0] == both[1]
