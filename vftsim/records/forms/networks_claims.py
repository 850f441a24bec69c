"""Judge what Timalsena 2013 says of iperf and httperf against what the models give.

Relations and margins are those of ``calibration/networks/protocol.md``.  Comparisons are paired by replication.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from vftsim.records.judge import Row, lead_verdict

Verdict = str
"""``no mechanism``: the model has the same figure on both sides by construction, and could not have failed or held."""
Results = Mapping[str, Mapping[str, Sequence[float]]]
"""Figures by run: ``tcp net-bare 3``."""

MODELS = {"bare_metal": "net-bare", "kvm": "net-kvm", "vmware": "net-esxi-emulated"}
"""Which model a statement about a platform is judged by."""
BESIDE = {"bare_metal": "net-bare", "kvm": "net-kvm-emulated", "vmware": "net-esxi"}
"""The other network card of each platform."""
MOST_CLIENTS = 5

CONTRADICTED = {"C03", "C10", "C49", "C57", "C59", "C75", "C76"}
"""Statements that others of the same source, or its tables, contradict."""
NUMBERS = {"C17", "C18", "C19", "C20", "C21", "C22", "C23"}
"""Statements with a figure, judged as such in the record's file."""
NOT_JUDGED = {"C26", "C27", "C70", "C71", "C81", "C82"}
"""An option, a count without a margin, an anomalous run without a platform, literature."""
_WORST_FIRST: tuple[Verdict, ...] = ("missed", "no mechanism", "within noise", "holds")


@dataclass(frozen=True, slots=True)
class Metric:
    """A measured quantity: where it is, and the margins of differences (of a share of the value, where relative).

    ``slightly`` is the most that a slight difference may be, ``alike`` what counts as equal, ``little`` as negligible.
    """

    test: str
    figure: str
    margin: float
    slightly: float
    alike: float
    little: float = 0.0
    is_relative: bool = False
    is_shared: bool = False

    def limit(self, size: float, value: float) -> float:
        """Return a margin in the metric's own unit."""
        return size * abs(value) if self.is_relative else size


_TCP = Metric("tcp", "mbit_per_s", 0.01, 0.25, 0.05, is_relative=True, is_shared=True)
_UDP = Metric("udp", "sent_mbit_per_s", 0.01, 0.25, 0.05, is_relative=True, is_shared=True)
_LOSS = Metric("udp", "loss_percent", 0.1, 5.0, 1.0, 1.0)
_JITTER = Metric("udp", "jitter_us", 1.0, math.inf, 5.0, 100.0)
_MOST = Metric("web", "rate_per_s", 1.0, 2.0, 1.0, is_shared=True)
_METRICS: dict[str, Metric] = {
    "datagram_loss": _LOSS,
    "jitter": _JITTER,
    "max_request_rate": _MOST,
    "request_rate_before_saturation": _MOST,
    "reply_capacity_extra_load": _MOST,
    "web_server_performance": _MOST,
    "reply_rate": Metric("web", "reply_rate_per_s", 1.0, 2.0, 1.0),
    "error_extra_load": Metric("web", "errors", 1.0, 2.0, 1.0),
    "error_low_load": Metric("web", "low_errors", 1.0, 2.0, 1.0),
    "error_onset_rate": Metric("web", "onset_per_s", 1.0, 2.0, 1.0),
}


def judge(claims: Sequence[Mapping[str, str]], results: Results, *, beside: bool = False) -> list[Row]:
    """Judge all statements but those with a figure; ``beside`` takes each platform's other network card."""
    found = _Found(results, BESIDE if beside else MODELS)
    return [found.judge(row) for row in claims if row["claim_id"] not in NUMBERS]


def worst(verdicts: Sequence[Verdict]) -> Verdict:
    """Return the worst of several."""
    return min(verdicts, key=_WORST_FIRST.index)


@dataclass(frozen=True, slots=True)
class _Found:
    """Results under a choice of models."""

    results: Results
    models: Mapping[str, str]

    def judge(self, row: Mapping[str, str]) -> Row:
        key, stated = row["claim_id"], _in_words(row)
        if key in NOT_JUDGED:
            return Row(key, stated, "", "not judged")
        parts = [self._judge_one(row, p, m) for p in self._platforms(row["platform"]) for m in _metrics(row)]
        verdict: Verdict = "contradicted by the source itself" if key in CONTRADICTED else worst([v for _, v in parts])
        return Row(key, stated, "; ".join(text for text, _ in parts), verdict)

    def _platforms(self, name: str) -> list[str]:
        return list(self.models) if name == "all" else name.split(";")

    def values(self, platform: str, metric: Metric, clients: int) -> Sequence[float]:
        """Return a figure's values by replication."""
        return self.results[f"{metric.test} {self.models[platform]} {clients}"][metric.figure]

    def _judge_one(self, row: Mapping[str, str], platform: str, metric: Metric) -> tuple[str, Verdict]:
        relation, counts = row["relation"], _counts(row["clients"])
        series = {n: self.values(platform, metric, n) for n in range(1, MOST_CLIENTS + 1)}
        alone = _ALONE.get(relation)
        if alone is not None and not row["compared_to"]:
            return f"{platform}: {_listed([series[n] for n in counts])}", alone(metric, series, counts)
        if not row["compared_to"]:
            counts_beside = [n for n in series if n not in counts]
            pairs = [(series[n], series[m]) for n in counts for m in counts_beside]
            return f"{platform}: {_listed(list(series.values()))}", _compare_all(relation, metric, pairs)
        pairs = []
        for n in counts:
            pairs += [(series[n], other) for other in self._others(row, platform, metric, n)]
        against = [f"{_mean(a):.4g}/{_mean(b):.4g}" for a, b in pairs]
        return f"{platform}: {' '.join(against)}", _compare_all(relation, metric, pairs)

    def _others(self, row: Mapping[str, str], platform: str, metric: Metric, clients: int) -> list[Sequence[float]]:
        found = []
        for other in row["compared_to"].split(";"):
            if other in ("tcp", "udp"):
                found.append(self.values(platform, _TCP if other == "tcp" else _UDP, clients))
            elif other[0].isdigit():
                found.append(self.values(platform, metric, int(other[0])))
            else:
                found.append(self.values(other, metric, clients))
        return found


