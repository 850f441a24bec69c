"""Where a ramp ends (:mod:`vftsim.workloads.ims_bench.ramp_end`), under the name that reports use."""

from vftsim.workloads.ims_bench.ramp_end import RampEnd, ramp_end

__all__ = ["RampEnd", "ramp_end"]
