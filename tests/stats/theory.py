"""Closed forms of queueing theory, against which the simulator is verified.

Rates are per unit of time, times in that same unit; which unit does not matter.  Where a function
needs a stable queue it refuses a load of 1 or more.

References: Kleinrock, *Queueing Systems*, vol. 1 (1975) and 2 (1976); Gross, Shortle, Thompson and Harris,
*Fundamentals of Queueing Theory* (2008).
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class QueueMeans:
    """Mean values of a queue in steady state.

    Parameters
    ----------
    utilization : float
        Fraction of time a server is busy.
    wait : float
        Mean time before service starts.
    response : float
        Mean time from arrival to departure.
    waiting : float
        Mean number waiting.
    in_system : float
        Mean number waiting or in service.
    """

    utilization: float
    wait: float
    response: float
    waiting: float
    in_system: float


def littles_law(throughput: float, mean_time: float) -> float:
    """Return the mean number present, ``L = lambda W`` (Little 1961), of any stable system."""
    return throughput * mean_time


def mm1(arrival_rate: float, service_rate: float) -> QueueMeans:
    """M/M/1: ``T = 1 / (mu - lambda)``, ``W = rho T`` (Kleinrock vol. 1, section 3.2)."""
    return mmc(arrival_rate, service_rate, 1)


def mm1_response_quantile(arrival_rate: float, service_rate: float, probability: float) -> float:
    """M/M/1: the response time is exponential, so its quantile is ``-ln(1 - p) / (mu - lambda)``."""
    _stable(arrival_rate / service_rate)
    if not 0.0 <= probability < 1.0:
        raise ValueError(f"need 0 <= probability < 1, got {probability}")
    return -math.log1p(-probability) / (service_rate - arrival_rate)


def mmc(arrival_rate: float, service_rate: float, servers: int) -> QueueMeans:
    """M/M/c: ``W = C(c, a) / (c mu - lambda)`` with Erlang's C and ``a = lambda / mu``."""
    offered = arrival_rate / service_rate
    wait = erlang_c(offered, servers) / (servers * service_rate - arrival_rate)
    return _means(arrival_rate, 1.0 / service_rate, offered / servers, wait)


def erlang_b(offered_load: float, servers: int) -> float:
    """Blocking probability of M/G/c/c (Erlang 1917).

    ``B(c, a) = (a^c / c!) / sum_{k<=c} a^k / k!``, by the stable recursion
    ``B(k) = a B(k-1) / (k + a B(k-1))`` from ``B(0) = 1``.
    """
    _offered(offered_load, servers)
    blocking = 1.0
    for k in range(1, servers + 1):
        blocking = offered_load * blocking / (k + offered_load * blocking)
    return blocking


def erlang_c(offered_load: float, servers: int) -> float:
    """Probability of having to wait in M/M/c (Erlang 1917): ``B / (1 - rho (1 - B))``, ``rho = a / c``."""
    _offered(offered_load, servers)
    utilization = _stable(offered_load / servers)
    blocking = erlang_b(offered_load, servers)
    return blocking / (1.0 - utilization * (1.0 - blocking))


def mm1k_loss(arrival_rate: float, service_rate: float, places: int) -> float:
    """Loss probability of M/M/1/K, K places including the one in service.

    ``P_K = (1 - rho) rho^K / (1 - rho^(K+1))``, ``1 / (K + 1)`` at ``rho = 1`` (Kleinrock vol. 1,
    section 3.6).
    """
    return _mm1k_probabilities(arrival_rate, service_rate, places)[-1]


def mm1k(arrival_rate: float, service_rate: float, places: int) -> QueueMeans:
    """M/M/1/K: mean values of the customers that are let in, at any load."""
    probabilities = _mm1k_probabilities(arrival_rate, service_rate, places)
    accepted = arrival_rate * (1.0 - probabilities[-1])
    in_system = math.fsum(k * p for k, p in enumerate(probabilities))
    response = in_system / accepted
    wait = response - 1.0 / service_rate
    return QueueMeans(1.0 - probabilities[0], wait, response, accepted * wait, in_system)


def md1(arrival_rate: float, service_time: float) -> QueueMeans:
    """M/D/1: ``W = rho S / (2 (1 - rho))``, half the wait of M/M/1."""
    return mg1(arrival_rate, service_time, 0.0)


def mg1(arrival_rate: float, mean_service_time: float, service_cv: float) -> QueueMeans:
    """M/G/1 in order of arrival: Pollaczek-Khinchine (Kleinrock vol. 1, section 5.6).

    ``W = rho S (1 + cv^2) / (2 (1 - rho))``.
    """
    if service_cv < 0.0:
        raise ValueError(f"a coefficient of variation is not negative, got {service_cv}")
    utilization = _stable(arrival_rate * mean_service_time)
    wait = utilization * mean_service_time * (1.0 + service_cv**2) / (2.0 * (1.0 - utilization))
    return _means(arrival_rate, mean_service_time, utilization, wait)


def mg1_ps_response(arrival_rate: float, mean_service_time: float, service_time: float | None = None) -> float:
    """M/G/1 with processor sharing: ``T(x) = x / (1 - rho)`` (Kleinrock vol. 2, section 4.4).

    Depends on the distribution of service times through its mean only.

    Parameters
    ----------
    arrival_rate, mean_service_time : float
        Load.
    service_time : float, optional
        The work of the customer looked at; the mean over all customers when omitted.
    """
    utilization = _stable(arrival_rate * mean_service_time)
    work = mean_service_time if service_time is None else service_time
    return work / (1.0 - utilization)


def _mm1k_probabilities(arrival_rate: float, service_rate: float, places: int) -> list[float]:
    if places < 1:
        raise ValueError(f"a queue has at least one place, got {places}")
    if not (arrival_rate > 0.0 and service_rate > 0.0):
        raise ValueError(f"rates must be positive, got {arrival_rate} and {service_rate}")
    rho = arrival_rate / service_rate
    # Weights relative to the fuller end keep the powers from overflowing.
    weights = [rho ** (k - places) if rho > 1.0 else rho**k for k in range(places + 1)]
    total = math.fsum(weights)
    return [w / total for w in weights]


def _means(arrival_rate: float, service_time: float, utilization: float, wait: float) -> QueueMeans:
    response = wait + service_time
    return QueueMeans(utilization, wait, response, arrival_rate * wait, arrival_rate * response)


def _offered(offered_load: float, servers: int) -> None:
    if servers < 1 or not offered_load >= 0.0:
        raise ValueError(f"need at least one server and a load >= 0, got {servers} and {offered_load}")


def _stable(utilization: float) -> float:
    if not 0.0 <= utilization < 1.0:
        raise ValueError(f"no steady state at a utilization of {utilization}")
    return utilization
