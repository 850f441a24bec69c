"""What the benchmark measures (:mod:`vftsim.workloads.ims_bench.metrics`), and the old lab's counters."""

from vftsim.workloads.ims_bench.metrics import DELAYS, PER_SECOND, PhaseRecord
from vftsim.workloads.sip.messages import Scenario

__all__ = ["DELAYS", "PER_SECOND", "Counters", "PhaseRecord"]


class Counters:
    """Running totals of a run that the per-second sampler reads and clears."""

    __slots__ = ("attempts", "ihs_all", "ihs_uac", "retransmissions", "uac_attempts")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Begin a new second."""
        self.attempts = 0
        self.uac_attempts = 0
        self.ihs_all = 0
        self.ihs_uac = 0
        self.retransmissions = [0] * len(Scenario)
