"""Media relay and call server: pools of threads that each take a packet from the socket, compute, and send the answer.

The socket's receive buffer is bounded in bytes as the kernel counts them, overhead included; a packet that does not
fit is dropped by the network stack.  Each thread handles one packet at a time and sleeps in the send call while
the path out has no room.

Protection makes the work of a packet cost ``execution`` times as much, and adds ``output_ns`` for its answer.  A pool
keeps nothing from packet to packet: what it loses with its memory are the packets in the socket and in its threads'
hands.

Left out: locks between threads, page faults, the disk work of the call server; exits to the hypervisor apart from those
of its I/O path.
"""

from typing import Literal

from pydantic import Field

from vftsim.kernel import Failure, Kind, Record, Sim, Table, fail, part
from vftsim.platform.cpu.jobs import continue_with, submit
from vftsim.platform.cpu.records import domains, work_done
from vftsim.platform.io.marks import PROGRAM_DONE, PROGRAM_TAKEN
from vftsim.platform.io.packet import (
    Application,
    application,
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
from vftsim.spec.units import DurationNs
from vftsim.workloads.common import apply_overhead, drop_all, pages_per_request, with_overhead_ns
from vftsim.workloads.parts import APPLICATIONS, ApplicationSpec, InstallContext, Program

NO_SLOT = Failure("a thread was woken for a slot that is not there")


class Pool(Record):
    """Threads of one program; ``active`` ones have a packet, ``blocked`` ones of them sleep in the send call.

    ``threads`` stand in consecutive rows from ``first_thread``.  ``lost`` is the row of ``drops`` of packets that were
    in memory when the machine was lost.
    """

    row: int
    program: int
    domain: int
    threads: int
    first_thread: int
    active: int
    blocked: int
    packet_cost_ns: int
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
def receive_packet(sim: Sim, program: Application, packet: int) -> None:
    """Put a packet from the network stack into the socket buffer, or drop it."""
    pool = pools(sim)[program.state_row]
    if not keep_slot(pool.socket):
        drop(sim, packet, pool.socket.drop_row)
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
        start_packet(sim, pool, idle_thread(sim, pool), packet, False)


@part
def idle_thread(sim: Sim, pool: Pool) -> int:
    """Return a thread without a packet; there is one."""
    row = pool.first_thread
    while pool_threads(sim)[row].packet != 0:
        row += 1
    return row


@part
def start_packet(sim: Sim, pool: Pool, row: int, packet: int, is_running: bool) -> None:
    """Have a thread work on a packet: one that is running continues."""
    # First: a thread with a packet is not idle for whoever looks for one.
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
    plain_ns = pool.packet_cost_ns + ports(sim)[packets(sim)[packet].port].transmit_ns
    return with_overhead_ns(sim, pool.program, plain_ns, 1)


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
        # With its packet in its hands: the thread takes no other until there is room.
        wait_for_slot(sim, port, packet, pool_thread_row)


@part
def resume_sending(sim: Sim, program: Application, packet: int) -> None:
    """Send the answer of a thread that slept with it, and resume the thread."""
    pool = pools(sim)[program.state_row]
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
    # The slot is free only now: a packet in a thread's hands still fills the buffer.
    pool.socket.occupied -= 1
    packet = packet_list.pop(sim, pool.socket.packets)
    if packet == 0:
        pool.active -= 1
        pool.is_armed = True
    else:
        start_packet(sim, pool, row, packet, is_running)
    if pool.socket.packets.length > 0:
        wake_threads(sim, pool)


@part
def packets_held(sim: Sim, program: Application) -> int:
    """Those in the socket's buffer and in threads' hands."""
    return pools(sim)[program.state_row].socket.occupied


@part
def packets_refused(sim: Sim, program: Application) -> int:
    """Those that did not fit into the socket."""
    return drops(sim)[pools(sim)[program.state_row].socket.drop_row].count


@part
def lose_memory(sim: Sim, program: Application) -> None:
    """Lose the packets in the socket and in threads' hands; those that threads slept with were lost with their ring."""
    pool = pools(sim)[program.state_row]
    drop_all(sim, pool.socket.packets, pool.lost)
    for row in range(pool.first_thread, pool.first_thread + pool.threads):
        thread = pool_threads(sim)[row]
        # A blocked thread's packet was dropped with the ring in which it waited.
        if thread.packet != 0 and not thread.is_blocked:
            drop(sim, thread.packet, pool.lost)
        thread.packet = 0
        thread.is_blocked = False
    pool.active = 0
    pool.blocked = 0
    pool.socket.occupied = 0
    pool.is_armed = True


def _pool_kind(name: str) -> Kind:
    """Declare a kind of application that is a pool of threads."""
    kind = application.kind(name)
    kind.implements(receive)(receive_packet)
    kind.implements(go_on)(resume_sending)
    kind.implements(set_overhead)(apply_overhead)
    kind.implements(lose_state)(lose_memory)
    kind.implements(held)(packets_held)
    kind.implements(refused)(packets_refused)
    return kind


media_relay = _pool_kind("media_relay")
signaling_server = _pool_kind("signaling_server")


class PoolSpec(ApplicationSpec):
    """What all pools have; each kind has its own defaults."""

    threads: int
    packet_cost: int
    receive_buffer_bytes: int = Field(
        110_592, ge=1, description="Socket receive buffer. Default: Linux 2.6.18 net.core.rmem_default, 32-bit."
    )
    packet_charge_bytes: int = Field(
        496, ge=1, description="What a packet takes of it: 320 bytes of data and 176 of sk_buff (2.6.18)."
    )

    @property
    def packet_work_ns(self) -> int:
        """CPU time of a thread for a packet."""
        return self.packet_cost

    def install(self, context: InstallContext) -> "PoolProgram":
        """Add the pool to a domain."""
        socket_full, lost = context.drop_row("socket buffer", "full"), context.drop_row("guest", "lost in crash")
        packet_cost_ns = context.inflated(self.packet_cost)
        pool = context.add_program(pools, self, packet_cost_ns=packet_cost_ns, is_armed=True, lost=lost)
        threads = [context.engine.new(pool_threads) for _ in range(self.threads)]
        pool.first_thread = threads[0]
        pool.socket.capacity = max(1, self.receive_buffer_bytes // self.packet_charge_bytes)
        pool.socket.drop_row = socket_full
        return PoolProgram(context, pool)


class PoolProgram(Program):
    """A pool in a running model."""

    def in_flight(self) -> int:
        """Packets in the socket's buffer and in the hands of threads."""
        return int(self.record.socket.packets.length) + int(self.record.active)

    def occupancy(self) -> tuple[str, int]:
        """Packets in the socket's buffer, those in the hands of threads included."""
        return f"{self.name} socket buffer", int(self.record.socket.occupied)


@APPLICATIONS.register
class MediaRelaySpec(PoolSpec):
    """A pool of threads that take a packet, compute, and send it on."""

    part = media_relay
    speaks = "rtp"

    kind: Literal["media_relay"] = "media_relay"
    pages_per_request: float = pages_per_request(1.0, "its buffer, from which it is sent on")
    threads: int = Field(8, ge=1, le=1000, description="Threads of the pool. Assumption: any number above the vCPUs.")
    packet_cost: DurationNs = Field(
        18_000, description="Thread: receive call, computation, send call, a packet. Calibrated."
    )


@APPLICATIONS.register
class SignalingServerSpec(PoolSpec):
    """A call server: computes and answers each packet."""

    part = signaling_server
    speaks = "calls"

    kind: Literal["signaling_server"] = "signaling_server"
    pages_per_request: float = pages_per_request(2.0, "the packet's buffer, and a page of what is kept of it")
    threads: int = Field(4, ge=1, le=1000, description="Threads. Assumption.")
    packet_cost: DurationNs = Field(
        100_000, description="Computation a packet. Assumption: 'some basic computation' (Patnaik 2009, 4)."
    )
