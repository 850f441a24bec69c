"""A guest's network card: a ring, moderated interrupts, and the work they cause in the guest.

Rule (Intel 1 Gbit/s controllers, ``InterruptThrottleRate``; Linux NAPI): a packet raises an interrupt
unless one was raised less than the moderation interval ago, in which case it waits for the end of the
interval; the interrupt announces everything in the ring.  What is announced takes its descriptor until the guest's
driver comes to that interrupt, which may have to wait for a CPU; until then there is no other interrupt, and it finds
what has come since, too.  A packet that finds the ring full is dropped.
The first vCPU pays for the interrupts.

The hypervisor can mask the interrupts of a stopped guest and cut its network: while masked the ring fills and
packets beyond it are dropped.  A packet that the guard declares lost (its log entry will not survive the crash that is
under way) never reaches the guest.  Where nothing costs anything and nobody guards, a packet goes straight to its
socket.
"""

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field

from vftsim.kernel import BESIDE, Engine, EventKind, Fifo, Kind, Record, Sim, Table, at, event
from vftsim.platform.cpu.jobs import on_pcpu_ns, raise_interrupt
from vftsim.platform.cpu.records import RUNNING, domains, vcpus, work_done, works
from vftsim.platform.io.build import Io, Site
from vftsim.platform.io.host_cards import send_from_host
from vftsim.platform.io.marks import ENTERED
from vftsim.platform.io.packet import (
    Port,
    applications,
    arrive,
    connect,
    disconnect,
    drop,
    drops,
    forget,
    mark,
    mask,
    packet_list,
    packets,
    path,
    ports,
    receive,
    send,
    unmask,
    unplug,
)
from vftsim.platform.io.parameters import IO_PATHS, IoPathSpec
from vftsim.platform.protection.guard import take_note
from vftsim.spec import DurationNs, Spec

moderated = path.kind("moderated")


class GuestNicSpec(Spec):
    """The guest's network card."""

    ring: int = Field(256, ge=1, le=65536, description="Receive descriptors (e1000 default: 256).")
    moderation: DurationNs = Field(
        125_000, description="Least time between interrupts (e1000 default: 8000 interrupts a second)."
    )


@IO_PATHS.register
class Moderated(GuestNicSpec, IoPathSpec):
    """A network card of the guest's own, real or emulated by the hypervisor itself."""

    events_a_packet: ClassVar[float] = 4.5
    tasks: ClassVar[tuple[Kind, ...]] = ()
    needs_driver_domain: ClassVar[bool] = False
    has_host_ring: ClassVar[bool] = False
    saves_ring: ClassVar[bool] = True

    kind: Literal["moderated"] = "moderated"
    interrupt_cost: DurationNs = Field(
        0, description="CPU time of the guest for each interrupt, however many packets it announces."
    )
    packet_cost: DurationNs = Field(
        0, description="CPU time of the guest for each packet received or sent (exits, copies of a virtual card)."
    )
    release_every: DurationNs = Field(
        0,
        description="Outputs wait and leave together, in order, at multiples of this time (output buffering without a "
        "mechanism behind it); 0: at once.",
    )

    def without_effect(self, is_guarded: bool) -> Mapping[str, str]:
        """Say that packets do not wait for interrupts that cost nothing."""
        if is_guarded or self.interrupt_cost or self.packet_cost:
            return {}
        why = "with interrupt_cost and packet_cost 0 packets go straight to their socket"
        return {"moderation": why, "ring": why}

    def taken_in(self, engine: Engine, port: int) -> int | None:
        """Return how many packets a port's card has taken in."""
        return int(engine.rows(guest_nics)[port].received)

    def connect(self, io: Io, site: Site) -> None:
        """Give the ports their card: applications behind one interface share it."""
        for port in site.ports:
            io.engine.rows(ports)[port].transmit_ns = self.packet_cost
            install(io.engine, port, self, self.interrupt_cost, self.packet_cost, io)
            nic = io.engine.rows(guest_nics)[port]
            nic.card, nic.release_ns = site.ports[0], self.release_every


class GuestNic(Record):
    """The receive side of a card; ``card`` is the port that has it, the first of those that share an interface.

    ``received`` counts packets by port.  They go from the ring (``announced`` to the guard, then ``batch``) to
    interrupt work (``taken``) and on to their sockets.  ``is_pending``: an interrupt is planned; ``is_due``: it came
    while masked; ``work`` is that of the last one.  ``ring_full`` and ``down`` are rows of ``drops``.  Outputs wait in
    ``outbox`` for the next multiple of ``release_ns``, if that is not 0.
    """

    card: int
    ring_packets: int
    moderation_ns: int
    interrupt_cost_ns: int
    packet_cost_ns: int
    ring_full: int
    down: int
    ring: Fifo
    announced: Fifo
    batch: Fifo
    taken: Fifo
    next_interrupt_ns: int
    is_pending: bool
    is_due: bool
    is_masked: bool
    is_cut: bool
    received: int
    interrupts: int
    work: int
    release_ns: int
    outbox: Fifo


