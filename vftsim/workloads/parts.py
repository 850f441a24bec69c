"""Applications and workloads as a model file names them: one registry for each, and what a part says of itself.

A new one is one file: its records, its functions, and its :class:`ApplicationSpec` or :class:`WorkloadSpec`.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

from pydantic import Field

from vftsim.errors import UsageError
from vftsim.kernel import Engine, Entry, Kind, Record, Table
from vftsim.kernel.agenda import Agenda
from vftsim.kernel.inputs import Feeder
from vftsim.outcome import Outcome, Phase
from vftsim.platform.cpu.guest_parameters import GuestSchedulerSpec
from vftsim.platform.io.packet import DATAGRAM, application, workload
from vftsim.sampling import Streams
from vftsim.spec.base import Spec
from vftsim.spec.registry import PartRegistry, discover
from vftsim.spec.units import format_duration
from vftsim.workloads.arrivals import Source
from vftsim.workloads.common import Assembly, add_application
from vftsim.workloads.gaps import LoadProfileSpec
from vftsim.workloads.offer import MOST_UNANSWERED, UNANSWERED, Offer
from vftsim.workloads.wire import Wire

RecordT = TypeVar("RecordT", bound=Record)


@dataclass(frozen=True)
class InstallContext(Assembly):
    """The domain that an application is installed in, while a model is built."""

    engine: Engine
    domain: int
    """Row of the domain."""
    name: str
    """``domain.application``."""
    number: int
    """Number of the domain on its host, from 0."""
    cpu_inflation: float
    """Factor on CPU work that the domain's hypervisor causes."""
    guest_scheduler: GuestSchedulerSpec
    """Process scheduler of the domain."""
    streams: Streams
    feeder: Feeder
    drop_row: Callable[[str, str], int]
    """Returns the row of ``drops`` of a place and a cause."""
    elide: Callable[[int], bool]
    """Elides the events of a periodic load, if nobody can see them; see :mod:`vftsim.platform.cpu.elided`."""
    disks: Mapping[str, int]
    """Rows of the domain's disks by name."""
    others: Mapping[str, int]
    """Applications of each kind that the model has had so far."""
    window_ns: tuple[int, int]

    def serial(self, spec: "ApplicationSpec") -> int:
        """Return the number of an application among those of its kind: it keys its streams of random numbers."""
        return self.others.get(spec.kind, 0)

    def inflated(self, demand_ns: float) -> int:
        """Return CPU work with the hypervisor's factor."""
        return round(demand_ns * self.cpu_inflation)

    def disk(self, name: str | None = None) -> int:
        """Return the row of a disk of the domain, of the first if none is named; 0: there is none, and none is used."""
        return next(iter(self.disks.values()), 0) if name is None else self.disks.get(name, 0)

    def add_program(self, table: Table[RecordT], spec: "ApplicationSpec", **values: Any) -> RecordT:
        """Add an application: its record, with ``row``, ``program`` and ``domain``, and its row of applications."""
        record: Any = self.add_record(table, spec, domain=self.domain, **values)
        record.program = add_application(self.engine, spec.part, int(record.row), self.domain)
        return record  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Wiring:
    """What an application finds around it, once a model has been built."""

    ports: Mapping[str, int]
    """Its ports by network, in the order of its domain's interfaces."""
    find: Callable[[str], Sequence[Mapping[str, int]]]
    """Returns the ports by network of each application that ``domain`` or ``domain.application`` stands for."""

    def port_pairs(self, to: str, via: str | None = None, *, first: bool = False) -> list[tuple[int, int]]:
        """Return own and others' ports on a network that both are on: ``via``, or the last (``first``) that there is.

        Refuses programs without such a network.
        """
        pairs = []
        for other in self.find(to):
            shared = [network for network in self.ports if network in other and via in (None, network)]
            if not shared:
                where = "no network that both are on" if via is None else f"they are not both on the network '{via}'"
                raise UsageError(f"'{to}' cannot be reached: {where}")
            network = shared[0 if first else -1]
            pairs.append((self.ports[network], other[network]))
        return pairs


