"""``vftsim pilot``: whether a SIP lab's transient is long enough.

Twenty pilots at one load, measured from the first second of the step, are averaged second by second; MSER-5
finds where the start-up ends (:mod:`vftsim.stats.warmup`), and twice that is what a transient should leave
out.  CPU and load are looked at: the one settles when calls have come to their ends, the other when the stir
phase is forgotten.
"""

from dataclasses import dataclass, field
from typing import Any

from vftsim.composition.model import ModelSpec
from vftsim.composition.run import Run
from vftsim.composition.views import ramp_key, ramp_of, with_ramp
from vftsim.errors import PrecisionNotReached, UsageError
from vftsim.report.blocks import Answer, Block, Cell, Note, Table
from vftsim.spec import format_duration
from vftsim.stats import WarmUp, warm_up
from vftsim.stats.warmup import BATCH, MINIMUM_BATCHES
from vftsim.study.blocks.head import head
from vftsim.study.blocks.printed import Printed
from vftsim.study.designs.constant_load import at_load
from vftsim.study.execution import Execution, Task
from vftsim.study.figures.frames import DataFrame, frame
from vftsim.study.runs.estimate import Needs, needs_of
from vftsim.study.runs.model import Model

PILOTS = 20
SERIES = {"cpu_percent": "cpu", "load": "load"}
"""Figures that are looked at, by their names in files."""


@dataclass(frozen=True)
class WarmUpStudy(Printed):
    """Result of the pilots at one load."""

    model: Model
    load_saps: float
    period_ns: int
    """Between two samples."""
    transient_ns: int
    """Transient that the model leaves out."""
    by_figure: dict[str, WarmUp | str]
    """By series: the cut; where it exceeds a quarter of the step, the reason that there is none."""
    manifest: dict[str, Any] = field(default_factory=dict)

    @property
    def needed_ns(self) -> int | None:
        """The longest cut; None where a series did not settle."""
        cuts = [cut.cut for cut in self.by_figure.values() if isinstance(cut, WarmUp)]
        return max(cuts) * self.period_ns if len(cuts) == len(self.by_figure) else None

    @property
    def is_enough(self) -> bool:
        """Whether the model's transient leaves out what it should."""
        return self.needed_ns is not None and self.needed_ns <= self.transient_ns

    def blocks(self) -> list[Block]:
        period_s, transient_s = self.period_ns / 1e9, self.transient_ns / 1e9
        rows: list[list[Cell]] = [
            [name, warm_up.mser_cut * period_s, warm_up.cut * period_s]
            if isinstance(warm_up, WarmUp)
            else [name, None, None]
            for name, warm_up in self.by_figure.items()
        ]
        if self.needed_ns is None:
            answer = "not known to be enough, since not everything settled"
        elif self.is_enough:
            answer = "enough"
        else:
            spec = self.model.spec
            key = ramp_key(spec, ramp_of(spec).transient_key)
            answer = f"too short; --set '{key}={self.needed_ns / 1e9:g} s'"
        return [
            *head(self.manifest["models"], self.manifest["seed"]),
            Answer(answer, f"Is the transient of {transient_s:g} s long enough?"),
            Table(("series", "MSER-5 s", "needed s"), rows, f"Start-up at {self.load_saps:g} SAPS", _CAPTION),
            *(Note(f"{name}: {reason}") for name, reason in self.by_figure.items() if not isinstance(reason, WarmUp)),
        ]

    def to_pandas(self) -> DataFrame:
        """Return one row a series."""
        return frame(
            [
                {
                    "series": name,
                    "load_saps": self.load_saps,
                    "pilots": PILOTS,
                    "mser5_s": cut.mser_cut * self.period_ns / 1e9 if isinstance(cut, WarmUp) else None,
                    "needed_s": cut.cut * self.period_ns / 1e9 if isinstance(cut, WarmUp) else None,
                    "transient_s": self.transient_ns / 1e9,
                }
                for name, cut in self.by_figure.items()
            ]
        )

    def for_machines(self) -> dict[str, Any]:
        averaged = {name: list(w.averaged) for name, w in self.by_figure.items() if isinstance(w, WarmUp)}
        series = self.to_pandas().to_dict("records")
        return {"manifest": self.manifest, "is_enough": self.is_enough, "series": series, "averaged": averaged}


_CAPTION = (
    f"{PILOTS} pilots averaged. MSER-5: the cut behind which the mean of batches of five has the least standard error "
    "(White, Cobb and Spratt 2000); needed: twice that, at most a quarter of the step."
)


def warm_up_study(model: Model, execution: Execution, load_saps: float | None = None) -> WarmUpStudy:
    """Run the pilots of a SIP lab at a load, by default that of its first step; refuse a step too short to tell."""
    ramp = ramp_of(model.spec, model.label)
    execution.check(PILOTS)
    pilot, load = _pilot(model, load_saps)
    tasks = {n: Task(pilot, execution.seed, n) for n in range(PILOTS)}
    (runs,) = execution.play(_samples, [execution.cache(model, pilot=load)], [tasks])
    cuts = {name: _cut([run[name] for run in runs]) for name in SERIES}
    manifest = execution.manifest([model], "pilot", PILOTS)
    return WarmUpStudy(model, load, ramp.sample_period_ns, ramp.transient_ns, cuts, manifest)


def pilots_take(model: Model, load_saps: float | None) -> Needs:
    return needs_of(_pilot(model, load_saps)[0]).times(PILOTS)


def _pilot(model: Model, load_saps: float | None) -> tuple[ModelSpec, float]:
    """Return the model of a pilot, its one step measured from the start, and its load."""
    ramp = ramp_of(model.spec, model.label)
    load = ramp.first_load if load_saps is None else load_saps
    if not load > 0.0:
        raise UsageError(f"--load: above 0, got {load:g}")
    spec = at_load(model.spec, load)
    at_rest = ramp_of(spec)
    length_ns, fewest = at_rest.transient_ns + at_rest.step_ns(), BATCH * MINIMUM_BATCHES
    if length_ns < fewest * ramp.sample_period_ns:
        length, enough = format_duration(length_ns), format_duration(fewest * ramp.sample_period_ns)
        raise UsageError(
            f"'{model.label}': a start-up shows in {fewest} samples or more, and a step of {length} has fewer; "
            f"let it last {enough} or longer"
        )
    return with_ramp(spec, at_rest.with_times(0, length_ns)), load


def _samples(pilot: Task) -> dict[str, list[float]]:
    step = Run(pilot.spec, pilot.seed, pilot.replication).run().steps()[0]
    return {name: step.samples(figure) for name, figure in SERIES.items()}


def _cut(pilots: list[list[float]]) -> WarmUp | str:
    try:
        return warm_up(pilots)
    except PrecisionNotReached as error:
        return str(error)
