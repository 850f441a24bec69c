"""What simulation runs give: made-up output whose true mean, ratio or percentile is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Sample = Callable[[np.random.Generator, int, int], Array]
"""Draws (studies, replications) values."""


@dataclass(frozen=True)
class Output:
    """Values of replications with their true mean; ``lumpy`` if single runs decide, as with collapses.

    Rare ones are known to be higher by ``jump``.
    """

    name: str
    sample: Sample
    truth: float
    lumpy: bool = False
    jump: float = 0.0


@dataclass(frozen=True)
class Counts:
    """Counts of replications with the ratio behind them; draws numerators and denominators."""

    name: str
    sample: Callable[[np.random.Generator, int, int], tuple[Array, Array]]
    truth: float


@dataclass(frozen=True)
class Delays:
    """A pool of runs of delays, and the distribution's true percentiles."""

    name: str
    runs: Array
    percentile: Callable[[float], float]


def mm1_waits(rng: np.random.Generator, load: float, runs: int, customers: int) -> Array:
    """Waiting times of M/M/1 with unit service rate, by Lindley's recursion from the steady state."""
    wait = np.where(rng.random(runs) < 1.0 - load, 0.0, rng.exponential(1.0 / (1.0 - load), runs))
    waits = np.empty((runs, customers))
    for i in range(customers):
        waits[:, i] = wait
        wait = np.maximum(0.0, wait + rng.exponential(1.0, runs) - rng.exponential(1.0 / load, runs))
    return waits


def autoregressive(rng: np.random.Generator, correlation: float, runs: int, length: int) -> Array:
    """Standard normal series with exponentially falling correlation, from the steady state."""
    noise = rng.normal(size=(runs, length)) * np.sqrt(1.0 - correlation**2)
    series = np.empty((runs, length))
    series[:, 0] = rng.normal(size=runs)
    for i in range(1, length):
        series[:, i] = correlation * series[:, i - 1] + noise[:, i]
    return series


def bursty(rng: np.random.Generator, studies: int, n: int, bursts: float, length: float, packets: int) -> Array:
    """Packets lost in runs of on/off loss: Poisson many bursts of geometric length."""
    count = rng.poisson(bursts, (studies, n))
    extra = rng.negative_binomial(np.maximum(count, 1), 1.0 / length) * (count > 0)
    return np.minimum(count + extra, packets).astype(float)


def clustered(rng: np.random.Generator, studies: int, n: int, mean: float, dispersion: float) -> Array:
    """Poisson counts whose rate changes from run to run: variance ``dispersion`` times the mean."""
    rate = rng.gamma(mean / (dispersion - 1.0), dispersion - 1.0, (studies, n))
    return rng.poisson(rate).astype(float)


def collapsing(rng: np.random.Generator, studies: int, n: int, share: float) -> Array:
    """IHS in percent where a share of the runs collapses."""
    fallen = rng.random((studies, n)) < share
    return np.where(fallen, rng.normal(30.0, 5.0, (studies, n)), rng.gamma(25.0, 0.004, (studies, n)))


def _resampled(values: Array) -> Sample:
    return lambda rng, studies, n: rng.choice(values, (studies, n))


def outputs(rng: np.random.Generator) -> Iterator[Output]:
    """Figures of which a mean over replications is printed."""
    series = autoregressive(rng, 0.9, 20_000, 300)
    yield Output("CPU: mean of AR(1), r = 0.9", _resampled(series.mean(axis=1)), 0.0)
    largest = series.max(axis=1)
    yield Output("maximum of AR(1), r = 0.9", _resampled(largest), float(largest.mean()))
    waits = mm1_waits(rng, 0.8, 20_000, 1000)
    yield Output("mean wait, M/M/1 at 0.8, 1,000 calls", _resampled(waits.mean(axis=1)), 4.0)
    heavy = rng.pareto(2.5, (20_000, 500)) + 1.0
    yield Output("mean of 500 Pareto delays, a = 2.5", _resampled(heavy.mean(axis=1)), 2.5 / 1.5)
    for sigma in (0.5, 1.0, 1.5):
        yield Output(
            f"lognormal, s = {sigma:g}",
            lambda rng, studies, n, s=sigma: rng.lognormal(0.0, s, (studies, n)),
            float(np.exp(sigma**2 / 2.0)),
        )
    yield Output("exponential", lambda rng, studies, n: rng.exponential(1.0, (studies, n)), 1.0)
    yield Output("collapse in 30 % of runs", lambda rng, studies, n: collapsing(rng, studies, n, 0.3), 9.07, lumpy=True)


def differences(rng: np.random.Generator) -> Iterator[Output]:
    """Differences of paired runs."""
    waits = mm1_waits(rng, 0.8, 20_000, 1000).mean(axis=1) - 0.5 * mm1_waits(rng, 0.6, 20_000, 1000).mean(axis=1)
    yield Output("difference of mean waits", _resampled(waits), 4.0 - 0.5 * 1.5)


