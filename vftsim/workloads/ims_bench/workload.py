"""The IMS benchmark as a workload of a model: its agents, manager and samples put together."""

import math
from collections.abc import Mapping, Sequence
from typing import Self

from vftsim.outcome import Phase
from vftsim.platform.delays import install_buckets
from vftsim.platform.io.link import never_fits
from vftsim.platform.rows import fill_row
from vftsim.spec import format_duration
from vftsim.spec.units import S
from vftsim.workloads.gaps import LoadProfileSpec
from vftsim.workloads.ims_bench.arrivals import begin_arrivals, begin_batches, judge_overdue
from vftsim.workloads.ims_bench.attempt import benches
from vftsim.workloads.ims_bench.benchmark import Manager
from vftsim.workloads.ims_bench.metrics import PhaseRecord, Ramp
from vftsim.workloads.ims_bench.parameters import BenchParameters
from vftsim.workloads.ims_bench.sampler import Series, add_sampler, begin_sampling, end_sampling
from vftsim.workloads.ims_bench.subscribers import fill_pools
from vftsim.workloads.offer import Offer
from vftsim.workloads.parts import WORKLOADS, ApplicationSpec, Driver, RunProfile, Target, WorkloadSpec
from vftsim.workloads.ramp import ramp_end
from vftsim.workloads.sip.application import SipServerProgram, SipServerSpec
from vftsim.workloads.sip.messages import SIZE_BYTES
from vftsim.workloads.sip.wire import SipWire
from vftsim.workloads.wire import Wire

_MINUTE_NS = 60 * S
LONGEST_DRAIN_NS = 120 * S
_EULER = 0.5772
_SHORTEST_STEP_NS = 2 * S
_REPEATED = 1.4
"""Messages of the step that is too much over those that its load would make: 1.2 to 1.65 in the shipped labs."""
_GAMMA_NS = 700.0
"""Further time of a draw where CPU times take the inverse of a gamma distribution; measured."""