class Program:
    """An application in a running model.

    It may have a record with ``row`` and ``program``, an entry that starts that row, and a function that returns what
    it has measured by itself.
    """

    row: int = 0
    """Row of the application; 0: it receives nothing."""
    engine: Engine
    name: str
    record: Any
    _start: Entry | None = None
    _measured: Callable[[], Outcome] | None = None

    def __init__(
        self,
        context: InstallContext | None = None,
        record: Any = None,
        start: Entry | None = None,
        measured: Callable[[], Outcome] | None = None,
    ) -> None:
        self._start, self._measured = start, measured
        if context is not None:
            self.engine, self.name = context.engine, context.name
        if record is not None:
            self.record, self.row = record, int(record.program)

    def connected(self, port: int) -> None:
        """Take note of a port by which it reaches the network."""

    def connect_peers(self, wiring: Wiring) -> None:
        """Find the applications that it speaks to; all have their ports, none has begun."""

    def start(self) -> None:
        """Begin, at the present instant."""
        if self._start is not None:
            self.engine.call(self._start, int(self.record.row))

    def in_flight(self) -> int:
        """Packets that it holds."""
        return 0

    def occupancy(self) -> tuple[str, int] | None:
        """Packets in its socket's buffer, by name; ``None``: it has none."""
        return None

    def update_accounts(self) -> None:
        """Bring its accounts up to now."""

    def check(self) -> None:
        """Raise :class:`~vftsim.errors.ConservationError` unless its accounts add up."""

    def outcome(self) -> Outcome | None:
        """Return what it has measured, if it measures something by itself."""
        return None if self._measured is None else self._measured()


class PeerRoute(NamedTuple):
    """How an application speaks to a peer."""

    peer: str
    via: str | None = None
    """The network; ``None``: any that both are on."""
    key: str = ""
    """The parameter that says so, which has a ``size``: what is sent as one datagram; empty: none has."""
    size_bytes: int = 0


class ApplicationSpec(Spec):
    """Base of the applications' parameters."""

    part: ClassVar[Kind]
    speaks: ClassVar[str] = ""
    """Protocol of the packets it takes; empty: it takes none."""
    uses_disks: ClassVar[bool] = False
    """Whether it reads or writes disks of its domain; those that no program uses are refused."""
    kinds: ClassVar[tuple[Kind, ...]] = ()
    """Further kinds that its kernel needs: of flows of its own."""
    outcomes: ClassVar[tuple[type[Outcome], ...]] = ()
    """What it measures by itself."""
    entries: ClassVar[tuple[Any, ...]] = ()
    actions: ClassVar[tuple[Any, ...]] = ()
    tables: ClassVar[tuple[Table[Any], ...]] = ()

    kind: str

    @property
    def uses_a_disk(self) -> bool:
        """Whether it reads or writes as it stands, so that its domain needs the disk of its key ``disk``, or any."""
        return self.uses_disks

    def unread_of_transfers(self, records_reads: bool, mirrors_writes: bool) -> Mapping[str, str]:
        """Return the keys that only a mechanism looks at that does either, where none does, each with the reason."""
        return {}

    @property
    def has_disk_times(self) -> bool:
        """Whether it waits for disk operations of set times, whatever becomes of its domain's disks."""
        return False

    @property
    def peers(self) -> tuple[str, ...]:
        """Applications that it speaks to, as ``domain`` or ``domain.application``."""
        return ()

    @property
    def peer_routes(self) -> Sequence[PeerRoute]:
        """How it speaks to its peers: to each once, by any network that both are on, if it does not say."""
        return [PeerRoute(peer) for peer in self.peers]

    def contradiction(self, cpu_inflation: float) -> str:
        """Return why it cannot be in a domain whose CPU work has such a factor; empty: it can."""
        return ""

    @property
    def forwards_to(self) -> str | None:
        """Application that gets what it does not answer itself, named as in ``peers``; ``None``: it answers all."""
        return None

    @property
    def waits_for(self) -> tuple[str, ...]:
        """Peers without which it never answers: from none of them may the path lead back to it."""
        return () if self.forwards_to is None else (self.forwards_to,)

    @property
    def mean_requests(self) -> Sequence[tuple[str, float]]:
        """Peers, and how many requests it sends each for one that it receives, as far as that is known: an estimate."""
        return ()

    @property
    def pages_a_packet(self) -> float | None:
        """Pages that each packet received dirties, beside what its CPU time touches; None if it takes no packets."""
        return getattr(self, "pages_per_request", None)

    @property
    def pool_size(self) -> int:
        """Threads of which a request holds one, as its figure ``busy_threads`` counts them; 0: it has no such pool."""
        return 0

    @property
    def busy_percent(self) -> float:
        """CPU time that it takes by itself, serving nobody, of one CPU; 0: it works when it is asked to."""
        return 0.0

    @property
    def packet_work_ns(self) -> int:
        """About its CPU time for a packet, for an estimate; 0 where that hangs on more than the packet."""
        return 0

    def without_effect(self) -> Mapping[str, str]:
        """Return the keys (dotted where nested) that nothing reads as it stands, each with the reason."""
        return {}

    def events_per_s(self, vcpus: int) -> float:
        """Return about how many events it causes by itself; what recurs by a period of its own is counted anyhow."""
        return 0.0

    def most_per_s(self, inflation: float, exits: float) -> float:
        """Return about how many requests a CPU of it takes, with its work and its exits so many times as dear."""
        return math.inf

    def install(self, context: InstallContext) -> Program:
        """Add it to a domain."""
        raise TypeError(f"{type(self).__name__} must say how to install itself")


