"""Judge what Timalsena 2013 says of iperf and httperf against what the models give.

Margins, and which statements are judged, are in the record's file; relations are those of
``calibration/networks/protocol.md``.  Comparisons are paired by replication.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from statistics import fmean

from vftsim.records.definition import Claims, Metric
from vftsim.records.judge import HOLDS, MISSED, NOISE, Row, lead_verdict
from vftsim.records.runner import read

Verdict = str
"""``no mechanism``: the model has the same figure on both sides by construction, and could not have failed or held."""
Results = Mapping[str, Mapping[str, Sequence[float]]]
"""Figures by run: ``tcp net-bare 3``."""

MOST_CLIENTS = 5
NO_MECHANISM, NOT_JUDGED, CONTRADICTED = "no mechanism", "not judged", "contradicted by the source itself"
_WORST_FIRST: tuple[Verdict, ...] = (MISSED, NO_MECHANISM, NOISE, HOLDS)


@cache
def claims() -> Claims:
    """Return what the words of the study mean."""
    claims_of_record = read("networks").spec.claims
    assert claims_of_record is not None
    return claims_of_record


def judge(rows: Sequence[Mapping[str, str]], results: Results, *, rivals: bool = False) -> list[Row]:
    """Judge all statements but those with a figure; ``rivals`` takes each platform's other network card."""
    judge_of = _Judge(results, claims().rivals if rivals else claims().models)
    return [judge_of.judge(row) for row in rows if row["claim_id"] not in claims().elsewhere]


def worst(verdicts: Sequence[Verdict]) -> Verdict:
    return min(verdicts, key=_WORST_FIRST.index)


@dataclass(frozen=True, slots=True)
class _Judge:
    """Results under a choice of models."""

    results: Results
    models: Mapping[str, str]

    def judge(self, row: Mapping[str, str]) -> Row:
        key, stated = row["claim_id"], _in_words(row)
        if key in claims().not_judged:
            return Row(key, stated, "", NOT_JUDGED)
        platforms = list(self.models) if row["platform"] == "all" else row["platform"].split(";")
        # Throughput is that of each protocol.
        metrics = [row["metric"]] if row["metric"] in claims().metrics else row["protocol"].split(";")
        parts = [self._judge_one(row, each, claims().metrics[name]) for each in platforms for name in metrics]
        verdict = CONTRADICTED if key in claims().contradicted else worst([v for _, v in parts])
        return Row(key, stated, "; ".join(text for text, _ in parts), verdict)

    def values(self, platform: str, metric: Metric, clients: int) -> Sequence[float]:
        return self.results[f"{metric.test} {self.models[platform]} {clients}"][metric.figure]

    def _judge_one(self, row: Mapping[str, str], platform: str, metric: Metric) -> tuple[str, Verdict]:
        relation, counts = row["relation"], _counts(row["clients"])
        series = {n: self.values(platform, metric, n) for n in range(1, MOST_CLIENTS + 1)}
        if relation in {*_TRENDS, *_ALONE} and not row["compared_to"]:
            if relation in _TRENDS:
                verdict = trend(metric, series, counts, rises=_TRENDS[relation])
            else:
                verdict = HOLDS if _ALONE[relation](metric, series, counts) else MISSED
            return f"{platform}: {_listed([series[n] for n in counts])}", verdict
        if not row["compared_to"]:
            counts_beside = [n for n in series if n not in counts]
            pairs = [(series[n], series[m]) for n in counts for m in counts_beside]
            return f"{platform}: {_listed(list(series.values()))}", _compare_all(relation, metric, pairs)
        pairs = []
        for n in counts:
            pairs += [(series[n], other) for other in self._others(row, platform, metric, n)]
        against = [f"{fmean(a):.4g}/{fmean(b):.4g}" for a, b in pairs]
        return f"{platform}: {' '.join(against)}", _compare_all(relation, metric, pairs)

    def _others(self, row: Mapping[str, str], platform: str, metric: Metric, clients: int) -> list[Sequence[float]]:
        values = []
        for other in row["compared_to"].split(";"):
            if other in ("tcp", "udp"):
                values.append(self.values(platform, claims().metrics[other], clients))
            elif other[0].isdigit():
                values.append(self.values(platform, metric, int(other[0])))
            else:
                values.append(self.values(other, metric, clients))
        return values


