"""I/O paths: how packets get from a NIC into a guest and back.

Every path is a chain of *stages*, each a piece of code that runs on the vCPUs of one domain, takes
packets out of a bounded ring in batches, and puts them into the next one.  A stage works in the style
of NAPI: an event starts it, it takes what is there up to its budget, works, and only when it finds its
ring empty it asks for the next event.  Costs: ``event_ns`` once for each start (interrupt or event
channel upcall), and a cost for each packet.  A batch counts as taken when the stage is started,
that is before its vCPU gets a pCPU; it is passed on as a whole when it is done.

Stages run as interrupt work on one vCPU (softirq, tasklet: not two at a time), or as jobs that any
vCPU of the domain picks up.
"""

from collections.abc import Callable
from typing import Any, ClassVar, Protocol

from pydantic import Field

from vftsim.cpu import Guest, Vcpu, Work
from vftsim.engine import Clock
from vftsim.net.nic import Nic
from vftsim.net.rings import DropLog, Packet, Ring, Source
from vftsim.spec.base import Spec
from vftsim.spec.registry import PartRegistry
from vftsim.spec.units import DurationNs

NAPI_BUDGET = 64
"""Packets a stage handles in one go: NAPI's default weight of a device (Linux 2.6)."""


class Stage:
    """Code of one domain that moves packets from a source to the next place.

    Parameters
    ----------
    name : str
        For traces and explanations.
    guest : Guest
        The domain whose vCPUs pay.
    vcpu : Vcpu or None
        Interrupt work on this vCPU; ``None``: jobs on any vCPU.
    source : Source
    deliver : callable
        Takes a finished packet.
    event_ns, packet_ns : int
        CPU time for each start and each packet.
    parallel : int
        How many batches may be worked on at once.
    """

    def __init__(
        self,
        name: str,
        guest: Guest,
        vcpu: Vcpu | None,
        source: Source,
        deliver: Callable[[Packet], None],
        *,
        event_ns: int,
        packet_ns: int,
        budget: int = NAPI_BUDGET,
        parallel: int = 1,
    ) -> None:
        self.name = name
        self.guest = guest
        self.vcpu = vcpu
        self.source = source
        self.deliver = deliver
        self.event_ns = event_ns
        self.packet_ns = packet_ns
        self.budget = budget
        self.parallel = parallel
        self.active = 0
        self.held = 0
        self.batches = 0
        self._clock = guest.host.clock

    def start(self) -> None:
        """Ask for the first event."""
        self.source.arm(self)

    def kick(self) -> None:
        """Start if there is work and room for one more batch."""
        while self.active < self.parallel:
            batch = self.source.take(self.budget)
            if not batch:
                self.source.arm(self)
                return
            self.active += 1
            self._begin(batch, self.event_ns, is_continued=False)

    def admit(self, batch: list[Packet]) -> tuple[list[Packet], int]:
        """Decide which packets go on, and what the batch costs."""
        return batch, self.packet_ns * len(batch)

    def _begin(self, batch: list[Packet], event_ns: int, *, is_continued: bool) -> None:
        self.batches += 1
        taken = len(batch)
        kept, demand_ns = self.admit(batch)
        self.held += len(kept)
        _mark(kept, f"{self.name} taken", self._clock, 0)
        demand_ns += event_ns
        work = Work(demand_ns, self._done, (kept, batch if taken != len(kept) else kept, demand_ns))
        if self.vcpu is not None:
            self.guest.raise_interrupt(self.vcpu, work)
        elif is_continued:
            continue_job(self.guest, work)
        else:
            self.guest.submit(work)

    def _done(self, argument: tuple[list[Packet], list[Packet], int]) -> None:
        kept, batch, demand_ns = argument
        self.held -= len(kept)
        _mark(kept, f"{self.name} done", self._clock, demand_ns)
        self.source.release(batch)
        deliver = self.deliver
        for packet in kept:
            deliver(packet)
        following = self.source.take(self.budget)
        if following:
            self._begin(following, 0, is_continued=True)
        else:
            self.active -= 1
            self.source.arm(self)


def continue_job(guest: Guest, work: Work) -> None:
    """Let a thread go on with its next piece where it is: no wake-up, no other vCPU is asked."""
    work.quantum_left_ns = guest.quantum_ns
    guest.jobs.append(work)


def _mark(batch: list[Packet], boundary: str, clock: Clock, spent_ns: int) -> None:
    if batch and batch[0].marks is not None:
        now_ns = clock.now_ns
        for packet in batch:
            if packet.marks is not None:
                packet.marks.append((boundary, now_ns, spent_ns))


class Port(Protocol):
    """A guest's end of its path."""

    transmit_ring: Ring
    send_ring: Ring
    transmit_ns: int
    backend_transmit_ns: int

    def start(self) -> None:
        """Ask for the first events."""

    def admit(self, packet: Packet) -> int:
        """Driver domain asks before its own work: cost of passing the packet on, -1 if there is no room."""

    def receive(self, packet: Packet) -> None:
        """Driver domain has done its work on an admitted packet."""

    def send(self, packet: Packet) -> bool:
        """Send for the application; False: no room, wait in ``send_ring.waiting``."""

    def in_flight(self) -> int:
        """Packets held by this path."""

    def rings(self) -> list[Ring]:
        """Rings to watch."""

    def stages(self) -> list[Stage]:
        """Stages of the guest's side."""


class Wiring:
    """What a path may connect to.

    Parameters
    ----------
    guest : Guest
        The domain the path serves.
    up : callable
        Takes a packet that has reached the guest's network stack.
    out : callable
        Takes a packet that leaves by the NIC.
    driver : DriverDomain, optional
    stub : Guest, optional
        The domain of the device model.
    """

    def __init__(
        self,
        clock: Clock,
        guest: Guest,
        nic: Nic,
        *,
        drops: DropLog,
        up: Callable[[Packet], None],
        out: Callable[[Packet], None],
        driver: Any = None,
        stub: Guest | None = None,
    ) -> None:
        self.clock = clock
        self.guest = guest
        self.nic = nic
        self.drops = drops
        self.up = up
        self.out = out
        self.driver = driver
        self.stub = stub


class IoPathSpec(Spec):
    """Base of the I/O paths; costs are CPU time for each packet unless said otherwise."""

    needs_driver_domain: ClassVar[bool] = True
    needs_stub_domain: ClassVar[bool] = False

    event_ns: DurationNs = Field(
        1_500,
        description="Upcall of the guest for an interrupt or event. Assumption: 2,400 cycles at 1.6 GHz.",
    )

    def connect(self, wiring: Wiring) -> Port:
        """Build the path."""
        raise NotImplementedError


IO_PATHS: PartRegistry[IoPathSpec] = PartRegistry("I/O path", IoPathSpec)
