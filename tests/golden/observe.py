"""What is recorded of a case, as one flat dict of exact values: integers, texts, lists of integers.

A float is written as ``float.hex()``.  Keys say what a value means in the domain; ``<..>`` stands for a name or
number.  Whoever builds the simulation anew makes the same dict from his own structures.

Families common to both worlds, read at the end of the run, when every running vCPU has been charged up to that
instant::

    end_ns                                 simulated time at the end
    host.context_switches                  dispatches of another vCPU than the one the pCPU ran last
    scheduler.<counter>                    what the scheduler counted (boosts, steals, parks, resets, ...)
    vcpu.<domain>.<n>.run_ns               CPU time
    vcpu.<domain>.<n>.wait_ns              time runnable without a pCPU, up to its last dispatch
    vcpu.<domain>.<n>.wakeups              times it left the blocked state
    vcpu.<domain>.<n>.context_switches     dispatches counted above, of this vCPU
    vcpu.<domain>.<n>.migrations           dispatches on another pCPU than the time before
    pcpu.<n>.busy_ns, .switching_ns, .idle_ns     they add up to end_ns; a switch that is cut short costs what
                                           has passed of it
    pcpu.<n>.switches.count, .sha256       who is on the pCPU at the end of an instant when it is another than
                                           before: lines "time domain.n" ("time -" for nobody).  A rebuilt
                                           simulation that leaves out work which nobody can see (a background load
                                           alone on its pCPU) may lack these for that pCPU
    drop.<place>.<cause>                   packets lost, 0 included only where a place is always there

A distribution ``<name>`` of delays (:func:`histogram_values`)::

    <name>.count, .sum_ns, .sum_squares_ns2, .min_ns, .max_ns
    <name>.hist                            [bucket, count, bucket, count, ...] by the bucket rule of
                                           vftsim.stats.histogram

A list of floats or integers ``<name>`` (:func:`list_values`): ``<name>.count``; ``<name>.sum`` (exact sum, rounded
once); ``<name>.sha256`` of one line a value (``float.hex()`` or decimal).

Those of the SIP lab: :mod:`.observe_sip`; of the media host: :mod:`.observe_media`.

``events`` stands beside the dict, for information: a rebuilt simulation leaves out events that nobody can see.
"""

import math
from collections.abc import Iterable
from typing import Any

from vftsim.stats import DelayHistogram

from .compact import digest

Values = dict[str, Any]


def histogram_values(name: str, histogram: DelayHistogram) -> Values:
    """Everything a histogram holds."""
    plain = histogram.to_dict()
    buckets = [number for pair in plain.pop("buckets") for number in pair]
    return {f"{name}.{field}": value for field, value in plain.items()} | {f"{name}.hist": buckets}


def list_values(name: str, values: Iterable[float]) -> Values:
    """Length, sum and digest of numbers in order."""
    listed = list(values)
    lines = (value.hex() if isinstance(value, float) else str(value) for value in listed)
    return {
        f"{name}.count": len(listed),
        f"{name}.sum": math.fsum(listed).hex(),
        f"{name}.sha256": digest(lines),
    }