def _counts(clients: str) -> list[int]:
    low, _, high = (clients or f"1-{MOST_CLIENTS}").partition("-")
    return list(range(int(low), int(high or low) + 1))


def _compare_all(relation: str, metric: Metric, pairs: Sequence[tuple[Sequence[float], Sequence[float]]]) -> Verdict:
    return worst([compare(relation, metric, a, b) for a, b in pairs])


def compare(relation: str, metric: Metric, mine: Sequence[float], other: Sequence[float]) -> Verdict:
    """Judge one comparison of two figures, paired by replication."""
    difference = [x - y for x, y in zip(mine, other, strict=True)]
    if not any(difference):
        return NO_MECHANISM
    if relation in ("nearly_equal_to", "equal_to", "no_change_vs"):
        return HOLDS if abs(fmean(difference)) <= _limit(metric, metric.alike, other) else MISSED
    if relation == "negligible":
        return HOLDS if fmean(mine) < fmean(other) / 5.0 else MISSED
    is_less = relation in ("lower_than", "much_lower_than", "slightly_lower_than", "lowest")
    lead = [-x for x in difference] if is_less else difference
    size, margin = fmean(lead), _limit(metric, metric.margin, other)
    verdict = lead_verdict(lead, beyond=margin, against=margin)
    slightly = math.inf if metric.slightly is None else metric.slightly
    if verdict == HOLDS and "slightly" in relation and size > _limit(metric, slightly, other):
        return MISSED
    if verdict == HOLDS and "much" in relation and size < 0.5 * min(abs(fmean(mine)), abs(fmean(other))):
        return MISSED
    return verdict


def _limit(metric: Metric, size: float, other: Sequence[float]) -> float:
    """Return a margin in the metric's unit."""
    return size * abs(fmean(other)) if metric.is_relative else size


Series = Mapping[int, Sequence[float]]


def trend(metric: Metric, series: Series, counts: Sequence[int], *, rises: bool) -> Verdict:
    """Judge a rise or fall with clients: from the first to the last, and no step against it."""
    relation, against = ("higher_than", "lower_than") if rises else ("lower_than", "higher_than")
    whole = compare(relation, metric, series[counts[-1]], series[counts[0]])
    steps = pairwise(counts)
    return MISSED if any(compare(against, metric, series[b], series[a]) == HOLDS for a, b in steps) else whole


def _shared(metric: Metric, series: Series, counts: Sequence[int]) -> bool:
    """Whether clients together have what one has alone."""
    alone = fmean(series[1])
    sums = [(n, n * fmean(series[n])) for n in counts]
    limits = [0.1 * alone if metric.is_relative else n * metric.margin for n, _ in sums]
    return all(abs(x - alone) <= limit for (_, x), limit in zip(sums, limits, strict=True))


_TRENDS = {"increases_with_clients": True, "decreases_with_clients": False}
"""Whether a figure rises."""
_ALONE: dict[str, Callable[[Metric, Series, Sequence[int]], bool]] = {
    "negligible": lambda metric, series, counts: all(fmean(series[n]) < metric.little for n in counts),
    "slight": lambda metric, series, counts: all(fmean(series[n]) < metric.little for n in counts),
    "zero": lambda _, series, counts: all(max(series[n]) == 0.0 for n in counts),
    "shared_among_clients": _shared,
    "up_to": lambda _, series, counts: any(60.0 <= fmean(series[n]) <= 90.0 for n in counts),
}


def _in_words(row: Mapping[str, str]) -> str:
    clients = f", {row['clients']} clients" if row["clients"] else ""
    value = f" {row['value']} {row['unit']}" if row["value"] else ""
    than = f" {row['compared_to']}" if row["compared_to"] else ""
    subject = " ".join(part for part in (row["platform"], row["protocol"], row["metric"]) if part)
    return f"{subject}{clients}: {row['relation']}{value}{than}".replace("_", " ")


def _listed(series: Sequence[Sequence[float]]) -> str:
    return " ".join(f"{fmean(values):.4g}" for values in series)
