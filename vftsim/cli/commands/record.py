"""``vftsim record``: predicted against stated, for a published study that ships with vftsim."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from vftsim.cli.common import Work
from vftsim.cli.from_study import StudyCall, made_from
from vftsim.errors import UsageError
from vftsim.interface import labs

if TYPE_CHECKING:
    from vftsim.records.runner import Record


@made_from(labs.record, Work, before={"curve": "quick", "output": "quick"})
def record(call: StudyCall, curve: str | None = None, output: Path | None = None, *, common: Work) -> None:
    """Run the experiments of a study with the shipped fit; print every statement with its verdict.

    Parameters
    ----------
    curve : --curve
        xen-media: loss over the duty of the CPU-bound guests (duty), or delay over streams (load), instead.
    output : --output, -o FILE
        Write the report (.md), of a curve its figure (.png).
    """
    from vftsim.cli.files import check_target, write_whole
    from vftsim.files import write_file
    from vftsim.report.screen import print_text
    from vftsim.study.runs.workers import checked_jobs

    if curve is not None and call.arguments.get("models"):
        raise UsageError("--curve and --model: choose one; curves are those of the fitted model")
    if curve is not None and common.report is not None:
        raise UsageError("--report: a page is of the statements; a curve has its figure (-o FILE.png)")
    plan = call.plan()
    if output is not None:
        check_target(output, common.force, ".md" if curve is None else ".png")
    if curve is None:
        judged = common.conduct(plan)
        if output is not None:
            write_whole(output, lambda path: write_file(path, judged.markdown().encode()))
        common.show(judged)
    else:
        of_curve = plan.about[0].with_curve(curve)
        chosen = of_curve.quick() if call.arguments["quick"] else of_curve
        with common.limited():
            _curve(chosen, curve, output, checked_jobs(common.jobs), common)
    if output is not None and not common.as_json:
        print_text(f"Written: {output}")


def _curve(record: Record, name: str, output: Path | None, jobs: int, common: Work) -> None:
    from vftsim.cli.files import write_whole
    from vftsim.report.blocks import across
    from vftsim.report.charts import figure_of
    from vftsim.report.pictures import write_figure
    from vftsim.report.screen import print_json, print_table
    from vftsim.study.runs.progress import make_progress

    curve = record.spec.curves[name]
    with make_progress(f"record {record.name}, {name}", common.quiet) as progress:
        points = record.run_curve(name, jobs, progress)
    if output is not None:
        figure = figure_of([record.names[curve.chart](points)])
        write_whole(output, lambda path: write_figure(figure, path))
    if common.as_json:
        print_json({"curve": name, "budget": dict(record.budget), "points": points})
        return
    shown = curve.figures.values()
    body = [(*(f"{p[each]:g}" for each in curve.show), *(across(p[each], 3) for each in shown)) for p in points]
    columns = (*(each.replace("_", " ") for each in curve.show), *curve.figures)
    print_table(curve.title, columns, body, record.ran, 0)
