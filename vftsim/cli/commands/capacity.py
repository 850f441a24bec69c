"""``vftsim capacity``: what one system carries."""

from vftsim.cli.common import ScaledStudy
from vftsim.cli.from_study import StudyCall, made_from
from vftsim.cli.output import interrupted
from vftsim.interface import studies


@made_from(studies.capacity, ScaledStudy, prices=True)
def capacity(call: StudyCall, *, common: ScaledStudy) -> None:
    """Say what load a system carries, with an interval, and what limits it."""
    result = common.conduct(call.plan())
    common.show(result)
    if result.interrupted:
        goes_on = f"; it is in '{common.output}', the same command goes on" if common.output else ""
        raise interrupted(f"the figures above rest on what had finished{goes_on}")
