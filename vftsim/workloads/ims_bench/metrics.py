"""What the benchmark measures, accumulated while it runs.

An attempt and all that befalls it, its delays and its failure, count in the phase in which it began
(ETSI TS 186 008), though a call lasts 35 s on average and its BYE often meets the next step.  So the figures
of a step hold some of the next one's overload: REL1 and the failed calls of a step just below capacity come
from there.  The lab's record shows it too (virtual step 5: REL1 up to 20 s, 0.19 % of the calls failed, at
82 % CPU).  The share of such calls is some 35 s over the length of the step: small in the lab's 900 s, about half in a
step shortened to a minute, whose REL1 percentiles and IHS then tell of the next load as much as of their own.
Whether a step passes is decided when it ends, before any of this (:meth:`PhaseRecord.passes`).

Memory does not grow with the length of a run beyond one number a second and quantity.
"""

from __future__ import annotations

import math
import operator
import statistics
from collections.abc import Mapping
from functools import reduce
from typing import Any

from vftsim.outcome import Outcome, attribute, declare
from vftsim.stats import DelayHistogram
from vftsim.workloads.ramp import StepOutcome
from vftsim.workloads.sip.messages import Scenario

DELAYS = ("SES1", "SES2", "REL1", "PMM1", "REG1", "REG2", "REG4")
"""PX_TRT delays: session setup (INVITE to ACK at the callee, ringing excluded), INVITE to INVITE at the
callee, BYE to 200, MESSAGE to 200, REGISTER to 401, second REGISTER to 200, re-registration as a whole."""

HISTOGRAMS = (*DELAYS, "REG1/ims_reg", "REG1/ims_dereg", "invite200")
"""The distributions of a phase, in the order of their rows: REG1 also by scenario; INVITE to 200 at the caller, ringing
included, which no threshold limits."""

SES1, SES2, REL1, PMM1, REG1, REG2, REG4, REG1_OF_REG, REG1_OF_DEREG, INVITE200 = range(len(HISTOGRAMS))

PER_SECOND = (
    "load",
    "cpu_percent",
    "memory_mb",
    "ihs_all",
    "ihs_uac",
    "retransmissions_all",
    "retransmissions_uac",
    "retransmissions_reg",
    "lag_ms",
    "completed",
)


_MIX_TOLERANCE = 1.0


def _delay(name: str, part: str, **about: Any) -> Any:
    """Declare one of :data:`HISTOGRAMS`, of a part of the scenarios."""
    metric = name.partition("/")[0]
    known_as = (f"PX_TRT-{metric}",) if metric in DELAYS else (metric,)
    is_whole = "/" not in name  # a report has REG1 once, of all registrations
    return declare.delays(
        source=lambda outcome: outcome.delays[name],
        part=part,
        better="lower",
        known_as=known_as,
        observed_as=name * is_whole,
        **about,
    )


def _sampled(name: str, *known_as: str, **about: Any) -> Any:
    """Declare one of :data:`PER_SECOND`."""
    return declare.series(
        source=lambda outcome: outcome.series[name], period="sample_period_ns", known_as=known_as, **about
    )


