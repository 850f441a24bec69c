"""``vftsim record``: predicted against stated, for a published study that ships with vftsim."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from vftsim.cli.common import Work
from vftsim.errors import UsageError

if TYPE_CHECKING:
    from vftsim.records.runner import Record


def record(
    study: str,
    model: list[str] | None = None,
    curve: str | None = None,
    output: Path | None = None,
    quick: bool = False,
    *,
    common: Work,
) -> None:
    """Run the experiments of a study with the shipped fit; print every statement with its verdict.

    Parameters
    ----------
    study : STUDY
        xen-media: 49 experiments (Patnaik et al. 2009); networks: iperf and httperf on bare metal, KVM and ESXi
        (Timalsena 2013); sip-farm: seven runs on z/VM (IBM Montpellier 2007); vmware-ft: VMware's white paper on fault
        tolerance (2009); remus: NSDI 2008; kemari: 2008; epochs: hypervisor-based fault tolerance (Bressoud and
        Schneider 1996); or the record.yaml of a study of your own.
    model : --model
        xen-media: run a wrong or rival model too and show what separates them (one-vcpu, no-boost, round-robin,
        one-vcpu-each, half-duty, all); repeatable.
    curve : --curve
        xen-media: loss over the duty of the CPU-bound guests (duty), or delay over streams (load), instead.
    output : --output, -o FILE
        Write the report (.md), of a curve its figure (.png).
    quick : --quick
        Few short replications, as the record says, for a first look.
    """
    from vftsim.cli.files import check_target
    from vftsim.records.runner import read
    from vftsim.study.runs.workers import checked_jobs

    if curve is not None and model:
        raise UsageError("--curve and --model: choose one; curves are those of the fitted model")
    chosen = read(study).with_models(model or ()).with_curve(curve)
    if output is not None:
        check_target(output, common.force, ".md" if curve is None else ".png")
    workers = checked_jobs(common.jobs)
    chosen = chosen.quick() if quick else chosen
    if curve is not None and common.report is not None:
        raise UsageError("--report: a page is of the statements; a curve has its figure (-o FILE.png)")
    with common.limited():
        if curve is None:
            _experiments(chosen, output, workers, common)
        else:
            _curve(chosen, curve, output, workers, as_json=common.as_json, quiet=common.quiet)


def _experiments(record: Record, output: Path | None, jobs: int, common: Work) -> None:
    from vftsim.cli.files import write_whole
    from vftsim.records.judge import judge
    from vftsim.report.screen import print_text
    from vftsim.study.runs.progress import make_progress
    from vftsim.study.store.files import write_file

    with make_progress(f"record {record.name}", common.quiet) as progress:
        judged = judge(record, record.run(jobs, progress))
    if output is not None:
        write_whole(output, lambda path: write_file(path, judged.markdown().encode()))
    common.show(judged)
    if output is not None and not common.as_json:
        print_text(f"Written: {output}")


def _curve(record: Record, name: str, output: Path | None, jobs: int, *, as_json: bool, quiet: bool) -> None:
    from vftsim.cli.files import write_whole
    from vftsim.report.blocks import across
    from vftsim.report.charts import figure_of
    from vftsim.report.screen import print_json, print_table, print_text
    from vftsim.study.runs.progress import make_progress
    from vftsim.study.runs.results import write_figure

    curve = record.spec.curves[name]
    with make_progress(f"record {record.name}, {name}", quiet) as progress:
        points = record.run_curve(name, jobs, progress)
    if output is not None:
        figure = figure_of([record.names[curve.chart](points)])
        write_whole(output, lambda path: write_figure(figure, path))
    if as_json:
        print_json({"curve": name, "budget": dict(record.budget), "points": points})
        return
    shown = curve.figures.values()
    body = [(*(f"{p[each]:g}" for each in curve.show), *(across(p[each], 3) for each in shown)) for p in points]
    columns = (*(each.replace("_", " ") for each in curve.show), *curve.figures)
    print_table(curve.title, columns, body, record.ran, 0)
    if output is not None:
        print_text(f"Written: {output}")
