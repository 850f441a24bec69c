"""Host and guest: what happens at the corners, with times worked out by hand."""

import pytest
from cpu_lab import HOG_NS, MS, Lab

from vftsim.cpu import Guest, Host, VcpuState, Work
from vftsim.cpu.schedulers.native import Native
from vftsim.cpu.schedulers.round_robin import RoundRobin
from vftsim.engine import Clock, EventKind
from vftsim.errors import ConservationError, UsageError


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


def _note(lab, name):
    return lambda _: lab.finished.append((lab.clock.now_ns / MS, name))


def test_interrupts_go_before_jobs_and_the_displaced_job_stays():
    """Job 0-10; interrupts of 2 ms at 3 and of 1 ms at 4: 3-5 and 5-6; the job ends at 13.

    The other vCPU is idle but does not take the displaced job.
    """
    lab = Lab(Native(), pcpus=2)
    guest = lab.domain("A", vcpus=2)
    lab.burst("A", 0, demand_ms=10)
    for time_ms, demand_ms in ((3, 2), (4, 1)):
        work = Work(demand_ms * MS, _note(lab, "irq"))
        lab.clock.at(time_ms * MS, EventKind.DEVICE, 0, lambda w: guest.raise_interrupt(guest.vcpus[0], w), work)
    lab.run(20)
    assert lab.finished == [(5, "irq"), (6, "irq"), (13, "A")]
    assert guest.vcpus[1].run_ns == 0


def test_interrupt_for_a_vcpu_that_waits_goes_first_when_it_runs():
    """Turns of 10 ms: A (job of 15 ms) 0-10, B 10-20; an interrupt for A at 12 runs 20-21, then A's job."""
    lab = Lab(RoundRobin(quantum=10 * MS))
    guest = lab.domain("A")
    lab.domain("B")
    lab.burst("A", 0, demand_ms=15)
    lab.hog("B")
    lab.clock.at(
        12 * MS, EventKind.DEVICE, 0,
        lambda _: guest.raise_interrupt(guest.vcpus[0], Work(MS, _note(lab, "irq"))),
    )  # fmt: skip
    assert lab.run(40).finished == [(21, "irq"), (26, "A")]


def test_freeze_keeps_interrupts_and_what_is_left_of_the_work():
    """Job of 10 ms, frozen 4-20; an interrupt of 1 ms at 8 waits: 20-21; the job's other 6 ms: 21-27."""
    lab = Lab(Native())
    guest = lab.domain("A")
    lab.burst("A", 0, demand_ms=10)
    at = lab.clock.at
    at(4 * MS, EventKind.CONTROL, 0, lambda _: guest.freeze())
    at(
        8 * MS,
        EventKind.DEVICE,
        0,
        lambda _: guest.raise_interrupt(guest.vcpus[0], Work(MS, _note(lab, "irq"))),
    )
    at(20 * MS, EventKind.CONTROL, 0, lambda _: guest.thaw())
    assert lab.run(40).finished == [(21, "irq"), (27, "A")]
    assert lab.run_ns("A") == 11 * MS


def test_a_callback_may_make_its_own_pcpu_choose_again():
    """A's job ends at 5 and wakes B on the same pCPU under a scheduler that pre-empts: no time is lost."""
    from vftsim.cpu.schedulers.esxi import Esxi

    lab = Lab(Esxi())
    guest_a, guest_b = lab.domain("A"), lab.domain("B", reservation=50)

    def chain(_):
        guest_b.submit(Work(2 * MS, _note(lab, "B")))
        guest_a.submit(Work(3 * MS, _note(lab, "A")))

    lab.clock.at(100 * MS, EventKind.ARRIVAL, 0, lambda _: guest_a.submit(Work(5 * MS, chain)))
    lab.run(120)
    assert lab.finished == [(107, "B"), (110, "A")]
    assert lab.decisions() == [(100, "A"), (105, "B"), (107, "A"), (110, "-")]


