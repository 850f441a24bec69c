"""``vftsim record``: predicted against stated, for a published study that ships with vftsim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vftsim.cli import options

if TYPE_CHECKING:
    from vftsim.media.statements import Judged


class Study(StrEnum):
    """The studies there are."""

    xen_media = "xen-media"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("record")(record)


def record(
    study: Annotated[Study, typer.Argument(metavar="STUDY", help="xen-media: 49 experiments (Patnaik et al. 2009).")],
    quick: Annotated[bool, typer.Option("--quick", help="One replication of 500 ms, for a first look.")] = False,
    jobs: options.Jobs = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Run the experiments of a study with the shipped fit; print every statement with its verdict."""
    from vftsim.media import record as media
    from vftsim.media.fit import STRUCTURES, Budget
    from vftsim.study.progress import make_progress
    from vftsim.study.workers import available_cores

    keys = [row["experiment_key"] for row in media.measured_rows()]
    costs = _costs_us()
    budget = Budget(media.RECORD.seed, 1, 0.5, 0.3) if quick else media.RECORD
    with make_progress(f"record {study.value}", quiet) as progress:
        tasks = [(key, costs, STRUCTURES[media.RIGHT], budget) for key in keys]
        results = _run(tasks, jobs or available_cores(), progress)
    judged = media.judge_all(results)
    _show(results, judged, budget, costs, as_json)


def _costs_us() -> tuple[float, float]:
    """Return the fitted costs, back-end and relay, as the shipped model has them."""
    from vftsim.study.model import load_model

    spec = load_model("xen-media").spec
    media = spec.domains[spec.workload.rtp.to]
    relay = next(program for program in media.applications.values() if program.kind == "media_relay")
    return media.io_path.backend_receive_ns / 1000, relay.packet_ns / 1000


def _run(tasks: Sequence[tuple[Any, ...]], jobs: int, progress: Any) -> dict[str, dict[str, Any]]:
    from vftsim.study.workers import Workers

    progress.total(len(tasks))
    found: dict[int, dict[str, Any]] = {}
    for index, result in Workers(_experiment, jobs).as_they_come(tasks):
        found[index] = result
        progress.advance(tasks[index][0])
    return {tasks[index][0]: found[index] for index in sorted(found)}


def _experiment(task: tuple[Any, ...]) -> dict[str, Any]:
    from vftsim.media.record import run_experiment

    return run_experiment(*task)


def _show(
    results: Mapping[str, Mapping[str, Any]], judged: Sequence[Judged], budget: Any, costs: tuple[float, float],
    as_json: bool,
) -> None:  # fmt: skip
    from dataclasses import asdict

    from vftsim.media.record import score
    from vftsim.report.screen import print_json, print_table, print_text

    if as_json:
        print_json({
            "budget": asdict(budget), "backend_us": costs[0], "relay_us": costs[1],
            "results": results, "judged": [asdict(one) for one in judged], "score": score(judged),
        })  # fmt: skip
        return
    by_key: dict[str, list[Judged]] = {key: [] for key in results}
    for one in judged:
        by_key[one.experiment].append(one)
    body = []
    for key, result in results.items():
        mean = result["mean"]
        figures = [f"{mean[name]:.3g}" for name in ("loss_percent", "delay_mean_ms", "delay_p99_ms")]
        said = [(f"{one.quantity} {one.statement}", one.found, one.verdict) for one in by_key[key]]
        for number, cells in enumerate(said or [("", "", "")]):
            body.append((*((key, *figures) if number == 0 else ("", "", "", "")), *cells))
    print_table(
        "Predicted against stated", ("experiment", "loss %", "mean ms", "p99 ms", "stated", "found", "verdict"), body,
        f"{budget.replications} replications of {budget.seconds:g} s after {budget.warmup_seconds:g} s, seed "
        f"{budget.seed}; back-end {costs[0]:g} us, relay {costs[1]:g} us (shipped model).",
    )  # fmt: skip
    if budget.replications == 1:
        print_text("One replication has no interval: 'better' and 'worse' are 'within noise' at most.")
    for kind, counts in score(judged).items():
        print_text(f"{kind}: " + ", ".join(f"{counts.get(v, 0)} {v}" for v in ("holds", "within noise", "missed")))
