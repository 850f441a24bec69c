"""How a host notices that the other one is gone.

Rule (Scales, Nelson, Venkitachalam 2010): the hosts exchange UDP heartbeats and watch the flow of log
entries and acknowledgements, which never stops because an idle guest still takes timer interrupts.
A failure is declared when either has been silent for longer than its timeout, of the order of a few
seconds.  Before going live a host does an atomic test-and-set on the shared storage; the one that
comes second halts itself.

Both signals are sent on a grid of their periods from time 0.
"""

from __future__ import annotations

from vftsim.protection.channel import LoggingChannel
from vftsim.protection.lockstep_parameters import LockstepFields

_S = 1_000_000_000


def last_heard_ns(time_ns: int, period_ns: int, delay_ns: int) -> int:
    """Return when the last signal of a grid was heard, ``delay_ns`` after it was sent, by ``time_ns``."""
    return max(0, (time_ns - delay_ns) // period_ns * period_ns + delay_ns)


class Detector:
    """When each side declares the other one failed.

    Parameters
    ----------
    spec : LockstepFields
    channel : LoggingChannel
    """

    def __init__(self, spec: LockstepFields, channel: LoggingChannel) -> None:
        self.spec = spec.failover
        self._log_period_ns = round(_S / spec.log.timer_rate) if spec.log.timer_rate else self.spec.heartbeat_interval
        self._entry_ns = channel.latency_ns + channel.transmission_ns(spec.log.timer_entry)
        self._ack_ns = self._entry_ns + channel.ack_ns

    def crash_declared_ns(self, crash_ns: int, by_secondary: bool) -> int:
        """Return when the survivor of a host crash at ``crash_ns`` declares it: heartbeats and log stop."""
        spec = self.spec
        # What was sent before the crash still arrives; only sending stops.
        beat_ns = last_heard_ns(crash_ns, spec.heartbeat_interval, 0) + self._entry_ns
        return min(beat_ns + spec.heartbeat_timeout, self._log_silence_ns(crash_ns, by_secondary, 0))

    def loss_declared_ns(self, loss_ns: int, by_secondary: bool) -> int:
        """Return when one side declares a channel cut at ``loss_ns``: the log stops, heartbeats go on."""
        delay_ns = self._entry_ns if by_secondary else self._ack_ns
        return self._log_silence_ns(loss_ns, by_secondary, delay_ns)

    def _log_silence_ns(self, time_ns: int, by_secondary: bool, delay_ns: int) -> int:
        heard_ns = last_heard_ns(time_ns, self._log_period_ns, delay_ns)
        hesitation_ns = self.spec.secondary_delay if by_secondary else 0
        return heard_ns + self.spec.log_timeout + hesitation_ns