@WORKLOADS.register
class ImsBenchSpec(BenchParameters):
    """The IMS benchmark (ETSI TS 186 008 as run by IMS Bench SIPp); see :mod:`vftsim.workloads.ims_bench.benchmark`."""

    products = ("sipp",)
    speaks = "sip"
    needs_link = True
    entries = (begin_arrivals, begin_batches, judge_overdue, begin_sampling, end_sampling)
    most_steps_key = "steps.most"
    limit_key = "steps.stop_above_ihs"
    transient_key = "steps.transient"
    outcomes = (Ramp,)
    phase_outcomes = (PhaseRecord,)

    def longest_ns(self) -> int:
        """Return the time of all phases, and of what is under way after the last."""
        return self._steps_begin_ns() + self.steps.count * self.steps.duration + LONGEST_DRAIN_NS + _MINUTE_NS

    @property
    def first_load_key(self) -> str:
        """A ramp's first step."""
        return "steps.loads.0" if self.steps.loads else "steps.initial"

    def without_effect(self) -> Mapping[str, str]:
        """Each load by itself leaves nothing to be counted up."""
        why = "steps.loads gives the load of each step"
        return dict.fromkeys(("steps.initial", "steps.increment"), why) if self.steps.loads else {}

    def load_profiles(self) -> Mapping[str, LoadProfileSpec]:
        """That of each step."""
        return {"steps.load_profile": self.steps}

    def step_loads(self) -> Sequence[float]:
        return [self.steps.load_of(step) for step in range(self.steps.count)]

    @property
    def sample_period_ns(self) -> int:
        """Of all series."""
        return self.sample_period

    def at_load(self, load: float) -> Self:
        """One step; subscribers are registered to begin with."""
        steps = self.steps.model_copy(update={"initial": float(load), "loads": (), "most": 1})
        at_once = self.pre_registration.model_copy(update={"duration": 0})
        return self.model_copy(update={"steps": steps, "pre_registration": at_once})

    def with_times(self, transient_ns: int, measured_ns: int) -> Self:
        """Change all steps."""
        times = {"transient": transient_ns, "duration": transient_ns + measured_ns}
        return self.model_copy(update={"steps": self.steps.model_copy(update=times)})

    def step_ns(self) -> int:
        """Return the time of a step less its transient."""
        return self.steps.duration - self.steps.transient

    def scaled(self, factor: float) -> tuple[WorkloadSpec, str]:
        """Steps and pre-registration; transients stay, they are as long as a call lasts."""
        before_ns, pre = self.step_ns(), self.pre_registration
        measured_ns = round(before_ns * factor)
        if measured_ns == before_ns:
            return self, ""
        measured_ns = max(measured_ns, min(_SHORTEST_STEP_NS, before_ns))
        registering_ns = pre.transient + round((pre.duration - pre.transient) * factor)
        pre = pre.model_copy(update={"duration": registering_ns if pre.duration > pre.transient else pre.duration})
        steps = self.steps.model_copy(update={"duration": self.steps.transient + measured_ns})
        note = (
            f"steps measured for {format_duration(measured_ns)} instead of {format_duration(before_ns)} "
            f"(transient of {format_duration(steps.transient)} kept)"
        )
        if measured_ns < before_ns:
            note += "; a shorter step leaves an overload less time to build up, so capacity may come out higher"
        return self.model_copy(update={"steps": steps, "pre_registration": pre}), note

    def about_ns(self, most_per_s: float) -> int:
        """The ramp stops when the server is overloaded."""
        return self._steps_begin_ns() + len(self._played(most_per_s)) * self.steps.duration

    def under_way_ns(self, most_per_s: float) -> int:
        """Calls end, two minutes after a whole one at most."""
        end_ns = self.about_ns(most_per_s)
        minute_ns = math.ceil(end_ns / _MINUTE_NS) * _MINUTE_NS
        last_ns = end_ns + self._longest_call_ns(self._played(most_per_s)[-1], end_ns)
        return max(minute_ns, min(last_ns, minute_ns + LONGEST_DRAIN_NS)) - end_ns

    def _longest_call_ns(self, load: float, end_ns: int) -> int:
        """Return how long the last of n calls under way takes: mean + sd x (log n - 0.42), as of exponential times."""
        mean_ns, sd_ns = self.ring_time + self.hold_time, self.time_cv * math.hypot(self.ring_time, self.hold_time)
        begun = load * self.mix.ims_uac / 100.0 * min(mean_ns, end_ns) / S
        calls = max(min(begun, self.subscribers / 2), 1.0)
        return round(max(mean_ns + sd_ns * (math.log(calls) + _EULER - 1.0), 0.0))

    def incompatibility(self, application: ApplicationSpec, rate_bits_per_s: int, queue_bytes: int) -> str:
        """A message is one packet, also the longest."""
        return never_fits("to: a SIP message", max(SIZE_BYTES), queue_bytes)

    def packets(self, profile: RunProfile) -> float:
        """Messages that the server receives, 4 an attempt and 2 a registration."""
        return math.fsum(rate * length_ns for length_ns, rate in self._phases(profile.most_per_s)) / S

    def share_sent(self, time_ns: int, profile: RunProfile) -> float:
        """They come faster from step to step."""
        sent, begins_ns = 0.0, 0
        for length_ns, rate in self._phases(profile.most_per_s):
            sent += rate * min(max(time_ns - begins_ns, 0), length_ns) / S
            begins_ns += length_ns
        return sent / self.packets(profile)

    def _phases(self, most_per_s: float) -> list[tuple[int, float]]:
        """Return the length of each phase up to the step that is too much, and the server's messages a second."""
        stir_ns, first = self.stir.duration // self.stir.steps, self.steps.load_of(0)
        return [
            (self._stir_begins_ns(), 2.0 * self.pre_registration.rate),
            *((stir_ns, 4.0 * first * (step + 1) / self.stir.steps) for step in range(self.stir.steps)),
            *(
                (self.steps.duration, 4.0 * load * self.steps.mean_share * (_REPEATED if load > most_per_s else 1.0))
                for load in self._played(most_per_s)
            ),
        ]

    def events_a_packet(self, profile: RunProfile) -> float:
        """Timers of both sides; more where the user agents are modelled."""
        return 1.5 if self.agents_in is None else 3.5

    def drawing_ns(self, profile: RunProfile) -> float:
        """CPU times that are neither constant nor exponential take the inverse of a gamma distribution."""
        is_gamma = getattr(profile.application, "demand_cv", 1.0) not in (0.0, 1.0)
        return super().drawing_ns(profile) + _GAMMA_NS * is_gamma

    def samples(self, profile: RunProfile) -> float:
        """One a period of each phase, of eight series or nine."""
        return 9.0 * profile.length_ns / self.sample_period

    def in_flight(self, profile: RunProfile) -> float:
        """Calls that ring or hold, and transactions that are kept for half a minute; subscribers."""
        busiest = max(self._played(profile.most_per_s)) * self.highest_share
        kept_s = (self.ring_time + self.hold_time) / S + 32.0
        return min(busiest * min(kept_s, profile.seconds), self.subscribers) + self.subscribers / 16

    def _played(self, most_per_s: float) -> list[float]:
        """Return the loads of the steps up to the first that is too much."""
        loads = self.step_loads()
        return [load for step, load in enumerate(loads) if step == 0 or loads[step - 1] <= most_per_s]

    def time_of(self, phase: str, offset_ns: int) -> int | None:
        """Return the time of an instant after the start of a phase."""
        if phase == "pre-registration":
            return offset_ns
        if phase == "stir":
            return self._stir_begins_ns() + offset_ns
        if phase.startswith("step ") and int(phase[5:]) <= self.steps.most:
            return self._steps_begin_ns() + (int(phase[5:]) - 1) * self.steps.duration + offset_ns
        return None

    def wire(self, application: ApplicationSpec) -> Wire:
        """SIP over UDP."""
        return SipWire(is_challenging=not isinstance(application, SipServerSpec) or application.challenges)

    def install(self, target: Target) -> "BenchDriver":
        """Add the benchmark."""
        return BenchDriver(self, target)

    def _stir_begins_ns(self) -> int:
        batch_ns = round(self.test_systems * S / self.pre_registration.rate)
        return self.pre_registration.duration // batch_ns * batch_ns

    def _steps_begin_ns(self) -> int:
        return self._stir_begins_ns() + self.stir.duration // self.stir.steps * self.stir.steps


