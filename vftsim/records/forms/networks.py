"""Timalsena 2013, iperf and httperf on bare metal, KVM and ESXi: tests that play runs themselves, and closed forms.

What is judged, and what was fitted, is in ``calibration/networks/protocol.md``.
"""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise
from statistics import fmean, median
from typing import Any

from vftsim.composition.model import ModelSpec
from vftsim.composition.record import RunRecord
from vftsim.composition.run import run_model
from vftsim.records.forms import networks_claims as claims
from vftsim.records.forms.networks_claims import Results
from vftsim.records.judge import in_counts
from vftsim.records.runner import cell, rows_of
from vftsim.spec import load, shipped_dir

TIMEOUT_S, TEST_S = 5.0, 20.0
PRINTED = (
    "requests",
    "test_duration",
    "concurrent_connections_max",
    "connection_time_min",
    "connection_time_mean",
    "connection_time_median",
    "connection_time_sd",
    "connection_time_max",
    "connection_time_connect",
    "reply_time_response",
    "reply_time_transfer",
)
"""Figures of httperf's printed example that nothing is fitted on."""
TELLING = ("connection_time_sd", "connection_time_connect", "reply_time_transfer")
"""Figures on which a wrong model should be twice as far off."""
_FIRST_5_S = 25.0
_ANSWERED, _GIVEN_UP = 0.9, 0.5
_MEDIAN_LIMIT, _WORST_LIMIT = 0.12, 0.45
_FOLDER = shipped_dir("calibration") / "networks"


# Stated


def printed(example: str, quantity: str) -> float:
    """Return a figure of a printed example: of ``iperf_udp_example``, ``httperf_example``."""
    if quantity == "first_5_s":
        return _FIRST_5_S
    return cell(_FOLDER, "examples", "value", example=example, quantity=quantity)


def first_row(clients: int) -> float:
    """Return table 3.1's first sample, Mbit/s of each of so many clients."""
    row = {"quantity": "bandwidth", "sample": "1", "active_clients": str(clients)}
    return cell(_FOLDER, "tables", "bandwidth_mbit_per_s", **row)


def fitted_ms(model: str) -> float:
    """Return the script's cost in the KVM guest by model of the web server."""
    return float(json.loads((_FOLDER / "fit.json").read_text(encoding="utf-8"))[model]["best"]["script_ms"])


# Figures of runs


def udp_figures(record: RunRecord) -> dict[str, float]:
    """Return sent and received by a client in Mbit/s, jitter (mean abs D) in us, loss in percent: means over clients.

    A flow of which nothing came has lost everything.
    """
    flows = record.of("workloads.udp")
    lost = [100.0 * flows.lost[n] / flows.datagrams[n] if came else 100.0 for n, came in flows.received.items()]
    return {
        "sent_mbit_per_s": fmean(flows.sent.values()),
        "received_mbit_per_s": fmean(flows.received.values()),
        "jitter_us": 1e3 * fmean(flows.difference.values()),
        "loss_percent": fmean(lost),
    }


def web(
    model: str, clients: int, rate: float, budget: Mapping[str, float], changes: Sequence[str] = ()
) -> list[list[Any]]:
    """Run httperf on each client at a rate for 20 s; return what each counted, by replication."""
    tests = ", ".join(
        f"web{n}: {{kind: httperf, to: server.web, rate: {rate:g} /s, connections: {round(rate * TEST_S)}, "
        f"timeout: {TIMEOUT_S:g} s}}"
        for n in range(1, clients + 1)
    )
    others = [f"workloads.{other}=null" for other in ("tcp", "udp")]
    spec = load(model, ModelSpec, [*others, f"workloads={{{tests}}}", *changes])
    runs = (run_model(spec, int(budget["seed"]), each) for each in range(int(budget["replications"])))
    return [[run.of(f"workloads.web{n}") for n in range(1, clients + 1)] for run in runs]


def sweep(model: str, clients: int, budget: Mapping[str, float]) -> dict[str, list[float]]:
    """Raise the rate of each client by 1/s until most connections fail.

    Returns the highest whole rate with 90 % answered (``rate_per_s``), the lowest with any error (``onset_per_s``), the
    replies a second of a client at the former, and its errors at the next rate and at 1/s.
    """
    runs_at: dict[int, list[list[Any]]] = {1: web(model, clients, 1, budget)}
    rate = max(1, int(0.7 * capacity_per_s(model) / clients))
    while True:
        runs_at[rate] = web(model, clients, rate, budget)
        if max(_answered(each) for each in runs_at[rate]) < _GIVEN_UP:
            break
        rate += 1
    replications = range(int(budget["replications"]))
    columns = [_swept({r: each[n] for r, each in runs_at.items()}) for n in replications]
    return {name: [column[name] for column in columns] for name in columns[0]}


def _swept(runs_at: Mapping[int, Sequence[Any]]) -> dict[str, float]:
    best = max((rate for rate, each in runs_at.items() if _answered(each) >= _ANSWERED), default=0)
    failing = [rate for rate, each in runs_at.items() if any(_errors(run) for run in each)]
    after = min((rate for rate in runs_at if rate > best), default=best)
    return {
        "rate_per_s": float(best),
        "onset_per_s": float(min(failing, default=max(runs_at))),
        "reply_rate_per_s": best * _answered(runs_at[best]) if best else 0.0,
        "errors": fmean([_errors(run) for run in runs_at[after]]),
        "low_errors": fmean([_errors(run) for run in runs_at[1]]),
    }


def _answered(tests: Sequence[Any]) -> float:
    return float(sum(each.replies for each in tests) / max(1, sum(each.connections for each in tests)))


