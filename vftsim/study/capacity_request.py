"""What a user asks of ``vftsim capacity``, whatever the kind of system.

A kind takes the wishes that make sense for it and refuses the others by name: an option that is given is
never ignored.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from vftsim.errors import UsageError
from vftsim.study.progress import Progress
from vftsim.study.replicate import DEFAULT_SEED
from vftsim.study.search_levels import QUICK_SEARCH, SearchSettings
from vftsim.study.store import Store

OF_A_RAMP, OF_A_STOP = ("labs", "headroom_percent"), ("after_stop_ns", "window_ns")
"""Wishes of which only a benchmark's ramp knows, and only one that is stopped."""

_ROOM = 3
"""Budget that is advised, in runs that a load takes to pass: two loads near the capacity take as many, undecided."""


@dataclass(frozen=True)
class CapacityRequest:
    """The options of a capacity study; ``None`` where the user said nothing.

    Parameters
    ----------
    seed, jobs : int, optional
    quick : bool
        A first look.
    progress : Progress, optional
    store : Store, optional
        Where finished runs are kept and found again.
    method : str, optional
        ``ramp`` or ``search``.
    replications : int, optional
        Ramps.
    ihs_limit_percent, loss_limit_percent : float, optional
        Allowed share of inadequately handled attempts, or of lost media packets.
    after_stop_ns, window_ns : int, optional
        A stop to recover from, and the time for it.
    probability, resolution, budget : optional
        Of a search.
    labs : Path, optional
        File with ramps of further measured systems.
    headroom_percent : float, optional
        Share of the load that fills the CPU to be left free.
    vary : str, optional
        Key of the model to turn.
    objectives : tuple of str
        What a run must achieve, each ``figure <= number``; all of them.
    prices : bool
        Play prices of the model's protection at both ends of their ranges.
    """

    seed: int = DEFAULT_SEED
    jobs: int | None = None
    quick: bool = False
    progress: Progress | None = None
    store: Store | None = None
    method: str | None = None
    replications: int | None = None
    ihs_limit_percent: float | None = None
    loss_limit_percent: float | None = None
    after_stop_ns: int | None = None
    window_ns: int | None = None
    probability: float | None = None
    resolution: float | None = None
    budget: int | None = None
    labs: Path | None = None
    headroom_percent: float | None = None
    vary: str | None = None
    objectives: tuple[str, ...] = ()
    prices: bool = True

    def settings(self, thorough: SearchSettings) -> SearchSettings:
        """Return how hard a search has to try; ``thorough`` is the kind's own default."""
        settings = QUICK_SEARCH if self.quick else thorough
        chosen = {name: getattr(self, name) for name in ("probability", "resolution", "budget")}
        for name, value in chosen.items():
            if value is not None and not value > 0:
                raise UsageError(f"--{name}: above 0, got {value:g}")
        if self.probability is not None and self.probability >= 1.0:
            raise UsageError(f"--probability: below 1, got {self.probability:g}")
        settings = replace(settings, **{name: value for name, value in chosen.items() if value is not None})
        to_pass, to_fail = settings.runs_to_decide
        if settings.budget < to_pass + to_fail:
            raise UsageError(
                f"--budget: {settings.budget} runs decide nothing: {100 * settings.probability:g} % of runs need "
                f"{to_pass} without a failure for a load to pass and {to_fail} for a higher one to fail; give "
                f"{_ROOM * to_pass} or more ({to_pass + to_fail} at the very least), or a lower --probability"
            )
        return replace(settings, runs_per_level=max(settings.runs_per_level, to_pass))

    def refuse(self, why: str, *names: str) -> None:
        """Refuse what was asked for and means nothing here, by the fields of the request; ``why``: what to do instead.

        Raises
        ------
        UsageError
            One of them was asked for.
        """
        for name in names:
            if getattr(self, name) is not None:
                option = name.removesuffix("_percent").removesuffix("_ns").replace("_", "-")
                raise UsageError(f"--{option}: {why}")
