"""Quantile functions of the classical distributions.

Thin, typed doors to ``scipy.special``.  ``scipy.stats`` would offer the same under friendlier names,
but importing it takes several times as long as answering a small question.  ``scipy.special`` itself
is imported on first use, so that commands without statistics start without it.
"""

import importlib
from functools import cache, lru_cache
from typing import Any


@cache
def _special() -> Any:
    return importlib.import_module("scipy.special")


@lru_cache(1024)  # a study asks for the same few again and again
def student_t_quantile(probability: float, degrees: float) -> float:
    """Return the quantile of Student's t with the given degrees of freedom."""
    return float(_special().stdtrit(degrees, probability))


def beta_quantile(probability: float, a: float, b: float) -> float:
    return float(_special().betaincinv(a, b, probability))


def beta_cdf(x: float, a: float, b: float) -> float:
    return float(_special().betainc(a, b, x))


def beta_survival(x: float, a: float, b: float) -> float:
    """Return one minus the distribution function of the beta distribution, exact in the tail."""
    return float(_special().betaincc(a, b, x))


def log_beta(a: float, b: float) -> float:
    return float(_special().betaln(a, b))


def binomial_cdf(k: int, n: int, probability: float) -> float:
    """Return P(X <= k) for X binomial(n, probability)."""
    if k < 0:
        return 0.0
    return 1.0 if k >= n else float(_special().bdtr(k, n, probability))
