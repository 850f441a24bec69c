"""What protection does to a guest while nothing fails, as figures that every mechanism has."""

from __future__ import annotations

import math
from collections.abc import Mapping

WAIT, STOPPED, CHANNEL, BACKUP = "output_wait_ms", "stopped_percent", "channel_mbit_per_s", "backup_cpu_percent"
SENDER = "sender_cpu_percent"
FIGURES = (WAIT, STOPPED, CHANNEL, BACKUP, SENDER)
"""Mean wait of an output; time in which the guest stands still, of the run; what the channel carries; CPU time of the
second copy, and of the driver domain for sending states, of the run.  All are 0 without a mechanism."""


def protection_figures(summary: Mapping[str, float]) -> dict[str, float]:
    """Return these figures of what a mechanism says of a run; of an empty summary zeros.

    Parameters
    ----------
    summary : mapping
        An entry of :attr:`~vftsim.composition.record.RunRecord.protection`.
    """
    seconds = float(summary.get("observed_s", math.inf))
    sent = float(summary.get("log_bytes", summary.get("state_bytes", 0)))
    return {
        CHANNEL: sent * 8e-6 / seconds,
        WAIT: float(summary.get("output_wait_ms", 0.0)),
        STOPPED: 100.0 * float(summary.get("stopped_s", 0.0)) / seconds,
        BACKUP: 100.0 * float(summary.get("secondary_cpu_s", 0.0)) / seconds,
        SENDER: 100.0 * float(summary.get("sender_cpu_s", 0.0)) / seconds,
    }
