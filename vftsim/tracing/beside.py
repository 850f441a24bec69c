"""A recorded schedule beside the model's: shares of CPUs, waits for one, and switches of both.

What differs is the model's realism gap: the model decides by its scheduler's rules alone, a real one is also disturbed
by interrupts, by other threads and by what its own code takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np

from vftsim.errors import UsageError
from vftsim.report.blocks import Answer, Block, Cell, Note, Table
from vftsim.spec.suggest import listing
from vftsim.tracing.trace import Trace

MOST_SHOWN = 20
_LEAST_SHARE = 0.001


@dataclass(frozen=True, slots=True)
class Scheduled:
    """What a thread or vCPU got.

    Parameters
    ----------
    name : str
    share_percent : float
        Of the window, of one CPU.
    switches_per_s : float
        How often it began to run.
    slice_ms : float
        Mean time that it ran at a stretch.
    waits_ms : sequence of float
        Every wait for a CPU, sorted.
    """

    name: str
    share_percent: float
    switches_per_s: float
    slice_ms: float
    waits_ms: Sequence[float]

    def wait_ms(self, percent: float) -> float | None:
        """Return a percentile of the waits; None if it never waited."""
        return float(np.percentile(self.waits_ms, percent)) if self.waits_ms else None


def scheduled(trace: Trace) -> list[Scheduled]:
    """Return what everybody got in a window, the largest share first; slices that only change priority are one."""
    span_ns = max(1, trace.end_ns - trace.start_ns)
    ran_ns, begins, waits_ms = dict[int, int](), dict[int, int](), dict[int, list[float]]()
    ended: dict[int, tuple[int, int]] = {}
    for one in sorted(trace.slices, key=lambda each: each.start_ns):
        ran_ns[one.vcpu] = ran_ns.get(one.vcpu, 0) + one.end_ns - one.start_ns
        goes_on = ended.get(one.vcpu) == (one.pcpu, one.start_ns)
        begins[one.vcpu] = begins.get(one.vcpu, 0) + (not goes_on)
        ended[one.vcpu] = (one.pcpu, one.end_ns)
    for wait in trace.waits:
        waits_ms.setdefault(wait.vcpu, []).append((wait.end_ns - wait.start_ns) / 1e6)
    found = [
        Scheduled(
            trace.vcpu_names[vcpu], 100.0 * ran_ns.get(vcpu, 0) / span_ns, begins.get(vcpu, 0) * 1e9 / span_ns,
            ran_ns.get(vcpu, 0) / begins[vcpu] / 1e6 if vcpu in begins else 0.0, sorted(waits_ms.get(vcpu, ())),
        )
        for vcpu in {*ran_ns, *waits_ms}
    ]  # fmt: skip
    return sorted(found, key=lambda each: (-each.share_percent, each.name))


@dataclass(frozen=True)
class Beside:
    """A model's window and a recording.

    Parameters
    ----------
    model, recorded : Trace
    pairs : mapping
        The name in the recording of a vCPU of the model.
    """

    model: Trace
    recorded: Trace
    pairs: Mapping[str, str]

    def blocks(self) -> list[Block]:
        """Return what both got as blocks."""
        own, real = ({one.name: one for one in scheduled(trace)} for trace in (self.model, self.recorded))
        paired = [
            (own.get(name, _nothing(name)), real.get(other, _nothing(other))) for name, other in self.pairs.items()
        ]
        rows: list[Sequence[Cell]] = []
        for ours, theirs in paired:
            rows += [[f"{ours.name}, model", *_cells(ours)], [f"{theirs.name}, recorded", *_cells(theirs)]]
        used = {name for pair in paired for name in (pair[0].name, pair[1].name)}
        rest = [each for each in (*own.values(), *real.values()) if each.name not in used]
        shown = [each for each in rest if each.share_percent >= 100.0 * _LEAST_SHARE][:MOST_SHOWN]
        others: list[Sequence[Cell]] = [
            [f"{each.name}, {'model' if each.name in own else 'recorded'}", *_cells(each)] for each in shown
        ]
        columns = ("who", "CPU %", "switches /s", "slice ms", "wait p50 ms", "wait p95 ms", "longest ms")
        spans = f"Model: {_span(self.model)}; recorded: {_span(self.recorded)}."
        return [
            *(Answer(text, "Model and recording") for text in _gap(paired)),
            *([Table(columns, rows, "Beside each other", spans)] if rows else []),
            *([Table(columns, others, "The others" if rows else "Who ran", "" if rows else spans)] if others else []),
            *([Note(f"{len(rest) - len(shown)} with less, or that only waited, are left out.")] if rest[len(shown):]
              else []),
        ]  # fmt: skip


def pairs_of(model: Trace, recorded: Trace, matches: Sequence[str]) -> dict[str, str]:
    """Return which name of a recording goes with which vCPU: what was named, else whoever is called the same.

    Parameters
    ----------
    model, recorded : Trace
    matches : sequence of str
        Each ``VCPU=PATTERN``, the pattern as of file names; it must fit one name of the recording.

    Raises
    ------
    UsageError
        A name is none, or a pattern fits none or several.
    """
    if not matches:
        return {name: name for name in model.vcpu_names if name in recorded.vcpu_names}
    found = {}
    for text in matches:
        name, _, pattern = text.partition("=")
        if name not in model.vcpu_names:
            raise UsageError(f"--match: the model has no vCPU '{name}'; it has {listing(model.vcpu_names)}")
        fitting = [each for each in recorded.vcpu_names if fnmatchcase(each, pattern)]
        if len(fitting) != 1:
            names = listing(fitting or [each.name for each in scheduled(recorded)])
            what = f"{len(fitting)} fit" if fitting else "none fits; the recording has"
            raise UsageError(f"--match: '{pattern}' must fit one name of the recording: {what} {names}")
        found[name] = fitting[0]
    return found


def beside(model: Trace, recorded: Trace, matches: Sequence[str] = ()) -> Beside:
    """Return a model's window beside a recording.

    Raises
    ------
    UsageError
        A name is none, or a pattern fits none or several.
    """
    return Beside(model, recorded, pairs_of(model, recorded, matches))


def _nothing(name: str) -> Scheduled:
    return Scheduled(name, 0.0, 0.0, 0.0, ())


def _cells(one: Scheduled) -> list[Cell]:
    longest = one.waits_ms[-1] if one.waits_ms else None
    return [one.share_percent, one.switches_per_s, one.slice_ms, one.wait_ms(50.0), one.wait_ms(95.0), longest]


def _gap(pairs: Sequence[tuple[Scheduled, Scheduled]]) -> Iterator[str]:
    """Yield how far the model is from the recording, over all pairs."""
    if not pairs:
        return
    points = max(abs(own.share_percent - real.share_percent) for own, real in pairs)
    said = [f"CPU within {points:.1f} points"]
    switches = [own.switches_per_s / real.switches_per_s for own, real in pairs if real.switches_per_s]
    waits = [
        ours / theirs
        for own, real in pairs
        if (ours := own.wait_ms(95.0)) is not None and (theirs := real.wait_ms(95.0))
    ]
    ratios = (("switches", switches), ("wait p95", waits))
    said += [f"{_range(found)} times the {what}" for what, found in ratios if found]
    yield ", ".join(said)


def _range(found: Sequence[float]) -> str:
    low, high = f"{min(found):.2g}", f"{max(found):.2g}"
    return low if low == high else f"{low} to {high}"


def _span(trace: Trace) -> str:
    return f"{(trace.end_ns - trace.start_ns) / 1e6:g} ms on {trace.pcpus} CPU{'s' if trace.pcpus > 1 else ''}"
