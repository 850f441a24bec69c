"""A queue with four servers, written for five simulators and in C: the same customers, the same waiting times.

Gaps between arrivals and service times are drawn beforehand, as whole nanoseconds, so that every version
simulates the same system; the sum of all waiting times tells whether it does.
"""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import simpy
from numpy.typing import NDArray

from vftsim.kernel import Chain, EventKind, Fifo, Linked, Record, Sim, Table, at, event, link, make_engine
from vftsim.kernel.inputs import Feeder, draw, feeds, left

Array = NDArray[np.int64]

SERVERS = 4
_GAP_NS, _SERVICE_NS = 1_000_000, 3_200_000


def customers(count: int) -> tuple[Array, Array]:
    """Return gaps before arrivals and service times of ``count`` customers, 80 % of what four servers do."""
    random = np.random.default_rng(1)
    gaps, services = random.exponential(_GAP_NS, count), random.exponential(_SERVICE_NS, count)
    return np.ceil(gaps).astype(np.int64), np.ceil(services).astype(np.int64)


class Customer(Record):
    """One who waits."""

    link: int
    arrived_ns: int
    service_ns: int


class Queue(Record):
    """The queue and its account."""

    waiting: Fifo
    idle_servers: int
    gaps: int
    services: int
    waited_ns: int


queue_rows = Table("queues", Queue, 2)
customer_rows = Table("customers", Customer, 1 << 16)
waiting_list = Chain(customer_rows, "link")


@event
def on_arrival(sim: Sim, place: int) -> None:
    """A customer comes, and the next one is expected."""
    queue = queue_rows(sim)[place]
    row = customer_rows.new(sim)
    customer_rows(sim)[row].arrived_ns = sim.now_ns
    customer_rows(sim)[row].service_ns = draw(sim, queue.services)
    waiting_list.push(sim, queue.waiting, row)
    serve_next(sim, queue, place)
    if left(sim, queue.gaps) > 0:
        at(sim, sim.now_ns + draw(sim, queue.gaps), EventKind.ARRIVAL, 0, on_arrival, place)


def serve_next(sim: Sim, queue: Queue, place: int) -> None:
    """Let an idle server take who waits longest."""
    if queue.idle_servers == 0 or queue.waiting.length == 0:
        return
    queue.idle_servers -= 1
    row = waiting_list.pop(sim, queue.waiting)
    customer = customer_rows(sim)[row]
    queue.waited_ns += sim.now_ns - customer.arrived_ns
    at(sim, sim.now_ns + customer.service_ns, EventKind.CPU, 0, on_served, place)
    customer_rows.free(sim, row)


@event
def on_served(sim: Sim, place: int) -> None:
    """A server is idle again."""
    queue = queue_rows(sim)[place]
    queue.idle_servers += 1
    serve_next(sim, queue, place)


def kernel() -> Linked:
    """Return the linked queue."""
    return link([], {}, [on_arrival], [queue_rows, feeds])


def vftsim_queue(engine_name: str) -> Callable[[Array, Array], int]:
    """Return the queue on one of the kernel's engines."""
    linked = kernel()

    def run(gaps: Array, services: Array) -> int:
        engine = make_engine(linked, engine_name)
        feeder = Feeder(engine)
        engine.on_input = feeder.fill
        row, queue = engine.add(queue_rows, idle_servers=SERVERS)
        queue.gaps, queue.services = feeder.add(_portions(gaps[1:])), feeder.add(_portions(services))
        engine.at(gaps[0], EventKind.ARRIVAL, 0, engine.number(on_arrival), row)
        engine.run()
        return int(queue.waited_ns)

    return run


def _portions(values: Array) -> Callable[[int], Array]:
    position = 0

    def source(count: int) -> Array:
        nonlocal position
        position += count
        return values[position - count : position]

    return source


@contextmanager
def queue_in_c() -> Iterator[Callable[[Array, Array], int]]:
    """Build ``queue.c`` with the machine's compiler, and give the queue.

    Raises
    ------
    FileNotFoundError
        There is no compiler.
    """
    source = Path(__file__).with_name("queue.c")
    with TemporaryDirectory() as folder:
        built = Path(folder, "queue.so")
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", str(built), str(source)], check=True)
        waited = ctypes.CDLL(str(built)).waited
        columns = np.ctypeslib.ndpointer(np.int64, flags="C")
        waited.restype, waited.argtypes = ctypes.c_int64, [ctypes.c_int64, columns, columns, ctypes.c_int64]
        yield lambda gaps, services: int(waited(len(gaps), gaps, services, SERVERS))


def simpy_processes(gaps: list[int], services: list[int]) -> int:
    """Return the queue as SimPy's tutorial writes it: a process for each customer, a Resource."""
    environment = simpy.Environment()
    servers = simpy.Resource(environment, SERVERS)
    waited_ns = 0

    def customer(service_ns: int) -> Generator[Any, Any, None]:
        nonlocal waited_ns
        arrived_ns = environment.now
        with servers.request() as request:
            yield request
            waited_ns += int(environment.now - arrived_ns)
            yield environment.timeout(service_ns)

    def source() -> Generator[Any, Any, None]:
        for gap_ns, service_ns in zip(gaps, services, strict=True):
            yield environment.timeout(gap_ns)
            environment.process(customer(service_ns))

    environment.process(source())
    environment.run()
    return waited_ns


def ciw_queue(gaps: list[int], services: list[int]) -> int:
    """Return the queue in Ciw."""
    import ciw

    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Sequential([*gaps, float("inf")])],
        service_distributions=[ciw.dists.Sequential(services)],
        number_of_servers=[SERVERS],
    )
    simulation = ciw.Simulation(network)
    simulation.simulate_until_max_customers(len(gaps), method="Finish")
    return int(sum(record.waiting_time for record in simulation.get_all_records()))


def salabim_queue(gaps: list[int], services: list[int]) -> int:
    """Return the queue in salabim."""
    import salabim

    environment = salabim.Environment(trace=False, yieldless=False)
    servers = salabim.Resource("servers", capacity=SERVERS, env=environment)
    waited_ns = 0

    class _Customer(salabim.Component):  # type: ignore[misc]
        def process(self, service_ns: int) -> Generator[Any, Any, None]:
            nonlocal waited_ns
            arrived_ns = environment.now()
            yield self.request(servers)
            waited_ns += int(environment.now() - arrived_ns)
            yield self.hold(service_ns)
            self.release()

    class _Source(salabim.Component):  # type: ignore[misc]
        def process(self) -> Generator[Any, Any, None]:
            for gap_ns, service_ns in zip(gaps, services, strict=True):
                yield self.hold(gap_ns)
                _Customer(service_ns=service_ns, env=environment)

    _Source(env=environment)
    environment.run()
    return waited_ns
