"""Measure how often every interval that a command prints holds the truth, and write the table of the docs.

``python experiments/interval-coverage/interval_coverage.py [--write] [--studies N]`` makes thousands of studies of
3, 5, 10, 30 and sometimes other numbers of replications whose true figures are known, applies the rules the
commands use, and counts.  A rule is judged by the studies in which it gives an interval at all; where that is
fewer than a fifth of them, by the share of all studies that print a wrong one, which may be 5 %.  Limits: 93 to
97 %, only the lower one where the rule promises "at least 95 %" or where single runs decide (counts of bursts or
of collapses jump, and no interval over a handful of them can be exact).  Exit status 1 if one is missed by
more than two standard errors.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from output_models import (
    Array,
    Delays,
    Output,
    autoregressive,
    collapsing,
    counts,
    crash_losses,
    delays,
    differences,
    mm1_waits,
    outages,
    outputs,
)
from scipy.special import gammaincinv

from vftsim.calibrate.intervals import fit_at
from vftsim.outcome.estimators import Percentile
from vftsim.stats import (
    Estimate,
    ReplicationResult,
    Sections,
    StoppingRule,
    binomial_interval,
    capacity_search,
    central_range,
    mean_interval,
    median_interval,
    percentile_interval,
    ratio_of_sums,
    sequential_binomial_interval,
    stratified_interval,
    t_interval,
    unless_mixed,
)
from vftsim.stats._special import student_t_quantile
from vftsim.stats.bernoulli_test import log_evidence_above, log_evidence_below
from vftsim.stats.histogram import BUCKET_ENDS_NS, RELATIVE_ERROR, DelayHistogram
from vftsim.stats.replications import replicate

PAGE = Path(__file__).parents[2] / "docs" / "interval-coverage.md"
BEGIN, END = "<!-- generated: interval_coverage.py -->", "<!-- end of generated part -->"
RUNS = (3, 5, 10, 30)
STUDIES, SEED = 4000, 1
LOWEST, HIGHEST, RARE, WRONG = 0.93, 0.97, 0.20, 0.05
MEASURED = (
    "mean_interval",
    "ratio_of_sums",
    "percentile_interval",
    "median_interval",
    "binomial_interval",
    "sequential_binomial_interval",
    "stratified_interval",
    "capacity_search",
    "central_range",
)
"""Rules of vftsim.stats that commands may print; the parameters of a fit are measured beside them."""


@dataclass(frozen=True)
class Cell:
    """One rule on one output with one number of replications.

    Parameters
    ----------
    rule, output : str
    n : str
        Replications.
    studies, printed, right : int
        Studies made, those that gave an interval, and of these those that held the truth.
    textbook : float
        Coverage of the rule that the textbook has for independent, normal, Poisson or fixed-size data.
    is_bound : bool
        Whether only the lower limit counts.
    nominal : float
    """

    rule: str
    output: str
    n: str
    studies: int
    printed: int
    right: int
    textbook: float
    is_bound: bool = False
    nominal: float = 0.95

    @property
    def coverage(self) -> float:
        """Share of the printed intervals that hold the truth."""
        return self.right / self.printed if self.printed else math.nan

    @property
    def error(self) -> float:
        """Standard error of the coverage."""
        return math.sqrt(self.nominal * (1.0 - self.nominal) / max(self.printed, 1))

    @property
    def verdict(self) -> str:
        """Whether the limits are kept."""
        if not self.printed:
            return "not printed"
        if self.printed < RARE * self.studies:
            wrong, error = (self.printed - self.right) / self.studies, math.sqrt(WRONG * 0.95 / self.studies)
            return "rarely printed" if wrong <= WRONG + 2.0 * error else "FAILS"
        shift = self.nominal - 0.95
        low = self.coverage >= LOWEST + shift - 2.0 * self.error
        high = self.is_bound or self.coverage <= HIGHEST + shift + 2.0 * self.error
        return ("at least" if self.is_bound else "holds") if low and high else "FAILS"


def judged(
    rule: str,
    output: str,
    n: int,
    found: Sequence[Estimate],
    truth: float,
    textbook: float,
    is_bound: bool = False,
) -> Cell:
    printed = [e for e in found if e.is_interval and e.half_width > 0.0]
    return Cell(rule, output, str(n), len(found), len(printed), _right(printed, truth), textbook, is_bound)


def _right(found: Sequence[Estimate], truth: float) -> int:
    return sum(e.low <= truth <= e.high for e in found)


def _students_t(values: Array, truth: float) -> float:
    n = values.shape[1]
    half = student_t_quantile(0.975, n - 1) * values.std(axis=1, ddof=1) / math.sqrt(n)
    return float((np.abs(values.mean(axis=1) - truth) <= half).mean())


def means(rng: np.random.Generator, studies: int) -> Iterator[Cell]:
    yield from _means(rng, (*outputs(rng), *differences(rng)), studies)


def crashes(rng: np.random.Generator, studies: int) -> Iterator[Cell]:
    for output in outages(rng):
        for n in (3, 5, 10, 20, 30):
            values = output.sample(rng, studies, n)
            found = [stratified_interval(row, jump=output.jump) for row in values.tolist()]
            textbook = _students_t(values, output.truth)
            yield judged("mean of crashes", output.name, n, found, output.truth, textbook, output.lumpy)


def rare_failures(rng: np.random.Generator, studies: int) -> Iterator[Cell]:
    """What befalls one run in ten or one crash in twenty.

    A step of which some runs collapsed has no interval, and where none did it is one of runs that go well; a mean of
    losses has one where five crashes lost something.  How often it happens is a share with its own interval.  Textbook
    is Student's t of all runs, held against the mean of all.
    """
    well = 0.1  # of a gamma distribution: the mean of runs that do not collapse
    for n in (10, 20, 30):
        values = collapsing(rng, studies, n, 0.1)
        mixed = [0 < fallen < n for fallen in (values > 5.0).sum(axis=1).tolist()]
        rows = zip(values.tolist(), mixed, strict=True)
        found = [unless_mixed(mean_interval(row), row, is_mixed) for row, is_mixed in rows]
        textbook = _students_t(values, 0.1 * 30.0 + 0.9 * well)
        yield judged("mean of one kind", "1 run in 10 collapses: of the others", n, found, well, textbook)
    for n in (10, 20, 60, 100):
        values, truth = crash_losses(rng, studies, n, 0.05), 0.05 * math.exp(3.125)
        found = [stratified_interval(row) for row in values.tolist()]
        textbook = _students_t(values, truth)
        yield judged("mean of crashes", "losses, 1 crash in 20 loses", n, found, truth, textbook, True)
    for share in (0.05, 0.1):
        for n in (10, 20):
            pairs = [binomial_interval(int(k), n) for k in rng.binomial(n, share, studies)]
            name = f"1 run or crash in {1 / share:g} goes wrong"
            yield judged("share that went wrong", name, n, pairs, share, math.nan, True)


def _means(rng: np.random.Generator, several: Iterable[Output], studies: int) -> Iterator[Cell]:
    for output in several:
        for n in RUNS:
            values = output.sample(rng, studies, n)
            found = [mean_interval(row) for row in values.tolist()]
            textbook = _students_t(values, output.truth)
            yield judged("mean", output.name, n, found, output.truth, textbook, output.lumpy)


def _played(values: Sequence[float], rule: StoppingRule) -> ReplicationResult:
    """Give a rule the replications that it asks for, until it is met or its budget is used up."""
    procedure = replicate(rule)
    numbers = next(procedure)
    while True:
        try:
            numbers = procedure.send([{"x": values[k]} for k in numbers])
        except StopIteration as end:
            return end.value


def until_precise(rng: np.random.Generator, studies: int) -> Iterator[Cell]:
    """``run --precision``: replications until the interval has been narrow enough for six looks."""
    rule = StoppingRule(("x",), relative_half_width=0.1)
    pools = (
        ("mean wait, M/M/1 at 0.8, 1,000 calls", mm1_waits(rng, 0.8, 20_000, 1000).mean(axis=1), 4.0),
        ("lognormal, s = 0.5", rng.lognormal(0.0, 0.5, 20_000), math.exp(0.125)),
        ("30 + mean of AR(1), r = 0.9", 30.0 + 20.0 * autoregressive(rng, 0.9, 20_000, 300).mean(axis=1), 30.0),
    )
    for name, pool, truth in pools:
        found, textbook = [], 0
        for _ in range(max(studies // 10, 10)):
            values = rng.choice(pool, rule.budget)
            ended = _played(values.tolist(), rule)
            found.append(ended.estimates["x"])
            textbook += _right([t_interval(values[: ended.n].tolist())], truth)
        cell = judged("mean after --precision 10", name, 0, found, truth, textbook / len(found))
        yield Cell(**{**cell.__dict__, "n": "10 to 200"})


def ratios(rng: np.random.Generator, studies: int) -> Iterator[Cell]:
    for output in counts():
        is_lumpy = not output.name.startswith("scenario")
        for n in RUNS:
            top, bottom = output.sample(rng, studies, n)
            found = [ratio_of_sums(a, b) for a, b in zip(top.tolist(), bottom.tolist(), strict=True)]
            textbook = _poisson(top, bottom, output.truth) if is_lumpy else math.nan
            yield judged("ratio", output.name, n, found, output.truth, textbook, is_lumpy)


def _poisson(top: Array, bottom: Array, truth: float) -> float:
    """Coverage of Garwood's interval, which takes events as independent."""
    right, cache = 0, {}
    for events, exposure in zip(top.sum(axis=1).round().tolist(), bottom.sum(axis=1).tolist(), strict=True):
        if events not in cache:
            low = gammaincinv(events, 0.025) if events else 0.0
            cache[events] = (low, gammaincinv(events + 1.0, 0.975 if events else 0.95))
        low, high = cache[events]
        right += low <= truth * exposure <= high
    return right / len(top)