@dataclass(frozen=True)
class Target(Assembly):
    """What a workload is directed at, while a model is built."""

    engine: Engine
    feeder: Feeder
    name: str
    number: int
    """Workloads of its kind before it in the model: it keys its streams of random numbers."""
    port: int
    """Row of the port by which the application is reached."""
    program: Program
    application: ApplicationSpec
    domain: int
    """Row of its domain."""
    guard: int
    """Row of the domain's guard; 0: none."""
    rate_bits_per_s: int
    latency_ns: int
    """Of the network between."""
    agents_domains: tuple[int, ...]
    """Rows, one after the other, of the domains in which the clients run; empty: outside."""
    memory_bytes: int
    """Memory free in the application's domain before the run."""
    window_ns: tuple[int, int]
    end_ns: int
    """No run of the model lasts longer."""
    is_linked: bool
    """Packets cross a modelled link, both ways; else the way outside is a constant delay."""
    streams: Streams
    agenda: Agenda
    drop_rows: Mapping[str, int]
    """Rows of ``drops`` on the path to the application and back, by name."""
    on_phase: Callable[[Any], None]
    """To be called with each finished phase of a workload that has phases."""
    on_measure: Callable[[int], None]
    """To be called when such a phase begins, with the instant from which it is measured."""

    def add_clients(self, table: Table[RecordT], spec: "WorkloadSpec", **values: Any) -> RecordT:
        """Add a workload: its record, with ``row``, ``port`` and ``flow``, and its flow."""
        record: Any = self.add_record(table, spec, port=self.port, **values)
        record.flow = self.add_flow(spec.part, int(record.row), self.port, spec.transport)
        return record  # type: ignore[no-any-return]


class Driver:
    """A workload in a running model.

    It may have a record with ``row`` and ``flow``, an entry that starts that row, and functions that return its outcome
    and its offer.
    """

    flow: int = 0
    """Row of its flow."""
    sources: Sequence[Source] = ()
    """What it sends to the network interface by itself, drawn beforehand."""
    engine: Engine
    record: Any
    _start: Entry | None = None
    _measured: Callable[[], Outcome] | None = None
    _offered: Callable[[], Offer | None] | None = None

    def __init__(
        self,
        target: Target | None = None,
        record: Any = None,
        start: Entry | None = None,
        measured: Callable[[], Outcome] | None = None,
        offered: Callable[[], Offer | None] | None = None,
    ) -> None:
        self._start, self._measured, self._offered = start, measured, offered
        if target is not None:
            self.engine = target.engine
        if record is not None:
            self.record, self.flow = record, int(record.flow)

    def begin(self) -> None:
        """Begin, at the present instant."""
        if self._start is not None:
            self.engine.call(self._start, int(self.record.row))

    def on_input(self) -> None:
        """Do what the run may have paused for."""

    @property
    def is_over(self) -> bool:
        """Whether it needs no further events before the end of the run."""
        return True

    @property
    def under_way(self) -> int:
        """What it has begun and not seen the end of."""
        return 0

    @property
    def is_testing(self) -> bool:
        """Whether a test of its own, as long as :meth:`WorkloadSpec.test_ns` says, is not yet over."""
        return False

    def complete(self) -> None:
        """Bring its record up to now: the run is over."""

    def delivered(self) -> int:
        """Packets that came back to it, from the start; for conservation."""
        return 0

    def outcome(self) -> Outcome | None:
        """Return what it has measured in its whole measured time."""
        return None if self._measured is None else self._measured()

    def phases(self) -> Sequence[Phase]:
        """Return what it has measured in phases of its own; none: it has none."""
        return ()

    def wire_ns(self) -> int:
        """Return what its packets spend on a network that is not modelled."""
        return 0

    def offer(self) -> Offer | None:
        """Return what it was asked to send and what it sent; ``None``: by construction it sends what it is asked."""
        return None if self._offered is None else self._offered()


