"""A recorded schedule beside the model's as blocks: shares of CPUs, waits for one, and switches of both.

What differs is the model's realism gap: the model decides by its scheduler's rules alone, a real one is also disturbed
by interrupts, by other threads and by what its own code takes.
"""

from collections.abc import Iterator, Mapping, Sequence

from vftsim.report.blocks import Answer, Block, Cell, Note, Table, across
from vftsim.spec.suggest import counted
from vftsim.tracing.scheduled import Scheduled, scheduled
from vftsim.tracing.trace import Trace

MOST_SHOWN = 20
_LEAST_PERCENT = 0.1


def schedule_blocks(model: Trace, recorded: Trace, pairs: Mapping[str, str]) -> list[Block]:
    """Return what everybody got in a model's window and in a recording, beside each other.

    ``pairs`` has the name in the recording of a vCPU of the model.
    """
    simulated, real = ({who.name: who for who in scheduled(trace)} for trace in (model, recorded))
    paired = [(simulated.get(name, _nothing(name)), real.get(other, _nothing(other))) for name, other in pairs.items()]
    rows: list[Sequence[Cell]] = []
    for ours, theirs in paired:
        rows += [[f"{ours.name}, model", *_cells(ours)], [f"{theirs.name}, recorded", *_cells(theirs)]]
    used = {name for pair in paired for name in (pair[0].name, pair[1].name)}
    rest = [each for each in (*simulated.values(), *real.values()) if each.name not in used]
    shown = [each for each in rest if each.share_percent >= _LEAST_PERCENT][:MOST_SHOWN]
    others: list[Sequence[Cell]] = [
        [f"{each.name}, {'model' if each.name in simulated else 'recorded'}", *_cells(each)] for each in shown
    ]
    columns = ("who", "CPU %", "switches /s", "slice ms", "wait p50 ms", "wait p95 ms", "longest ms")
    spans = f"Model: {_span(model)}; recorded: {_span(recorded)}."
    return [
        *(Answer(text, "Model and recording") for text in _gap(paired)),
        *([Table(columns, rows, "Beside each other", spans)] if rows else []),
        *([Table(columns, others, "The others" if rows else "Who ran", "" if rows else spans)] if others else []),
        *(
            [Note(f"{len(rest) - len(shown)} with less, or that only waited, are left out.")]
            if rest[len(shown) :]
            else []
        ),
    ]


def _nothing(name: str) -> Scheduled:
    return Scheduled(name, 0.0, 0.0, 0.0, ())


def _cells(who: Scheduled) -> list[Cell]:
    longest = who.waits_ms[-1] if who.waits_ms else None
    return [who.share_percent, who.switches_per_s, who.slice_ms, who.wait_ms(50.0), who.wait_ms(95.0), longest]


def _gap(pairs: Sequence[tuple[Scheduled, Scheduled]]) -> Iterator[str]:
    """Yield how far the model is from the recording, over all pairs."""
    if not pairs:
        return
    points = max(abs(simulated.share_percent - real.share_percent) for simulated, real in pairs)
    parts = [f"CPU within {points:.1f} points"]
    switches = [simulated.switches_per_s / real.switches_per_s for simulated, real in pairs if real.switches_per_s]
    waits = [
        ours / theirs
        for simulated, real in pairs
        if (ours := simulated.wait_ms(95.0)) is not None and (theirs := real.wait_ms(95.0))
    ]
    ratios = (("switches", switches), ("wait p95", waits))
    parts += [f"{across(ratio, 2)} times the {noun}" for noun, ratio in ratios if ratio]
    yield ", ".join(parts)


def _span(trace: Trace) -> str:
    return f"{(trace.end_ns - trace.start_ns) / 1e6:g} ms on {counted(trace.pcpus, 'CPU')}"