def _errors(test: Any) -> float:
    return float(test.timeouts + test.resets)


# Closed forms


@cache
def capacity_per_s(model: str) -> float:
    """Return how many scripts a second the processors of a model carry."""
    server = load(model, ModelSpec).domains["server"]
    script: Any = server.applications["web"]
    return float(server.vcpus / (script.script * server.cpu_inflation * 1e-9))


def collapse_per_s(model: str, clients: int = 1) -> float:
    """Return the rate of each client above which a test fails: (cores / cost)(1 + time-out / length) / clients."""
    return capacity_per_s(model) * (1.0 + TIMEOUT_S / TEST_S) / clients


def moderation_jitter_ns(spacing_ns: float, period_ns: float = 125_000.0, read_ns: float = 2_000.0) -> float:
    """Return the jitter of a flow that interrupts of a period announce: 2 (s - g) (1 - s / t) for g < s < t."""
    return 2.0 * (spacing_ns - read_ns) * (1.0 - spacing_ns / period_ns)


def line_mbit_per_s(model: ModelSpec) -> float:
    """Return the payload that a gigabit line of full segments carries."""
    flow: Any = model.workloads["tcp"]
    return float(1e3 * flow.mss / (flow.mss + flow.header_bytes))


# Rows


def rise(values: Sequence[float], margin: float) -> str:
    """Judge whether each step is up by the margin; a smaller step either way is noise."""
    least = min(later - earlier for earlier, later in pairwise(values))
    return "holds" if least >= margin else "within noise" if least > -margin else "missed"


def spaced(values: Sequence[float]) -> str:
    return " ".join(f"{value:.4g}" for value in values)


def statement_rows(results: Results) -> list[tuple[str, ...]]:
    """Return every statement with its verdict, and that of the null model."""
    pairs = zip(claims.judge(_claims(), results), claims.judge(_claims(), _shared_evenly()), strict=True)
    return [(judged.key, judged.stated, judged.found, judged.verdict, null.verdict) for judged, null in pairs]


def tally(results: Results, which: str) -> str:
    """Return how many statements have which verdict under the ``model``, ``null``, or the ``other cards``."""
    judged_results = _shared_evenly() if which == "null" else results
    return in_counts(claims.judge(_claims(), judged_results, rivals=which == "other cards"))


def cannot_tell(results: Results) -> str:
    """Return which share of the statements the null model holds too, or has the same figure on both sides."""
    rows = statement_rows(results)
    counted = [row for row in rows if row[3] not in {claims.CONTRADICTED, claims.NOT_JUDGED}]
    shared = sum(row[3] == row[4] == "holds" for row in rows)
    without = sum(row[3] == claims.NO_MECHANISM for row in counted)
    share = f"{shared + without} of {len(counted)} statements ({(shared + without) / len(counted):.0%})"
    return (
        f"{share}: {shared} hold in the null model as well, in {without} both sides are the same by construction (no "
        "mechanism: not held)"
    )


def example_rows(results: Results) -> list[tuple[str, ...]]:
    """Return httperf's printed example beside every model of the web server, the right one first."""
    models = [name for name in results if name.startswith("example ")]
    values = {key: [fmean(results[name][key]) for name in models] for key in ("replies", "first_5_s", *PRINTED)}
    off = {key: [v / printed("httperf_example", key) - 1.0 for v in each] for key, each in values.items()}
    medians = [median(abs(off[key][n]) for key in PRINTED) for n in range(len(models))]
    worst = [max(PRINTED, key=lambda key, n=n: abs(off[key][n])) for n in range(len(models))]  # type: ignore[misc]
    verdicts = [
        m <= _MEDIAN_LIMIT and abs(off[w][n]) <= _WORST_LIMIT
        for n, (m, w) in enumerate(zip(medians, worst, strict=True))
    ]
    far = [sum(abs(off[key][n]) >= 2.0 * abs(off[key][0]) for key in TELLING) for n in range(1, len(models))]
    return [
        *(
            (
                key.replace("_", " "),
                f"{printed('httperf_example', key):g}",
                *(f"{v:.4g} ({e:+.0%})" for v, e in zip(values[key], off[key], strict=True)),
            )
            for key in values
        ),
        ("median error", "12 %", *(f"{each:.1%}" for each in medians)),
        ("worst", "45 %", *(f"{w} {off[w][n]:+.0%}".replace("_", " ") for n, w in enumerate(worst))),
        ("verdict", "", *("holds" if each else "missed" for each in verdicts)),
        (f"twice as far off, of {len(TELLING)}", "", "", *map(str, far)),
    ]


def _claims() -> Sequence[Mapping[str, str]]:
    return rows_of(_FOLDER / "claims.csv")


def _shared_evenly() -> Results:
    """Return what a null model gives: one resource shared evenly by the clients, every platform alike, no loss."""
    jitter_us = 1e3 * printed("iperf_udp_example", "jitter")
    results: dict[str, dict[str, list[float]]] = {}
    for model in dict.fromkeys([*claims.claims().models.values(), *claims.claims().rivals.values()]):
        for n in range(1, claims.MOST_CLIENTS + 1):
            share, most = first_row(1) / n, collapse_per_s("net-bare", 1) / n
            rates = dict.fromkeys(("rate_per_s", "reply_rate_per_s", "onset_per_s"), most)
            tests = {
                "tcp": {"mbit_per_s": share},
                "udp": {"sent_mbit_per_s": share, "jitter_us": jitter_us, "loss_percent": 0.0},
                "web": {**rates, "errors": 0.0, "low_errors": 0.0},
            }
            for test, figures in tests.items():
                results[f"{test} {model} {n}"] = {name: [value, value] for name, value in figures.items()}
    return results