@dataclass(frozen=True)
class RunProfile:
    """What is known of a run before it begins, for an estimate of its length."""

    length_ns: int
    """Simulated time."""
    most_per_s: float
    """Requests a second that the application takes."""
    rate_bits_per_s: int
    latency_ns: int
    """Of the network between."""
    application: ApplicationSpec | None = None
    """What it is directed at."""
    peer: Callable[[str], ApplicationSpec] | None = None
    """Returns the application that a name among another's ``peers`` stands for."""

    @property
    def seconds(self) -> float:
        """Simulated time in seconds."""
        return self.length_ns / 1e9


class WorkloadSpec(Spec):
    """Base of the workloads' parameters."""

    part: ClassVar[Kind]
    speaks: ClassVar[str]
    """Protocol of its packets: what the application it is directed at must speak."""
    load_key: ClassVar[str] = ""
    """Parameter that is its load: what a capacity search turns; empty: it has none that could be raised."""
    objectives: ClassVar[tuple[str, ...]] = ()
    """What its clients ask for, each as ``figure <= number``: what a capacity search judges a run by."""
    fewest_judged: ClassVar[int] = 0
    """So many of what it offers a run has to measure for these objectives; fewer differ by chance.  0: any number."""
    transport: ClassVar[int] = DATAGRAM
    needs_link: ClassVar[bool] = False
    """Whether its packets are sent by events of the run, and so cross a modelled link."""
    agents_may_be_many: ClassVar[bool] = False
    """Whether its clients may run in a domain that stands for several."""
    packet_drawing_ns: ClassVar[float] = 250.0
    """CPU time in which a packet is drawn, whether or not it finds room; for an estimate, measured."""
    outcomes: ClassVar[tuple[type[Outcome], ...]] = ()
    """What it measures in its whole measured time: known before a run, so that a wrong name is refused at once."""
    phase_outcomes: ClassVar[tuple[type[Outcome], ...]] = ()
    """What it measures in phases of its own."""
    entries: ClassVar[tuple[Any, ...]] = ()
    actions: ClassVar[tuple[Any, ...]] = ()
    tables: ClassVar[tuple[Table[Any], ...]] = ()

    kind: str
    to: str
    via: str | None = Field(
        None, description="Network by which the application is reached; that of its first interface if not given."
    )

    @property
    def agents(self) -> str | None:
        """Domain in which its clients run, as its parameter ``agents_in`` says; ``None``: on machines of their own."""
        return getattr(self, "agents_in", None)

    @property
    def playout_ns(self) -> int:
        """From how late on, there and back, a packet is of no use; 0: none is."""
        return 0

    @property
    def wire_bits_per_s(self) -> float:
        """What its settings ask of the line on average; 0: that hangs on more."""
        return 0.0

    @property
    def attempts_per_s(self) -> float:
        """Requests or calls that its clients begin a second, answered or not; nan: that hangs on the answers."""
        return math.nan

    @property
    def patience_ns(self) -> int:
        """How long its clients wait before something has failed: a shorter measured time does not show an overload."""
        return 0

    def without_effect(self) -> Mapping[str, str]:
        """Return the keys (dotted where nested) that nothing reads as it stands, each with the reason."""
        return {}

    def remark(self) -> str:
        """Return a key and what its figures leave unsaid as it stands; empty: nothing."""
        return ""

    def load_profiles(self) -> Mapping[str, LoadProfileSpec]:
        """Return what may have a load profile, by the profile's key."""
        return {"load_profile": self} if isinstance(self, LoadProfileSpec) else {}

    def unanswered(self, offered: int, over: int, measured_ns: int, unit: str) -> Offer | None:
        """Return what was over of what was offered, if the measured time is too short for the rest to fail."""
        if measured_ns >= self.patience_ns:
            return None
        limit = f"none has failed before it has waited for {format_duration(self.patience_ns)}; less was measured"
        return Offer(offered, min(over, offered), unit, limit, UNANSWERED, MOST_UNANSWERED, "failed")

    def judged(self, measured_ns: int) -> Self:
        """Return it offering as much as its objectives are judged by, in the measured time, where it ends by itself."""
        return self

    def test_ns(self) -> int:
        """Return how long its test lasts from the start of a run, without phases; 0: as long as the run."""
        return 0

    def least_test_ns(self) -> int:
        """Return how long its test lasts at least."""
        return 0

    def incompatibility(self, application: ApplicationSpec, rate_bits_per_s: int, queue_bytes: int) -> str:
        """Return key and reason if it cannot be directed at what speaks its protocol, over a line of rate and queue."""
        return ""

    def load(self) -> float | None:
        """Return its load, as :attr:`load_key` names it; None: it has none that could be raised."""
        return float(getattr(self, self.load_key)) if self.load_key else None

    @property
    def bearers(self) -> str:
        """Who each have its load, in words, where these are several: ``2 clients``; empty: all together."""
        return ""

    @property
    def first_load_key(self) -> str:
        """Parameter that is the load it begins with; empty: it has none."""
        return self.load_key

    def longest_ns(self) -> int:
        """Return how long it may last by phases of its own; 0: as long as ``measure`` says."""
        return 0

    def step_loads(self) -> Sequence[float]:
        """Return the loads of its steps, as far as it may play them; none: it has no steps."""
        return ()

    def step_ns(self) -> int:
        """Return for how long a phase of its own is measured; 0: it has none."""
        return 0

    def scaled(self, factor: float) -> "tuple[WorkloadSpec, str]":
        """Return it with the measured time of its own phases scaled, and what was changed in words; empty: nothing."""
        return self, ""

    def events_a_packet(self, profile: RunProfile) -> float:
        """Return events for each packet beside those of its path: timers, clients; for an estimate, measured."""
        return 0.0

    def drawing_ns(self, profile: RunProfile) -> float:
        """Return the CPU time in which a packet is drawn."""
        return self.packet_drawing_ns

    def about_ns(self, most_per_s: float) -> int:
        """Return how long its phases last against what takes so many requests a second; 0: it has none."""
        return 0

    def under_way_ns(self, most_per_s: float) -> int:
        """Return how long the run goes on after these: to a whole minute, and until what is under way is over."""
        return 0

    def packets(self, profile: RunProfile) -> float:
        """Return about how many packets the application takes in of it in a run."""
        return 0.0

    def fills(self, profile: RunProfile) -> tuple[float, int]:
        """Return the share of its line that it fills, if it fills lines at all, and for how many ns of a run."""
        return 0.0, profile.length_ns

    def share_sent(self, time_ns: int, profile: RunProfile) -> float:
        """Return the share of those packets that has come by an instant; they come evenly if it does not say."""
        return min(time_ns / max(profile.length_ns, 1), 1.0)

    def samples(self, profile: RunProfile) -> float:
        """Return how many samples it keeps for its record."""
        return 0.0

    def in_flight(self, profile: RunProfile) -> float:
        """Return about how many calls and transactions it has under way at its busiest; a packet drawn ahead: 1/20."""
        return 0.0

    def wire(self, application: ApplicationSpec) -> Wire:
        """Return what packets to and from an application are called, and what they look like in a capture."""
        return Wire()

    def time_of(self, phase: str, offset_ns: int) -> int | None:
        """Return the time of a run at which a phase of its own has lasted for so long; ``None``: it has no such."""
        return None

    def install(self, target: Target) -> Driver:
        """Add it to a model."""
        raise TypeError(f"{type(self).__name__} must say how to install itself")


APPLICATIONS: PartRegistry[ApplicationSpec] = PartRegistry("application", ApplicationSpec, application.kinds)
WORKLOADS: PartRegistry[WorkloadSpec] = PartRegistry("workload", WorkloadSpec, workload.kinds)


def discover_parts() -> None:
    """Import every application and workload of :mod:`vftsim.workloads`, so that they register."""
    discover("vftsim.workloads")
