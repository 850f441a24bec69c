"""The question of a decision: what a mechanism has to achieve, and what a year holds."""

from __future__ import annotations

from dataclasses import dataclass

from vftsim.study.availability import DEFAULT_RESTART_S
from vftsim.study.objective import Objective

DEFAULT_MTBF_S = 365 * 86_400.0


@dataclass(frozen=True)
class Asked:
    """The question.

    Parameters
    ----------
    objectives : tuple of Objective
        What a mechanism has to achieve, all of them.
    mtbf_s : float
        Mean time between failures of a host.
    restart_s : float
        How long it takes somebody to bring back by hand what does not come back by itself.
    bands : bool
        Whether each price is also played at both ends of its range, once.
    crossovers : tuple of str
        Settings over which the order of mechanisms is sought, as :func:`~.shared_knobs.shared_knobs` reads them.
    """

    objectives: tuple[Objective, ...] = ()
    mtbf_s: float = DEFAULT_MTBF_S
    restart_s: float = DEFAULT_RESTART_S
    bands: bool = True
    crossovers: tuple[str, ...] = ()
