"""What the benchmark measures (:mod:`vftsim.workloads.ims_bench.metrics`), under the name that reports use."""

from vftsim.workloads.ims_bench.metrics import DELAYS, PER_SECOND, PhaseRecord

__all__ = ["DELAYS", "PER_SECOND", "PhaseRecord"]
