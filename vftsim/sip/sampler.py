"""The per-second series of a run: what the manager and the server's own monitor write down once a second.

The seconds of a phase are counted from the end of its transient, whatever the length of the phases
before it, and are half open: an event at the instant between two of them belongs to the later one.  So
the 870 s that a step of the lab measures give 870 samples.  A rest shorter than a period has no sample;
datagrams dropped in it still count in the phase.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from vftsim.engine import Alarm, Clock, EventKind
from vftsim.sip.messages import Scenario
from vftsim.sip.metrics import Counters, PhaseRecord

_S = 1_000_000_000
_BEFORE_ARRIVALS = 0


@dataclass(frozen=True, slots=True)
class Gauges:
    """What can be read off the system at any instant.

    ``busy_ns`` and ``dropped`` only grow; ``lag_ns`` is ``None`` for a system without a secondary.
    """

    busy_ns: Callable[[], int]
    dropped: Callable[[], int]
    memory_mb: Callable[[], float]
    lag_ns: Callable[[], int] | None


class Sampler:
    """Fills the series of the phase in progress.

    Parameters
    ----------
    clock : Clock
    period_ns : int
    counters : Counters
        Totals of the test systems; cleared with every sample.
    gauges : Gauges
    """

    def __init__(self, clock: Clock, period_ns: int, counters: Counters, gauges: Gauges) -> None:
        self.clock = clock
        self.period_ns = period_ns
        self.counters = counters
        self.gauges = gauges
        self._phase: PhaseRecord | None = None
        self._alarm: Alarm | None = None
        self._busy_ns = 0
        self._dropped = 0

    def begin(self, phase: PhaseRecord) -> None:
        """A phase begins now."""
        self._cancel()
        self._phase = phase
        self._note_totals(self.gauges.busy_ns())
        first_ns = (phase.measure_from_ns - phase.start_ns) % self.period_ns or self.period_ns
        self._plan(first_ns)

    def end(self, phase: PhaseRecord) -> None:
        """The phase ends now."""
        self._cancel()
        phase.dropped += self.gauges.dropped() - self._dropped

    def _sample(self, _: Any) -> None:
        phase = self._phase
        assert phase is not None
        busy_ns = self.gauges.busy_ns()
        if self.clock.now_ns - self.period_ns >= phase.measure_from_ns:
            self._append(phase, busy_ns)
        self._note_totals(busy_ns)
        self._plan(self.period_ns)

    def _append(self, phase: PhaseRecord, busy_ns: int) -> None:
        counters, gauges, series = self.counters, self.gauges, phase.series
        seconds = self.period_ns / _S
        again = counters.retransmissions
        series["load"].append(counters.attempts / seconds)
        series["cpu_percent"].append(100.0 * (busy_ns - self._busy_ns) / self.period_ns)
        series["memory_mb"].append(gauges.memory_mb())
        series["ihs_all"].append(100.0 * counters.ihs_all / max(counters.attempts, 1))
        series["ihs_uac"].append(100.0 * counters.ihs_uac / max(counters.uac_attempts, 1))
        series["retransmissions_all"].append(sum(again) / seconds)
        series["retransmissions_uac"].append(again[Scenario.IMS_UAC] / seconds)
        series["retransmissions_reg"].append(again[Scenario.IMS_REG] / seconds)
        if gauges.lag_ns is not None:
            series["lag_ms"].append(gauges.lag_ns() / 1e6)
        phase.dropped += gauges.dropped() - self._dropped

    def _note_totals(self, busy_ns: int) -> None:
        self._dropped = self.gauges.dropped()
        self._busy_ns = busy_ns
        self.counters.clear()

    def _plan(self, delay_ns: int) -> None:
        self._alarm = self.clock.after(delay_ns, EventKind.ARRIVAL, _BEFORE_ARRIVALS, self._sample)

    def _cancel(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