def _metrics(row: Mapping[str, str]) -> list[Metric]:
    if row["metric"] in _METRICS:
        return [_METRICS[row["metric"]]]
    return [_TCP if protocol == "tcp" else _UDP for protocol in row["protocol"].split(";")]


def _counts(clients: str) -> list[int]:
    low, _, high = (clients or f"1-{MOST_CLIENTS}").partition("-")
    return list(range(int(low), int(high or low) + 1))


def _compare_all(relation: str, metric: Metric, pairs: Sequence[tuple[Sequence[float], Sequence[float]]]) -> Verdict:
    return worst([compare(relation, metric, a, b) for a, b in pairs])


def compare(relation: str, metric: Metric, mine: Sequence[float], other: Sequence[float]) -> Verdict:
    """Judge one comparison of two figures, paired by replication."""
    difference = [x - y for x, y in zip(mine, other, strict=True)]
    if not any(difference):
        return "no mechanism"
    if relation in ("nearly_equal_to", "equal_to", "no_change_vs"):
        return "holds" if abs(_mean(difference)) <= metric.limit(metric.alike, _mean(other)) else "missed"
    if relation == "negligible":
        return "holds" if _mean(mine) < _mean(other) / 5.0 else "missed"
    is_less = relation in ("lower_than", "much_lower_than", "slightly_lower_than", "lowest")
    lead = [-x for x in difference] if is_less else difference
    size, margin = _mean(lead), metric.limit(metric.margin, _mean(other))
    verdict = lead_verdict(lead, beyond=margin, against=margin)
    if verdict == "holds" and "slightly" in relation and size > metric.limit(metric.slightly, _mean(other)):
        return "missed"
    if verdict == "holds" and "much" in relation and size < 0.5 * min(abs(_mean(mine)), abs(_mean(other))):
        return "missed"
    return verdict


Series = Mapping[int, Sequence[float]]


def trend(metric: Metric, series: Series, counts: Sequence[int], *, rises: bool) -> Verdict:
    """Judge a rise or fall with clients: from the first to the last, and no step against it."""
    relation, against = ("higher_than", "lower_than") if rises else ("lower_than", "higher_than")
    whole = compare(relation, metric, series[counts[-1]], series[counts[0]])
    steps = pairwise(counts)
    return "missed" if any(compare(against, metric, series[b], series[a]) == "holds" for a, b in steps) else whole


def _little(metric: Metric, series: Series, counts: Sequence[int]) -> Verdict:
    return "holds" if all(_mean(series[n]) < metric.little for n in counts) else "missed"


def _zero(metric: Metric, series: Series, counts: Sequence[int]) -> Verdict:
    return "holds" if all(max(series[n]) == 0.0 for n in counts) else "missed"


def _shared(metric: Metric, series: Series, counts: Sequence[int]) -> Verdict:
    """Whether clients together have what one has alone."""
    alone = _mean(series[1])
    sums = [(n, n * _mean(series[n])) for n in counts]
    limits = [0.1 * alone if metric.is_relative else n * metric.margin for n, _ in sums]
    return "holds" if all(abs(x - alone) <= limit for (_, x), limit in zip(sums, limits, strict=True)) else "missed"


def _up_to(metric: Metric, series: Series, counts: Sequence[int]) -> Verdict:
    return "holds" if any(60.0 <= _mean(series[n]) <= 90.0 for n in counts) else "missed"


_ALONE: dict[str, Callable[[Metric, Series, Sequence[int]], Verdict]] = {
    "increases_with_clients": partial(trend, rises=True),
    "decreases_with_clients": partial(trend, rises=False),
    "negligible": _little,
    "slight": _little,
    "zero": _zero,
    "shared_among_clients": _shared,
    "up_to": _up_to,
}


def _in_words(row: Mapping[str, str]) -> str:
    clients = f", {row['clients']} clients" if row["clients"] else ""
    value = f" {row['value']} {row['unit']}" if row["value"] else ""
    than = f" {row['compared_to']}" if row["compared_to"] else ""
    what = " ".join(part for part in (row["platform"], row["protocol"], row["metric"]) if part)
    return f"{what}{clients}: {row['relation']}{value}{than}".replace("_", " ")


def _listed(series: Sequence[Sequence[float]]) -> str:
    return " ".join(f"{_mean(values):.4g}" for values in series)


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
