"""A Markov chain of a machine that faults of several kinds strike, each with the outage that it was measured to have.

A machine with a backup is protected, or unprotected until redundancy is back; a fault of kind k comes at its rate.
While it is protected, a fault costs its outage, and then the time until redundancy is back, if it took that; while it
is not, the outage that the same fault has then.  A fault may be the end of the machine: somebody brings it back, and
redundancy comes after that.  While it is down nothing strikes it.  With hosts alone it is the pair of
:mod:`.availability`.  Assumption: times are exponential; what counts in the first order are their means.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

UP, DEAD, AFTER_DEATH = "up", "dead", "unprotected after death"


@dataclass(frozen=True)
class Effect:
    """Effect of a kind of fault."""

    outage_s: float
    """Mean outage where it is not the end of the machine."""
    unprotected_s: float = 0.0
    """Mean time after the outage until redundancy is back; 0: it did not go."""
    dead: float = 0.0
    """Share of the faults that are the end of the machine."""
    around_s: float = 0.0
    """Half the interval of what it costs on average, of the instants at which it was measured."""
    unnoticed: int = 0
    """Of those instants how many made no longer gap between packets than there are without faults."""

    def cost_s(self, restart_s: float) -> float:
        """Return the mean time down by one fault."""
        return self.outage_s * (1.0 - self.dead) + restart_s * self.dead


@dataclass(frozen=True)
class Kind:
    """A kind of fault: how often it comes in a second, and what it does while protected and while not."""

    name: str
    rate_per_s: float
    protected: Effect
    unprotected: Effect


@dataclass(frozen=True)
class Shares:
    """Shares of time."""

    down: float
    unprotected: float


def shares_of(kinds: Sequence[Kind], restart_s: float, reprotection_s: float) -> Shares:
    """Return how the machine spends its time.

    Bringing back what does not come back by itself takes ``restart_s``; from there until redundancy is back it takes
    ``reprotection_s``, 0 if the machine has none.
    """
    rates: dict[tuple[str, str], float] = {}

    def add_rate(here: str, there: str, rate: float) -> None:
        if rate > 0.0 and here != there:
            rates[here, there] = rates.get((here, there), 0.0) + rate

    def strike(state: str, kind: Kind, effect: Effect, after: str) -> None:
        add_rate(state, DEAD, kind.rate_per_s * effect.dead)
        out = f"out: {kind.name}, from {state}"
        living = kind.rate_per_s * (1.0 - effect.dead)
        if effect.outage_s > 0.0:
            add_rate(state, out, living)
            add_rate(out, after, 1.0 / effect.outage_s)
        else:
            add_rate(state, after, living)

    waiting: dict[str, float] = {AFTER_DEATH: reprotection_s} if reprotection_s > 0.0 else {}
    for kind in kinds:
        after = UP
        if kind.protected.unprotected_s > 0.0:
            after = f"unprotected after {kind.name}"
            waiting[after] = kind.protected.unprotected_s
        strike(UP, kind, kind.protected, after)
    for state, wait_s in waiting.items():
        add_rate(state, UP, 1.0 / wait_s)
        for kind in kinds:
            strike(state, kind, kind.unprotected, state)
    add_rate(DEAD, AFTER_DEATH if AFTER_DEATH in waiting else UP, 1.0 / restart_s)
    shares = stationary(rates)
    down = sum(share for state, share in shares.items() if state == DEAD or state.startswith("out: "))
    return Shares(down, sum(shares.get(state, 0.0) for state in waiting))


def stationary(rates: Mapping[tuple[str, str], float]) -> dict[str, float]:
    """Return the shares of time of a chain's states that can be reached, from the rates between them."""
    states, new = [UP], [UP]
    while new:
        new = sorted({there for here, there in rates if here in new and there not in states})
        states += new
    if len(states) == 1:
        return {UP: 1.0}
    row = {state: number for number, state in enumerate(states)}
    flow = np.zeros((len(states), len(states)))
    for (here, there), rate in rates.items():
        if here in row:
            flow[row[there], row[here]] += rate
            flow[row[here], row[here]] -= rate
    flow[0] = 1.0  # one balance follows from the others: the shares add up instead
    shares = np.linalg.solve(flow, np.eye(len(states))[0])
    return {state: float(shares[number]) for state, number in row.items()}
