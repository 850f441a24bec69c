"""The runs behind the record of Timalsena 2013: iperf and httperf on bare metal, KVM and ESXi.

Every test is a shipped model with the other workloads taken out.  Figures are lists, a value for each replication.
What is judged, and what was fitted, is in ``calibration/networks/protocol.md``.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from vftsim.composition.model import ModelSpec
from vftsim.composition.run import Run
from vftsim.labs.imports.httperf import HttperfReport
from vftsim.platform.io.packet import flows
from vftsim.spec import load, shipped_dir
from vftsim.workloads.bulk_udp import UdpFlowResult, bulk_udp_result
from vftsim.workloads.web_server import collapse_rate_per_s, httperf_report

MODELS = {"bare_metal": "net-bare", "kvm": "net-kvm", "vmware": "net-esxi-emulated"}
"""Which model a statement about a platform is judged by."""
BESIDE = {"bare_metal": "net-bare", "kvm": "net-kvm-emulated", "vmware": "net-esxi"}
"""The other network card of each platform."""
MOST_CLIENTS = 5
TESTS = ("tcp", "udp", "web")
RIGHT = "as documented"
WRONG = {
    "150 processes at once": ("start_servers=150",),
    "fixed pool of 5": ("max_clients=5",),
    "accept queue of 511": ("accept_queue=511",),
}
"""Wrong models of the web server, as changes to its application."""

TIMEOUT_S, TEST_S = 5.0, 20.0
SLOW_READER_NS = 13_000
DATAGRAM_LINE_NS = 12_288
"""A datagram of 1470 bytes on a gigabit line, 1536 bytes with all that goes with it."""
_STATIC_RATE, _STATIC_SCRIPT = 800, "0.2 ms"
_ANSWERED = 0.9
_GIVEN_UP = 0.5
_US = 1e-3
_MBIT = 1e-6

Figures = dict[str, list[float]]
"""Values of each replication by name."""
Reports = list[HttperfReport]
"""One of each client."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Seed, replications, and how long iperf sends."""

    seed: int
    replications: int
    seconds: float


RECORD = Budget(303, 2, 0.2)
QUICK = Budget(303, 1, 0.05)