def test_a_callback_may_freeze_its_own_guest():
    lab = Lab(Native())
    guest = lab.domain("A")
    lab.clock.at(0, EventKind.ARRIVAL, 0, lambda _: guest.submit(Work(MS, lambda _: guest.freeze())))
    lab.burst("A", 0.5, demand_ms=1)
    lab.run(10)
    assert guest.vcpus[0].state is VcpuState.BLOCKED
    assert lab.run_ns("A") == MS
    guest.thaw()
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
    assert (lab.host.switching_ns, lab.host.context_switches) == (3 * MS, 3)
    assert lab.host.idle_ns(0) == (40 - 12 - 3) * MS
    assert [v.context_switches for v in lab.host.vcpus] == [2, 1]


def test_a_switch_that_is_interrupted_costs_what_has_passed_of_it():
    """Switch 1 ms.  To A 0-0.4, then to B 0.4-0.7, then to A again 0.7-1.7: 1.7 ms lost, no negative charge.

    A lone A whose pCPU must choose again at 0.4 goes on with its switch, which ends at 1.
    """
    lab = Lab(RoundRobin(quantum=5 * MS), switch_cost_ns=MS)
    lab.domain("A")
    lab.domain("B")
    lab.hog("A", "B")
    again = lab.host.reschedule
    lab.run(0.4)
    again(0)
    assert lab.decisions() == [(0, "A"), (0.4, "B")]
    lab.run(0.7)
    assert lab.run_ns("A") == lab.run_ns("B") == 0
    again(0)
    lab.run(2)
    assert lab.run_ns("A") == round(0.3 * MS)
    assert lab.host.switching_ns == round(1.7 * MS)
    lone = Lab(RoundRobin(quantum=5 * MS), switch_cost_ns=MS)
    lone.domain("A")
    lone.hog("A")
    lone.run(0.4)
    lone.host.reschedule(0)
    lone.run(3)
    assert (lone.run_ns("A"), lone.host.switching_ns) == (2 * MS, MS)


def test_accounts_of_a_vcpu():
    """Round robin of 10 ms: B is ready at 0 and waits until 10, wakes again at 30 on the idle pCPU."""
    lab = Lab(RoundRobin(quantum=10 * MS))
    lab.domain("A")
    lab.domain("B")
    lab.burst("A", 0, demand_ms=10)
    lab.burst("B", 0, 30, demand_ms=4)
    lab.run(50)
    b = lab.guests["B"].vcpus[0]
    assert (b.run_ns, b.wait_ns, b.wakeups, b.context_switches) == (8 * MS, 10 * MS, 2, 1)


def test_conservation_check_notices_time_that_appears():
    lab = Lab(Native())
    lab.domain("A")
    lab.burst("A", 0, demand_ms=5)
    lab.run(7)
    lab.host.vcpus[0].run_ns += 1
    with pytest.raises(ConservationError, match="vCPUs ran 5000001"):
        lab.host.check_conservation()
    lab.host.vcpus[0].run_ns -= 1
    lab.host.pcpu_switching_ns[0] += 1
    with pytest.raises(ConservationError, match="pCPU 0"):
        lab.host.check_conservation()


def test_waking_a_vcpu_that_is_not_blocked_does_nothing():
    lab = Lab(Native())
    guest = lab.domain("A")
    lab.hog("A")
    lab.run(1)
    lab.host.wake(guest.vcpus[0])
    assert guest.vcpus[0].wakeups == 1


@pytest.mark.parametrize("affinity", [[], [2], [0, 5]])
def test_impossible_affinity_is_refused(affinity):
    with pytest.raises(UsageError, match="pCPUs 0 to 1"):
        Host(Clock(), 2, Native().build()).add_vcpu(None, affinity)


def test_native_needs_a_pcpu_for_each_vcpu():
    lab = Lab(Native(), pcpus=1)
    lab.domain("A", vcpus=2)
    with pytest.raises(UsageError, match="2 vCPUs"):
        lab.run(1)


def test_thaw_wakes_as_many_vcpus_as_there_are_jobs():
    clock = Clock()
    host = Host(clock, 3, Native().build())
    guest = Guest(host, [host.add_vcpu(None) for _ in range(3)], 10 * MS)
    host.start()
    guest.freeze()
    for _ in range(2):
        guest.submit(Work(HOG_NS, lambda _: None))
    guest.thaw()
    assert [v is not None for v in host.running] == [True, True, False]
