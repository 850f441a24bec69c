"""What programs and clients have in common: their rows, the cost of work under protection, packets, drawn durations."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from pydantic import Field

from vftsim.kernel import Engine, Fifo, Kind, Record, Row, Sim, Table
from vftsim.kernel.inputs import Feeder, draw
from vftsim.kernel.record import fields
from vftsim.platform.delays import delays, install_buckets
from vftsim.platform.io.packet import (
    DATAGRAM,
    Port,
    applications,
    drop,
    flows,
    packet_list,
    packets,
    ports,
)
from vftsim.platform.io.ring import wait_for_slot
from vftsim.platform.protection.guard import put_out
from vftsim.platform.rows import RecordT, add_row
from vftsim.sampling import Draws, Streams, gamma_ns, uniform_ns
from vftsim.spec.base import Spec
from vftsim.spec.units import S
from vftsim.workloads.gaps import Gaps

LEVELS = 1 << 30
"""Choices are drawn as uniform levels below this; a share of them is true."""
AT_ONCE = 256
"""Draws that a feed of an entity holds."""


def is_chosen(sim: Sim, chance: int, choices: int) -> bool:
    """Draw whether something is done that is with a ``chance``, in :data:`LEVELS`; without a feed, always or never."""
    return (0 if choices == 0 else draw(sim, choices)) < chance


def unread_without(spec: Spec, read_with: Mapping[str, Iterable[str]]) -> dict[str, str]:
    """Return the keys that count only with another one, by which they are listed, where that one is 0 or false."""
    return {
        key: f"with {other} {'false' if getattr(spec, other) is False else 0} nothing reads it"
        for other, keys in read_with.items()
        if not getattr(spec, other)
        for key in keys
    }


class ProgramRow(Row):
    """Base of the records of applications: ``program`` is the row of ``applications``, ``domain`` where it runs."""

    program: int
    domain: int


class WorkloadRow(Row):
    """Base of the records of workloads: their flow, and the port that it goes to."""

    flow: int
    port: int


class Route(Record):
    """From a port of a program to a port of another that it sends requests to."""

    from_port: int
    to_port: int


routes = Table("routes", Route, 1 << 18, "let fewer programs send each other requests")


def with_overhead_ns(sim: Sim, program: int, demand_ns: int, outputs: int) -> int:
    """Return what work of ``demand_ns`` that sends ``outputs`` packets costs now; demands below 10**15 ns are exact."""
    overhead = applications(sim)[program]
    return int(demand_ns * overhead.execution) + outputs * overhead.output_ns


def outputs_of(port: Port) -> int:
    """Return how many outputs of the domain a packet sent by a port is: what stays inside is none."""
    return 0 if port.is_inside else 1


def new_packet(sim: Sim, flow: int, port: int, stream: int, entity: int, message: int, size_bytes: int) -> int:
    """Make a packet that leaves its sender now."""
    row = packets.new(sim)
    packet = packets(sim)[row]
    packet.flow = flow
    packet.port = port
    packet.ring = 0
    packet.stream = stream
    packet.entity = entity
    packet.message = message
    packet.size_bytes = size_bytes
    packet.sent_ns = sim.now_ns
    packet.left_bytes = 0
    packet.acked_bytes = 0
    return row


def send_or_wait(sim: Sim, packet: int) -> bool:
    """Send a guest's packet by its port; without room it waits there, and its program's ``go_on`` sends it again."""
    port = ports(sim)[packets(sim)[packet].port]
    if put_out(sim, port, packet):
        return True
    wait_for_slot(sim, port, packet, packet)
    return False


def drop_all(sim: Sim, queue: Fifo, drop_row: int) -> None:
    """Drop every packet of a queue."""
    while queue.length > 0:
        drop(sim, packet_list.pop(sim, queue), drop_row)


def of_packets(engine: Engine, queue: Fifo, visits: Table[Any]) -> Iterator[Any]:
    """Yield a program's records of the packets of a queue, one beside each packet."""
    row = int(queue.first)
    while row:
        yield engine.rows(visits)[row]
        row = int(engine.rows(packets)[row].link)


def busy_ns(engine: Engine, server: Any, visits: Table[Any]) -> int:
    """Return how long threads have had a request in the measured time: of those that are over, and up to now."""
    warmup_ns, now_ns = int(server.warmup_ns), engine.now_ns
    begins_ns = (max(int(visit.begin_ns), warmup_ns) for visit in of_packets(engine, server.in_hand, visits))
    return int(server.busy_ns) + sum(max(now_ns - begin_ns, 0) for begin_ns in begins_ns)


def duration_ns(sim: Sim, feed: int, mean_ns: int) -> int:
    """Return the next duration of a feed, or the mean where there is none (see :meth:`Assembly.gamma_feed`)."""
    if feed == 0:
        return mean_ns
    return draw(sim, feed)


