"""Sequential test of a probability of success against a bound.

Runs arrive one at a time and the test may look after each of them.  A fixed-sample test looked at
repeatedly errs far more often than its level says; this one does not, however often it is looked at
and whenever it is stopped.  The evidence that the probability lies *above* the bound ``p0`` is the
likelihood of the data averaged over all probabilities above ``p0`` (evenly), relative to the
likelihood at ``p0``::

    E = integral_{p0}^{1} q^s (1-q)^f dq / (1-p0)  /  (p0^s (1-p0)^f)

Under any probability at or below ``p0`` this is a non-negative supermartingale that starts at 1, so it
ever reaches ``1/alpha`` with probability at most ``alpha`` (Ville's inequality; Robbins 1970, *Statistical
methods related to the law of the iterated logarithm*).  Evidence for *below* mirrors it.
"""

import math
from functools import lru_cache

from vftsim.stats._special import beta_cdf, beta_survival, log_beta


@lru_cache(maxsize=1 << 14)
def log_evidence_above(successes: int, failures: int, bound: float) -> float:
    """Return the logarithm of the evidence that the success probability exceeds ``bound``."""
    tail = beta_survival(bound, successes + 1.0, failures + 1.0)
    return _log_ratio(tail, 1.0 - bound, successes, failures, bound)


@lru_cache(maxsize=1 << 14)
def log_evidence_below(successes: int, failures: int, bound: float) -> float:
    """Return the logarithm of the evidence that the success probability is less than ``bound``."""
    tail = beta_cdf(bound, successes + 1.0, failures + 1.0)
    return _log_ratio(tail, bound, successes, failures, bound)


def _log_ratio(tail: float, prior_width: float, successes: int, failures: int, bound: float) -> float:
    if tail <= 0.0:
        return -math.inf
    averaged = log_beta(successes + 1.0, failures + 1.0) + math.log(tail / prior_width)
    return averaged - successes * math.log(bound) - failures * math.log1p(-bound)


def inversion_p_value(inversions: int, discordant: int) -> float:
    """Return P(X >= inversions) for X binomial(discordant, 1/2): the exact sign test of paired runs."""
    if inversions == 0:
        return 1.0
    return beta_cdf(0.5, inversions, discordant - inversions + 1.0)
