"""Predict what measure.py measured from one figure of it, and print predicted against measured.

``python experiments/networks-lab/compare.py OUT``.  The one figure is the CPU time of a request that is served alone
(``calibration-*.txt``); everything else is in ``lab.yaml``, in ``httpd.conf`` and ``work.lua``, or was asked for.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Any

from vftsim.composition.model import ModelSpec
from vftsim.composition.run import Run
from vftsim.labs.importing import Source, figures_of, importer_for
from vftsim.labs.imports.httperf import HttperfReport, read_report
from vftsim.spec import load
from vftsim.workloads.web.httperf import collapse_rate_per_s

HERE = Path(__file__).parent
SEED, REPLICATIONS = 11, 5
WRONG = {
    "fixed pool of 5": ("max_clients=5",),
    "150 at once": ("start_servers=150",),
    "accept queue of 511": ("accept_queue=511",),
}
_SERVER = "domains.server.applications.web"
_BURST = (
    "replies",
    "requests",
    "test duration, s",
    "concurrent, max",
    "time min, ms",
    "time mean, ms",
    "time median, ms",
    "time deviation, ms",
    "time max, ms",
    "connect, ms",
    "response, ms",
    "transfer, ms",
)


class Lab:
    """What was measured, and the model of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.facts: dict[str, Any] = json.loads((folder / "lab.json").read_text(encoding="utf-8"))
        percent = self.facts["cpu_limit_percent"]
        self.share = 1.0 if percent is None else percent / 100.0
        self.costs_s = [run["cpu_s"] / run["connections"] for run in self.runs("calibration")]
        self.cost_s = fmean(self.costs_s)

    def runs(self, part: str) -> list[dict[str, Any]]:
        """Return the runs of a part."""
        return [run for run in self.facts["runs"] if run["part"] == part]

    def source(self, run: Mapping[str, Any]) -> Source:
        """Return what a tool printed."""
        return Source((self.folder / run["file"]).read_text(encoding="utf-8"), run["file"])

    def model(self, workload: str, changes: Iterable[str]) -> ModelSpec:
        """Return the model with one of its workloads."""
        others = [f"workloads.{name}=null" for name in ("tcp", "udp", "web") if name != workload]
        return load(str(HERE / "lab.yaml"), ModelSpec, [*others, *changes])

    def web_model(self, run: Mapping[str, Any], changes: Iterable[str] = ()) -> ModelSpec:
        """Return the model of a run of httperf: its rate, and the one figure."""
        quota_us = self.facts["period_us"] * self.share if self.share < 1.0 else 0
        reply = read_report(self.source(self.runs("calibration")[0]))
        size = round(reply.header_bytes + reply.content_bytes + reply.footer_bytes)
        return self.model(
            "web",
            [
                "networks.lan.rate=10 Gbit/s",  # only the port to the server is shaped
                f"domains.server.quota={quota_us:g} us",
                f"domains.server.period={self.facts['period_us']} us",
                f"{_SERVER}.script={1e6 * self.cost_s:.0f} us",
                f"{_SERVER}.reply_size={size} B",
                f"workloads.web.rate={run['rate']} /s",
                f"workloads.web.connections={run['connections']}",
                f"workloads.web.timeout={self.facts['timeout_s']} s",
                f"workloads.web.linear_retries={self.facts['syn_linear_timeouts']}",
                *([] if self.is_eevdf() else ["domains.server.guest_scheduler={kind: cfs}"]),
                *(f"{_SERVER}.{change}" for change in changes),
            ],
        )

    def is_eevdf(self) -> bool:
        """Whether the machine's kernel has the scheduler that came with Linux 6.6."""
        major, minor, *_ = self.facts["kernel"].split(".")
        return (int(major), int(minor)) >= (6, 6)

    def predicted(self, run: Mapping[str, Any], changes: Iterable[str] = ()) -> list[HttperfReport]:
        """Return the reports of the model, one of each replication."""
        spec = self.web_model(run, changes)
        texts = [Run(spec, SEED, number).run().whole.outcomes["workloads.web"].report for number in range(REPLICATIONS)]
        return [read_report(Source(text, "model")) for text in texts]

    def capacity_per_s(self) -> float:
        """Return how many scripts a second the CPU carries."""
        return self.share / self.cost_s


def curve(lab: Lab) -> list[Sequence[str]]:
    """Replies and times over the rate."""
    rows: list[Sequence[str]] = []
    for run in lab.runs("curve"):
        seen, found = read_report(lab.source(run)), lab.predicted(run)
        length_s = run["connections"] / run["rate"]
        form = collapse_rate_per_s(lab.share, lab.cost_s, lab.facts["timeout_s"], length_s)
        rows.append(
            (
                f"{run['rate']:g}",
                _pair(answered(seen), [answered(each) for each in found], 0),
                f"{min(100.0, 100.0 * form / run['rate']):.0f}",
                _pair(seen.connection_ms[1], [each.connection_ms[1] for each in found], 0),
                _pair(seen.connection_ms[3], [each.connection_ms[3] for each in found], 0),
                _pair(seen.response_ms, [each.response_ms for each in found], 0),
                _pair(1e3 * run["cpu_s"] / run["connections"], [1e3 * lab.cost_s], 1),
            )
        )
    return rows