def outages(rng: np.random.Generator) -> Iterator[Output]:
    """Outages in s by crashes at one random instant in each of n equal parts of a stretch, as ``failover`` makes them.

    A heartbeat once in the stretch, at any phase, and the wait for a packet; a heartbeat every 0.5 s, a takeover of
    1 s give or take, and then the first of the client's attempts that come after 0.5, 1.5, 3.5, ... s; or none of
    this, but the whole of an epoch of 0.2 s, three or forty of which are in the stretch; or an epoch of 0.2 s of which
    a crash loses the outputs if it meets its state on the way, a twentieth of the time.
    """

    def by_heartbeat(wait_s: float) -> Sample:
        def sample(rng: np.random.Generator, studies: int, n: int) -> Array:
            phase = np.modf(_stratified(rng, studies, n) + rng.random((studies, 1)))[0]
            return 3.5 - phase + rng.exponential(wait_s, (studies, n))

        return sample

    def by_attempts(rng: np.random.Generator, studies: int, n: int) -> Array:
        down = 3.0 - 0.5 * np.modf(20.0 * _stratified(rng, studies, n))[0] + rng.lognormal(0.0, 0.5, (studies, n))
        return 0.5 * (np.exp2(np.ceil(np.log2(down / 0.5 + 1.0))) - 1.0)

    def by_epoch(epochs: float, length_s: float) -> Sample:
        def sample(rng: np.random.Generator, studies: int, n: int) -> Array:
            phase = np.modf(epochs * _stratified(rng, studies, n))[0]
            return 1.0 + length_s * (1.0 - phase) + rng.exponential(0.02, (studies, n))

        return sample

    def by_state(rng: np.random.Generator, studies: int, n: int) -> Array:
        phase = np.modf(5.0 * _stratified(rng, studies, n))[0]
        return 1.2 + 0.2 * (phase > 0.95) + rng.exponential(0.02, (studies, n))

    for wait_s in (0.2, 0.5):
        yield Output(f"outage, one heartbeat, packets each {wait_s:g} s", by_heartbeat(wait_s), 3.0 + wait_s)
    yield Output("outage, one heartbeat, packets each 0.05 s", by_heartbeat(0.05), 3.05, True)
    yield Output("outage, client's doubling waits", by_attempts, float(by_attempts(rng, 2000, 1000).mean()), True)
    yield Output("outage, epochs 40 in the stretch", by_epoch(40.0, 0.025), 1.0325)
    yield Output("outage, epochs 3 in the stretch", by_epoch(3.0, 0.2), 1.12, True)
    yield Output("outage, 1 crash in 20 meets a state on its way", by_state, 1.23, True, 0.2)


def crash_losses(rng: np.random.Generator, studies: int, n: int, share: float) -> Array:
    """Attempts lost by crashes of which a share loses any: some twenty, give or take."""
    return np.where(rng.random((studies, n)) < share, rng.lognormal(3.0, 0.5, (studies, n)).round(), 0.0)


def _stratified(rng: np.random.Generator, studies: int, n: int) -> Array:
    return (np.arange(n) + rng.random((studies, n))) / n


def counts() -> Iterator[Counts]:
    """Counts of which a ratio is printed."""
    for bursts in (0.3, 1.0, 3.0, 10.0):
        yield Counts(
            f"loss, {bursts:g} bursts of 20 a run",
            lambda rng, studies, n, b=bursts: (bursty(rng, studies, n, b, 20.0, 5000), np.full((studies, n), 5000.0)),
            bursts * 20.0 / 5000.0,
        )
    for mean, dispersion in ((2.0, 4.0), (20.0, 10.0)):
        yield Counts(
            f"loss events, {mean:g} a run, dispersion {dispersion:g}",
            lambda rng, studies, n, m=mean, d=dispersion: (clustered(rng, studies, n, m, d), np.ones((studies, n))),
            mean,
        )
    yield Counts("scenario mix, 12 % of Poisson attempts", _mix, 0.12)
    yield Counts("IHS, collapse in 30 % of runs", _ihs, 0.0907)


def _mix(rng: np.random.Generator, studies: int, n: int) -> tuple[Array, Array]:
    attempts = rng.poisson(600.0, (studies, n))
    return rng.binomial(attempts, 0.12).astype(float), attempts.astype(float)


def _ihs(rng: np.random.Generator, studies: int, n: int) -> tuple[Array, Array]:
    attempts = np.full((studies, n), 20_000.0)
    return attempts * collapsing(rng, studies, n, 0.3) / 100.0, attempts


def delays(rng: np.random.Generator) -> Iterator[Delays]:
    """Delays of which percentiles are printed."""

    def mm1(load: float) -> Callable[[float], float]:
        return lambda p: float(np.log(load / (1.0 - p)) / (1.0 - load))

    yield Delays("M/M/1 at 0.8, 1,000 calls", mm1_waits(rng, 0.8, 6000, 1000), mm1(0.8))
    yield Delays("M/M/1 at 0.8, 5,000 calls", mm1_waits(rng, 0.8, 2500, 5000), mm1(0.8))
    yield Delays("exponential, 1,000", rng.exponential(1.0, (6000, 1000)), lambda p: float(-np.log1p(-p)))
    yield Delays("Pareto, a = 2.5, 500", rng.pareto(2.5, (6000, 500)) + 1.0, lambda p: (1.0 - p) ** -0.4)
    series = np.exp(autoregressive(rng, 0.9, 6000, 1000))
    yield Delays("exp(AR(1)), r = 0.9, 1,000", series, lambda p: float(np.exp(_normal_quantile(p))))


def _normal_quantile(probability: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(probability))