guest_nics = Table("guest_nics", GuestNic, beside=ports)


def install(
    engine: Engine, port: int, spec: GuestNicSpec, interrupt_cost_ns: int, packet_cost_ns: int, io: Io | None = None
) -> None:
    """Make the card of a port; costs are CPU time of an interrupt and of each packet it announces."""
    nic = engine.rows(guest_nics)[port]
    nic.card = port
    nic.ring_packets = spec.ring
    nic.moderation_ns = spec.moderation
    nic.interrupt_cost_ns = interrupt_cost_ns
    nic.packet_cost_ns = packet_cost_ns
    if io is None:
        nic.ring_full, _ = engine.add(drops)
        nic.down, _ = engine.add(drops)
    else:
        nic.ring_full = io.drop_row("NIC ring", "full")
        nic.down = io.drop_row("NIC", "down")


def card_of(sim: Sim, port: Port) -> int:
    """Return the row of the card that a port's packets go by."""
    return guest_nics(sim)[port.row].card


@moderated.implements(arrive)
def take_in(sim: Sim, port: Port, packet: int) -> None:
    """Put a packet from the wire into the ring, and see to an interrupt."""
    guest_nics(sim)[port.row].received += 1
    row = card_of(sim, port)
    nic = guest_nics(sim)[row]
    if nic.is_cut:
        drop(sim, packet, nic.down)
    elif is_full(sim, ports(sim)[row], nic):
        drop(sim, packet, nic.ring_full)
    elif port.guard == 0 and nic.interrupt_cost_ns == 0 and nic.packet_cost_ns == 0:
        hand_over(sim, packet)
    else:
        packet_list.push(sim, nic.ring, packet)
        if not nic.is_pending:
            # It stays so while the interrupt is masked, so that one interrupt announces everything.
            nic.is_pending = True
            # Packets of the same instant share the interrupt: it is handled after their arrival.
            at(sim, max(sim.now_ns, nic.next_interrupt_ns), EventKind.DEVICE, 0, on_interrupt, row)


def is_full(sim: Sim, card: Port, nic: GuestNic) -> bool:
    """Tell whether every descriptor has a packet to which the guest's driver has not come yet."""
    waiting = nic.ring.length + nic.taken.length
    return waiting >= nic.ring_packets and waiting - in_hand(sim, card) >= nic.ring_packets


def in_hand(sim: Sim, card: Port) -> int:
    """Return the packets of the interrupt that the guest handles at present."""
    vcpu = vcpus(sim)[domains(sim)[card.domain].first_vcpu]
    work = works(sim)[vcpu.interrupts.first]
    is_ours = work.on_done == interrupt_done and work.target == card.row
    return work.argument if is_ours and vcpu.state == RUNNING else 0


@event
def on_interrupt(sim: Sim, port: Port, nic: GuestNic = BESIDE) -> None:
    """Announce everything in the ring to the guest; masked, the interrupt stays pending, so that none is planned."""
    if nic.is_masked:
        nic.is_due = True
        return
    nic.is_pending = False
    nic.next_interrupt_ns = sim.now_ns + nic.moderation_ns
    if nic.ring.length == 0:
        return
    # The guard may cut the network while it takes note, which empties the ring: what is announced is out of it.
    while nic.ring.length > 0:
        packet_list.push(sim, nic.announced, packet_list.pop(sim, nic.ring))
    announce(sim, port, nic)


def announce(sim: Sim, port: Port, nic: GuestNic) -> None:
    """Give the first vCPU the work of an interrupt; what the guard declares lost is lost."""
    # One that the guest has not come to finds these packets too: the card raises no other before.
    is_raised = nic.taken.length > in_hand(sim, port)
    cost_ns = 0 if is_raised else nic.interrupt_cost_ns
    nic.interrupts += 0 if is_raised else 1
    count = 0
    while nic.announced.length > 0:
        packet = packet_list.pop(sim, nic.announced)
        noted_ns = take_note(sim, ports(sim)[packets(sim)[packet].port], packets(sim)[packet].size_bytes)
        if noted_ns < 0:
            drop(sim, packet, nic.down)
        else:
            packet_list.push(sim, nic.batch, packet)
            cost_ns += nic.packet_cost_ns + noted_ns
            count += 1
    if count > 0 and (cost_ns > 0 or is_raised):
        while nic.batch.length > 0:
            packet_list.push(sim, nic.taken, packet_list.pop(sim, nic.batch))
        give_work(sim, port, nic, is_raised, cost_ns, count)
    else:
        # What costs nothing overtakes what is still in interrupt work.
        while nic.batch.length > 0:
            hand_over(sim, packet_list.pop(sim, nic.batch))


