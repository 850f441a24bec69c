"""Statistics of simulation output: error bars, percentiles, warm-up, stopping, capacity."""

from vftsim.stats.estimate import Estimate
from vftsim.stats.histogram import DelayHistogram
from vftsim.stats.intervals import (
    binomial_interval,
    bonferroni,
    central_range,
    mean_interval,
    median_interval,
    quantile_interval,
    range_content,
    ratio_of_sums,
    runs_range,
    sequential_binomial_interval,
    stratified_interval,
    t_interval,
    unless_mixed,
)
from vftsim.stats.percentiles import Sections, percentile_interval, sections
from vftsim.stats.probing import Probe
from vftsim.stats.replications import ReplicationResult, StoppingRule
from vftsim.stats.rootsearch import CapacityResult, capacity_search, search_start
from vftsim.stats.warmup import WarmUp, warm_up

__all__ = [
    "CapacityResult",
    "DelayHistogram",
    "Estimate",
    "Probe",
    "ReplicationResult",
    "Sections",
    "StoppingRule",
    "WarmUp",
    "binomial_interval",
    "bonferroni",
    "capacity_search",
    "central_range",
    "mean_interval",
    "median_interval",
    "percentile_interval",
    "quantile_interval",
    "range_content",
    "ratio_of_sums",
    "runs_range",
    "search_start",
    "sections",
    "sequential_binomial_interval",
    "stratified_interval",
    "t_interval",
    "unless_mixed",
    "warm_up",
]
