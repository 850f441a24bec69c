"""Threads of a program that take messages in turn, each a process to its guest's scheduler.

An idle thread sleeps, and the one that has slept for longest takes what comes (Linux, ``prepare_to_wait_exclusive``:
who waits joins the end, and the first is woken).  A scheduler that knows jobs only (``round_robin``) has no processes,
and all of this is 0 there.  Threads that sleep in the send call when a machine is booted anew are others afterwards.
"""

from vftsim.kernel import Chain, Fifo, Record, Sim, Table, part
from vftsim.platform.cpu.jobs import known_process
from vftsim.platform.cpu.processes import processes
from vftsim.platform.cpu.records import Domain
from vftsim.platform.io.packet import packets


class Hand(Record):
    """The process of the thread that has a packet in hand."""

    process: int


hands = Table("thread_hands", Hand, beside=packets)
idle_list = Chain(processes, "idle")


@part
def take_thread(sim: Sim, domain: Domain, idle: Fifo, packet: int) -> None:
    """Have an idle thread of a program take a packet in hand."""
    hands(sim)[packet].process = known_process(sim, domain, idle_list.pop(sim, idle), False)


@part
def let_idle(sim: Sim, idle: Fifo, process: int) -> None:
    """Let a thread wait for what comes."""
    if process != 0:
        idle_list.push(sim, idle, process)


@part
def let_all_idle(sim: Sim, idle: Fifo, in_hand: Fifo) -> None:
    """Let the threads wait that have these packets in hand: they are lost."""
    row = in_hand.first
    while row != 0:
        let_idle(sim, idle, hands(sim)[row].process)
        row = packets(sim)[row].link
