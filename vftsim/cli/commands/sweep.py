"""``vftsim sweep``: a model over a grid of values and schedulers."""

from __future__ import annotations

from pathlib import Path

from vftsim.cli import options
from vftsim.cli.common import ModelStudy
from vftsim.errors import UsageError


def sweep(
    model: str | None = None,
    scheduler: str | None = None,
    protection: str | None = None,
    grid: list[str] | None = None,
    figure: list[str] | None = None,
    replications: int = 3,
    duration: str | None = None,
    shard: str | None = None,
    *,
    common: ModelStudy,
) -> None:
    """Simulate a grid of settings under the same traffic; killed or interrupted, the same command goes on.

    Parameters
    ----------
    model : [MODEL]
        A model; without one, the shipped Xen media host.
    scheduler : --scheduler NAME
        CPU scheduler, several with commas, or 'all' (default: the model's).
    protection : --protection KIND,KIND
        Mechanism, several with commas, or 'all' (default: the model's).
    grid : --grid NAME=V,V
        Axis: weight, cap, streams, calls, a parameter of protection (checkpoint_interval, dirty_rate, bandwidth,
        round_trip, lag_limit) or a key of the model; repeatable. Replaces the default grid.
    figure : --figure NAME
        A figure to be told, e.g. web.response.p95 or calls.step_1.cpu; repeatable (default: what leads).
    duration : --duration TIME
        Measured time of a steady state: short for --set measure.duration=TIME.
    """
    from vftsim.study.shard import Shard
    from vftsim.study.sweep import run_sweep
    from vftsim.study.sweep_grid import plan_grid, with_duration

    share = Shard.parse(shard)
    if shard is not None and common.output is None:
        raise UsageError("--shard: goes with -o DIR, a directory for each share")
    axes, overrides = grid or (), tuple(common.set_ or ())
    if duration is not None:
        if common.quick:
            raise UsageError("--quick and --duration both set the measured time: choose one")
        overrides = with_duration(model, axes, overrides, _duration_ns(duration))
    plan = plan_grid(model, scheduler, axes, overrides, protection)
    if common.quick:
        plan = plan.quick()
    about = [text for text in (Path(model).stem if model else None, scheduler, protection) if text]
    folder = common.output or Path("-".join(["sweep", *(about if scheduler or protection else [*about, "default"])]))
    with common.taking(lambda: plan.takes(replications), f"sweep of {plan.base.name}") as progress:
        result = run_sweep(
            plan.grid(),
            folder,
            replications,
            common.seed,
            common.jobs,
            force=common.force,
            progress=progress,
            shard=share,
            figures=figure or (),
        )
    options.say_remarks(result.remarks)
    common.show(result)
    tables = "results.csv, replications.csv, " + ("crossovers.csv, " if result.grid.protections else "")
    figures = "charts.png, " if result.is_drawn else "no charts of so many points, "
    common.say_written(folder, f"{tables}{figures}manifest.json, vftsim.sqlite")
    if result.interrupted:
        from vftsim.cli.main import interrupted

        raise interrupted(
            f"{result.finished} of {result.wanted} replications are kept in '{folder}'; the same command continues"
        )


def _duration_ns(text: str) -> int:
    from vftsim.composition.model import LONGEST_NS, SHORTEST_NS
    from vftsim.spec import DURATION

    value = int(options.parse_quantity("--duration", text, DURATION, "s"))
    if not SHORTEST_NS <= value <= LONGEST_NS:
        shortest, longest = DURATION.format(SHORTEST_NS), DURATION.format(LONGEST_NS)
        raise UsageError(f"--duration: from {shortest}, five packets of a stream, to {longest}")
    return value
