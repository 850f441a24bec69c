"""One run of a model: start, phases, measurement, conservation, record."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from vftsim.composition.build import BuiltModel
from vftsim.composition.link import linked_for
from vftsim.composition.model import ModelSpec
from vftsim.composition.one_kernel import prepared_for
from vftsim.composition.record import RunRecord
from vftsim.composition.saves import Saves
from vftsim.errors import ConservationError, RunFailure
from vftsim.kernel import EventKind
from vftsim.kernel.agenda import Agenda
from vftsim.kernel.choose import make_engine
from vftsim.kernel.engine import RewindableEngine
from vftsim.outcome import Outcome, Phase
from vftsim.platform.cpu import build as cpu
from vftsim.platform.cpu.records import hosts, pcpus, uncharged_ns, vcpus
from vftsim.platform.io.host_cards import cards
from vftsim.platform.io.link import carried_bytes, links
from vftsim.platform.io.nic import nics
from vftsim.platform.outcomes import RESOURCES, DomainUse, HostUse, LinkUse, Losses
from vftsim.platform.pauses import Pauses
from vftsim.platform.protection import build as protect
from vftsim.platform.protection.account import timeline
from vftsim.platform.protection.guard import guards
from vftsim.platform.protection.outcome import named_breach
from vftsim.platform.protection.passes import play
from vftsim.sampling import Streams
from vftsim.spec.units import S

_MINUTE_NS = 60 * S
LONGEST_DRAIN_NS = 120 * S
_STEPS_A_TEST = 1000
"""How often it is asked during a test whether it is over: CPU time is right to a thousandth."""
BASELINE_ENTITY = 0
_ACTION_ENTITY = 3


@dataclass(frozen=True, slots=True)
class _Reading:
    """What hosts, domains, links and guards have measured from the start up to an instant."""

    time_ns: int
    outcomes: dict[str, Outcome]

    def since(self, before: Self) -> dict[str, Outcome]:
        """Return what they measured between two readings."""
        seconds = max(self.time_ns - before.time_ns, 1) / 1e9
        return {owner: now.since(before.outcomes[owner], seconds) for owner, now in self.outcomes.items()}


class Run:
    """One replication of a model in an engine: ``auto``, ``compiled`` or ``simpy``; results are the same.

    ``on_phase`` is called with the record of each finished phase of a workload that has phases.  Where the run is
    ``observed``, hosts write notes of every scheduling event.
    """

    def __init__(
        self,
        spec: ModelSpec,
        seed: int,
        replication: int,
        on_phase: Callable[[Any], None] | None = None,
        engine: str = "auto",
        *,
        observed: bool = False,
    ) -> None:
        self.spec = spec
        self.engine = make_engine(lambda: linked_for(spec), engine, self.on_input, lambda: prepared_for(spec))
        self.agenda = Agenda(self.engine)
        self.pauses = Pauses(self.engine)
        self.listeners: list[Any] = []
        self._resources: dict[str, dict[str, Outcome]] = {}
        self.on_time: Callable[[int], int] | None = None
        """Told the simulated time in ns now and then; returns after how many ns it wants to be told again."""
        self.on_measured: Callable[[], None] = lambda: None
        """Called when the measured time of a run without phases is over."""
        self._on_phase = on_phase
        self.built = BuiltModel(
            self.engine,
            spec,
            Streams(seed, replication),
            self.agenda,
            self._phase_over,
            lambda measure_from_ns: self.pauses.add(measure_from_ns, BASELINE_ENTITY, self._read_before),
            observed=observed,
        )
        self._links = {name: (row, spec.networks[network].rate) for name, network, row in self.built.link_ends()}
        self._start = self._end = self._before = self._read()
        self._over: _Reading | None = None
        self.phased = spec.phased is not None
        self.is_started = False
        self._saves: Saves | None = None
        if spec.faults and isinstance(self.engine, RewindableEngine):
            self._saves = Saves(self.engine, self, lambda: (self._saves, self.on_time))

    def run(self) -> RunRecord:
        """Run from the start, or from where :meth:`go_back` has led, to the end; return the record.

        Fails where an invariant of the simulation fails, and where the model needs more than a run can hold.
        """
        self.go_on()
        for listener in self.listeners:
            listener.read()
        return self.finish()

    def go_on(self) -> None:
        if not self.is_started:
            self.start()
        try:
            if self.phased:
                self._play()
            else:
                self._measure()
        except RunFailure as error:
            raise self.named(error) from None

    def branch_off(self, number: int) -> None:
        """Go on with random numbers of a branch's own, wherever nothing has been made of them yet."""
        self.built.streams.branch_off(number)
        self.built.feeder.redraw()

    def go_back(self, before_ns: int) -> bool:
        """Be as before an instant, some time before it; false: that cannot be, and nothing has changed."""
        return self._saves is not None and self._saves.go_back(before_ns)

    def start(self) -> None:
        self.is_started = True
        if not self.phased:
            self.pauses.add(self.built.window_ns[0], BASELINE_ENTITY, self._begin_window)
        self.built.start()

    def finish(self) -> RunRecord:
        """Check that everything adds up, and return the record of a run that is over."""
        for driver in self.built.drivers.values():
            driver.complete()
        in_flight = self.check_conservation()
        return self._record(in_flight)

    def on_input(self) -> None:
        """Do what the run has paused for: draw more, empty logs, act, look."""
        built = self.built
        built.feeder.fill()
        for feeder in built.nic_feeders:
            feeder.fill()
        for driver in built.drivers.values():
            driver.on_input()
        for listener in self.listeners:
            listener.read()
        self.agenda.serve()
        self.pauses.call_due()

    def at(self, time_ns: int, action: Callable[[], None]) -> None:
        """Have something done at an instant of the run, after the workloads' actions there."""
        self.agenda.at(time_ns, EventKind.CONTROL, _ACTION_ENTITY, self.agenda.add(action))

    @property
    def now_ns(self) -> int:
        return self.engine.now_ns

    def check_conservation(self) -> int:
        """Raise unless packets and CPU time add up on every host; return the packets in flight."""
        engine, built = self.engine, self.built
        for program in built.programs.values():
            program.check()
        for guard in built.guards.values():
            protect.check_conservation(engine, guard)
        in_flight = self._check_packets()
        built.settle()
        for host in built.hosts.values():
            cpu.check_conservation(engine, host.row)
        return in_flight

    def named(self, error: RunFailure) -> RunFailure:
        """Return a failure; of a broken promise it names the domain and the first output."""
        for name, guard in self.built.guards.items():
            measured = self.built.protection_of(name).measured(self.engine, guard)
            if measured.first_breach is not None and self.engine.rows(guards)[guard].audit.ends_run:
                return RunFailure(f"domain '{name}': {error}; {named_breach(measured.first_breach)}")
        return error

    def _play(self) -> None:
        """Run until every workload has played its phases, and what is under way is over, two minutes at most."""
        engine, drivers = self.engine, self.built.drivers.values()
        is_over = False
        while not is_over:
            # In whole minutes, so that the end time does not depend on the instant from which this pass resumed.
            self._run_to((engine.now_ns // _MINUTE_NS + 1) * _MINUTE_NS)
            is_over = all(driver.is_over for driver in drivers)
        end_ns = engine.now_ns + LONGEST_DRAIN_NS
        while any(driver.under_way for driver in drivers) and engine.now_ns < end_ns:
            engine.run(engine.now_ns + S)

    def _measure(self) -> None:
        """Run to the end; the measured time is over before it where the workloads' tests are."""
        begin_ns, end_ns = self.built.window_ns
        if self.spec.tests_ns > begin_ns:
            step_ns = max(self.spec.tests_ns // _STEPS_A_TEST, 1)
            least_ns = max(workload.least_test_ns() for workload in self.spec.workloads.values()) - begin_ns
            self._run_to(min(begin_ns + max(least_ns // step_ns, 0) * step_ns, end_ns))
            while self.now_ns < end_ns and any(driver.is_testing for driver in self.built.drivers.values()):
                self._run_to(min(self.now_ns + step_ns, end_ns))
        if self.spec.tests_ns == 0 or self.now_ns <= begin_ns:
            self._run_to(end_ns)
        self._over = self._read()
        self.on_measured()
        self._run_to(end_ns)

    def _run_to(self, end_ns: int) -> None:
        """Run up to a time; in parts if somebody wants to know how far it is or states are kept, to the same end."""
        engine, saves = self.engine, self._saves
        while engine.now_ns < end_ns:
            part_ns = end_ns if self.on_time is None else min(engine.now_ns + self.on_time(engine.now_ns), end_ns)
            if saves is None:
                engine.run(part_ns)
                continue
            engine.run(part_ns, saves.next_event)
            if engine.events >= saves.next_event:
                saves.save()

    def _check_packets(self) -> int:
        """Check that what entered by hosts' interfaces is delivered, dropped or in flight; return the latter."""
        engine, built = self.engine, self.built
        in_flight = 0
        for host in built.hosts.values():
            host.io.catch_up()
            in_flight += host.io.in_flight()
        in_flight += sum(program.in_flight() for program in built.programs.values())
        if not any(host.cards for host in built.hosts.values()) and not built.guards:
            sent = sum(
                int(engine.rows(nics)[row].admitted) for host in built.hosts.values() for row in host.io.nics.values()
            )
            delivered = sum(driver.delivered() for driver in built.drivers.values())
            dropped = sum(built.drop_counts().values())
            if sent != delivered + dropped + in_flight:
                raise ConservationError(
                    f"{sent} packets sent, but {delivered} delivered + {dropped} dropped + {in_flight} in flight"
                )
        self._check_guest_cards()
        return in_flight

    def _check_guest_cards(self) -> None:
        """What a link has delivered has reached the cards behind it; what they took in reached the sockets."""
        engine, built = self.engine, self.built
        arrived: dict[int, int] = {}
        for (program, key), port in built.ports.items():
            domain = program.rpartition(".")[0]
            interface = built.specs[domain].interfaces[key]
            taken_in = interface.path.taken_in(engine, port)
            if taken_in is None:
                return
            card = built.host_of(domain).cards[self.spec.network_of(built.specs[domain], interface)]
            arrived[card] = arrived.get(card, 0) + taken_in
        for card, received in arrived.items():
            card_record = engine.rows(cards)[card]
            if received + card_record.lost != engine.rows(links)[card_record.to_host].delivered:
                raise ConservationError("a link and the network cards behind it disagree on what arrived")

    def _read(self) -> _Reading:
        """Read the accounts without charging anybody: time since the last charge is added here."""
        rows, built, now_ns = self.engine.rows, self.built, self.engine.now_ns
        for program in built.programs.values():
            program.update_accounts()
        for host in built.hosts.values():
            host.io.catch_up()
        domain_ns = dict.fromkeys(built.domains, 0)
        running_ns: dict[int, int] = {}
        for name, _, row in built.vcpu_rows():
            vcpu: Any = rows(vcpus)[row]
            more_ns = int(uncharged_ns(vcpu, now_ns))
            running_ns[int(vcpu.pcpu)] = more_ns
            domain_ns[name] += int(vcpu.run_ns) + more_ns
        outcomes: dict[str, Outcome] = {}
        for name, cpu_ns in domain_ns.items():
            outcomes[f"domains.{name}"] = DomainUse(cpu_ns=cpu_ns)
        for name, domain in built.specs.items():
            for (key, disk), row in zip(domain.disks.items(), built.disks[name], strict=True):
                outcomes[f"domains.{name}.disks.{key}"] = disk.measured(self.engine, row)
        for name, host in built.hosts.items():
            outcomes[f"hosts.{name}"] = HostUse(
                busy_ns={
                    f"pcpu_{number}": int(rows(pcpus)[row].busy_ns) + running_ns.get(row, 0)
                    for number, row in enumerate(built.pcpu_rows(name))
                },
                switching_ns=sum(int(rows(pcpus)[row].switching_ns) for row in built.pcpu_rows(name)),
                context_switches=int(rows(hosts)[host.row].context_switches),
                interrupts=sum(int(rows(nics)[row].interrupts) for row in host.io.nics.values()),
                scheduler=host.spec.scheduler.counters(self.engine, host.row),
            )
        for name, (row, rate) in self._links.items():
            outcomes[name] = LinkUse(sent_bytes=carried_bytes(rows(links)[row], now_ns), rate_bits_per_s=rate)
        for name, guard in built.guards.items():
            outcomes[f"domains.{name}.protection"] = built.protection_of(name).measured(self.engine, guard)
        outcomes["drops"] = Losses(packets={f"{place} {why}": n for (place, why), n in built.drop_counts().items()})
        return _Reading(now_ns, outcomes)

    def _begin_window(self) -> None:
        self._forget_extremes()
        self._before = self._read()

    def _forget_extremes(self) -> None:
        """Let the extremes of mechanisms begin anew: those of before the measured time are none of it."""
        for name, guard in self.built.guards.items():
            self.built.protection_of(name).forget_extremes(self.engine, guard)

    def _read_before(self) -> None:
        """Read the accounts where the measured part of a phase begins: nobody is charged for it."""
        self._before = self._read()

    def _phase_over(self, phase: Any) -> None:
        if phase.name == "stir":
            self._forget_extremes()
            self._start = self._read()
        else:
            self._end = self._read()
            self._resources[phase.name] = self._end.since(self._before)
        if self._on_phase is not None:
            self._on_phase(phase)

    def _record(self, in_flight: int) -> RunRecord:
        built, after = self.built, self._end if self.phased else self._over or self._read()
        whole: dict[str, Outcome] = {}
        for name, driver in built.drivers.items():
            if (outcome := driver.outcome()) is not None:
                whole[f"workloads.{name}"] = outcome
        for name, program in built.programs.items():
            if (outcome := program.outcome()) is not None:
                domain, _, application = name.rpartition(".")
                whole[f"domains.{domain}.applications.{application}"] = outcome
        # Of a ramp, use of resources is known by step; what faults did and lost, only all its steps together tell.
        before = self._start if self.phased else self._before
        measured = after.since(before).items()
        whole |= {owner: each for owner, each in measured if not (self.phased and isinstance(each, RESOURCES))}
        every = self.spec.owners_of_copies()
        last = Phase("", self._load(), before.time_ns, after.time_ns, _with_all_copies(whole, every))
        phases = (*self._phases(every), last)
        owners = {owner for phase in phases for owner in phase.outcomes}
        return RunRecord(
            phases=phases,
            drops=built.drop_counts(),
            in_flight=in_flight,
            events=self.engine.events,
            timelines={name: timeline(self.engine, guard) for name, guard in built.guards.items()},
            offers={name: offer for name, driver in built.drivers.items() if (offer := driver.offer()) is not None},
            copies={owner: copies for owner, copies in every.items() if owner in owners},
        )

    def _phases(self, every: Mapping[str, list[str]]) -> Iterator[Phase]:
        """Yield the phases that workloads have of their own, with the use of resources in each."""
        for driver in self.built.drivers.values():
            for phase in driver.phases():
                outcomes = _with_all_copies({**phase.outcomes, **self._resources[phase.name]}, every)
                yield Phase(phase.name, phase.load, phase.begin_ns, phase.end_ns, outcomes)

    def _load(self) -> float | None:
        """Return the load of a model whose only workload declares one; None where it has phases or several."""
        loads = [load for workload in self.spec.workloads.values() if (load := workload.load()) is not None]
        return loads[0] if len(loads) == 1 and not self.phased else None


def _with_all_copies(outcomes: Mapping[str, Outcome], every: Mapping[str, list[str]]) -> dict[str, Outcome]:
    """Return outcomes, and before those of copies, which ``every`` names, what these measured together."""
    owners = {copies[0]: (owner, copies) for owner, copies in every.items() if outcomes.keys() >= set(copies)}
    pooled: dict[str, Outcome] = {}
    for name, outcome in outcomes.items():
        if name in owners and (kind := type(outcome).of_copies()) is not None:
            owner, copies = owners[name]
            pooled[owner] = kind.together([outcomes[copy] for copy in copies])
        pooled[name] = outcome
    return pooled


def run_model(
    spec: ModelSpec,
    seed: int,
    replication: int,
    engine: str = "auto",
    prepare: Callable[[Run], None] | None = None,
    on_time: Callable[[int], int] | None = None,
) -> RunRecord:
    """Run one replication of a model, in as many passes as its rollbacks take.

    ``prepare`` is called with each run that begins at time 0; for ``on_time`` see :class:`Run`.  Fails with
    ConservationError where an invariant of the simulation failed, with RunFailure where the model needs more than a run
    can hold.
    """
    records: list[RunRecord] = []

    def build() -> Run:
        run = Run(spec, seed, replication, engine=engine)
        run.on_time = on_time
        if prepare is not None:
            prepare(run)
        return run

    play(build, lambda run: run.engine, lambda run: records.append(run.run()), Run.go_back)
    return records[-1]
