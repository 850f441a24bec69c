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

from vftsim.stats import DelayHistogram
from vftsim.workloads.sip.messages import Scenario

DELAYS = ("SES1", "SES2", "REL1", "PMM1", "REG1", "REG2", "REG4")
"""PX_TRT delays: session setup (INVITE to ACK at the callee, ringing excluded), INVITE to INVITE at the
callee, BYE to 200, MESSAGE to 200, REGISTER to 401, second REGISTER to 200, re-registration as a whole."""

HISTOGRAMS = (*DELAYS, "REG1/ims_reg", "REG1/ims_dereg", "invite200")
"""The distributions of a phase, in the order of their rows: REG1 also by scenario; INVITE to 200 at the caller, ringing
included, which no threshold limits."""

SES1, SES2, REL1, PMM1, REG1, REG2, REG4, REG1_OF_REG, REG1_OF_DEREG, INVITE200 = range(len(HISTOGRAMS))

PER_SECOND = ("load", "cpu_percent", "memory_mb", "ihs_all", "ihs_uac", "retransmissions_all",
              "retransmissions_uac", "retransmissions_reg", "lag_ms", "completed")  # fmt: skip


class PhaseRecord:
    """Everything measured in one phase (pre-registration, stir or a step); attempts count where they began.

    Attributes
    ----------
    attempts, inadequate : list of int
        By :class:`Scenario`, transient excluded.
    judged_attempts, judged_inadequate : list of int
        Those that began by ``judged_until_ns``, and those of them inadequate, or unanswered for longer
        than a threshold, when the phase ended: what the rule to stop looks at.  Steps only.
    delays : dict of DelayHistogram
        Keys of :data:`HISTOGRAMS`; nanoseconds.
    series : dict of list of float
        One number a second, transient excluded; keys of :data:`PER_SECOND`.
    """

    def __init__(self, name: str, index: int, requested_saps: float) -> None:
        self.name = name
        self.index = index
        self.requested_saps = requested_saps
        self.start_ns = 0
        self.measure_from_ns = 0
        self.end_ns = 0
        self.attempts = [0] * len(Scenario)
        self.inadequate = [0] * len(Scenario)
        self.judged_until_ns = 0
        self.judged_attempts = [0] * len(Scenario)
        self.judged_inadequate = [0] * len(Scenario)
        self.not_started = 0
        self.dropped = 0
        self.delays: dict[str, DelayHistogram] = {name: DelayHistogram() for name in HISTOGRAMS}
        self.series: dict[str, list[float]] = {name: [] for name in PER_SECOND}

    def passes(self, limit_percent: float) -> bool:
        """Whether no scenario, nor all together, has more inadequately handled attempts than allowed.

        By what is known when the step ends: later failures, in the load of the next step, change nothing.
        """
        attempts, inadequate = self.judged_attempts, self.judged_inadequate
        pairs = [*zip(attempts, inadequate, strict=True), (sum(attempts), sum(inadequate))]
        return all(100 * bad <= limit_percent * begun for begun, bad in pairs)

    def ihs_percent(self, scenario: Scenario | None = None) -> float:
        """Inadequately handled share of the attempts of a scenario, or of all."""
        if scenario is None:
            attempts, inadequate = sum(self.attempts), sum(self.inadequate)
        else:
            attempts, inadequate = self.attempts[scenario], self.inadequate[scenario]
        return 100.0 * inadequate / attempts if attempts else 0.0

    @property
    def effective_saps(self) -> float:
        """Attempts per second of the measured part."""
        seconds = (self.end_ns - self.measure_from_ns) / 1e9
        return sum(self.attempts) / seconds if seconds > 0 else 0.0
