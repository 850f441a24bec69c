"""Programs that are pools of threads: each takes a packet from the socket, computes, and sends the answer.

The socket's receive buffer is bounded in bytes as the kernel counts them, overhead included; a packet that does not
fit is dropped by the network stack.  Each thread handles one packet at a time and sleeps in the send call while
the way out has no room.

Protection makes the work of a packet cost ``execution`` times as much, and adds ``output_ns`` for its answer.  A pool
keeps nothing from packet to packet: what it loses with its memory are the packets in the socket and in its threads'
hands.

Left out: locks between threads, page faults, the disk work of the call server; exits to the hypervisor apart from those
of its I/O path.
"""

from typing import Any

from vftsim.kernel import Engine, Kind, Record, Sim, Table, part
from vftsim.kernel.declare import Failure, fail
from vftsim.platform.cpu.jobs import continue_with, submit
from vftsim.platform.cpu.records import domains, work_done
from vftsim.platform.io.marks import PROGRAM_DONE, PROGRAM_TAKEN
from vftsim.platform.io.packet import (
    Application,
    applications,
    drop,
    drops,
    go_on,
    held,
    lose_state,
    mark,
    packet_list,
    packets,
    ports,
    receive,
    refused,
    set_overhead,
)
from vftsim.platform.io.ring import Ring, keep_slot, wait_for_slot
from vftsim.platform.protection.guard import put_out
from vftsim.workloads.dirty_pages import DirtyPagesFields
from vftsim.workloads.parts import ApplicationSpec, InstallContext, Program

NO_SLOT = Failure("a thread was woken for a slot that is not there")


class PoolSpec(DirtyPagesFields, ApplicationSpec):
    """What all pools have; each kind has its own defaults."""

    threads: int
    packet_cost: int
    receive_buffer_bytes: int
    packet_charge_bytes: int

    @property
    def packet_work_ns(self) -> int:
        """CPU time of a thread for a packet."""
        return self.packet_cost

    def install(self, context: InstallContext) -> "PoolProgram":
        """Add the pool to a domain."""
        return PoolProgram(self, context)


class Pool(Record):
    """Threads of one program; ``active`` ones have a packet, ``blocked`` ones of them sleep in the send call.

    ``threads`` stand in consecutive rows from ``first_thread``.  ``lost`` is the row of ``drops`` of packets that were
    in memory when the machine was lost.
    """

    row: int
    domain: int
    threads: int
    first_thread: int
    active: int
    blocked: int
    packet_ns: int
    output_ns: int
    execution: float
    socket: Ring
    is_armed: bool
    lost: int


class Thread(Record):
    """A thread of a pool with the packet in its hands, 0 for none; one that ``is_blocked`` sleeps in the send call."""

    packet: int
    is_blocked: bool


pools = Table("pools", Pool, 4096)
pool_threads = Table("pool_threads", Thread, 1 << 20, "give the programs fewer threads")


@part
def take_in(sim: Sim, pool: Pool, packet: int) -> None:
    """Put a packet from the network stack into the socket buffer, or drop it."""
    if not keep_slot(pool.socket):
        drop(sim, packet, pool.socket.drop_place)
        return
    packet_list.push(sim, pool.socket.packets, packet)
    if pool.is_armed:
        # Before they wake: they arm it again once they have emptied the socket.
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
        start(sim, pool, idle_thread(sim, pool), packet, False)


@part
def idle_thread(sim: Sim, pool: Pool) -> int:
    """Return a thread without a packet; there is one."""
    row = pool.first_thread
    while pool_threads(sim)[row].packet != 0:
        row += 1
    return row


@part
def start(sim: Sim, pool: Pool, row: int, packet: int, is_running: bool) -> None:
    """Have a thread work on a packet: one that is running goes on where it is."""
    pool_threads(sim)[row].packet = packet
    demand_ns = work_ns(sim, pool, packet)
    mark(sim, packet, PROGRAM_TAKEN, 0, sim.now_ns, demand_ns)
    if is_running:
        continue_with(sim, domains(sim)[pool.domain], demand_ns, on_answer_ready, row, pool.row)
    else:
        submit(sim, domains(sim)[pool.domain], demand_ns, on_answer_ready, row, pool.row)


@part
def work_ns(sim: Sim, pool: Pool, packet: int) -> int:
    """Return what a packet costs a thread, its answer included."""
    plain_ns = pool.packet_ns + ports(sim)[packets(sim)[packet].port].transmit_ns
    return int(plain_ns * pool.execution) + pool.output_ns


@work_done
def on_answer_ready(sim: Sim, pool_thread_row: int, argument: int) -> None:
    """Send an answer, or sleep until there is room."""
    pool = pools(sim)[argument]
    packet = pool_threads(sim)[pool_thread_row].packet
    port = ports(sim)[packets(sim)[packet].port]
    mark(sim, packet, PROGRAM_DONE, 0, sim.now_ns, 0)
    if put_out(sim, port, packet):
        take_next(sim, pool, pool_thread_row, True)
    else:
        pool.blocked += 1
        pool_threads(sim)[pool_thread_row].is_blocked = True
        wait_for_slot(sim, port, packet, pool_thread_row)


