"""The SIP lab: one run of the benchmark against one system."""

from __future__ import annotations

from collections.abc import Callable

from vftsim.errors import ConservationError
from vftsim.kernel import EventKind
from vftsim.kernel.agenda import Agenda
from vftsim.kernel.choose import make_engine
from vftsim.platform.cpu import build as cpu
from vftsim.platform.io.link import links
from vftsim.platform.io.packet import drops
from vftsim.platform.io.paths.moderated import guest_nics
from vftsim.platform.protection import build as protect
from vftsim.sampling import Streams
from vftsim.sip.build import BuiltLab, linked_for
from vftsim.sip.system import SipLabSpec
from vftsim.workloads.ims_bench.benchmark import Manager
from vftsim.workloads.ims_bench.metrics import PhaseRecord
from vftsim.workloads.ims_bench.sampler import Series, busy_now
from vftsim.workloads.sip.records import sip_servers

_S = 1_000_000_000
LONGEST_DRAIN_NS = 120 * _S
_ENTITY = 3


class SipLab:
    """One run of the benchmark against one system.

    Parameters
    ----------
    spec : SipLabSpec
    seed, replication : int
        Root seed and number of the replication.
    on_phase : callable, optional
        Called with each :class:`PhaseRecord` when its measured part ends.
    engine : str
        ``auto``, ``compiled`` or ``simpy``.
    """

    def __init__(
        self,
        spec: SipLabSpec,
        seed: int,
        replication: int,
        on_phase: Callable[[PhaseRecord], None] | None = None,
        engine: str = "auto",
        *,
        observed: bool = False,
    ) -> None:
        self.spec = spec
        self.engine = make_engine(linked_for(spec), engine, self.on_input)
        self.built = BuiltLab(self.engine, spec, observed=observed)
        self.agenda = Agenda(self.engine)
        server = spec.server
        memory = (spec.memory_available, server.memory_per_attempt, server.memory_per_transaction)
        self.series = Series(self.engine, memory, has_lag=self.built.guard != 0)
        self.manager = Manager(
            self.engine, self.agenda, self.built.bench, spec.workload, Streams(seed, replication), server.demand_cv,
            self.series, on_phase,
        )  # fmt: skip

    def run(self) -> list[PhaseRecord]:
        """Play the whole benchmark; returns the measured phases.

        Raises
        ------
        ConservationError
            An invariant of the simulation failed.
        RunFailure
            The model needs more than a run can hold.
        """
        engine, manager = self.engine, self.manager
        self.built.start()
        manager.begin()
        while not manager.finished:
            engine.run(engine.now_ns + 60 * _S)
        end_ns = engine.now_ns + LONGEST_DRAIN_NS
        while manager.under_way and engine.now_ns < end_ns:
            engine.run(engine.now_ns + _S)
        manager.complete()
        self.check_conservation()
        return manager.phases

    def on_input(self) -> None:
        """Do what the run has paused for."""
        self.series.drain()
        self.manager.write_draws()
        self.agenda.serve()

    def at(self, time_ns: int, action: Callable[[], None]) -> None:
        """Have something done at an instant of the run, after the manager's own actions there."""
        self.agenda.at(time_ns, EventKind.CONTROL, _ENTITY, self.agenda.add(action))

    @property
    def now_ns(self) -> int:
        """Simulated time."""
        return self.engine.now_ns

    def server_busy_ns(self) -> int:
        """CPU time that the server's domain has used up to now."""
        return self.engine.call(busy_now, self.built.domains["sut"])

    def dropped(self, place: str) -> int:
        """Datagrams lost up to now at one of :attr:`BuiltLab.places`."""
        return int(self.engine.rows(drops)[self.built.places[place]].count)

    def check_conservation(self) -> None:
        """Datagrams sent = delivered + dropped + in flight, on every hop; CPU time adds up.

        What a server had taken in and not finished when its machine was lost is lost in the crash.
        """
        engine, lab = self.engine, self.built
        nic, server = engine.rows(guest_nics)[lab.port], engine.rows(sip_servers)[lab.server]
        if nic.received != engine.rows(links)[lab.to_server].delivered:
            raise ConservationError("the link and the network card disagree on what arrived")
        lost = engine.rows(drops)[nic.ring_full].count + engine.rows(drops)[nic.down].count
        handed = nic.received - lost - nic.ring.length - nic.taken.length
        if handed != server.received:
            raise ConservationError(f"{handed} datagrams left the card, {server.received} reached the socket")
        in_progress = server.buffer.length + self.spec.server.processes - server.idle.length
        dropped = engine.rows(drops)[server.buffer_full].count
        if server.received != server.taken + dropped + in_progress + server.lost_in_crash or server.held < 0:
            raise ConservationError(
                f"of {server.received} datagrams at the socket {server.taken} are done, {dropped} were dropped, "
                f"{server.lost_in_crash} were lost in a crash and {in_progress} are in progress"
            )
        if lab.guard:
            protect.check_conservation(engine, lab.guard)
        lab.settle()
        cpu.check_conservation(engine, lab.host)
