"""Programs inside the guests: pools of threads that answer packets, and compute-bound processes.

A pool takes packets from its socket's receive buffer.  The buffer is bounded in bytes as the kernel
counts them, overhead included; a packet that does not fit is dropped by the network stack.  Each
thread handles one packet at a time and sleeps in the send call while the way out has no room.

Left out: locks between threads, page faults, the disk work of the call server.
"""

from __future__ import annotations

from typing import Any

from vftsim.cpu import Guest, Work
from vftsim.engine import EventKind
from vftsim.media.system import CpuBoundSpec, MediaRelaySpec, SignalingServerSpec
from vftsim.net.iopath import continue_job
from vftsim.net.rings import DropLog, Packet, Ring
from vftsim.sampling import ChunkedDraws, Streams, gamma_ns


class WorkerPool:
    """Threads that take a packet, compute, and send the answer.

    Parameters
    ----------
    name : str
        Name of the program, for drops and traces.
    guest : Guest
    spec : MediaRelaySpec or SignalingServerSpec
    drops : DropLog
    """

    def __init__(self, name: str, guest: Guest, spec: MediaRelaySpec | SignalingServerSpec, drops: DropLog) -> None:
        self.name = name
        self.guest = guest
        self.spec = spec
        self.socket = Ring("socket buffer", max(1, spec.receive_buffer_bytes // spec.packet_charge_bytes))
        self.active = 0
        self.blocked = 0
        self._drops = drops
        self._packet_ns = spec.packet_ns
        self._clock = guest.host.clock
        self.socket.arm(self)

    def receive(self, packet: Packet) -> None:
        """Put a packet from the network stack into the socket buffer, or drop it."""
        if not self.socket.push(packet):
            self._drops.drop(packet, "socket buffer", "full")

    def kick(self) -> None:
        """Wake a sleeping thread for each packet that waits."""
        while self.active < self.spec.threads:
            batch = self.socket.take(1)
            if not batch:
                self.socket.arm(self)
                return
            self.active += 1
            self.guest.submit(self._work(batch[0]))

    def in_flight(self) -> int:
        """Packets in the socket buffer and in threads' hands."""
        return len(self.socket) + self.active

    def _work(self, packet: Packet) -> Work:
        if packet.marks is not None:
            packet.marks.append(("application taken", self._clock.now_ns, 0))
        return Work(self._packet_ns + packet.port.transmit_ns, self._done, packet)

    def _done(self, packet: Packet) -> None:
        if packet.marks is not None:
            spent_ns = self._packet_ns + packet.port.transmit_ns
            packet.marks.append(("application done", self._clock.now_ns, spent_ns))
        if packet.port.send(packet):
            self._next(packet, is_running=True)
        else:
            self.blocked += 1
            packet.port.send_ring.waiting.append(lambda: self._unblocked(packet))

    def _unblocked(self, packet: Packet) -> None:
        self.blocked -= 1
        if not packet.port.send(packet):
            raise AssertionError("a thread was woken for a slot that is not there")
        self._next(packet, is_running=False)

    def _next(self, packet: Packet, *, is_running: bool) -> None:
        self.socket.release([packet])
        batch = self.socket.take(1)
        if not batch:
            self.active -= 1
            self.socket.arm(self)
        elif is_running:
            continue_job(self.guest, self._work(batch[0]))
        else:
            self.guest.submit(self._work(batch[0]))
        if self.socket.packets:
            self.kick()


class CpuBound:
    """A process that computes and pauses; bursts and pauses are drawn beforehand."""

    def __init__(self, guest: Guest, spec: CpuBoundSpec, streams: Streams, entity: int) -> None:
        self.guest = guest
        self.bursts = 0
        self._entity = entity
        busy_ns = spec.cycle_ns * spec.duty / 100.0
        idle_ns = spec.cycle_ns - busy_ns
        # The uniforms of a burst do not depend on duty and length: common random numbers.
        self._busy_ns = ChunkedDraws[int](
            streams, "cpu_bound.busy", lambda u: gamma_ns(u, busy_ns, spec.cv), entity=entity
        )
        self._idle_ns = ChunkedDraws[int](
            streams, "cpu_bound.idle", lambda u: gamma_ns(u, idle_ns, spec.cv), entity=entity
        )

    def start(self) -> None:
        """First burst after part of a pause."""
        self._pause(None)

    def _compute(self, _: Any) -> None:
        self.bursts += 1
        self.guest.submit(Work(max(1, self._busy_ns[self.bursts]), self._pause))

    def _pause(self, _: Any) -> None:
        self.guest.host.clock.after(self._idle_ns[self.bursts], EventKind.TIMER, self._entity, self._compute)
