"""Network cards of a host and the kinds of traffic they carry, apart or together.

Rule: every kind of traffic (virtual machines, management, migration, fault-tolerance logging, storage)
leaves through the card it is assigned to; kinds on one card share its rate and its transmit queue, in
order of arrival.  Background traffic of a kind comes in bursts at a constant period, as frames of full
size; the hypervisor's CPU work for it is given to a domain of its own (``background`` of a domain in the
model file), because only there can it compete with the guest.

Assumption: the record names the kinds of traffic but prints no rate for any of them; the rates in the
shipped models are typical values, marked as such.
"""

from pydantic import Field

from vftsim.kernel import Engine, EventKind, Record, Row, Sim, Table, at, event
from vftsim.platform.io.link import (
    add_link,
    backlog_ns,
    is_lost_in_burst,
    links,
    long_transmission_ns,
    reserve,
    transmit,
)
from vftsim.platform.io.marks import AT_HOST, DELIVERED, SENT
from vftsim.platform.io.packet import Port, arrive, drop, drops, hand_back, mark, packets, ports
from vftsim.spec import ByteCount, PeriodNs, Spec


class BackgroundTrafficSpec(Spec):
    """Traffic of one kind that is not part of the workload."""

    burst: ByteCount = Field(description="Bytes sent at once.")
    period: PeriodNs = Field(description="Time from burst to burst.")


class Card(Row):
    """A network card: the links on which packets reach the host and leave it, and how many reached it while dead."""

    to_host: int
    from_host: int
    lost: int


class Burst(Record):
    """Background traffic of one kind; ``number`` orders its bursts among others at one instant."""

    link: int
    number: int
    size_bytes: int
    duration_ns: int
    period_ns: int
    dropped: int


cards = Table("cards", Card, 1024)
bursts = Table("bursts", Burst, 64)


def add_card(engine: Engine, rate_bits_per_s: int, latency_ns: int, queue_bytes: int) -> int:
    """Add a card and the link behind it, both directions alike; return its row."""
    to_host = add_link(engine, rate_bits_per_s, latency_ns, queue_bytes)
    from_host = add_link(engine, rate_bits_per_s, latency_ns, queue_bytes)
    return engine.add(cards, to_host=to_host, from_host=from_host)[0]


def start_background(
    engine: Engine, card: int, number: int, spec: BackgroundTrafficSpec, dropped: int, first_ns: int
) -> None:
    """Start a card's background traffic; ``number`` orders its bursts among those of one instant.

    The first comes after ``first_ns``: what a host sends for different reasons does not keep step.
    """
    link = int(engine.rows(cards)[card].from_host)
    row, _ = engine.add(
        bursts,
        link=link,
        number=number,
        size_bytes=spec.burst,
        period_ns=spec.period,
        duration_ns=long_transmission_ns(spec.burst, int(engine.rows(links)[link].rate_bits_per_s)),
        dropped=dropped,
    )
    engine.at(engine.now_ns + first_ns, EventKind.DEVICE, 1 + number, engine.number(on_burst), row)


def send_to_host(sim: Sim, packet: int) -> None:
    """Put a packet on the way to the card of its port; the network may drop it."""
    mark(sim, packet, SENT, 0, sim.now_ns, 0)
    card = cards(sim)[ports(sim)[packets(sim)[packet].port].card]
    transmit(sim, links(sim)[card.to_host], packet, on_reaching_host)


def return_to_host(sim: Sim, packet: int, ahead_ns: int) -> None:
    """Let an acknowledgement reach the card of its port, sent ``ahead_ns`` ago.

    Assumption: it takes no time on the line, and those that follow make up for one that is lost, but in a burst: that
    in which what is queued before it leaves.
    """
    mark(sim, packet, SENT, 0, sim.now_ns, 0)
    link = links(sim)[cards(sim)[ports(sim)[packets(sim)[packet].port].card].to_host]
    link.sent += 1
    if is_lost_in_burst(sim, link, max(sim.now_ns, link.free_ns)):
        drop(sim, packet, link.lost)
        return
    arrival_ns = sim.now_ns + max(0, link.latency_ns - ahead_ns)
    at(sim, arrival_ns, EventKind.DELIVERY, packets(sim)[packet].entity, on_reaching_host, packet)


@event
def on_reaching_host(sim: Sim, packet_row: int) -> None:
    """A packet has reached the card of its port."""
    mark(sim, packet_row, AT_HOST, 0, sim.now_ns, 0)
    port = ports(sim)[packets(sim)[packet_row].port]
    card = cards(sim)[port.card]
    links(sim)[card.to_host].delivered += 1
    if port.dead_card != 0:
        card.lost += 1
        drop(sim, packet_row, port.dead_card)
    else:
        arrive(sim, port, packet_row)


def leave(sim: Sim, packet: int) -> None:
    """Let a packet leave the host: onto the link of its port's card, or, if none is modelled, back to its flow."""
    port = ports(sim)[packets(sim)[packet].port]
    if port.card != 0 or port.dead_card != 0:
        send_from_host(sim, port, packet)
    else:
        mark(sim, packet, DELIVERED, 0, sim.now_ns, 0)
        hand_back(sim, packet)


def send_from_host(sim: Sim, port: Port, packet: int) -> None:
    """Put a packet of the port on the way out; the network may drop it, and a dead card does."""
    if port.dead_card != 0:
        drop(sim, packet, port.dead_card)
        return
    mark(sim, packet, DELIVERED, 0, sim.now_ns, 0)
    transmit(sim, links(sim)[cards(sim)[port.card].from_host], packet, on_leaving_network)


@event
def on_leaving_network(sim: Sim, packet_row: int) -> None:
    """A packet from the host has reached its far end."""
    port = ports(sim)[packets(sim)[packet_row].port]
    links(sim)[cards(sim)[port.card].from_host].delivered += 1
    hand_back(sim, packet_row)


@event
def on_burst(sim: Sim, burst_row: int) -> None:
    """A burst leaves as a whole, or is lost as a whole where the queue cannot hold it."""
    burst = bursts(sim)[burst_row]
    link = links(sim)[burst.link]
    if backlog_ns(sim, link) + burst.duration_ns <= link.queue_ns:
        reserve(sim, link, burst.size_bytes, burst.duration_ns)
    else:
        drops(sim)[burst.dropped].count += 1
    at(sim, sim.now_ns + burst.period_ns, EventKind.DEVICE, 1 + burst.number, on_burst, burst_row)
