"""``vftsim capacity``: what one system carries."""

from vftsim.cli import options
from vftsim.cli.common import ScaledStudy
from vftsim.cli.from_study import StudyCall, made_from
from vftsim.cli.output import interrupted
from vftsim.interface import studies


@made_from(
    studies.capacity,
    ScaledStudy,
    prices=True,
    before={"window": "headroom_percent", "probability": "vary", "resolution": "vary", "budget": "vary"},
)
def capacity(
    call: StudyCall,
    window: str | None = None,
    probability: float | None = None,
    resolution: float | None = None,
    budget: int | None = None,
    *,
    common: ScaledStudy,
) -> None:
    """Say what load a system carries, with an interval, and what limits it.

    Parameters
    ----------
    window : --window TIME
        Time to recover after the stop (default 60 s).
    probability : --probability
        Search: share of runs that must stay within the limit (default 0.9).
    resolution : --resolution LOAD
        Search: difference of loads (SAPS or streams) that does not matter.
    budget : --budget
        Search: most runs, of each with --after-stop (default 800, of a media host 300, with --quick 160).
    """
    from vftsim.spec import DURATION

    window_ns = None if window is None else round(options.parse_quantity("--window", window, DURATION))
    search = {"probability": probability, "resolution": resolution, "budget": budget}
    result = common.conduct(call.plan(), window_ns=window_ns, **search)
    common.show(result)
    if result.interrupted:
        goes_on = f"; it is in '{common.output}', the same command goes on" if common.output else ""
        raise interrupted(f"the figures above rest on what had finished{goes_on}")
