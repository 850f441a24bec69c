"""The largest value of any key of a model at which runs still meet what is asked of them.

``vftsim capacity net-kvm --vary workloads.web.rate --objective 'web.answered >= 90'``: a workload declares
what its load is and what its clients ask for (:class:`~vftsim.workloads.parts.WorkloadSpec`); the user may turn another
key, or ask for something else.  A level passes when runs at it meet all objectives with the required probability; the
search begins between the model's own value and twice that, and goes further where the answer is not there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Protocol

from vftsim.composition.model import ModelSpec
from vftsim.composition.run import Run
from vftsim.errors import UsageError
from vftsim.spec.suggest import listing
from vftsim.study.capacity import CapacityStudy, searched
from vftsim.study.capacity_request import OF_A_RAMP, CapacityRequest
from vftsim.study.figures.catalogue import catalogue, one_figure
from vftsim.study.figures.summary import figures_in
from vftsim.study.knob import knob_of
from vftsim.study.level_search import LevelStudy, LoadNames
from vftsim.study.model import Model
from vftsim.study.objective import Objective, in_units, read_objective
from vftsim.study.search_levels import JudgedRun, SearchSettings, short_offer

KNOB_SEARCH = SearchSettings(resolution_percent=5.0, runs_per_level=80, budget=300)
_ABOVE_OWN = 2.0


class Turned(Protocol):
    """What is turned to reach a level."""

    def at(self, spec: ModelSpec, level: float) -> ModelSpec:
        """Return a model at a level."""
        ...


@dataclass(frozen=True, slots=True)
class KnobLoad:
    """Tells whether a replication meets the objectives at a level of a knob; what a capacity search calls.

    Parameters
    ----------
    spec : ModelSpec
    seed : int
    knob : Turned
    objectives : tuple of Objective
        On whole addresses of figures.
    offered : tuple of str
        Workloads that must have sent what they were asked.
    """

    spec: ModelSpec
    seed: int
    knob: Turned
    objectives: tuple[Objective, ...]
    offered: tuple[str, ...] = ()

    def __call__(self, level: float, replication: int) -> JudgedRun:
        """Run and judge."""
        record = self.prepare(level, replication).run()
        judged = figures_in(record, [one.figure for one in self.objectives])
        is_within = all(one.holds(judged[one.figure]) for one in self.objectives)
        return JudgedRun(judged, is_within, short_offer(record, self.offered))

    def at(self, level: float) -> ModelSpec:
        """Return the model at a level."""
        return self.knob.at(self.spec, level)

    def of(self, spec: ModelSpec) -> KnobLoad:
        """Return the same load of another model."""
        return replace(self, spec=spec)

    def prepare(self, level: float, replication: int) -> Run:
        """Return the run, ready to begin."""
        return Run(self.at(level), self.seed, replication)


def knob_capacity(model: Model, request: CapacityRequest) -> CapacityStudy:
    """Search for the largest value of the knob that was asked for, or that the model's first workload declares.

    Raises
    ------
    UsageError
        There is nothing to turn or to judge by, or an option was given that means nothing here.
    Interrupted
        Ctrl-C before a single run was judged.
    """
    _refuse_others(request)
    key = _key(model, request)
    knob, asked = knob_of(model.spec, key), [read_objective(text) for text in _texts(model.spec, key, request)]
    if not asked:
        leading = [address.text for address in catalogue(model.spec) if address.entry.leads]
        raise UsageError(
            f"--vary {key}: say what a run must achieve with --objective 'figure <= number'; "
            f"a run has: {listing(leading)}"
        )
    objectives = tuple(replace(one, figure=one_figure(one.figure, model.spec)) for one in in_units(asked, [model.spec]))
    said = " and ".join(str(one) for one in objectives)
    unit = f"{knob.unit} " if knob.unit else ""
    details = {"unit": knob.unit, "objectives": [asdict(one) for one in objectives]}
    names = LoadNames(key, f"{unit}({key})", "Capacity", f"have {said}", details, is_counted=knob.is_whole)
    sort, _, rest = key.partition(".")
    offered = (rest.partition(".")[0],) if sort == "workloads" else ()
    load = KnobLoad(model.spec, request.seed, knob, objectives, offered)
    study = LevelStudy(load, names, _ABOVE_OWN * knob.value, {"key": key, **details})
    return searched(model, request, request.settings(KNOB_SEARCH), {key: study})


def _loaded(spec: ModelSpec) -> str | None:
    """Return the name of the first workload that declares its load; one that says what is asked for goes first."""
    having = [name for name, workload in spec.workloads.items() if workload.load_key]
    return next((name for name in having if spec.workloads[name].objective), having[0] if having else None)


def _key(model: Model, request: CapacityRequest) -> str:
    """Return the key to turn: the one asked for, else that of the workload that declares its load."""
    name = _loaded(model.spec)
    if request.vary is not None:
        return request.vary
    if name is None:
        raise UsageError(f"'{model.label}' has no workload whose load could be raised; --vary names a key to turn")
    return f"workloads.{name}.{model.spec.workloads[name].load_key}"


def _texts(spec: ModelSpec, key: str, request: CapacityRequest) -> Sequence[str]:
    """Return the objectives as they are written: those asked for, else what the clients of the turned load ask for."""
    if request.objectives:
        return request.objectives
    return [
        f"{name}.{workload.objective}"
        for name, workload in spec.workloads.items()
        if workload.objective and key == f"workloads.{name}.{workload.load_key}"
    ]


def _refuse_others(request: CapacityRequest) -> None:
    if request.method == "ramp":
        raise UsageError("--method ramp: only a SIP benchmark has steps; here the capacity is found by search")
    limits = {"ihs_limit_percent": "--ihs-limit", "loss_limit_percent": "--loss-limit"}
    request.refuse(limits, "the limit is said with --objective here")
    request.refuse(OF_A_RAMP, "only the ramp of a SIP benchmark has it")
    request.refuse({"after_stop_ns": "--after-stop", "window_ns": "--window"}, "only a SIP benchmark has a stop")
    request.refuse({"replications": "--replications"}, "a search runs as many as it needs; --budget bounds them")
