"""``vftsim optimize``: the cheapest configuration that does."""

from __future__ import annotations

from pathlib import Path

from vftsim.cli import options
from vftsim.cli.common import ModelStudy


def optimize(
    model: str,
    choose: list[str],
    objective: list[str],
    prices: str | None = None,
    confidence: str = "95 %",
    looks: int = 40,
    budget: int = 2000,
    *,
    common: ModelStudy,
) -> None:
    """Find the cheapest configuration that meets objectives, with evidence by fresh random numbers.

    Killed or interrupted, the same command goes on.

    Parameters
    ----------
    choose : --choose NAME=V,V
        What may be chosen: protection, scheduler, a short name of sweeps or a key of the model, and its values or
        LOW..HIGH/LEVELS; repeatable.
    objective : --objective 'FIGURE <= X'
        What must hold, e.g. 'web.response.p95 <= 100'; repeatable.
    prices : --prices FILE
        What things cost (YAML); a shipped example if not given.
    confidence : --confidence PERCENT
        That the objectives hold together.
    looks : --looks N
        Configurations looked at for the front.
    budget : --budget N
        Most runs of the search.
    """
    from vftsim.spec import PERCENT
    from vftsim.study.design.decision import optimize as decide
    from vftsim.study.design.optimize import Request

    base = common.model(model)
    request = Request.read(
        model,
        common.set_ or (),
        base,
        choose,
        objective,
        prices,
        confidence=options.parse_quantity("--confidence", confidence, PERCENT, "%") / 100.0,
        looks=looks,
        budget=budget,
        seed=common.seed,
        quick=common.quick,
    )
    folder = common.output or Path(f"optimize-{Path(model).stem}")
    with common.taking(request.takes, f"optimize {base.name}") as progress:
        found = decide(request, folder, common.jobs, force=common.force, progress=progress)
    options.say_remarks(found.remarks)
    common.show(found)
    common.say_written(folder, "configurations.csv, answer.json, charts.png, manifest.json, vftsim.sqlite")
