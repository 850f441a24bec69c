"""Designs of experiments: study files, sensitivity, the cheapest configuration that does, rare events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from vftsim.interface.arguments import as_model, as_texts
from vftsim.interface.plan import Plan, conducted

if TYPE_CHECKING:
    from vftsim.study.designs.choice import Choice
    from vftsim.study.designs.rare import RareStudy
    from vftsim.study.designs.sensitivity import Sensitivity
    from vftsim.study.designs.study import StudyResult
    from vftsim.study.runs.model import Model


@conducted
def study(
    file: str | Path,
    jobs: int | None = 1,
    *,
    points: int | None = None,
    replications: int | None = None,
    seed: int | None = None,
    quick: bool = False,
    directory: str | Path | None = None,
    force: bool = False,
    progress: bool = False,
) -> Plan[StudyResult]:
    """Run a study file: models at the points of a design, each under the same replications.

    Killed or interrupted, the same command goes on; with more points or replications it goes on from what is there.

    Parameters
    ----------
    file : [FILE]
        A study file, or the name of a shipped study.
    points : --points N
        Points drawn, instead of the file's (latin_hypercube, sobol).
    replications : --replications, -n N
        Instead of the file's.
    seed : --seed N
        Instead of the file's.
    """
    from vftsim.study.designs.experiment import experiment_of
    from vftsim.study.designs.points import points_of
    from vftsim.study.designs.study import run_experiment
    from vftsim.study.designs.study_spec import changed, read_study

    spec, folder = read_study(str(file))
    spec = changed(spec, points, replications, seed)
    experiment = experiment_of(spec, points_of(spec, folder, quick=quick))
    return Plan(
        "study",
        f"study {spec.name}",
        experiment.points.some_models,
        experiment.takes,
        partial(run_experiment, experiment),
        experiment.files,
        bases=experiment.points.bases,
        about=(spec, experiment),
        directory=f"study-{spec.name}",
        seed=spec.seed,
    )


@conducted
def sensitivity(
    model: str | Path,
    figure: str,
    ranges: Sequence[str] = (),
    jobs: int | None = 1,
    *,
    overrides: Sequence[str] = (),
    prices: bool = False,
    fit: str | None = None,
    trajectories: int = 10,
    samples: int = 64,
    most: int = 5,
    replications: int = 2,
    seed: int = 1,
    quick: bool = False,
    directory: str | Path | None = None,
    force: bool = False,
    progress: bool = False,
) -> Plan[Sensitivity]:
    """Say which settings, fitted parameters and assumed prices decide a figure: screening, then shares of its variance.

    Killed or interrupted, the same command goes on.

    Parameters
    ----------
    figure : --figure NAME
        The one figure that is asked about, e.g. web.response.p95.
    ranges : --range KEY=LOW..HIGH
        A setting and its range, ' log' behind it spreads by ratio; a key of the model or a short name of sweeps;
        repeatable.
    prices : --prices
        Prices of the model's protection, over the ranges declared for them.
    fit : --fit FIT
        Fitted parameters over their 95 % intervals, e.g. sip-lab/virtual.
    trajectories : --trajectories N
        Trajectories of the screening (Morris).
    samples : --samples N
        Samples of the shares (Sobol), a power of 2.
    most : --most N
        Most factors whose shares are found.
    replications : --replications, -n
        Replications of each point.
    """
    from vftsim.calibrate.fitted import spans_named
    from vftsim.study.designs import sensitivity as design

    base = as_model(model, overrides)
    spans = spans_named(base.spec, ranges, prices=prices, fit=fit)
    settings = tuple(overrides)
    request = design.Request(str(model), settings, figure, spans, base, trajectories, samples, most, replications)
    request.check()
    request = request.first_look() if quick else request
    return Plan(
        design.COMMAND,
        f"sensitivity of {base.name}",
        [request.base],
        request.takes,
        partial(design.sensitivity, request),
        "sensitivity.csv, answer.json, charts.png, manifest.json, vftsim.sqlite",
        directory=f"sensitivity-{Path(model).stem}",
    )


@conducted
def optimize(
    model: str | Path,
    choose: Sequence[str] | Mapping[str, Sequence[object]],
    objectives: Sequence[str],
    jobs: int | None = 1,
    *,
    overrides: Sequence[str] = (),
    prices: str | Path | None = None,
    confidence_percent: float = 95.0,
    looks: int = 40,
    budget: int = 2000,
    seed: int = 1,
    quick: bool = False,
    directory: str | Path | None = None,
    force: bool = False,
    progress: bool = False,
) -> Plan[Choice]:
    """Find the cheapest configuration that meets objectives, with evidence by fresh random numbers.

    Killed or interrupted, the same command goes on.

    Parameters
    ----------
    choose : --choose NAME=V,V
        What may be chosen: protection, scheduler, a short name of sweeps or a key of the model, and its values or
        LOW..HIGH/LEVELS; repeatable.
    objectives : --objective 'FIGURE <= X'
        What must hold, e.g. 'web.response.p95 <= 100'; repeatable.
    prices : --prices FILE
        What things cost (YAML); a shipped example if not given.
    confidence_percent : --confidence PERCENT
        That the objectives hold together.
    looks : --looks N
        Configurations looked at for the front.
    budget : --budget N
        Most runs of the search.
    """
    from vftsim.study.designs.choice import optimize as optimize_study
    from vftsim.study.designs.optimize import COMMAND, Request

    request = Request.read(
        str(model),
        overrides,
        as_model(model, overrides),
        as_texts(choose),
        objectives,
        None if prices is None else str(prices),
        confidence=confidence_percent / 100.0,
        looks=looks,
        budget=budget,
        quick=quick,
    )
    return Plan(
        COMMAND,
        f"optimize {request.base.name}",
        [request.base],
        request.takes,
        partial(optimize_study, request),
        "configurations.csv, answer.json, charts.png, manifest.json, vftsim.sqlite",
        directory=f"optimize-{Path(model).stem}",
    )


@conducted
def rare(
    model: Model | str | Path,
    event: str,
    trials: int = 100,
    repetitions: int = 20,
    levels: str | None = None,
    seed: int = 1,
    jobs: int | None = 1,
    *,
    brute_force: bool = False,
    quick: bool = False,
    directory: str | Path | None = None,
    force: bool = False,
    progress: bool = False,
) -> Plan[RareStudy]:
    """Say how probable it is that a queue reaches a length, or a packet is lost, in a run: down to 1e-9 and below.

    Parameters
    ----------
    event : --event 'LEVEL >= N'
        What may happen in a run: a queue (server.queue.held >= 20), a link's backlog (lan.to_host.backlog >= 2 ms),
        losses (server.queue.lost >= 1).
    trials : --trials N
        Trials at each level.
    repetitions : --repetitions, -n N
        Independent repetitions; the interval rests on them.
    levels : --levels N,N
        Levels on the way to the limit (default: a pilot finds them).
    brute_force : --brute-force
        No levels: every trial is a run from time 0.
    """
    from vftsim.study.designs.rare import rare_study, request_for

    chosen = as_model(model, quick=quick)
    request = request_for(chosen, event, levels, trials, repetitions, brute_force=brute_force)
    return Plan("rare", f"rare event of {chosen.name}", [chosen], request.takes, partial(rare_study, request))
