"""``vftsim failover``: what clients see when the primary's host crashes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from vftsim.cli import options
from vftsim.cli.common import ModelStudy

if TYPE_CHECKING:
    from vftsim.study.estimate import Needs
    from vftsim.study.failover import FailoverStudy
    from vftsim.study.progress import Progress
    from vftsim.study.store import Store


def failover(
    model: str,
    crashes: int | None = None,
    load: float | None = None,
    domain: str | None = None,
    over: str = "1 s",
    after: str | None = None,
    protection: str | None = None,
    prices: bool = True,
    plot: Path | None = None,
    *,
    common: ModelStudy,
) -> None:
    """Let the primary's host crash at many instants; show detection, takeover, outage, and what clients lost.

    Parameters
    ----------
    crashes : --crashes, -n
        How many crashes, spread over the span (default 20).
    load : --load SAPS
        Attempts a second (default: the benchmark's first step).
    domain : --domain NAME
        Whose host crashes (default: the one that is protected).
    over : --over TIME
        Stretch of time over which crashes are spread.
    after : --after TIME
        How long a run goes on after a crash and a restart (default: until queues have gone).
    protection : --protection KIND
        Protect the domain with this mechanism and its defaults.
    prices : --prices/--no-prices
        Play prices of the mechanism at both ends of their ranges, for bands.
    plot : --plot FILE
        Figure to write (.png): a timeline, the outages.
    """
    common.check_force(plot)
    from vftsim.cli.files import check_target, write_whole
    from vftsim.spec import DURATION
    from vftsim.study.failover import DEFAULT_CRASHES, bands_take, crashes_take, failover_study
    from vftsim.study.protections import under
    from vftsim.study.replicate import fewer_crashes

    if plot is not None:
        check_target(plot, common.force, ".png")
    chosen, count = fewer_crashes(options.prepared(model, common.set_), crashes, DEFAULT_CRASHES, common.quick)
    if protection is not None:
        chosen = under(chosen, protection, domain)
    span_ns = round(options.parse_quantity("--over", over, DURATION))
    after_ns = None if after is None else round(options.parse_quantity("--after", after, DURATION))

    def needs() -> Needs:
        found = crashes_take(chosen, count, load, span_ns, after_ns, domain)
        return found + bands_take(chosen, load, domain, after_ns) if prices else found

    def study(store: Store | None, progress: Progress) -> FailoverStudy:
        return failover_study(
            chosen,
            count,
            common.seed,
            common.jobs,
            load=load,
            domain=domain,
            span_ns=span_ns,
            after_ns=after_ns,
            prices=prices,
            progress=progress,
            store=store,
        )

    found = common.answer("failover", f"failovers of {chosen.name}", needs, study)
    if plot is not None:
        from vftsim.report.charts import figure_of
        from vftsim.study.failover import failover_charts
        from vftsim.study.results import write_figure

        figure = figure_of(failover_charts(found))
        write_whole(plot, lambda path: write_figure(figure, path))
    common.show(found)