class PhaseRecord(StepOutcome):
    """Everything measured in one phase (pre-registration, stir or a step); attempts count where they began."""

    watched = "cpu"

    name: str = attribute()
    start_ns: int = attribute()
    measure_from_ns: int = attribute()
    end_ns: int = attribute()
    load_share: float = attribute()
    """Attempts that its load profile lets begin while it is counted, as a share of those at the load asked for."""
    judged_until_ns: int = attribute()
    judged_attempts: list[int] = attribute()
    judged_inadequate: list[int] = attribute()
    """Those that began by ``judged_until_ns``, and those of them inadequate, or unanswered for longer than a threshold,
    when the phase ended: what the rule to stop looks at.  Steps only."""
    delays: dict[str, DelayHistogram] = attribute()
    """Keys of :data:`HISTOGRAMS`; nanoseconds."""
    series: dict[str, list[float]] = attribute()
    """One number a ``sample_period_ns``, transient excluded; keys of :data:`PER_SECOND`."""
    attempts: list[int] = declare.total(by=Scenario, known_as=("attempts_*",))
    inadequate: list[int] = declare.total(
        by=Scenario, label="attempts inadequately handled", better="lower", known_as=("inadequate_*",)
    )
    """By :class:`Scenario`, transient excluded."""
    not_started: int = declare.total(label="attempts for want of a subscriber not begun", better="lower")
    dropped: int = declare.total(label="datagrams dropped", better="lower", known_as=("dropped_datagrams",))
    effective = declare.rate(
        attempts,
        label="attempts begun",
        short="begun",
        headline=True,
        known_as=("effective_saps",),
        observed_as="load",
    )
    mix = declare.ratio(
        attempts, of_whole=True, unit="%", label="share of the attempts", known_as=("ratio_*_percent", "ratio_percent")
    )
    cpu = _sampled(
        "cpu_percent",
        "cpu_percent",
        unit="%",
        label="CPU of the server, sampled",
        short="CPU",
        headline=True,
        drawn=True,
        observed_as="cpu",
    )
    cpu_sd = declare.number(
        source=lambda outcome: outcome.cpu_spread,
        unit="%",
        label="CPU of the server, standard deviation of samples",
        observed_as="cpu_sd",
    )
    touches = declare.number(
        source=lambda outcome: outcome.touches_per_attempt,
        unit="count",
        label="messages of an attempt",
        observed_as="touches",
    )
    memory = _sampled("memory_mb", "memory_mb", unit="MB", label="memory free", observed_as="memory")
    ihs = declare.ratio(
        inadequate,
        attempts,
        unit="%",
        label="inadequately handled",
        short="IHS",
        better="lower",
        headline=True,
        known_as=("ihs_*_percent", "ihs_percent"),
        limit="limit_percent",
        observed_as="ihs",
    )
    beyond = declare.verdict(
        source=lambda outcome: not outcome.is_within,
        label="runs beyond the limit",
        known_as=("runs_beyond_limit_percent",),
    )
    setup = _delay("SES1", "ims_uac", label="call set-up", short="SES1", headline=("p50", "p99"))
    setup_at_callee = _delay("SES2", "ims_uac", label="INVITE to INVITE at the callee")
    release = _delay("REL1", "ims_uac", label="BYE to 200")
    message = _delay("PMM1", "ims_msgc", label="MESSAGE to 200")
    challenge = _delay("REG1", "all_registration", label="REGISTER to 401")
    registration = _delay("REG2", "all_registration", label="second REGISTER to 200")
    renewal = _delay("REG4", "ims_rereg", label="re-registration")
    challenge_of_new = _delay("REG1/ims_reg", "ims_reg", label="REGISTER to 401, new subscribers")
    challenge_of_leaving = _delay("REG1/ims_dereg", "ims_dereg", label="REGISTER to 401, leaving subscribers")
    answer = _delay("invite200", "ims_uac", label="INVITE to 200, with ringing")
    load = _sampled("load", "load_saps", unit="/s", label="load, sampled", drawn=True)
    ihs_sampled = _sampled("ihs_all", "ihs_all_percent", unit="%", label="inadequately handled, sampled")
    ihs_of_calls_sampled = _sampled(
        "ihs_uac", "ihs_uac_percent", unit="%", label="calls badly handled, sampled", part="ims_uac"
    )
    retransmissions = _sampled(
        "retransmissions_all",
        "retransmissions_per_s",
        "retransmissions_all_per_s",
        unit="/s",
        label="retransmissions",
        short="repeated",
        observed_as="retransmissions",
    )
    retransmissions_of_calls = _sampled("retransmissions_uac", "retransmissions_uac_per_s", unit="/s", part="ims_uac")
    retransmissions_of_registrations = _sampled(
        "retransmissions_reg", "retransmissions_reg_per_s", unit="/s", part="ims_reg"
    )
    lag = _sampled("lag_ms", "lag_ms", unit="ms", label="lag of the secondary")
    completed = _sampled("completed", "completed_per_s", unit="/s", label="attempts completed", observed_as="completed")

    @classmethod
    def begun(
        cls,
        name: str,
        index: int,
        requested_saps: float,
        limit_percent: float = 100.0,
        sample_period_ns: int = 0,
        load_share: float = 1.0,
    ) -> PhaseRecord:
        """Return the empty record of a phase that begins."""
        none = [0] * len(Scenario)
        return cls(
            name=name,
            index=index,
            requested_saps=requested_saps,
            limit_percent=limit_percent,
            sample_period_ns=sample_period_ns,
            start_ns=0,
            measure_from_ns=0,
            end_ns=0,
            load_share=load_share,
            judged_until_ns=0,
            judged_attempts=[*none],
            judged_inadequate=[*none],
            attempts=[*none],
            inadequate=[*none],
            not_started=0,
            dropped=0,
            delays={name: DelayHistogram() for name in HISTOGRAMS},
            series={name: [] for name in PER_SECOND},
        )

    def end(self, end_ns: int) -> None:
        """Take note of its end."""
        self.end_ns = end_ns
        self.seconds = (end_ns - self.measure_from_ns) / 1e9

    def passes(self, limit_percent: float) -> bool:
        """Whether no scenario, nor all together, has more inadequately handled attempts than allowed.

        By what is known when the step ends: later failures, in the load of the next step, change nothing.
        """
        attempts, inadequate = self.judged_attempts, self.judged_inadequate
        pairs = [*zip(attempts, inadequate, strict=True), (sum(attempts), sum(inadequate))]
        return all(100 * bad <= limit_percent * begun for begun, bad in pairs)

    def ended_within(self, limit_percent: float) -> bool:
        """Whether no scenario, nor all together, has more inadequately handled attempts than allowed in the end.

        Right where no step follows, for attempts that end in a step of another load spoil the final figures.
        """
        return self.worst_percent <= limit_percent

    def ihs_percent(self, scenario: Scenario | None = None) -> float:
        """Inadequately handled share of the attempts of a scenario, or of all; 0 where there were none."""
        attempts, bad = (
            sum(counts) if scenario is None else counts[scenario] for counts in (self.attempts, self.inadequate)
        )
        return 100.0 * bad / attempts if attempts else 0.0

    @property
    def worst_percent(self) -> float:
        """The greatest of that of all attempts and those of each scenario: the lab's rule."""
        return max(self.ihs_percent(), *(self.ihs_percent(scenario) for scenario in Scenario))

    @property
    def cpu_spread(self) -> float:
        """Standard deviation of the samples of the CPU; nan without any."""
        samples = self.series["cpu_percent"]
        return statistics.pstdev(samples) if samples else math.nan

    @property
    def touches_per_attempt(self) -> float:
        """Messages that the server receives or sends for an attempt of the phase's mix; nan without any."""
        attempts = sum(self.attempts)
        return sum(s.touches * self.attempts[s] for s in Scenario) / attempts if attempts else math.nan

    @classmethod
    def restated(cls, measured: Mapping[str, float]) -> dict[str, float]:
        """Give the messages of an attempt in place of the shares of the scenarios, ``mix/<scenario>`` in percent."""
        shares = {scenario: f"mix/{scenario.label}" for scenario in Scenario}
        restated = {name: value for name, value in measured.items() if name not in shares.values()}
        mix = {scenario: measured[name] for scenario, name in shares.items() if name in measured}
        if mix and abs(sum(mix.values()) - 100.0) > _MIX_TOLERANCE:
            raise ValueError(
                f"the shares mix/... add up to {sum(mix.values()):g} %, not to 100; give all of "
                f"{', '.join(shares.values())}, or none"
            )
        # From left to right in every Python (sum() is compensated from 3.12 on): fits know their data by a hash.
        weighted = [s.touches * share for s, share in mix.items()]
        return restated | ({"touches": reduce(operator.add, weighted) / 100.0} if mix else {})

    @property
    def carried(self) -> float:
        """Attempts begun a second, as of a load without a profile."""
        return float(self.effective) / self.load_share if self.load_share else 0.0

    @property
    def failed(self) -> dict[str, int]:
        """Attempts inadequately handled, by scenario."""
        return {scenario.label: self.inadequate[scenario] for scenario in Scenario}

    @property
    def repeated(self) -> int:
        """Retransmissions sampled."""
        return round(math.fsum(self.series["retransmissions_all"]))

    @property
    def missing(self) -> int:
        """Attempts that found no subscriber of the state that they need."""
        return self.not_started


class Ramp(Outcome):
    """Where a ramp ended: of the whole run, not of a step.

    ``doc_saps`` is nothing where no step failed: the capacity then has a bound only.
    """

    doc_saps: float | None = declare.middle(
        unit="/s",
        label="last load that passed",
        short="passed",
        better="higher",
        headline=True,
        is_load=True,
        known_as=("capacity", "capacity_saps"),
    )
    stop_step: int = declare.middle(label="step that failed")