def stated(name: str) -> list[dict[str, str]]:
    """Return the rows of a table of the dataset: ``tables``, ``claims``, ``examples``, ``platform``."""
    with (shipped_dir("calibration") / "networks" / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def example_figures(example: str) -> dict[str, float]:
    """Return the figures of a printed example: ``iperf_tcp_example``, ``iperf_udp_example``, ``httperf_example``."""
    return {row["quantity"]: float(row["value"]) for row in stated("examples") if row["example"] == example}


def first_rows() -> dict[int, float]:
    """Return table 3.1's first sample, Mbit/s of each client by number of clients."""
    return {
        int(row["active_clients"]): float(row["bandwidth_mbit_per_s"])
        for row in stated("tables") if row["quantity"] == "bandwidth" and row["sample"] == "1"
    }  # fmt: skip


def fitted_costs() -> dict[str, float]:
    """Return the script's cost in the KVM guest in ms, by model of the web server."""
    fit = json.loads((shipped_dir("calibration") / "networks" / "fit.json").read_text(encoding="utf-8"))
    return {name: float(entry["script_ms"]) for name, entry in fit["models"].items()}


def system(model: str, test: str, assignments: Iterable[str] = ()) -> ModelSpec:
    """Return a shipped model with one of its tests."""
    others = [f"workloads.{other}=null" for other in TESTS if other != test]
    return load(model, ModelSpec, [*others, *assignments])


def tcp(model: str, clients: int, budget: Budget) -> Figures:
    """Bandwidth of a client, mean over the clients, Mbit/s."""
    spec = system(model, "tcp", [*_for("tcp", clients, budget), f"workloads.tcp.interval={_ms(budget)}"])
    found = _replicate(spec, budget, lambda run: run.run().of("workloads.tcp"))
    return {"mbit_per_s": [sum(each.throughput.values()) / clients for each in found]}


def udp(model: str, clients: int, budget: Budget, changes: Sequence[str] = ()) -> Figures:
    """Sent and received by a client in Mbit/s, jitter (mean abs D) in us, loss in percent; means over the clients."""
    spec = system(model, "udp", [*_for("udp", clients, budget), *changes])
    found = _replicate(spec, budget, _flows)
    return {
        "sent_mbit_per_s": [_mean(flow.sent_bits_per_s * _MBIT for flow in each) for each in found],
        "received_mbit_per_s": [_mean(flow.received_bits_per_s * _MBIT for flow in each) for each in found],
        "jitter_us": [_mean(flow.mean_difference_ns * _US for flow in each) for each in found],
        "loss_percent": [_mean(100.0 * _lost(flow) for flow in each) for each in found],
    }


def slow_reader(buffers: str, clients: int, budget: Budget) -> Figures:
    """Do as :func:`udp` does on bare metal, with a reader slower than the line; buffers are ``own`` or ``shared``."""
    own = "domains.server.applications.udp"
    changes = [f"{own}.read_cost={SLOW_READER_NS} ns", f"{own}.shared_buffer={str(buffers == 'shared').lower()}"]
    return udp("net-bare", clients, budget, changes)


def udp_example(budget: Budget) -> Figures:
    """Return what iperf's printed UDP example would give: 900 Mbit/s asked for."""
    return udp("net-bare", 1, budget, ["workloads.udp.rate=900 Mbit/s"])


def web(model: str, clients: int, rate: float, budget: Budget, changes: Sequence[str] = ()) -> list[Reports]:
    """Run httperf on each client at a rate for 20 s; return their reports by replication."""
    tests = ", ".join(
        f"web{n}: {{kind: httperf, to: server.web, rate: {rate:g} /s, connections: {round(rate * TEST_S)}, "
        f"timeout: {TIMEOUT_S:g} s}}"
        for n in range(1, clients + 1)
    )
    return _replicate(system(model, "web", [f"workloads={{{tests}}}", *changes]), budget, _reports)


def sweep(model: str, clients: int, budget: Budget) -> Figures:
    """Raise the rate of each client by 1/s until most connections fail.

    Returns the highest whole rate with 90 % answered (``rate_per_s``), the lowest with any error (``onset_per_s``), the
    replies a second of a client at the former, and its errors at the next rate and at 1/s.
    """
    found: dict[int, list[Reports]] = {1: web(model, clients, 1, budget)}
    rate = max(1, int(0.7 * capacity_per_s(model) / clients))
    while True:
        found[rate] = web(model, clients, rate, budget)
        if max(_answered(each) for each in found[rate]) < _GIVEN_UP:
            break
        rate += 1
    columns = [_swept({r: each[n] for r, each in found.items()}) for n in range(budget.replications)]
    return {name: [column[name] for column in columns] for name in columns[0]}


def capacity_per_s(model: str) -> float:
    """Return how many scripts a second the processors of a model carry."""
    server = system(model, "web").domains["server"]
    script: Any = server.applications["web"]
    return float(server.vcpus / (script.script * server.cpu_inflation * 1e-9))


def collapse_form_per_s(model: str, clients: int) -> float:
    """Return the collapse rate of each client in closed form."""
    return collapse_rate_per_s(capacity_per_s(model), 1.0, TIMEOUT_S, TEST_S) / clients


def httperf_example(name: str, script_ms: float, budget: Budget) -> Figures:
    """Return the figures of the printed example for a model of the web server, named as in the dataset."""
    own = "domains.server.applications.web"
    changes = [f"{own}.{change}" for change in WRONG.get(name, ())]
    test = ["rate=100 /s", "connections=200", "timeout=5 s"]
    spec = system("net-kvm", "web", [*changes, f"{own}.script={script_ms:g} ms", *(f"workloads.web.{t}" for t in test)])
    columns = [_as_printed(report) for (report,) in _replicate(spec, budget, _reports)]
    return {key: [column[key] for column in columns] for key in columns[0]}


def static_pages(budget: Budget) -> Figures:
    """Return what is answered and failed of 800 requests a second that cost next to nothing."""
    own = "domains.server.applications.web"
    changes = [f"{own}.script={_STATIC_SCRIPT}", f"{own}.reply_size=10 kB"]
    found = web("net-bare", 1, _STATIC_RATE, budget, changes)
    return {"replies_per_s": [each[0].replies / TEST_S for each in found],
            "errors": [float(each[0].errors_total) for each in found]}  # fmt: skip


def handled(model: str, clients: int, rate: int, budget: Budget) -> Figures:
    """Return the share of connections answered at a rate of each client, in percent."""
    return {"answered_percent": [100.0 * _answered(each) for each in web(model, clients, rate, budget)]}


def _for(test: str, clients: int, budget: Budget) -> list[str]:
    own = f"workloads.{test}"
    return [f"{own}.clients={clients}", f"{own}.duration={_ms(budget)}",
            f"measure.duration={1000 * budget.seconds + 50:g} ms"]  # fmt: skip


def _ms(budget: Budget) -> str:
    return f"{1000 * budget.seconds:g} ms"


def _replicate(spec: ModelSpec, budget: Budget, read: Callable[[Run], Any]) -> list[Any]:
    return [read(Run(spec, budget.seed, replication)) for replication in range(budget.replications)]


def _flows(run: Run) -> list[UdpFlowResult]:
    run.run()
    driver: Any = run.built.drivers["udp"]
    return bulk_udp_result(run.engine, int(run.engine.rows(flows)[driver.flow].own))


def _reports(run: Run) -> list[HttperfReport]:
    run.run()
    drivers: list[Any] = list(run.built.drivers.values())
    return [httperf_report(run.engine, int(run.engine.rows(flows)[driver.flow].own)) for driver in drivers]


def _lost(flow: UdpFlowResult) -> float:
    """Lost of sent as iperf counts; a flow of which nothing came has lost everything."""
    return flow.loss_ratio if flow.received else 1.0


def _answered(reports: Sequence[HttperfReport]) -> float:
    return sum(each.replies for each in reports) / max(1, sum(each.connections for each in reports))


def _swept(found: dict[int, list[HttperfReport]]) -> dict[str, float]:
    best = max((rate for rate, each in found.items() if _answered(each) >= _ANSWERED), default=0)
    failing = [rate for rate, each in found.items() if any(report.errors_total for report in each)]
    after = min((rate for rate in found if rate > best), default=best)
    return {
        "rate_per_s": float(best),
        "onset_per_s": float(min(failing, default=max(found))),
        "reply_rate_per_s": best * _answered(found[best]) if best else 0.0,
        "errors": _mean(float(report.errors_total) for report in found[after]),
        "low_errors": _mean(float(report.errors_total) for report in found[1]),
    }


def _as_printed(report: HttperfReport) -> dict[str, float]:
    low, mean, high, median, deviation = report.connection_ms
    return {
        "replies": float(report.replies), "first_5_s": 5.0 * report.reply_rate[1] if report.samples else 0.0,
        "requests": float(report.requests), "test_duration": report.duration_s,
        "concurrent_connections_max": float(report.concurrent), "connection_time_min": low,
        "connection_time_mean": mean, "connection_time_median": median, "connection_time_sd": deviation,
        "connection_time_max": high, "connection_time_connect": report.connect_ms,
        "reply_time_response": report.response_ms, "reply_time_transfer": report.transfer_ms,
    }  # fmt: skip


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return sum(found) / len(found)
