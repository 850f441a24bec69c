"""``vftsim sweep``: a model over a grid of values, schedulers and mechanisms, as an experiment."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from vftsim.errors import ModelFileError, UsageError
from vftsim.platform.cpu.parameters import schedulers
from vftsim.study.designs.axes import refuse_overwritten, scheduler_keys, short_keys, split_values
from vftsim.study.designs.experiment import Experiment
from vftsim.study.designs.points import PROTECTION, SCHEDULER, Points, Source, refuse_many, source_of
from vftsim.study.designs.protections import kinds_named, parts_named, protection_key
from vftsim.study.designs.study_spec import Factor, has_twice
from vftsim.study.figures.frames import CONFIDENCE
from vftsim.study.runs.model import Model

DEFAULT_MODEL = "xen-media"
DEFAULT_GRID = ("weight=256,512,1024", "cap=0,60,30", "streams=400,600,800")
COMPARISON_GRID = ("weight=256,1024", "cap=0,30", "streams=800")
"""Coarser: every scheduler multiplies it."""
DEFAULT_TIMES = ("measure.duration=1 s", "measure.warm_up=300 ms")
"""Of the default study: ten accounting periods of the credit scheduler and fifteen packet intervals of warm-up."""
_OPTION = "--grid"


def plan_sweep(
    name: str | None,
    scheduler: str | None = None,
    grid: Sequence[str] = (),
    overrides: Sequence[str] = (),
    protection: str | None = None,
    *,
    figures: Sequence[str] = (),
    replications: int = 1,
    quick: bool = False,
) -> Experiment:
    """Return what a sweep asks.

    By default it is of the shipped Xen media host, with :data:`DEFAULT_TIMES` where nothing else is said.  Schedulers
    and mechanisms are several with commas, or ``all``, else the model's own; mechanisms come without the model's
    faults.  Axes of the grid are such as ``weight=256,512``, else those of the default study; overrides hold at every
    point.
    """
    settings = (*_default_times(name, grid, overrides), *overrides)
    name = name or DEFAULT_MODEL
    kinds = dict[str, tuple[str, ...]]()
    if scheduler is not None:
        kinds[SCHEDULER] = parts_named(scheduler, schedulers(), "--scheduler", "scheduler")
    if protection is not None:
        kinds[PROTECTION] = kinds_named(protection)
    switches = [dict(zip(kinds, row, strict=True)) for row in itertools.product(*kinds.values())]
    plain = source_of(name, name, settings, switches, dict.fromkeys(kinds, Factor()), _OPTION)
    _refuse_switched(plain.held, kinds, settings)
    fitting, refused = _fitting(plain, switches)
    axes = _axes(plain.held, grid or _default_grid(plain.held, len(switches)))
    rows_of_axes = math.prod(map(len, axes.values()))
    refuse_many(len(fitting) * rows_of_axes)
    values = [dict(zip(axes, row, strict=True)) for row in itertools.product(*axes.values())]
    rows = [{**switch, **row} for switch in fitting for row in values]
    mechanisms = tuple(dict.fromkeys(row[PROTECTION] for row in fitting)) if PROTECTION in kinds else ()
    source = replace(plain, factors=dict.fromkeys([*kinds, *axes], Factor()), kinds=mechanisms)
    points = Points((source,), rows)
    return Experiment(
        "sweep",
        points.quick() if quick else points,
        f"What {'do' if len(axes) > 1 else 'does'} {' and '.join(axes)} change?",
        tuple(dict.fromkeys(figures)),
        "--figure",
        replications,
        {"factors": {each: {"values": list(dict.fromkeys(row[each] for row in rows))} for each in rows[0]}},
        CONFIDENCE,
        is_grid=True,
        refused=refused,
    )


def _fitting(source: Source, switches: Sequence[Mapping[str, str]]) -> tuple[list[Mapping[str, str]], dict[str, str]]:
    """Return the kinds of parts that the model can have, and why it cannot have the others; refuse if it has none."""
    fitting, refused = list[Mapping[str, str]](), dict[str, str]()
    for switch in switches:
        try:
            source.model(switch)
            fitting.append(switch)
        except ModelFileError as error:
            if len(switches) == 1:
                raise
            refused[", ".join(switch.values())] = str(error)
    if not fitting:
        raise UsageError(f"nothing can run this model: {'; '.join(f'{k}: {m}' for k, m in refused.items())}")
    return fitting, refused


def _refuse_switched(model: Model, kinds: Mapping[str, object], settings: Sequence[str]) -> None:
    """Refuse a setting that says of which kind a part is whose kinds are compared."""
    keys = {SCHEDULER: scheduler_keys(model), PROTECTION: (protection_key(model),) if PROTECTION in kinds else ()}
    switched = {f"--{name}": keys[name] for name in kinds}
    for key in (text.partition("=")[0].strip() for text in settings):
        refuse_overwritten({**switched, key: (key,)}, "--set")


def _axes(model: Model, texts: Sequence[str]) -> dict[str, list[str]]:
    """Return the values of each axis."""
    if not texts:
        raise UsageError(f"a sweep of '{model.label}' needs axes, e.g. --grid domains.sut.cpu_inflation=1,1.3")
    axes = dict[str, list[str]]()
    for text in texts:
        name, equals, rest = text.partition("=")
        name, values = name.strip(), split_values(rest)
        if not equals or not name or not all(values):
            raise UsageError(f"--grid: '{text}' is not of the form name=value,value, e.g. weight=256,512,1024")
        if has_twice(values):
            raise UsageError(f"--grid: '{text}' names a value twice")
        if name in axes:
            raise UsageError(f"--grid: '{name}' is given twice; put all its values into one --grid")
        axes[name] = values
    return axes


def _default_grid(model: Model, variants: int) -> list[str]:
    if not short_keys(model, "streams"):
        return []
    default = COMPARISON_GRID if variants > 1 else DEFAULT_GRID
    return [text for text in default if short_keys(model, text.partition("=")[0])]


def _default_times(name: str | None, grid: Sequence[str], overrides: Sequence[str]) -> tuple[str, ...]:
    if name is not None or _says("measure", grid, overrides):
        return ()
    return tuple(text for text in DEFAULT_TIMES if not _says(text.partition("=")[0], grid, overrides))


def _says(key: str, grid: Sequence[str], overrides: Sequence[str]) -> bool:
    return key in {text.partition("=")[0].strip() for text in (*grid, *overrides)}
