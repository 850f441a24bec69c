"""Threads of a program that take messages in turn, each a process to its guest's scheduler.

An idle thread sleeps, and the one that has slept for longest takes what comes (Linux, ``prepare_to_wait_exclusive``:
who waits joins the end, and the first is woken).  A scheduler that knows jobs only (``round_robin``) has no processes,
and all of this is 0 there.  Threads that sleep in the send call when a machine is booted anew are others afterwards.
"""

from vftsim.kernel import Chain, Fifo, Record, Sim, Table
from vftsim.platform.cpu.jobs import ensure_process
from vftsim.platform.cpu.processes import processes
from vftsim.platform.cpu.records import Domain
from vftsim.platform.io.packet import packet_list, packets


class ServingThread(Record):
    """The process of the thread that serves a packet."""

    process: int


serving_threads = Table("serving_threads", ServingThread, beside=packets)
idle_list = Chain(processes, "idle")


def take_thread(sim: Sim, domain: Domain, idle: Fifo, packet: int) -> None:
    """Have an idle thread of a program take a packet in hand."""
    serving_threads(sim)[packet].process = ensure_process(sim, domain, idle_list.pop(sim, idle), False)


def release_thread(sim: Sim, idle: Fifo, process: int) -> None:
    """Let a thread wait for what comes."""
    if process != 0:
        idle_list.push(sim, idle, process)


def release_threads(sim: Sim, idle: Fifo, in_hand: Fifo) -> None:
    """Let the threads wait that have these packets in hand: they are lost."""
    for serving_thread in serving_threads.listed(sim, packet_list, in_hand):
        release_thread(sim, idle, serving_thread.process)
