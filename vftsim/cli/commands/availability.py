"""``vftsim availability``: a year with each protection mechanism."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vftsim.cli import options
from vftsim.cli.common import ModelStudy
from vftsim.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vftsim.study.availability import AvailabilityStudy
    from vftsim.study.model import Model
    from vftsim.study.progress import Progress
    from vftsim.study.store import Store


def availability(
    model: str,
    mtbf: str,
    protection: str = "none,ha_restart,lockstep,checkpoint",
    crashes: int | None = None,
    restart: str = "77 s",
    after: str | None = None,
    simulate: int | None = None,
    *,
    common: ModelStudy,
) -> None:
    """Say how long the service is down in a year, how long unprotected, and what clients lose.

    Years are put together from simulated failovers by a Markov chain of the hosts' failures; with --simulate they are
    simulated, with faults of every kind.

    Parameters
    ----------
    mtbf : --mtbf TIME
        Mean time between failures of a host, e.g. '8760 h'.
    protection : --protection KIND,KIND
        Mechanisms, or 'all'.
    crashes : --crashes, -n
        Simulated failovers of each mechanism (default 10).
    restart : --restart TIME
        Length of an outage that no mechanism shortens.
    after : --after TIME
        How long a run goes on after a crash and a restart (default: until queues have gone).
    simulate : --simulate YEARS
        Simulate so many years in which both hosts fail and the model's faults with 'repeat: {mean: ...}' come as often
        as they say, and put the Markov chain of all of them beside.
    """
    common.check_force()
    from vftsim.spec import DURATION
    from vftsim.study.availability import DEFAULT_CRASHES, availability_study, year_takes
    from vftsim.study.protections import kinds_named
    from vftsim.study.replicate import fewer_crashes

    mtbf_s = options.parse_quantity("--mtbf", mtbf, DURATION) / 1e9
    restart_s = options.parse_quantity("--restart", restart, DURATION) / 1e9
    after_ns = None if after is None else round(options.parse_quantity("--after", after, DURATION))
    chosen, count = fewer_crashes(options.prepared(model, common.set_), crashes, DEFAULT_CRASHES, common.quick)
    kinds = kinds_named(protection)
    if simulate is not None:
        if after is not None:
            raise UsageError("--after is about single failovers; --simulate watches a fault until redundancy is back")
        _simulated(chosen, kinds, mtbf_s, simulate, count, restart_s, common)
        return

    def study(store: Store | None, progress: Progress) -> AvailabilityStudy:
        return availability_study(
            chosen,
            kinds,
            mtbf_s,
            count,
            common.seed,
            common.jobs,
            restart_s=restart_s,
            after_ns=after_ns,
            progress=progress,
            store=store,
        )

    label = f"failovers of {chosen.name}"
    common.show(common.answer("availability", label, lambda: year_takes(chosen, kinds, count, after_ns), study))


def _simulated(
    model: Model, kinds: Sequence[str], mtbf_s: float, years: int, count: int, restart_s: float, common: ModelStudy
) -> None:
    """Simulate years of a model."""
    from vftsim.study.simulated_years import simulated_years, years_take

    found = common.answer(
        "simulated years",
        f"years of {model.name}",
        lambda: years_take(model, kinds, mtbf_s, years, count),
        lambda store, progress: simulated_years(
            model,
            kinds,
            mtbf_s,
            years,
            count,
            common.seed,
            common.jobs,
            restart_s=restart_s,
            progress=progress,
            store=store,
        ),
    )
    common.show(found)
