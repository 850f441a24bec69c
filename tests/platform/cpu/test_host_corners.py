"""Host and guest: what happens at the corners, with times worked out by hand."""

import pytest

from tests.platform.cpu.host_lab import (
    HOG_NS,
    IDLE,
    MS,
    Lab,
    freeze,
    reschedule,
    start_now,
    thaw,
    wake_again,
)
from tests.platform.scripted_host import job_done, on_job, scripted_jobs
from vftsim.errors import ConservationError, UsageError
from vftsim.kernel import EventKind, Sim, event
from vftsim.platform.cpu import build, jobs
from vftsim.platform.cpu.records import BLOCKED, domains, hosts, work_done
from vftsim.platform.cpu.schedulers._credit_records import OVER, credit_vcpus
from vftsim.platform.cpu.schedulers.credit import Credit
from vftsim.platform.cpu.schedulers.esxi import Esxi
from vftsim.platform.cpu.schedulers.native import Native
from vftsim.platform.cpu.schedulers.round_robin import RoundRobin
from vftsim.platform.cpu.schedulers.rtds import Rtds


def test_a_long_job_yields_at_the_next_multiple_of_its_quantum():
    """Quantum 10 ms.  A 50 ms job runs alone from 0; a 5 ms job comes at 23: the first yields at 30.

    5 ms job 30-35; the first one goes on: 30 done, 20 left: 35-55.
    """
    lab = Lab(Native())
    lab.domain("A", quantum_ns=10 * MS)
    lab.burst("A", 0, demand_ms=50)
    lab.burst("A", 23, demand_ms=5)
    assert lab.run(100).finished == [(35, "A"), (55, "A")]


def test_two_long_jobs_alternate_by_quantum():
    """Quantum 10 ms, jobs of 25 ms (at 0) and 15 ms (at 4): 0-10, 10-20, 20-30, 30-35 done, 35-40 done."""
    lab = Lab(Native())
    lab.domain("A", quantum_ns=10 * MS)
    lab.burst("A", 0, demand_ms=25)
    lab.burst("A", 4, demand_ms=15)
    assert lab.run(100).finished == [(35, "A"), (40, "A")]


def test_interrupts_go_before_jobs_and_the_displaced_job_stays():
    """Job 0-10; interrupts of 2 ms at 3 and of 1 ms at 4: 3-5 and 5-6; the job ends at 13.

    The other vCPU is idle but does not take the displaced job.
    """
    lab = Lab(Native(), pcpus=2)
    lab.domain("A", vcpus=2)
    lab.burst("A", 0, demand_ms=10)
    lab.work("A", 3, 2 * MS, "interrupt")
    lab.work("A", 4, MS, "interrupt")
    lab.run(20)
    assert lab.finished == [(5, "irq"), (6, "irq"), (13, "A")]
    assert lab.vcpus("A")[1].run_ns == 0


def test_interrupt_for_a_vcpu_that_waits_goes_first_when_it_runs():
    """Turns of 10 ms: A (job of 15 ms) 0-10, B 10-20; an interrupt for A at 12 runs 20-21, then A's job."""
    lab = Lab(RoundRobin(quantum=10 * MS))
    lab.domain("A")
    lab.domain("B")
    lab.burst("A", 0, demand_ms=15)
    lab.hog("B")
    lab.work("A", 12, MS, "interrupt")
    assert lab.run(40).finished == [(21, "irq"), (26, "A")]


def test_freeze_keeps_interrupts_and_what_is_left_of_the_work():
    """Job of 10 ms, frozen 4-20; an interrupt of 1 ms at 8 waits: 20-21; the job's other 6 ms: 21-27."""
    lab = Lab(Native())
    lab.domain("A")
    lab.burst("A", 0, demand_ms=10)
    lab.pause("A", 4, 20)
    lab.work("A", 8, MS, "interrupt")
    assert lab.run(40).finished == [(21, "irq"), (27, "A")]
    assert lab.run_ns("A") == 11 * MS


def test_interrupt_work_frozen_during_the_switch_to_its_vcpu_is_done_once():
    """Switch 2 ms; interrupt of 3 ms at 0, a job of 4 ms at 1; frozen 1-10, so the switch ends with nothing to do."""
    lab = Lab(Native(), switch_cost_ns=2 * MS)
    lab.domain("A", quantum_ns=10 * MS)
    lab.work("A", 0, 3 * MS, "interrupt")
    lab.burst("A", 1, demand_ms=4)
    lab.pause("A", 1, 10)
    assert lab.run(40).finished == [(13, "irq"), (17, "A")]
    assert lab.run_ns("A") == 7 * MS


@work_done
def start_two(sim: Sim, place: int, argument: int) -> None:
    """Start two jobs, that of the other domain first."""
    other, job = scripted_jobs(sim)[place], scripted_jobs(sim)[argument]
    jobs.submit(sim, domains(sim)[other.domain], other.demand_ns, job_done, place, 0)
    jobs.submit(sim, domains(sim)[job.domain], job.demand_ns, job_done, argument, 0)