def percentiles(rng: np.random.Generator, studies: int) -> Iterator[Cell]:
    for output in delays(rng):
        for percent in (50.0, 95.0, 99.0):
            for n in RUNS:
                yield _percentile(rng, output, percent, n, studies if n >= 10 else 20)


def _percentile(rng: np.random.Generator, output: Delays, percent: float, n: int, studies: int) -> Cell:
    """Delays are stored in the buckets of a histogram, which lie elsewhere in each study: its unit is another one."""
    runs, truth = output.runs, output.percentile(percent / 100.0)
    values = _rank(runs, percent)
    found, textbook = [], 0
    for chosen in rng.integers(0, len(runs), (studies, n)):
        rows, unit = runs[chosen], 1e7 * math.exp(rng.uniform(0.0, 1.0))
        pooled, body = float(_rank(rows.reshape(1, -1), percent)[0]), float(_rank(rows.reshape(1, -1), 90.0)[0])
        beyond, beyond_body = ((rows > limit).sum(axis=1).tolist() for limit in (pooled, body))
        by_run = stored(values[chosen], unit).tolist()
        of_all = min(max(float(stored(np.array(pooled), unit)), min(by_run)), max(by_run))
        found.append(percentile_interval(Sections(of_all, tuple(by_run), beyond, beyond_body)))
        textbook += _right([t_interval(values[chosen].tolist())], truth)
    # No percentile is given narrower than the histogram's 1 %, which may be much wider than its error.
    is_bound = bool(np.median([e.half_width / e.mean for e in found]) <= 2.0 * RELATIVE_ERROR)
    return judged(f"p{percent:g}", output.name, n, found, truth, textbook / studies, is_bound)


