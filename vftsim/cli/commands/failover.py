"""``vftsim failover``: what clients see when the primary's host crashes."""

from pathlib import Path

from vftsim.cli.common import ModelStudy
from vftsim.cli.from_study import StudyCall, made_from
from vftsim.interface import studies


@made_from(studies.failover, prices=True)
def failover(call: StudyCall, plot: Path | None = None, *, common: ModelStudy) -> None:
    """Let the primary's host crash at many instants; show detection, takeover, outage, and what clients lost.

    Parameters
    ----------
    plot : --plot FILE
        Figure to write (.png): a timeline, the outages.
    """
    from vftsim.cli.files import check_target, write_whole

    if plot is not None:
        check_target(plot, common.force, ".png", common.output)
    result = common.conduct(call.plan(), others=[plot])
    if plot is not None:
        from vftsim.report.charts import figure_of
        from vftsim.report.pictures import write_figure
        from vftsim.study.designs.failover import failover_charts

        figure = figure_of(failover_charts(result))
        write_whole(plot, lambda path: write_figure(figure, path), common.output)
    common.show(result)