@event
def start_chain(sim: Sim, place: int) -> None:
    """Start a job, and when it is done the two whose rows follow."""
    job = scripted_jobs(sim)[place]
    jobs.submit(sim, domains(sim)[job.domain], job.demand_ns, start_two, place + 2, place + 1)


def test_a_callback_may_make_its_own_pcpu_choose_again():
    """A's job ends at 5 and wakes B on the same pCPU under a scheduler that pre-empts: no time is lost."""
    lab = Lab(Esxi(), actions=(start_chain,))
    lab.domain("A")
    lab.domain("B", reservation=50)
    first = lab.job("A", 5 * MS)
    lab.job("A", 3 * MS)
    lab.job("B", 2 * MS)
    lab.at(100, EventKind.ARRIVAL, start_chain, first)
    lab.run(120)
    assert lab.finished == [(107, "B"), (110, "A")]
    assert lab.decisions() == [(100, "A"), (105, "B"), (107, "A"), (110, "-")]


@work_done
def end(sim: Sim) -> None:
    """Nothing follows."""


@work_done
def wake_and_continue(sim: Sim, row: int) -> None:
    """Wake the other domain, then go on with a job that no vCPU is woken for."""
    jobs.submit(sim, domains(sim)[row + 1], 3 * MS, end, 0, 0)
    jobs.continue_with(sim, domains(sim)[row], MS // 5, end, 0, 0)


@event
def start_continuing_job(sim: Sim, row: int) -> None:
    jobs.submit(sim, domains(sim)[row], MS // 5, wake_and_continue, row, 0)


@pytest.mark.parametrize(("version", "decisions"), [("4.1", "ABA"), ("4.2", "AB"), ("4.18", "AB")])
def test_a_vcpu_chosen_again_in_its_callback_does_what_the_callback_continues_with(version, decisions):
    """A is OVER, so B would preempt it; from 4.2 on the rate limit of 1 ms keeps A, which has no work yet."""
    lab = Lab(Credit(version=version), actions=(start_continuing_job,))
    row = lab.domain("A")
    lab.domain("B")
    lab.at(1, EventKind.ARRIVAL, start_continuing_job, row)
    lab.run(0.5)
    lab.engine.rows(credit_vcpus)[lab.vcpu_rows("A")[0]].priority = OVER
    lab.run(9)
    assert lab.vcpus("A")[0].run_ns == 2 * MS // 5
    assert "".join(name for _, name in lab.decisions()) == f"{decisions}-"


@work_done
def freeze_own(sim: Sim, place: int) -> None:
    jobs.freeze(sim, domains(sim)[place])


@event
def start_freezing_job(sim: Sim, place: int) -> None:
    jobs.submit(sim, domains(sim)[place], MS, freeze_own, place, 0)


def test_a_callback_may_freeze_its_own_guest():
    lab = Lab(Native(), actions=(start_freezing_job,))
    row = lab.domain("A")
    lab.at(0, EventKind.ARRIVAL, start_freezing_job, row)
    lab.burst("A", 0.5, demand_ms=1)
    lab.run(10)
    assert lab.vcpus("A")[0].state == BLOCKED
    assert lab.run_ns("A") == MS
    lab.engine.call(thaw, row)
    lab.run(20)
    assert lab.run_ns("A") == 2 * MS


def test_work_that_ends_with_its_slice_is_done():
    """Completion and slice end fall on 10 ms: the work is done, B starts at 10 without A being queued."""
    lab = Lab(RoundRobin(quantum=10 * MS))
    lab.domain("A")
    lab.domain("B")
    lab.burst("A", 0, demand_ms=10)
    lab.burst("B", 0, demand_ms=4)
    lab.run(30)
    assert lab.finished == [(10, "A"), (14, "B")]
    assert lab.decisions() == [(0, "A"), (10, "B"), (14, "-")]


def test_switch_cost_delays_work_and_is_accounted():
    """Switch 1 ms, quantum 10 ms: A 0(1)-6 done, B 6(7)-9 done; then A again at 20 pays once more."""
    lab = Lab(RoundRobin(quantum=10 * MS), switch_cost_ns=MS)
    lab.domain("A")
    lab.domain("B")
    lab.burst("A", 0, 20, demand_ms=5)
    lab.burst("B", 0, demand_ms=2)
    lab.run(40)
    assert lab.finished == [(6, "A"), (9, "B"), (26, "A")]
    assert (lab.switching_ns, lab.engine.rows(hosts)[lab.host].context_switches) == (3 * MS, 3)
    assert lab.idle_ns(0) == (40 - 12 - 3) * MS
    assert [lab.vcpus(name)[0].context_switches for name in "AB"] == [2, 1]


def test_a_switch_that_is_interrupted_costs_what_has_passed_of_it():
    """Switch 1 ms.  To A 0-0.4, then to B 0.4-0.7, then to A again 0.7-1.7: 1.7 ms lost, no negative charge.

    A lone A whose pCPU must choose again at 0.4 goes on with its switch, which ends at 1.
    """
    lab = Lab(RoundRobin(quantum=5 * MS), switch_cost_ns=MS)
    lab.domain("A")
    lab.domain("B")
    lab.hog("A", "B")
    lab.run(0.4)
    lab.engine.call(reschedule, lab.pcpu(0).row)
    lab.run(0.4)
    assert lab.decisions() == [(0, "A"), (0.4, "B")]
    lab.run(0.7)
    assert lab.run_ns("A") == lab.run_ns("B") == 0
    lab.engine.call(reschedule, lab.pcpu(0).row)
    lab.run(2)
    assert lab.run_ns("A") == round(0.3 * MS)
    assert lab.switching_ns == round(1.7 * MS)
    lone = Lab(RoundRobin(quantum=5 * MS), switch_cost_ns=MS)
    lone.domain("A")
    lone.hog("A")
    lone.run(0.4)
    lone.engine.call(reschedule, lone.pcpu(0).row)
    lone.run(3)
    assert (lone.run_ns("A"), lone.switching_ns) == (2 * MS, MS)


def test_accounts_of_a_vcpu():
    """Round robin of 10 ms: B is ready at 0 and waits until 10, wakes again at 30 on the idle pCPU."""
    lab = Lab(RoundRobin(quantum=10 * MS))
    lab.domain("A")
    lab.domain("B")
    lab.burst("A", 0, demand_ms=10)
    lab.burst("B", 0, 30, demand_ms=4)
    lab.run(50)
    b = lab.vcpus("B")[0]
    assert (b.run_ns, b.wait_ns, b.wakeups, b.context_switches) == (8 * MS, 10 * MS, 2, 1)


def test_conservation_check_notices_time_that_appears():
    lab = Lab(Native())
    lab.domain("A")
    lab.burst("A", 0, demand_ms=5)
    lab.run(7)
    lab.vcpus("A")[0].run_ns += 1
    with pytest.raises(ConservationError, match="vCPUs ran 5000001"):
        build.check_conservation(lab.engine, lab.host)
    lab.vcpus("A")[0].run_ns -= 1
    lab.pcpu(0).switching_ns += 1
    with pytest.raises(ConservationError, match="pCPU 0"):
        build.check_conservation(lab.engine, lab.host)


def test_waking_a_vcpu_that_is_not_blocked_does_nothing():
    lab = Lab(Native())
    lab.domain("A")
    lab.hog("A")
    lab.run(1)
    lab.engine.call(wake_again, lab.vcpu_rows("A")[0])
    assert lab.vcpus("A")[0].wakeups == 1


@pytest.mark.parametrize("affinity", [[], [2], [0, 5]])
def test_impossible_affinity_is_refused(affinity):
    with pytest.raises(UsageError, match="pCPUs 0 to 1"):
        Lab(Native(), pcpus=2).domain("A", affinity=affinity)


def test_native_needs_a_pcpu_for_each_vcpu():
    lab = Lab(Native(), pcpus=1)
    lab.domain("A", vcpus=2)
    with pytest.raises(UsageError, match="2 vCPUs"):
        lab.run(1)


def test_thaw_wakes_as_many_vcpus_as_there_are_jobs():
    lab = Lab(Native(), pcpus=3)
    row = lab.domain("A", vcpus=3, quantum_ns=10 * MS)
    lab.start()
    lab.engine.call(freeze, row)
    for _ in range(2):
        lab.engine.call(start_now, lab.job("A", HOG_NS))
    lab.engine.call(thaw, row)
    assert lab.running() == ["A0", "A1", "-"]


def test_of_two_pcpus_out_of_work_the_lower_one_takes_who_waits():
    """2 pCPUs: A on 0 and B on 1 both end at 3; W has waited since 1."""
    lab = Lab(RoundRobin(), pcpus=2)
    for name in "ABW":
        lab.domain(name)
    lab.burst("A", 0, demand_ms=3)
    lab.burst("B", 0, demand_ms=3)
    lab.burst("W", 1, demand_ms=2)
    lab.run(4)
    assert lab.running() == ["W", "-"]


def test_pcpus_out_of_work_choose_in_order_also_when_an_end_wakes_somebody():
    """2 pCPUs, EDF: A (deadline 20) on 0 and B (20) on 1 both end at 3, W (51) waits; B's end wakes X (13).

    Both have blocked before either pCPU chooses: 0 takes X, the most urgent, and 1 takes W.
    """
    lab = Lab(Rtds(), pcpus=2)
    for name, period_ms in (("A", 20), ("B", 20), ("W", 50), ("X", 10)):
        lab.domain(name, period=period_ms * MS, budget=4 * MS, extratime=False)
    lab.burst("A", 0, demand_ms=3)
    ends_first = lab.job("B", 3 * MS)
    lab.engine.rows(scripted_jobs)[ends_first].then = lab.job("X", MS)
    lab.at(0, EventKind.ARRIVAL, on_job, ends_first, 9)
    lab.burst("W", 1, demand_ms=2)
    lab.run(8)
    ran = [decision for decision in lab.recorder.decisions if decision[2] != IDLE]
    assert ran == [(0, 0, "A"), (0, 1, "B"), (3, 0, "X"), (3, 1, "W")]