ENDS = np.array(BUCKET_ENDS_NS[:1200], dtype=float)


def stored(delays: Array, unit: float) -> Array:
    """Return delays as a histogram of ns has them: what stands for their bucket."""
    bucket = np.searchsorted(ENDS, delays * unit)
    return (ENDS[bucket - 1] + 1.0 + ENDS[bucket]) / 2.0 / unit


def percentile_differences(rng: np.random.Generator, studies: int) -> Iterator[Cell]:
    """Two systems under the same traffic, all delays of one longer by a factor, or under traffic of their own.

    Textbook is Student's t of the pairs' differences without a histogram.
    """
    for factor, is_paired in ((1.003, True), (1.05, True), (1.3, True), (1.05, False)):
        for n in (10, 30):
            found, textbook = [], 0
            for _ in range(max(studies // 4, 10)):
                unit = 1e7 * math.exp(rng.uniform(0.0, 1.0))
                one = rng.exponential(1.0, (n, 500))
                other = (one if is_paired else rng.exponential(1.0, (n, 500))) * factor
                first, second = ([_histogram(row) for row in rows * unit] for rows in (one, other))
                found.append(Percentile(50.0, unit).difference(first, second, 0.95))
                by_run = _rank(other, 50.0) - _rank(one, 50.0)
                textbook += _right([t_interval(by_run.tolist())], math.log(2.0) * (factor - 1.0))
            name = f"exponential, {'the same' if is_paired else 'others'} times {factor:g}"
            truth = math.log(2.0) * (factor - 1.0)
            yield judged("difference of p50", name, n, found, truth, textbook / len(found), True)


def _histogram(delays_ns: Array) -> DelayHistogram:
    histogram = DelayHistogram()
    for delay_ns in delays_ns.tolist():
        histogram.add(int(delay_ns))
    return histogram


def _rank(rows: Array, percent: float) -> Array:
    """Return the smallest value with at least ``percent`` % at or below it, row by row."""
    index = max(math.ceil(percent * rows.shape[1] / 100.0), 1) - 1
    return np.partition(rows, index, axis=1)[:, index]


def ramps(rng: np.random.Generator, studies: int) -> Iterator[Cell]:
    """DOCs come in steps; the ratio is that of two systems under the same traffic."""

    def doc(limit: Array) -> Array:
        asked = np.floor(limit / 10.0) * 10.0
        return np.maximum(np.floor(asked + rng.normal(0.0, 0.8, limit.shape)), 0.0)

    def pair(shape: tuple[int, int]) -> tuple[Array, Array]:
        common = rng.logistic(0.0, 3.0, shape)
        return doc(97.0 + common), doc(58.0 + 0.6 * common + rng.logistic(0.0, 1.0, shape))

    first, second = pair((200_000, 1))
    truths = {"DOC": float(np.median(first)), "ratio of DOCs": float(np.median(second / first))}
    for n in RUNS:
        one, other = pair((studies, n))
        for name, values in (("DOC", one), ("ratio of DOCs", other / one)):
            found = [median_interval(row) for row in values.tolist()]
            mean = float((first if name == "DOC" else second / first).mean())
            yield judged("middle ramp", f"{name}, steps of 10", n, found, truths[name], _students_t(values, mean), True)


def shares(rng: np.random.Generator, studies: int) -> Iterator[Cell]:
    for n in RUNS:
        for share in (0.05, 0.3, 0.5):
            found = [binomial_interval(int(k), n) for k in rng.binomial(n, share, studies)]
            yield judged("share of ramps", f"{100 * share:g} % of runs", n, found, share, math.nan, True)


def stopped_shares(rng: np.random.Generator, studies: int) -> Iterator[Cell]:
    """A load is left when its runs have decided whether 90 % of them pass; at most 120."""
    most, limit = 120, 0.9
    decided = np.zeros((most + 1, most + 1), dtype=bool)
    for n in range(1, most + 1):
        for passed in range(n + 1):
            evidence = (rule(passed, n - passed, limit) for rule in (log_evidence_above, log_evidence_below))
            decided[passed, n] = max(evidence) >= -math.log(0.025)
    lengths = np.arange(1, most + 1)
    for share in (0.02, 0.1, 0.2, 0.3, 0.5):
        passed = (rng.random((studies, most)) >= share).cumsum(axis=1)
        ends = decided[passed, lengths]
        last = np.where(ends.any(axis=1), ends.argmax(axis=1), most - 1)
        pairs = [(int(n - p), int(n)) for p, n in zip(passed[np.arange(studies), last], lengths[last], strict=True)]
        textbook = _right([binomial_interval(*pair) for pair in pairs], share) / studies
        found = [sequential_binomial_interval(*pair) for pair in pairs]
        cell = judged("share after a stop", f"{100 * share:g} % of runs fail", most, found, share, textbook, True)
        yield Cell(**{**cell.__dict__, "n": "up to 120"})


def searches(rng: np.random.Generator, studies: int) -> Iterator[Cell]:
    center, scale, probability = 70.0, 4.0, 0.9
    truth = center - scale * math.log(probability / (1.0 - probability))
    for name, budget in (("logistic curve", 5000), ("logistic curve, budget of 60", 60)):
        found = []
        for _ in range(max(studies // 20, 10)):
            limits = center + scale * rng.logistic(size=400)
            passes = lambda level, number, of=limits: bool(level < of[number])  # noqa: E731
            found.append(capacity_search(passes, 40.0, 100.0, 2.0, budget=budget).estimate)
        printed = [e for e in found if math.isfinite(e.low)]
        yield Cell("capacity search", name, "search", len(found), len(printed), _right(found, truth), math.nan, True)


def fits(rng: np.random.Generator, studies: int) -> Iterator[Cell]:
    """Parameters of a linear model by least squares: what is known without running the simulator."""
    for observations, parameters in ((12, 4), (28, 5)):
        names = [SimpleNamespace(path=f"p{k}") for k in range(parameters)]
        definition, low, span = SimpleNamespace(parameters=names, seed=1), np.zeros(parameters), np.ones(parameters)
        jacobian = 20.0 * rng.normal(size=(observations, parameters))  # of residuals whose error is 1
        right = total = plain = 0
        for _ in range(max(studies // 10, 10)):
            noise = rng.normal(0.0, 1.0, observations)
            x = 0.5 + np.linalg.pinv(jacobian) @ noise
            residual = jacobian @ (x - 0.5) - noise
            result = fit_at(
                definition,
                [(f"run_{n}", "cpu") for n in range(observations)],
                SimpleNamespace(x=x, fun=residual, jac=jacobian, cost=0.5 * float(residual @ residual), nfev=1),
                low,
                span,
            )
            right += sum(result.low[p.path] <= 0.5 <= result.high[p.path] for p in names)
            deviation = 1.96 * residual.std() * np.sqrt(np.diag(np.linalg.inv(jacobian.T @ jacobian)))
            plain += int((np.abs(x - 0.5) <= deviation).sum())
            total += parameters
        name = f"{observations} observations, {parameters} parameters"
        yield Cell("fitted parameter", name, "fit", total, total, right, plain / total)


def next_runs(rng: np.random.Generator, studies: int) -> Iterator[Cell]:
    for n in (20, 100):
        rows = rng.lognormal(0.0, 0.5, (studies, n + 1))
        ranges = [central_range(row[:n]) for row in rows.tolist()]
        right = sum(low <= row[n] <= high for row, (low, high) in zip(rows, ranges, strict=True))
        low, high = np.percentile(rows[:, :n], [5.0, 95.0], axis=1)
        textbook = float(((low <= rows[:, n]) & (rows[:, n] <= high)).mean())
        yield Cell(
            "central 90 % of runs", "the next run, lognormal", str(n), studies, studies, right, textbook, nominal=0.9
        )


TABLES: tuple[tuple[Callable[[np.random.Generator, int], Iterator[Cell]], float], ...] = (
    (means, 1.0),
    (ratios, 1.0),
    (percentiles, 0.15),
    (ramps, 1.0),
    (shares, 1.0),
    (stopped_shares, 1.0),
    (searches, 1.0),
    (fits, 1.0),
    (next_runs, 1.0),
    (crashes, 1.0),
    (until_precise, 1.0),
    (rare_failures, 1.0),
    (percentile_differences, 0.15),
)
"""Each with the share of the studies that it takes: percentiles need all delays of every run."""


def measure(studies: int = STUDIES, seed: int = SEED) -> list[Cell]:
    """Return all cells; equal seeds give equal tables."""
    return [
        cell
        for number, (table, share) in enumerate(TABLES)
        for cell in table(np.random.default_rng((seed, number)), max(int(studies * share), 20))
    ]


def markdown(cells: Sequence[Cell], studies: int) -> str:
    """Return the generated part of the page."""
    lines = [
        BEGIN,
        "",
        f"{studies:,} studies a row (p50 to p99: {int(0.15 * studies):,}; capacity searches: {studies // 20:,}, "
        f"--precision: {studies // 10:,}), seed {SEED}; "
        f"standard error of a coverage of 95 %: {100 * math.sqrt(0.0475 / studies):.2f} points "
        f"(percentiles {100 * math.sqrt(0.0475 / (0.15 * studies)):.1f}, searches "
        f"{100 * math.sqrt(0.0475 / (studies / 20)):.1f}).",
        "",
        "| interval | output | replications | printed % | covers % | textbook % | verdict |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {c.rule} | {c.output} | {c.n} | {100 * c.printed / c.studies:.0f} | {_percent(c.coverage)} "
        f"| {_percent(c.textbook)} | {c.verdict} |"
        for c in cells
    ]
    return "\n".join([*lines, "", END])


def _percent(share: float) -> str:
    return "" if math.isnan(share) else f"{100 * share:.1f}"


def write(table: str) -> None:
    """Put the table into the page, between its markers."""
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(text[: text.index(BEGIN)] + table + text[text.index(END) + len(END) :], encoding="utf-8")


def main() -> int:
    """Measure, print, and write on request."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", type=int, default=STUDIES, help="studies a row (default %(default)s)")
    parser.add_argument("--write", action="store_true", help=f"put the table into docs/{PAGE.name}")
    arguments = parser.parse_args()
    cells = measure(arguments.studies)
    table = markdown(cells, arguments.studies)
    print(table)
    if arguments.write:
        write(table)
    failed = [cell for cell in cells if cell.verdict == "FAILS"]
    for cell in failed:
        print(f"fails: {cell.rule}, {cell.output}, n={cell.n}: {_percent(cell.coverage)} %", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
