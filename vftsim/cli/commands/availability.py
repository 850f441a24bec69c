"""``vftsim availability``: a year with each protection mechanism."""

from vftsim.cli.common import ModelStudy
from vftsim.cli.from_study import StudyCall, made_from
from vftsim.errors import UsageError
from vftsim.interface import studies


@made_from(studies.availability, beside=[studies.simulated_years])
def availability(call: StudyCall, *, common: ModelStudy) -> None:
    """Say how long the service is down in a year, how long unprotected, and what clients lose.

    Years are put together from simulated failovers by a Markov chain of the hosts' failures; with --simulate they are
    simulated, with faults of every kind.
    """
    if "years" not in call.arguments:
        plan = call.plan()
    elif "after_s" in call.arguments:
        raise UsageError("--after is about single failovers; --simulate watches a fault until redundancy is back")
    else:
        from vftsim.study.designs.availability import DEFAULT_CRASHES
        from vftsim.study.execution import fewer_crashes

        model, crashes = call.arguments["model"], call.arguments.get("crashes")
        chosen, count = fewer_crashes(model, crashes, DEFAULT_CRASHES, common.quick)
        plan = call.plan(studies.simulated_years, model=chosen, crashes=count)
    common.show_all(plan, common.conduct(plan))