def pages_per_request(default: float, why: str) -> Any:
    """Return the field of an application with the pages that each packet dirties, beside those that its work touches.

    A request leaves its packet in a buffer and, with most applications, something that outlives it.  A mechanism that
    sends states sends those pages once, with the first state after them.  A real guest's are counted by its
    hypervisor's dirty bitmap, idle and under load.
    """
    description = f"Pages that each packet received dirties, beside the working set. Assumption: {why}."
    return Field(default, ge=0.0, le=1e6, description=description)


class Assembly:
    """What a part has at hand while it is installed: the engine, and where its random numbers come from."""

    engine: Engine
    feeder: Feeder
    streams: Streams
    window_ns: tuple[int, int]
    """When measuring begins and ends, as ``measure`` says; a workload with phases of its own has its own."""

    def measured_s(self) -> float:
        """Return for how long the run has been measured by now, in seconds; 1 ns at least."""
        return max(1, self.engine.now_ns - self.window_ns[0]) / S

    def add_record(self, table: Table[RecordT], spec: Spec, **values: Any) -> RecordT:
        """Add a part's record; a field ``warmup_ns`` has the instant at which measuring begins."""
        if "warmup_ns" in fields(table.record):
            values["warmup_ns"] = self.window_ns[0]
        return add_row(self.engine, table, spec, **values)

    def add_flow(self, kind: Kind, state_row: int, port: int = 0, transport: int = DATAGRAM) -> int:
        """Add the flow of a workload's row; return the flow's row."""
        number = self.engine.number(kind)
        row = add_row(self.engine, flows, workload=number, state_row=state_row, port=port, transport=transport)
        return int(row.row)

    def add_delays(self) -> int:
        """Add a distribution of delays; return its row."""
        install_buckets(self.engine)
        return self.engine.new(delays)

    def gamma_feed(self, name: str, entity: int, mean_ns: float, cv: float, *, first: int = 0, at_once: int = 1) -> int:
        """Add a feed of gamma durations, from draw ``first`` on; return its row, 0 if they do not vary.

        So many as ``at_once`` may be taken at one instant, and a hundred of any.
        The uniforms depend on ``name`` and ``entity``, never on mean and spread.
        """
        if cv == 0.0 or mean_ns == 0:
            return 0
        law = partial(gamma_ns, mean_ns=float(mean_ns), cv=cv)
        return self.feeder.add(Draws(self.streams, name, entity, law, first=first), AT_ONCE, at_once)

    def phase_ns(self, kind: str, number: int, gap_ns: float, cv: float) -> int:
        """Return how much later than the first of its kind the client of that number begins, if it keeps time.

        Machines that send at the same rate do not send at the same instants; gaps that vary part them by themselves.
        """
        if cv > 0.0 or number == 0:
            return 0
        return self.streams.phase_ns(f"{kind}.phase", number, gap_ns)

    def set_gaps(self, gaps: Gaps, name: str, number: int, rate_per_s: float, cv: float) -> None:
        """Set gaps of the client of that number among those of its kind, after which ``name`` begins."""
        kind, gap_ns = name.partition(".")[0], S / rate_per_s
        gaps.drawn = self.gamma_feed(name, number, gap_ns, cv)
        gaps.whole_ns = max(1, int(gap_ns))
        gaps.rest = max(0.0, gap_ns - gaps.whole_ns)
        gaps.phase_ns = self.phase_ns(kind, number, gap_ns, cv)

    def choice_feed(
        self, name: str, entity: int, percent: float, *, is_drawn: bool = False, at_once: int = 1
    ) -> tuple[int, int]:
        """Add a feed of uniform levels; return below which of :data:`LEVELS` a choice is true, and the feed's row.

        The feed is 0 where nothing is left to choose, unless it ``is_drawn`` all the same.
        """
        if percent == 0.0 or (percent == 100.0 and not is_drawn):
            return (LEVELS if percent else 0), 0
        levels = Draws(self.streams, name, entity, partial(uniform_ns, low_ns=0, high_ns=LEVELS - 1))
        return round(percent / 100.0 * LEVELS), self.feeder.add(levels, AT_ONCE, at_once)


def add_routes(engine: Engine, port_pairs: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """Add routes between ports, at least one; return the first row and their number."""
    rows = [engine.add(routes, from_port=from_port, to_port=to_port)[0] for from_port, to_port in port_pairs]
    return rows[0], len(rows)


def add_application(engine: Engine, kind: Kind, state_row: int, domain: int) -> int:
    """Add the row of an application, which has no overhead yet; return it."""
    number = engine.number(kind)
    return int(add_row(engine, applications, program=number, state_row=state_row, domain=domain, execution=1.0).row)
