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

from vftsim.kernel import BESIDE, Fifo, Kind, Sim, Table
from vftsim.platform.cpu.jobs import continue_or_submit_for
from vftsim.platform.cpu.records import domains, work_done
from vftsim.platform.io import packet as io
from vftsim.platform.io.marks import PROGRAM_DONE, PROGRAM_TAKEN
from vftsim.platform.io.ring import Ring, keep_slot
from vftsim.spec.units import DurationNs
from vftsim.workloads.common import (
    ProgramRow,
    drop_all,
    pages_per_request,
    send_or_wait,
    with_overhead_ns,
)
from vftsim.workloads.parts import APPLICATIONS, ApplicationSpec, InstallContext, Program
from vftsim.workloads.threads import release_thread, release_threads, serving_threads, take_thread


class Pool(ProgramRow):
    """Threads of one program.

    ``active`` ones have a packet: it is ``in_hand``, or they are ``blocked`` in the send call with it.  ``lost`` is the
    row of ``drops`` of packets that were in memory when the machine was lost.
    """

    threads: int
    active: int
    blocked: int
    packet_cost_ns: int
    socket: Ring
    in_hand: Fifo
    idle: Fifo
    lost: int


pools = Table("pools", Pool, 4096)


def receive_packet(sim: Sim, program: io.Application, packet: int, pool: Pool = BESIDE) -> None:
    """Give a packet from the network stack to an idle thread, keep it in the socket buffer for one, or drop it."""
    if not keep_slot(pool.socket):
        io.drop(sim, packet, pool.socket.drop_row)
    elif pool.active < pool.threads:
        pool.active += 1
        take_thread(sim, domains(sim)[pool.domain], pool.idle, packet)
        start_packet(sim, pool, packet, False)
    else:
        io.packet_list.push(sim, pool.socket.packets, packet)


def start_packet(sim: Sim, pool: Pool, packet: int, is_running: bool) -> None:
    """Have a thread work on a packet, and on its answer: one that is running continues."""
    io.packet_list.push(sim, pool.in_hand, packet)
    plain_ns = pool.packet_cost_ns + io.ports(sim)[io.packets(sim)[packet].port].transmit_ns
    demand_ns = with_overhead_ns(sim, pool.program, plain_ns, 1)
    io.mark(sim, packet, PROGRAM_TAKEN, 0, sim.now_ns, demand_ns)
    domain, process = domains(sim)[pool.domain], serving_threads(sim)[packet].process
    continue_or_submit_for(sim, domain, process, is_running, demand_ns, on_answer_ready, packet, pool.row)


@work_done
def on_answer_ready(sim: Sim, packet: int, pool: Pool) -> None:
    """Send an answer, or sleep until there is room."""
    io.mark(sim, packet, PROGRAM_DONE, 0, sim.now_ns, 0)
    io.packet_list.remove(sim, pool.in_hand, packet)
    # Read before it is sent: then it belongs to its path.
    process = serving_threads(sim)[packet].process
    if send_or_wait(sim, packet):
        take_next(sim, pool, process, True)
    else:
        pool.blocked += 1


def resume_sending(sim: Sim, program: io.Application, packet: int, pool: Pool = BESIDE) -> None:
    """Send the answer of a thread that slept with it, and resume the thread."""
    process = serving_threads(sim)[packet].process
    if send_or_wait(sim, packet):
        pool.blocked -= 1
        take_next(sim, pool, process, False)


def take_next(sim: Sim, pool: Pool, process: int, is_running: bool) -> None:
    """Let a thread that is done with a packet take the next, or sleep."""
    # The slot is free only now: a packet in a thread's hands still fills the buffer.
    pool.socket.occupied -= 1
    packet = io.packet_list.pop(sim, pool.socket.packets)
    if packet == 0:
        pool.active -= 1
        release_thread(sim, pool.idle, process)
    else:
        serving_threads(sim)[packet].process = process
        start_packet(sim, pool, packet, is_running)


def packets_held(sim: Sim, program: io.Application) -> int:
    """Those in the socket's buffer and in threads' hands."""
    return pools(sim)[program.state_row].socket.occupied


def packets_refused(sim: Sim, program: io.Application) -> int:
    """Those that did not fit into the socket."""
    return io.drops(sim)[pools(sim)[program.state_row].socket.drop_row].count


def lose_memory(sim: Sim, program: io.Application, pool: Pool = BESIDE) -> None:
    """Lose the packets in the socket and in threads' hands; those that threads slept with were lost with their ring."""
    drop_all(sim, pool.socket.packets, pool.lost)
    release_threads(sim, pool.idle, pool.in_hand)
    drop_all(sim, pool.in_hand, pool.lost)
    pool.active = 0
    pool.blocked = 0
    pool.socket.occupied = 0


def _pool_kind(name: str) -> Kind:
    """Declare a kind of application that is a pool of threads."""
    kind = io.application.kind(name)
    kind.implements(io.receive)(receive_packet)
    kind.implements(io.go_on)(resume_sending)
    kind.implements(io.lose_state)(lose_memory)
    kind.implements(io.held)(packets_held)
    kind.implements(io.refused)(packets_refused)
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
        pool = context.add_program(pools, self, packet_cost_ns=packet_cost_ns, lost=lost)
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

    speaks = "calls"

    kind: Literal["signaling_server"] = "signaling_server"
    pages_per_request: float = pages_per_request(2.0, "the packet's buffer, and a page of what is kept of it")
    threads: int = Field(4, ge=1, le=1000, description="Threads. Assumption.")
    packet_cost: DurationNs = Field(
        100_000, description="Computation a packet. Assumption: 'some basic computation' (Patnaik 2009, 4)."
    )