def give_work(sim: Sim, port: Port, nic: GuestNic, is_raised: bool, cost_ns: int, count: int) -> None:
    """Interrupt the guest for so many packets, or have the interrupt that it has not come to bring them."""
    domain = domains(sim)[port.domain]
    if is_raised:
        work = works(sim)[nic.work]
        work.remaining_ns += on_pcpu_ns(domain, cost_ns)
        work.argument += count
    else:
        vcpu = vcpus(sim)[domain.first_vcpu]
        raise_interrupt(sim, domain, vcpu, cost_ns, interrupt_done, port.row, count)
        nic.work = vcpu.interrupts.last


@work_done
def interrupt_done(sim: Sim, port_row: int, argument: int) -> None:
    """The work of an interrupt that announced ``argument`` packets is done; a vCPU does them in order."""
    for _ in range(argument):
        hand_over(sim, packet_list.pop(sim, guest_nics(sim)[port_row].taken))


def hand_over(sim: Sim, packet: int) -> None:
    mark(sim, packet, ENTERED, 0, sim.now_ns, 0)
    receive(sim, applications(sim)[ports(sim)[packets(sim)[packet].port].application], packet)


@moderated.implements(send)
def send_out(sim: Sim, port: Port, packet: int) -> bool:
    """Send at once, or with the next batch: the card's transmit ring never fills before the link's queue."""
    row = card_of(sim, port)
    nic = guest_nics(sim)[row]
    if nic.release_ns == 0:
        send_from_host(sim, port, packet)
        return True
    packet_list.push(sim, nic.outbox, packet)
    # The first of a batch plans the release for all of it.
    if nic.outbox.length == 1:
        due_ns = (sim.now_ns // nic.release_ns + 1) * nic.release_ns
        at(sim, due_ns, EventKind.DEVICE, 1, on_release, row)
    return True


@event
def on_release(sim: Sim, nic: GuestNic) -> None:
    """Send what has waited, in order."""
    while nic.outbox.length > 0:
        packet = packet_list.pop(sim, nic.outbox)
        send_from_host(sim, ports(sim)[packets(sim)[packet].port], packet)


@moderated.implements(mask)
def mask_interrupts(sim: Sim, port: Port) -> None:
    guest_nics(sim)[card_of(sim, port)].is_masked = True


@moderated.implements(unmask)
def unmask_interrupts(sim: Sim, port: Port) -> None:
    """Raise interrupts again, at once if one is due."""
    nic = guest_nics(sim)[card_of(sim, port)]
    nic.is_masked = False
    if nic.is_due:
        nic.is_due = False
        # By an event: the machine is thawed after its ports are unmasked.
        at(sim, sim.now_ns, EventKind.DEVICE, 0, on_interrupt, card_of(sim, port))


@moderated.implements(unplug)
def take_no_more(sim: Sim, port: Port) -> None:
    """Lose what waits to leave and what is to come; what is in the ring and in interrupt work stays."""
    nic = guest_nics(sim)[card_of(sim, port)]
    nic.is_cut = True
    while nic.outbox.length > 0:
        drop(sim, packet_list.pop(sim, nic.outbox), nic.down)


@moderated.implements(disconnect)
def cut(sim: Sim, port: Port) -> None:
    """Lose what is in the ring too."""
    take_no_more(sim, port)
    nic = guest_nics(sim)[card_of(sim, port)]
    while nic.ring.length > 0:
        drop(sim, packet_list.pop(sim, nic.ring), nic.down)


@moderated.implements(connect)
def reconnect(sim: Sim, port: Port) -> None:
    guest_nics(sim)[card_of(sim, port)].is_cut = False


@moderated.implements(forget)
def lose_all(sim: Sim, port: Port) -> None:
    """Lose what is in the ring and in interrupt work, whose jobs are lost too."""
    nic = guest_nics(sim)[card_of(sim, port)]
    while nic.ring.length > 0:
        drop(sim, packet_list.pop(sim, nic.ring), nic.down)
    while nic.taken.length > 0:
        drop(sim, packet_list.pop(sim, nic.taken), nic.down)
