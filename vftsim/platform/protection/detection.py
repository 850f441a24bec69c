"""How a host notices that the other one is gone.

Rule (Scales, Nelson, Venkitachalam 2010): the hosts exchange UDP heartbeats and watch the flow of log
entries and acknowledgements, which never stops because an idle guest still takes timer interrupts.
A failure is declared when either has been silent for longer than its timeout, of the order of a few
seconds.  Before going live a host does an atomic test-and-set on the shared storage; the one that
comes second halts itself.

Both signals are sent on a grid of their periods from time 0.

How a mechanism notices a failure is set at its ``failover.detection``, whatever the mechanism; a :class:`DetectionSpec`
says so.
"""

from pydantic import Field, model_validator

from vftsim.kernel import BESIDE, Record, Sim, Table
from vftsim.platform.protection.guard import Guard, guards
from vftsim.spec.base import Spec
from vftsim.spec.units import PeriodNs, PositiveDurationNs, S


class DetectionSpec(Spec):
    """How the failure of a host is noticed."""

    timeout: PositiveDurationNs = Field(1 * S, description="Silence that means failure. Assumption.")


class HeartbeatSpec(DetectionSpec):
    """How the failure of a host is noticed that sends heartbeats to whoever watches it."""

    heartbeat_interval: PeriodNs = Field(1 * S, description="Time between two heartbeats. Assumption.")
    timeout: PositiveDurationNs = Field(3 * S, description="Silence that means failure. Assumption.")

    @model_validator(mode="after")
    def _is_heard_of(self) -> "HeartbeatSpec":
        if self.timeout < self.heartbeat_interval:
            raise ValueError("timeout must be at least heartbeat_interval, or every pause is a failure")
        return self


class Detector(Record):
    """How the hosts of one guard watch each other.

    ``entry_ns`` is how long an entry takes to the secondary, ``ack_ns`` how long until its acknowledgement is back;
    the secondary hesitates ``secondary_delay_ns`` longer than the primary.
    """

    heartbeat_interval_ns: int
    heartbeat_timeout_ns: int
    log_period_ns: int
    log_timeout_ns: int
    secondary_delay_ns: int
    entry_ns: int
    ack_ns: int


detectors = Table("detectors", Detector, beside=guards)


def last_heard_ns(time_ns: int, period_ns: int, delay_ns: int) -> int:
    """Return when the last signal of a grid was heard, ``delay_ns`` after it was sent, by ``time_ns``."""
    return max(0, (time_ns - delay_ns) // period_ns * period_ns + delay_ns)


def crash_declared_ns(sim: Sim, guard: Guard, crash_ns: int, by_secondary: bool, detector: Detector = BESIDE) -> int:
    """Return when the survivor of a host crash at ``crash_ns`` declares it: heartbeats and log stop."""
    # What was sent before the crash still arrives; only sending stops. An acknowledgement is sent when its entry comes.
    beat_ns = last_heard_ns(crash_ns, detector.heartbeat_interval_ns, 0) + detector.entry_ns
    if by_secondary:
        heard_ns = last_heard_ns(crash_ns, detector.log_period_ns, 0) + detector.entry_ns
    else:
        entry_ns = detector.entry_ns
        heard_ns = last_heard_ns(crash_ns, detector.log_period_ns, entry_ns) + detector.ack_ns - entry_ns
    return min(beat_ns + detector.heartbeat_timeout_ns, log_silence_ns(detector, heard_ns, by_secondary))


def loss_declared_ns(sim: Sim, guard: Guard, loss_ns: int, by_secondary: bool, detector: Detector = BESIDE) -> int:
    """Return when one side declares a channel cut at ``loss_ns``: the log stops, heartbeats continue."""
    delay_ns = detector.entry_ns if by_secondary else detector.ack_ns
    return log_silence_ns(detector, last_heard_ns(loss_ns, detector.log_period_ns, delay_ns), by_secondary)


def log_silence_ns(detector: Detector, heard_ns: int, by_secondary: bool) -> int:
    """Return when the log has been silent for too long since the last signal heard."""
    return heard_ns + detector.log_timeout_ns + (detector.secondary_delay_ns if by_secondary else 0)