def burst(lab: Lab) -> list[Sequence[str]]:
    """Print the figures of httperf at 100/s: measured, the model, wrong models."""
    runs = lab.runs("burst")
    seen = [figures(read_report(lab.source(run))) for run in runs]
    models = {"model": (), **WRONG}
    found = {name: [figures(each) for each in lab.predicted(runs[0], change)] for name, change in models.items()}
    rows, off = [], {name: [] for name in models}  # type: tuple[list[Sequence[str]], dict[str, list[float]]]
    for number, name in enumerate(_BURST):
        measured = fmean(each[number] for each in seen)
        cells = []
        for model, each in found.items():
            value = fmean(one[number] for one in each)
            off[model].append(value / measured - 1.0)
            cells.append(f"{value:.4g} ({off[model][-1]:+.0%})")
        rows.append((name, _range([each[number] for each in seen]), *cells))
    errors = [f"{median(map(abs, each)):.0%}, {max(map(abs, each)):.0%}" for each in off.values()]
    return [*rows, ("error: median, worst", "", *errors)]


def network(lab: Lab) -> list[Sequence[str]]:
    """TCP and UDP through the shaped port."""
    if lab.facts["link_mbit"] is None:
        return []
    rows: list[Sequence[str]] = []
    free = ("domains.server.quota=0 us", f"networks.lan.rate={lab.facts['link_mbit']} Mbit/s")
    line = lab.facts["link_mbit"] * 1448 / 1538
    for run in lab.runs("tcp"):
        spec = lab.model("tcp", [*free, f"workloads.tcp.clients={run['flows']}", "workloads.tcp.duration=2 s"])
        value = Run(spec, SEED, 0).run().whole.outcomes["workloads.tcp"].columns()["mbit_per_s"]
        rows.append(
            (f"TCP, {run['flows']} flows, Mbit/s", _beside(_measured(lab, run, "throughput"), value), f"{line:.1f}")
        )
    for run in lab.runs("udp"):
        spec = lab.model("udp", [*free, f"workloads.udp.rate={run['rate_mbit']} Mbit/s"])
        value = Run(spec, SEED, 0).run().whole.outcomes["workloads.udp"].loss
        form = max(0.0, 100.0 - 100.0 * lab.facts["link_mbit"] / (run["rate_mbit"] * 1514 / 1448))
        rows.append(
            (f"UDP at {run['rate_mbit']} Mbit/s, lost, %", _beside(_measured(lab, run, "lost"), value), f"{form:.1f}")
        )
    return rows


def _measured(lab: Lab, run: Mapping[str, Any], metric: str) -> float:
    source = lab.source(run)
    found = {each.metric: each.statistics for each in figures_of(source, importer_for(source.text, source.label))}
    return float(found[metric]["mean"])


def answered(report: HttperfReport) -> float:
    """Return the share of connections that had a reply, in percent."""
    return 100.0 * report.replies / report.connections


def figures(report: HttperfReport) -> tuple[float, ...]:
    """Return the figures of a report in the order of the burst's rows."""
    low, mean, high, middle, deviation = report.connection_ms
    return (
        report.replies,
        report.requests,
        report.duration_s,
        report.concurrent,
        low,
        mean,
        middle,
        deviation,
        high,
        report.connect_ms,
        report.response_ms,
        report.transfer_ms,
    )


def _pair(measured: float, predicted: Sequence[float], digits: int) -> str:
    return f"{measured:.{digits}f} / {fmean(predicted):.{digits}f}"


def _beside(measured: float, predicted: float) -> str:
    return f"{measured:.1f} / {predicted:.1f}"


def _range(values: Sequence[float]) -> str:
    low, high = f"{min(values):.4g}", f"{max(values):.4g}"
    return low if low == high else f"{low} to {high}"


def _print(title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    print(f"\n### {title}\n")
    for cells in (head, ["---"] * len(head), *rows):
        print(f"| {' | '.join(cells)} |")


def main() -> None:
    """Print all tables as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    lab = Lab(parser.parse_args().out)
    costs = ", ".join(f"{1e3 * cost:.2f}" for cost in lab.costs_s)
    print(
        f"CPU time of a request: {1e3 * lab.cost_s:.2f} ms ({costs}); the server carries {lab.capacity_per_s():.2f}/s"
    )
    if lab.facts["cpu_limit_percent"] is None:
        print("No CPU limit was in force: the server had a whole processor.")
    head = ("rate, /s", "answered, %", "form", "time mean, ms", "time median, ms", "response, ms", "CPU a request, ms")
    _print("Rates (measured / predicted)", head, curve(lab))
    _print("100 connections a second", ("figure", "measured", "model", *WRONG), burst(lab))
    _print("iperf3 (measured / predicted)", ("figure", "", "closed form"), network(lab))


if __name__ == "__main__":
    main()
