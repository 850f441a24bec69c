"""A small model for tests of the kernel: customers of a queue with one server, and a log of what happened."""

from typing import Annotated

from vftsim.kernel import Chain, Engine, EventKind, Fifo, Linked, Record, Sim, Table, at, entry, event, link, watch
from vftsim.kernel.inputs import Feeder, draw, feeds


class Customer(Record):
    link: int
    arrived_ns: int


class Queue(Record):
    waiting: Fifo
    arrivals: int
    services: int
    served: int
    wait_ns: int
    lengths: Annotated[list[int], 8]


class Seen(Record):
    time_ns: int
    what: int


customers = Table("customers", Customer, 64, "serve them faster")
queues = Table("queues", Queue, 4)
seen = Table("seen", Seen, 1 << 16)
waiting_list = Chain(customers, "link")


def see(sim: Sim, what: int) -> None:
    entry = seen(sim)[seen.new(sim)]
    entry.time_ns = sim.now_ns
    entry.what = what


@event
def on_arrival(sim: Sim, place: int) -> None:
    queue = queues(sim)[place]
    row = customers.new(sim)
    customers(sim)[row].arrived_ns = sim.now_ns
    waiting_list.push(sim, queue.waiting, row)
    queue.lengths[min(queue.waiting.length, 7)] += 1
    if queue.waiting.length == 1:
        serve(sim, queue, place)
    at(sim, sim.now_ns + draw(sim, queue.arrivals), EventKind.ARRIVAL, place, on_arrival, place)


def serve(sim: Sim, queue: Queue, place: int) -> None:
    at(sim, sim.now_ns + draw(sim, queue.services), EventKind.CPU, place, on_served, place)


@event
def on_served(sim: Sim, place: int) -> None:
    queue = queues(sim)[place]
    row = waiting_list.pop(sim, queue.waiting)
    queue.wait_ns += sim.now_ns - customers(sim)[row].arrived_ns
    queue.served += 1
    customers.free(sim, row)
    if queue.waiting.length > 0:
        serve(sim, queue, place)


@event
def on_seen(sim: Sim, place: int) -> None:
    see(sim, place)


@watch
def look_for_three(sim: Sim) -> None:
    if queues(sim)[1].waiting.length == 3:
        sim.wants_input = True


@entry
def served(sim: Sim, place: int) -> int:
    return queues(sim)[place].served


def linked() -> Linked:
    return link([served], {}, [on_arrival, on_seen, look_for_three], [queues, seen, feeds])


def build(engine: Engine, gaps_ns: list[int], services_ns: list[int]) -> int:
    """A queue whose customers come after these gaps, again and again."""
    feeder = Feeder(engine)
    engine.on_input = feeder.fill
    row, queue = engine.add(queues)
    queue.arrivals = feeder.add(_endless(gaps_ns))
    queue.services = feeder.add(_endless(services_ns))
    engine.at(gaps_ns[0], EventKind.ARRIVAL, row, engine.number(on_arrival), row)
    return row


def _endless(values: list[int]):
    position = 0

    def source(count: int) -> list[int]:
        nonlocal position
        chosen = [values[(position + n) % len(values)] for n in range(count)]
        position += count
        return chosen

    return source