class BenchDriver(Driver):
    """A benchmark in a running model; ``bench`` is its row."""

    def __init__(self, spec: ImsBenchSpec, target: Target) -> None:
        engine, application, program = target.engine, target.application, target.program
        assert isinstance(application, SipServerSpec)
        assert isinstance(program, SipServerProgram)
        install_buckets(engine)
        bench = target.add_clients(benches, spec, domain=next(iter(target.agents_domains), 0))
        fill_row(engine, benches, bench.row, spec.thresholds)
        fill_pools(engine, bench, spec.subscribers, int(spec.subscribers * spec.registered / 100.0))
        super().__init__(target, bench)
        self.bench = int(bench.row)
        self._owner, self._limit_percent = f"workloads.{target.name}", spec.steps.stop_above_ihs
        add_sampler(target, self.bench, program.server, spec.sample_period)
        memory = (target.memory_bytes, application.memory_per_attempt, application.memory_per_transaction)
        self.series = Series(engine, memory, has_lag=target.guard != 0)
        self.manager = Manager(target, self.bench, spec, application.demand_cv, self.series)

    def begin(self) -> None:
        """Begin the first phase."""
        self.manager.begin()

    def on_input(self) -> None:
        """Take samples over, and draw attempts ahead."""
        self.series.drain()
        self.manager.write_draws()

    @property
    def is_over(self) -> bool:
        """Whether the last phase is over."""
        return self.manager.finished

    @property
    def under_way(self) -> int:
        """Attempts begun and not over."""
        return self.manager.under_way

    def complete(self) -> None:
        """Bring the records of all phases up to now."""
        self.manager.complete()

    def phases(self) -> Sequence[Phase]:
        return [
            Phase(each.name, each.requested_saps, each.measure_from_ns, each.end_ns, {self._owner: each})
            for each in self.manager.phases
        ]

    def outcome(self) -> Ramp:
        """Return where the ramp ended."""
        end = ramp_end(self.manager.phases, self._limit_percent)
        doc_saps = float(end.doc_saps) if end.stop_step else None
        return Ramp(doc_saps=doc_saps, stop_step=end.stop_step, seconds=self.engine.now_ns / S)

    def offer(self) -> Offer:
        """Return the attempts of all load steps, less transients: asked for on average, less those not begun."""
        steps = [phase for phase in self.manager.phases if phase.index > 0]
        attempts = sum(phase.requested_saps * (phase.end_ns - phase.measure_from_ns) / 1e9 for phase in steps)
        missing = sum(phase.not_started for phase in steps)
        limit = (
            f"no subscriber of the state that they need was free; raise {self._owner}.subscribers, or change "
            f"{self._owner}.registered: ims_reg needs one that is not, all others those that are"
        )
        return Offer(attempts, attempts - missing, "attempts", limit)