@part
def wake_sender(sim: Sim, pool: Pool, packet: int) -> None:
    """Send the answer of a thread that slept, and let it go on."""
    row = packets(sim)[packet].sender
    pool.blocked -= 1
    pool_threads(sim)[row].is_blocked = False
    if not put_out(sim, ports(sim)[packets(sim)[packet].port], packet):
        fail(sim, NO_SLOT)
    take_next(sim, pool, row, False)


@part
def take_next(sim: Sim, pool: Pool, row: int, is_running: bool) -> None:
    """Let a thread that is done with a packet take the next, or sleep."""
    pool_threads(sim)[row].packet = 0
    pool.socket.occupied -= 1
    packet = packet_list.pop(sim, pool.socket.packets)
    if packet == 0:
        pool.active -= 1
        pool.is_armed = True
    else:
        start(sim, pool, row, packet, is_running)
    if pool.socket.packets.length > 0:
        wake_threads(sim, pool)


@part
def receive_packet(sim: Sim, program: Application, packet: int) -> None:
    """Into the socket."""
    take_in(sim, pools(sim)[program.own], packet)


@part
def go_on_sending(sim: Sim, program: Application, packet: int) -> None:
    """Wake the thread that waits with this packet."""
    wake_sender(sim, pools(sim)[program.own], packet)


@part
def apply_overhead(sim: Sim, program: Application, output_ns: int, execution: float, exits: float) -> None:
    """Let packets that are taken from now on cost what protection makes them cost."""
    pool = pools(sim)[program.own]
    pool.output_ns = output_ns
    pool.execution = execution


@part
def packets_held(sim: Sim, program: Application) -> int:
    """Those in the socket's buffer and in threads' hands."""
    return pools(sim)[program.own].socket.occupied


@part
def packets_refused(sim: Sim, program: Application) -> int:
    """Those that did not fit into the socket."""
    return drops(sim)[pools(sim)[program.own].socket.drop_place].count


@part
def begin_anew(sim: Sim, program: Application) -> None:
    """Lose the packets in the socket and in threads' hands; those that threads slept with were lost with their ring."""
    pool = pools(sim)[program.own]
    while pool.socket.packets.length > 0:
        drop(sim, packet_list.pop(sim, pool.socket.packets), pool.lost)
    for row in range(pool.first_thread, pool.first_thread + pool.threads):
        thread = pool_threads(sim)[row]
        if thread.packet != 0 and not thread.is_blocked:
            drop(sim, thread.packet, pool.lost)
        thread.packet = 0
        thread.is_blocked = False
    pool.active = 0
    pool.blocked = 0
    pool.socket.occupied = 0
    pool.is_armed = True
    pool.output_ns = 0
    pool.execution = 1.0


def is_pool(kind: Kind) -> None:
    """Let applications of this kind be pools of threads."""
    kind.implements(receive)(receive_packet)
    kind.implements(go_on)(go_on_sending)
    kind.implements(set_overhead)(apply_overhead)
    kind.implements(lose_state)(begin_anew)
    kind.implements(held)(packets_held)
    kind.implements(refused)(packets_refused)


def add_pool(engine: Engine, domain: int, kind: Kind, spec: PoolSpec, drop_place: int, lost_place: int = 0) -> int:
    """Add a program to a domain; return its application row.

    ``drop_place`` and ``lost_place`` are rows of ``drops``: for packets that do not fit into the socket, and for those
    in memory when the machine is lost (0: a row of its own).
    """
    row, pool = engine.add(
        pools, domain=domain, threads=spec.threads, packet_ns=spec.packet_cost, is_armed=True, execution=1.0
    )
    pool.row = row
    pool.lost = lost_place or engine.add(drops)[0]
    rows = [engine.new(pool_threads) for _ in range(spec.threads)]
    pool.first_thread = rows[0]
    pool.socket.capacity = max(1, spec.receive_buffer_bytes // spec.packet_charge_bytes)
    pool.socket.drop_place = drop_place
    application, program = engine.add(applications, program=engine.number(kind), own=row, domain=domain)
    program.row = application
    return application


class PoolProgram(Program):
    """A pool in a running model."""

    def __init__(self, spec: PoolSpec, context: InstallContext) -> None:
        self.engine = context.engine
        self.name = context.name
        self.row = add_pool(
            context.engine,
            context.domain,
            spec.part,
            spec,
            context.place("socket buffer", "full"),
            context.place("guest", "lost in crash"),
        )
        if context.cpu_inflation != 1.0:
            self.record.packet_ns = round(spec.packet_cost * context.cpu_inflation)

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
