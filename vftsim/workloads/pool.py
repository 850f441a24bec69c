"""Programs that are pools of threads: each takes a packet from the socket, computes, and sends the answer.

The socket's receive buffer is bounded in bytes as the kernel counts them, overhead included; a packet that does not
fit is dropped by the network stack.  Each thread handles one packet at a time and sleeps in the send call while
the way out has no room.

Left out: locks between threads, page faults, the disk work of the call server.
"""

from __future__ import annotations

from typing import Any

from vftsim.kernel import Engine, Kind, Record, Sim, Table, part
from vftsim.kernel.declare import Failure, fail
from vftsim.platform.cpu.jobs import continue_with, submit
from vftsim.platform.cpu.records import domains, work_done
from vftsim.platform.io.marks import PROGRAM_DONE, PROGRAM_TAKEN, mark, mark_logs
from vftsim.platform.io.packet import applications, drop, packet_list, packets, ports
from vftsim.platform.io.ring import Ring, keep_slot, wait_for_slot
from vftsim.platform.protection.guard import put_out
from vftsim.workloads.parts import ApplicationSpec, Home, Program

NO_SLOT = Failure("a thread was woken for a slot that is not there")


class PoolSpec(ApplicationSpec):
    """What all pools have; each kind has its own defaults."""

    threads: int
    packet_ns: int
    receive_buffer_bytes: int
    packet_charge_bytes: int

    def install(self, home: Home) -> PoolProgram:
        """Add the pool to a domain."""
        return PoolProgram(self, home)


class Pool(Record):
    """Threads of one program; ``active`` ones have a packet, ``blocked`` ones of them sleep in the send call."""

    row: int
    domain: int
    threads: int
    active: int
    blocked: int
    packet_ns: int
    socket: Ring
    is_armed: bool


pools = Table("pools", Pool, 4096)


@part
def take_in(sim: Sim, pool: Pool, packet: int) -> None:
    """Put a packet from the network stack into the socket buffer, or drop it."""
    if not keep_slot(pool.socket):
        drop(sim, packet, pool.socket.drop_place)
        return
    packet_list.push(sim, pool.socket.packets, packet)
    if pool.is_armed:
        pool.is_armed = False
        wake_threads(sim, pool)


@part
def wake_threads(sim: Sim, pool: Pool) -> None:
    """Wake a sleeping thread for each packet that waits."""
    while pool.active < pool.threads:
        packet = packet_list.pop(sim, pool.socket.packets)
        if packet == 0:
            pool.is_armed = True
            return
        pool.active += 1
        start(sim, pool, packet, False)


@part
def start(sim: Sim, pool: Pool, packet: int, is_running: bool) -> None:
    """Have a thread work on a packet: one that is running goes on where it is."""
    if mark_logs(sim)[1].is_on:
        mark(sim, packet, PROGRAM_TAKEN, 0, sim.now_ns, 0)
    demand_ns = pool.packet_ns + ports(sim)[packets(sim)[packet].port].transmit_ns
    if is_running:
        continue_with(sim, domains(sim)[pool.domain], demand_ns, on_answer_ready, packet, pool.row)
    else:
        submit(sim, domains(sim)[pool.domain], demand_ns, on_answer_ready, packet, pool.row)


@work_done
def on_answer_ready(sim: Sim, place: int, argument: int) -> None:
    """Send an answer, or sleep until there is room."""
    pool = pools(sim)[argument]
    port = ports(sim)[packets(sim)[place].port]
    if mark_logs(sim)[1].is_on:
        mark(sim, place, PROGRAM_DONE, 0, sim.now_ns, pool.packet_ns + port.transmit_ns)
    if put_out(sim, port, place):
        take_next(sim, pool, True)
    else:
        pool.blocked += 1
        wait_for_slot(sim, port, place)


@part
def wake_sender(sim: Sim, pool: Pool, packet: int) -> None:
    """Send the answer of a thread that slept, and let it go on."""
    pool.blocked -= 1
    if not put_out(sim, ports(sim)[packets(sim)[packet].port], packet):
        fail(sim, NO_SLOT)
    take_next(sim, pool, False)


@part
def take_next(sim: Sim, pool: Pool, is_running: bool) -> None:
    """Let a thread that is done with a packet take the next, or sleep."""
    pool.socket.occupied -= 1
    packet = packet_list.pop(sim, pool.socket.packets)
    if packet == 0:
        pool.active -= 1
        pool.is_armed = True
    else:
        start(sim, pool, packet, is_running)
    if pool.socket.packets.length > 0:
        wake_threads(sim, pool)


def add_pool(engine: Engine, domain: int, kind: Kind, spec: PoolSpec, drop_place: int) -> int:
    """Add a program to a domain; return its application row."""
    row, pool = engine.add(pools, domain=domain, threads=spec.threads, packet_ns=spec.packet_ns, is_armed=True)
    pool.row = row
    pool.socket.capacity = max(1, spec.receive_buffer_bytes // spec.packet_charge_bytes)
    pool.socket.drop_place = drop_place
    application, program = engine.add(applications, program=engine.number(kind), own=row, domain=domain)
    program.row = application
    return application


class PoolProgram(Program):
    """A pool in a running model."""

    def __init__(self, spec: PoolSpec, home: Home) -> None:
        self.engine = home.engine
        self.name = home.name
        self.row = add_pool(home.engine, home.domain, spec.part, spec, home.place("socket buffer", "full"))
        if home.cpu_inflation != 1.0:
            self.record.packet_ns = round(spec.packet_ns * home.cpu_inflation)

    @property
    def record(self) -> Any:
        """The pool's record."""
        return self.engine.rows(pools)[self.engine.rows(applications)[self.row].own]

    def in_flight(self) -> int:
        """Packets in the socket's buffer and in the hands of threads."""
        return int(self.record.socket.packets.length) + int(self.record.active)

    def occupancy(self) -> tuple[str, int]:
        """Packets in the socket's buffer, those in the hands of threads included."""
        return f"{self.name} socket buffer", int(self.record.socket.occupied)
