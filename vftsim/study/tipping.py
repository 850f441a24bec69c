"""How much of a server's CPU to leave free: where systems of its kind have been seen to tip.

What tips a SIP server before its CPU is full is not in the models, so their capacity is an upper bound.  What is known
is where measured systems tipped, as a share of the load that would have filled their CPU
(:mod:`vftsim.labs.ramps`); the range over them, times the load that fills the model's CPU, stands beside the model's
own capacity.  A system's own record is left out of what it is told.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vftsim.errors import UsageError
from vftsim.labs.ramps import Ramp, read_ramps, shares_seen, shipped_ramps
from vftsim.spec.shipped import is_file


@dataclass(frozen=True, slots=True)
class Experience:
    """What is known of systems of this kind, and how much a user wants to leave free.

    Parameters
    ----------
    ramps : dict of str to Ramp
        By system.
    headroom_percent : float or None
        Share of the full load to be left free; None: what the most fragile of the systems needed.
    """

    ramps: Mapping[str, Ramp]
    headroom_percent: float | None = None


def experience_of(labs: Path | None = None, headroom_percent: float | None = None) -> Experience:
    """Return what the shipped laboratories tell, with those of a user's file.

    Raises
    ------
    ModelFileError, UsageError
        There is no such file or it is wrong; the headroom leaves nothing or less than nothing.
    """
    if headroom_percent is not None and not 0.0 <= headroom_percent < 100.0:
        raise UsageError(f"--headroom: from 0 to below 100 %, got {headroom_percent:g}")
    if labs is not None and not is_file(labs):
        raise UsageError(f"--labs: there is no file {labs}; 'vftsim schema ramps' says what it holds")
    own = {} if labs is None else read_ramps(labs)
    return Experience({**shipped_ramps(), **own}, headroom_percent)


@dataclass(frozen=True, slots=True)
class Tipping:
    """Where a system may tip, from others that did.

    Parameters
    ----------
    full_saps : float
        Load that fills its CPU.
    within_saps : float
        Capacity by the model.
    """

    full_saps: float
    others: tuple[Ramp, ...]
    headroom_percent: float | None
    within_saps: float

    @property
    def shares(self) -> tuple[float, float]:
        """Shares of the full load between which the others tipped."""
        return shares_seen(self.others)

    @property
    def seen_saps(self) -> tuple[float, float]:
        """The loads that these are here."""
        low, high = self.shares
        return low * self.full_saps, high * self.full_saps

    @property
    def safe_saps(self) -> float:
        """Load that leaves the headroom free, and is within the model's own capacity."""
        share = self.shares[0] if self.headroom_percent is None else 1.0 - self.headroom_percent / 100.0
        return min(share * self.full_saps, self.within_saps)

    @property
    def tipped_below(self) -> int:
        """How many of the others carried no more than a smaller share, and may have tipped below."""
        return sum(ramp.carried / ramp.full < self.safe_saps / self.full_saps - 1e-9 for ramp in self.others)

    def columns(self) -> dict[str, Any]:
        """Return it as columns of a table."""
        low, high = self.seen_saps
        return {
            "full_saps": self.full_saps,
            "tipped_from_saps": low,
            "tipped_to_saps": high,
            "safe_saps": self.safe_saps,
        }

    def for_machines(self) -> dict[str, Any]:
        """Return it as plain data, with every system that it rests on."""
        low, high = self.shares
        return {
            **self.columns(),
            "headroom_percent": self.headroom_percent,
            "low_share": low,
            "high_share": high,
            "systems_tipped_below_safe": self.tipped_below,
            "systems": [
                {
                    "system": ramp.system,
                    "carried": ramp.carried,
                    "tipped": ramp.tipped,
                    "full": ramp.full,
                    "carried_share": ramp.shares[0],
                    "tipped_share": ramp.shares[1],
                }
                for ramp in self.others
            ],
        }


NO_COLUMNS = dict.fromkeys(("full_saps", "tipped_from_saps", "tipped_to_saps", "safe_saps"), math.nan)


def tipping_of(known: Experience, system: str | None, full_saps: float | None, within_saps: float) -> Tipping | None:
    """Return where a system may tip; None where its ramp does not tell what fills its CPU, or no other is known.

    Parameters
    ----------
    system : str or None
        Its own name among the systems, if it is one of them.
    """
    others = tuple(ramp for name, ramp in known.ramps.items() if name != system)
    if full_saps is None or not others:
        return None
    return Tipping(full_saps, others, known.headroom_percent, within_saps)
