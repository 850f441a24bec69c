"""``vftsim record``: predicted against stated, for a published study that ships with vftsim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vftsim.cli import options
from vftsim.errors import UsageError

if TYPE_CHECKING:
    from vftsim.records.statements import Judged
    from vftsim.records.xen_fit import Budget

Judgements = Mapping[str, Sequence["Judged"]]
"""Judged statements by model."""


_XEN = "xen-media"


class Rival(StrEnum):
    """Models to compare with; those that are not wrong on purpose are a rival and an unknown setting."""

    one_vcpu = "one-vcpu"
    no_boost = "no-boost"
    round_robin = "round-robin"
    one_vcpu_each = "one-vcpu-each"
    half_duty = "half-duty"
    every = "all"


class Curve(StrEnum):
    """The curves there are."""

    duty = "duty"
    load = "load"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("record")(record)


def record(
    study: Annotated[
        str,
        typer.Argument(
            metavar="STUDY",
            help="xen-media: 49 experiments (Patnaik et al. 2009); networks: iperf and httperf on bare metal, KVM and "
            "ESXi (Timalsena 2013); sip-farm: seven runs on z/VM (IBM Montpellier 2007); vmware-ft: VMware's white "
            "paper on fault tolerance (2009); remus: NSDI 2008; kemari: 2008; epochs: hypervisor-based fault tolerance "
            "(Bressoud and Schneider 1996).",
        ),
    ],
    model: Annotated[
        list[Rival] | None,
        typer.Option(
            "--model", help="xen-media: run a wrong or rival model too and show what separates them; repeatable."
        ),
    ] = None,
    curve: Annotated[
        Curve | None,
        typer.Option(
            "--curve",
            help="xen-media: loss over the duty of the CPU-bound guests, or delay over streams, instead.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write the report (.md), of a curve its figure (.png)."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="One short replication, for a first look.")] = False,
    jobs: options.Jobs = None,
    cluster: options.Cluster = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    engine: options.Engine = options.EngineName.auto,
    strict: options.Strict = False,
) -> None:
    """Run the experiments of a study with the shipped fit; print every statement with its verdict."""
    options.use_engine(engine, cluster, strict=strict)
    from vftsim.cli.files import check_target
    from vftsim.study.replicate import check_study
    from vftsim.study.workers import checked_jobs

    if curve is not None and model:
        raise UsageError("--curve and --model: choose one; curves are those of the fitted model")
    if study != _XEN:
        from vftsim.records.runner import read

        read(study)
    if study != _XEN and (curve is not None or model):
        raise UsageError(f"--curve and --model are of xen-media; {study} always shows its wrong models")
    if output is not None:
        check_target(output, force, ".md" if curve is None else ".png")
    workers = checked_jobs(jobs)
    check_study(1, 1, workers)
    if study != _XEN:
        _in_tables(study, output, workers, quick, as_json=as_json, quiet=quiet)
    elif curve is None:
        _experiments(study, model or [], output, workers, quick, as_json=as_json, quiet=quiet)
    else:
        _curve(study, curve, output, workers, quick, as_json=as_json, quiet=quiet)


def _experiments(
    study: str, rivals: Sequence[Rival], output: Path | None, jobs: int, quick: bool, *, as_json: bool, quiet: bool
) -> None:
    from vftsim.cli.files import write_whole
    from vftsim.records import xen_media as media
    from vftsim.records import xen_nulls
    from vftsim.records.xen_study import QUICK, run_record
    from vftsim.report.screen import print_text
    from vftsim.study.progress import make_progress

    budget = QUICK if quick else media.RECORD
    asked = list(media.RIVALS) if Rival.every in rivals else list(dict.fromkeys(r.value for r in rivals))
    names = [media.RIGHT, *(media.RIVALS[name] for name in asked)]
    with make_progress(f"record {study}", quiet) as progress:
        found = run_record(names, jobs, budget, progress)
    judged = {name: media.judge_all(entry["results"]) for name, entry in found.items()}
    chance = media.by_chance(found)
    if output is not None:
        write_whole(output, lambda path: _write_text(path, media.report(found, media.RIGHT, chance)))
    if as_json:
        _print_json(found, judged, chance, budget)
        return
    _print_right(found[media.RIGHT], judged[media.RIGHT], budget)
    if len(names) > 1:
        _print_models(found, judged)
    for line in xen_nulls.in_words(chance):
        print_text(line)
    if output is not None:
        print_text(f"Written: {output}")


def _curve(
    study: str, curve: Curve, output: Path | None, jobs: int, quick: bool, *, as_json: bool, quiet: bool
) -> None:
    from dataclasses import asdict

    from vftsim.cli.files import write_whole
    from vftsim.records.xen_curves import CURVE, CURVES
    from vftsim.records.xen_study import QUICK, run_curve
    from vftsim.report.plots import new_figure
    from vftsim.report.screen import print_json, print_table, print_text
    from vftsim.study.progress import make_progress
    from vftsim.study.results import write_figure

    budget, chosen = QUICK if quick else CURVE, CURVES[curve.value]
    with make_progress(f"record {study}, {curve.value}", quiet) as progress:
        points = run_curve(curve.value, jobs, budget, progress)
    if output is not None:
        figure, (ax,) = new_figure(7.0, 4.0)
        chosen.draw(points, ax)
        write_whole(output, lambda path: write_figure(figure, path))
    if as_json:
        print_json({"curve": curve.value, "budget": asdict(budget), "points": points})
        return
    names = list(chosen.points[0][0])
    figures = ("loss_percent", "delay_mean_ms", "delay_p99_ms")
    body = [(*(f"{p[name]:g}" for name in names), *(_across(p[name]) for name in figures)) for p in points]
    print_table(
        chosen.title, (*(n.replace("_", " ") for n in names), "loss %", "mean ms", "p99 ms"), body, _ran(budget), 0
    )
    if output is not None:
        print_text(f"Written: {output}")


def _in_tables(study: str, output: Path | None, jobs: int, quick: bool, *, as_json: bool, quiet: bool) -> None:
    """Run a study that says all of its results in tables."""
    from dataclasses import asdict

    from vftsim.cli.files import write_whole
    from vftsim.records.judge import Judgement
    from vftsim.records.runner import read
    from vftsim.report.screen import print_json, print_table, print_text
    from vftsim.study.progress import make_progress

    record = read(study).quick() if quick else read(study)
    with make_progress(f"record {study}", quiet) as progress:
        found = Judgement(record, record.run(jobs, progress))
    tables, scores = found.tables(), found.scores()
    if output is not None:
        write_whole(output, lambda path: _write_text(path, found.report()))
    if as_json:
        said = [asdict(table) for table in tables]
        print_json({"budget": dict(record.budget), "results": found.results, "tables": said, "scores": scores})
        return
    for table in tables:
        print_table(table.title, table.columns, table.rows, texts=len(table.columns))
    for line in (found.ran, *scores):
        print_text(line)
    if output is not None:
        print_text(f"Written: {output}")


def _across(values: Sequence[float]) -> str:
    """Return the least and the largest value of the replications."""
    low, high = f"{min(values):.3g}", f"{max(values):.3g}"
    return low if low == high else f"{low} to {high}"


def _ran(budget: Budget) -> str:
    return (
        f"{budget.replications} replications of {budget.seconds:g} s after {budget.warmup_seconds:g} s, seed "
        f"{budget.seed}."
    )


def _write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def _print_json(
    found: Mapping[str, Mapping[str, Any]], judged: Judgements, chance: Mapping[str, Any], budget: Budget
) -> None:
    from dataclasses import asdict

    from vftsim.records.xen_media import RIGHT, score
    from vftsim.report.screen import print_json

    models = {
        name: {**entry, "judged": [asdict(one) for one in judged[name]], "score": score(judged[name])}
        for name, entry in found.items()
    }
    print_json({"budget": asdict(budget), "right": RIGHT, "chance": chance, "models": models})


def _print_right(entry: Mapping[str, Any], judged: Sequence[Judged], budget: Budget) -> None:
    """Print every experiment with what is stated of it, under the fitted model."""
    from vftsim.records.xen_media import in_words, score
    from vftsim.report.screen import print_table, print_text

    by_key: dict[str, list[Judged]] = {key: [] for key in entry["results"]}
    for one in judged:
        by_key[one.experiment].append(one)
    body = []
    for key, result in entry["results"].items():
        mean = result["mean"]
        figures = [f"{mean[name]:.3g}" for name in ("loss_percent", "delay_mean_ms", "delay_p99_ms")]
        said = [(f"{one.quantity} {one.statement}", one.found, one.verdict) for one in by_key[key]]
        for number, cells in enumerate(said or [("", "", "")]):
            body.append((*((key, *figures) if number == 0 else ("", "", "", "")), *cells))
    backend_us, relay_us = entry["costs_us"]
    print_table(
        "Predicted against stated", ("experiment", "loss %", "mean ms", "p99 ms", "stated", "found", "verdict"), body,
        f"{_ran(budget)} Back-end {backend_us:g} us, relay {relay_us:g} us (shipped model).",
    )  # fmt: skip
    if budget.replications == 1:
        print_text("One replication has no interval: comparisons are 'undecided'.")
    for kind, counts in score(judged).items():
        print_text(in_words({kind: counts}))


def _print_models(found: Mapping[str, Mapping[str, Any]], judged: Judgements) -> None:
    """Print the statements on which the models differ, and how many each gets right."""
    from vftsim.records.xen_media import RIGHT, in_words, score, separating
    from vftsim.report.screen import print_table, print_text

    rows = separating(judged, RIGHT)
    print_table(
        "What separates the models", ("statement", *found), rows,
        f"{len(rows)} of {len(judged[RIGHT])} statements have different verdicts.", texts=1 + len(found),
    )  # fmt: skip
    for name, entry in found.items():
        backend_us, relay_us = entry["costs_us"]
        costs = f"back-end {backend_us:g} us, relay {relay_us:g} us"
        print_text(f"{name} ({costs}): {in_words(score(judged[name]))}")
