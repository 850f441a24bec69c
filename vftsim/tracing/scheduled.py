"""What everybody got of the CPUs in a trace, simulated or recorded: shares, switches, slices, waits."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np

from vftsim.errors import UsageError
from vftsim.spec.suggest import listing
from vftsim.tracing.trace import Trace


@dataclass(frozen=True, slots=True)
class Scheduled:
    """What a thread or vCPU got."""

    name: str
    share_percent: float
    """Of the window, of one CPU."""
    switches_per_s: float
    """How often it began to run."""
    slice_ms: float
    """Mean time that it ran at a stretch."""
    waits_ms: Sequence[float]
    """Every wait for a CPU, sorted."""

    def wait_ms(self, percent: float) -> float | None:
        """Return a percentile of the waits; None if it never waited."""
        return float(np.percentile(self.waits_ms, percent)) if self.waits_ms else None


def scheduled(trace: Trace) -> list[Scheduled]:
    """Return what everybody got in a window, the largest share first; slices that only change priority are one."""
    span_ns = max(1, trace.end_ns - trace.start_ns)
    ran_ns, begins, waits_ms = Counter[int](), Counter[int](), defaultdict[int, list[float]](list)
    ended: dict[int, tuple[int, int]] = {}
    for piece in sorted(trace.slices, key=lambda each: each.start_ns):
        ran_ns[piece.vcpu] += piece.end_ns - piece.start_ns
        begins[piece.vcpu] += ended.get(piece.vcpu) != (piece.pcpu, piece.start_ns)
        ended[piece.vcpu] = (piece.pcpu, piece.end_ns)
    for wait in trace.waits:
        waits_ms[wait.vcpu].append((wait.end_ns - wait.start_ns) / 1e6)
    rows = [
        Scheduled(
            trace.vcpu_names[vcpu],
            100.0 * ran_ns[vcpu] / span_ns,
            begins[vcpu] * 1e9 / span_ns,
            ran_ns[vcpu] / begins[vcpu] / 1e6 if vcpu in begins else 0.0,
            sorted(waits_ms[vcpu]),
        )
        for vcpu in {*ran_ns, *waits_ms}
    ]
    return sorted(rows, key=lambda each: (-each.share_percent, each.name))


def pairs_of(model: Trace, recorded: Trace, matches: Sequence[str]) -> dict[str, str]:
    """Return which name of a recording goes with which vCPU: what was named, else whoever is called the same.

    Each match is ``VCPU=PATTERN``, the pattern as of file names.  Refuses a name that is none, and a pattern that does
    not fit one name of the recording.
    """
    if not matches:
        return {name: name for name in model.vcpu_names if name in recorded.vcpu_names}
    pairs = {}
    for text in matches:
        name, _, pattern = text.partition("=")
        if name not in model.vcpu_names:
            raise UsageError(f"--match: the model has no vCPU '{name}'; it has {listing(model.vcpu_names)}")
        fitting = [each for each in recorded.vcpu_names if fnmatchcase(each, pattern)]
        if len(fitting) != 1:
            names = listing(fitting or [each.name for each in scheduled(recorded)])
            count = f"{len(fitting)} fit" if fitting else "none fits; the recording has"
            raise UsageError(f"--match: '{pattern}' must fit one name of the recording: {count} {names}")
        pairs[name] = fitting[0]
    return pairs
