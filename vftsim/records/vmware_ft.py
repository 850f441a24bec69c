"""``vftsim record vmware-ft``: what VMware's white paper of 2009 says of fault tolerance, against ``lockstep``.

Models and figures are in ``calibration/vmware-ft``; what is judged and how is in its ``protocol.md``.  Nothing is
fitted.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from vftsim.composition.model import ModelSpec
from vftsim.composition.record import RunRecord
from vftsim.composition.run import Run
from vftsim.platform.protection.lockstep import LockstepSpec
from vftsim.records import vmware_ft_bounds as forms
from vftsim.records.study import Table, in_markdown, in_order
from vftsim.records.vmware_ft_bounds import RECEIVE, TRANSMIT, GuestCosts
from vftsim.spec import load, shipped_dir
from vftsim.study.progress import Progress

Figures = dict[str, list[float]]
"""Values of each replication by name."""
Results = dict[str, Figures]

FLOWS = {RECEIVE: "rx", TRANSMIT: "tx"}
POLICIES = {"each segment": (1.0, "0 s"), "every second": (0.5, "40 ms")}
"""Acknowledgements a segment, and TCP's delay that makes them."""
FREE = tuple(
    f"domains.guest.protection.cost.{key}=0 s"
    for key in ("entry", "kibibyte", "timer", "output", "batch", "exit", "clock_read", "disk_operation")
)
LINKS: dict[str, tuple[str, ...]] = {
    "10 Gbit/s": (),
    "1 Gbit/s": ("networks.logging.rate=1 Gbit/s", "networks.logging.latency=74.5 us"),
    "100 Mbit/s": ("networks.logging.rate=100 Mbit/s", "networks.logging.latency=74.5 us"),
    "1 Gbit/s, recording free": ("networks.logging.rate=1 Gbit/s", "networks.logging.latency=74.5 us", *FREE),
}
"""Logging channels, as changes to the model."""
_FIRST = next(iter(LINKS))
_ITEMS = {"specjbb": "specjbb2005", RECEIVE: "netperf_latency_rx", TRANSMIT: "netperf_latency_tx"}
_MBIT = 8e-6
_TAIL_MS = 1
"""After the clients have stopped, by when they have reported."""
_NEAR = 0.25
_BUSY_PERCENT = 99.0
_PAYLOAD_MBIT = 400
_LESS_PERCENT, _MORE_MS = 2.0, 1.0


@dataclass(frozen=True, slots=True)
class Budget:
    """Seed, replications, and how long TCP sends."""

    seed: int
    replications: int
    seconds: float


RECORD = Budget(404, 2, 0.5)
QUICK = Budget(404, 1, 0.1)


@dataclass(frozen=True, slots=True)
class Statement:
    """Something stated, what was found, and whether it holds."""

    key: str
    stated: str
    found: str
    verdict: str


def stated_figures() -> list[dict[str, str]]:
    """Return the rows of the dataset."""
    with (shipped_dir("calibration") / "vmware-ft" / "figures.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def stated_rate(what: str) -> float:
    """Return a stated rate of logging in Mbit/s, of ``specjbb`` or a direction of netperf's latency case."""
    rows = (row for row in stated_figures() if row["item"] == _ITEMS[what] and row["metric"] == "ft_logging_traffic")
    return float(next(rows)["value"])


def system(name: str, assignments: Sequence[str] = ()) -> ModelSpec:
    """Return one of the study's models."""
    return load(shipped_dir("calibration") / "vmware-ft" / f"{name}.yaml", ModelSpec, list(assignments))


def netperf_model(direction: str, policy: str, link: str, seconds: float) -> ModelSpec:
    """Return bulk TCP one way."""
    own, other = FLOWS[direction], FLOWS[TRANSMIT if direction == RECEIVE else RECEIVE]
    length, end = f"{1000 * seconds:g} ms", f"{1000 * seconds + _TAIL_MS:g} ms"
    changes = [f"workloads.{own}.{key}={length}" for key in ("duration", "interval")]
    return system("netperf", [
        f"workloads.{other}=null", f"workloads.{own}.delayed_ack={POLICIES[policy][1]}", f"measure.duration={end}",
        f"workloads.{own}.spread=0 s", *changes, *LINKS[link],
    ])  # fmt: skip


def netperf(direction: str, policy: str, link: str, budget: Budget) -> Figures:
    """Return payload and log in Mbit/s, and the guest's CPU in percent."""
    spec = netperf_model(direction, policy, link, budget.seconds)
    own = FLOWS[direction]
    return _columns(spec, budget, lambda record: {"payload": sum(record.of(f"workloads.{own}").throughput.values())})


def computing(name: str, budget: Budget) -> Figures:
    """Return the log of a guest that only computes, Mbit/s, and its CPU in percent."""
    return _columns(system(name), budget, lambda record: {})


def sessions(protection: str, budget: Budget) -> Figures:
    """Return transactions a second and their mean delay in ms of the sessions."""
    changes = [] if protection == "lockstep" else ["domains.guest.protection={kind: none}"]
    return _columns(system("oracle", changes), budget, lambda record: {
        "rate": record.of("workloads.sessions").rate,
        "delay": record.of("workloads.sessions").latency.mean * 1e-6,
    })  # fmt: skip


_RUNS: dict[str, Callable[..., Figures]] = {"netperf": netperf, "computing": computing, "sessions": sessions}


def _columns(spec: ModelSpec, budget: Budget, read: Callable[[Any], dict[str, float]]) -> Figures:
    rows = []
    for replication in range(budget.replications):
        record = Run(spec, budget.seed, replication).run()
        rows.append({**read(record), **_of_guest(record)})
    return {name: [row[name] for row in rows] for name in rows[0]}


def _of_guest(record: RunRecord) -> dict[str, float]:
    own: Any = record.whole.outcomes.get("domains.guest.protection")
    return {
        "log": own.channel if own is not None else 0.0,
        "cpu": record.of("domains.guest").cpu,
    }


def tasks() -> dict[str, tuple[str, tuple[str, ...]]]:
    """Return all runs of the record by name: what, and its arguments but the budget."""
    found: dict[str, tuple[str, tuple[str, ...]]] = {
        f"{direction}, {policy}, {link}": ("netperf", (direction, policy, link))
        for link in LINKS for direction in FLOWS for policy in POLICIES
    }  # fmt: skip
    found |= {name: ("computing", (name,)) for name in ("specjbb", "kernel-compile")}
    return found | {f"oracle, {kind}": ("sessions", (kind,)) for kind in ("none", "lockstep")}


def run_record(jobs: int, budget: Budget, progress: Progress) -> Results:
    """Run everything; return figures by name of the run, in their order."""
    wanted = tasks()
    work = [(what, arguments, budget) for what, arguments in wanted.values()]
    return dict(zip(wanted, in_order(_run, work, list(wanted), jobs, progress), strict=True))


def _run(task: tuple[str, tuple[str, ...], Budget]) -> Figures:
    what, arguments, budget = task
    return _RUNS[what](*arguments, budget)


# What is judged


def judged(results: Results) -> list[Statement]:
    """Return every statement with its verdict."""
    compiling = _mean(results["kernel-compile"]["cpu"])
    busy = _verdict(compiling >= _BUSY_PERCENT)
    return [
        _computing_log(results),
        *_netperf(results),
        Statement("F6", "kernel compile: CPU 100 %", f"{compiling:.1f} %", busy),
        _oracle(results),
        _dearest(protection_of(_FIRST)),
    ]


def _computing_log(results: Results) -> Statement:
    stated, found = stated_rate("specjbb"), _mean(results["specjbb"]["log"])
    near = _verdict(abs(found / stated - 1.0) <= _NEAR)
    return Statement("F1", f"SPECjbb2005 logs {stated:g} Mbit/s", f"{found:.2f}", near)


def _netperf(results: Results) -> list[Statement]:
    runs = {d: [results[f"{d}, {policy}, {_FIRST}"] for policy in POLICIES] for d in FLOWS}
    logs = {d: [_mean(run["log"]) for run in found] for d, found in runs.items()}
    ratios = [rx / tx for rx, tx in zip(logs[RECEIVE], logs[TRANSMIT], strict=True)]
    share = min(_mean(run["log"]) / _mean(run["payload"]) for run in runs[RECEIVE])
    rx, tx = stated_rate(RECEIVE), stated_rate(TRANSMIT)
    return [
        Statement(
            "F2", f"netperf, latency case: log Rx/Tx {rx / tx:.1f}, simulated", _both(ratios), _lies(rx / tx, ratios)
        ),
        *_closed_forms(False),
        Statement("F4", f"level of Rx, {rx:g} Mbit/s", _both(logs[RECEIVE]), _lies(rx, logs[RECEIVE])),
        Statement("F4", f"level of Tx, {tx:g} Mbit/s", _both(logs[TRANSMIT]), _lies(tx, logs[TRANSMIT])),
        Statement(
            "F5", "throughput case, receive: significant log", f"{share:.2f} of the payload", _verdict(share >= 1.0)
        ),
    ]


def _closed_forms(with_outputs: bool) -> list[Statement]:
    """Judge F2 and F3 at equal payload; ``with_outputs``: of a log that holds the data of outputs too."""
    spec, acks = protection_of(_FIRST), [k for k, _ in POLICIES.values()]
    rx, tx = stated_rate(RECEIVE), stated_rate(TRANSMIT)
    ratios = [
        forms.log_bytes(spec, RECEIVE, k, with_outputs) / forms.log_bytes(spec, TRANSMIT, k, with_outputs) for k in acks
    ]
    others = [forms.other_rate(spec, rx, k, with_outputs) for k in acks]
    return [
        Statement(
            "F2", f"log Rx/Tx {rx / tx:.1f}, closed form at equal payload", _both(ratios), _lies(rx / tx, ratios)
        ),
        Statement("F3", f"Tx {tx:g} Mbit/s, from Rx {rx:g}", _both(others), _lies(tx, others)),
    ]


def _oracle(results: Results) -> Statement:
    plain, recorded = results["oracle, none"], results["oracle, lockstep"]
    less = 100.0 * (1.0 - _mean(recorded["rate"]) / _mean(plain["rate"]))
    more = _mean(recorded["delay"]) - _mean(plain["delay"])
    found = f"{less:.2f} % less throughput, {more:.2f} ms more delay (of {_mean(plain['delay']):.2f})"
    return Statement("F7", "Oracle: impact negligible", found, _verdict(less <= _LESS_PERCENT and more <= _MORE_MS))


def _dearest(spec: LockstepSpec) -> Statement:
    """Compare what recording costs at the same payload each way, and in a guest that only computes."""
    segments = _PAYLOAD_MBIT * 1e6 / 8 / forms.MSS
    costs = {
        d: [100e-9 * segments * forms.recording_ns(spec, d, k) for k, _ in POLICIES.values()] for d in FLOWS
    }  # fmt: skip
    computing_percent = 100e-9 * spec.log.timer_rate * spec.cost.timer
    found = f"{', '.join(f'{d} {_both(own)} %' for d, own in costs.items())} of a CPU at {_PAYLOAD_MBIT} Mbit/s"
    holds = all(rx > tx > computing_percent for rx, tx in zip(costs[RECEIVE], costs[TRANSMIT], strict=True))
    stated = "CPU for record and replay: mostly incoming I/O"
    return Statement("F8", stated, f"{found}; computing {computing_percent:.1f} %", _verdict(holds))


def wrong_model() -> list[Statement]:
    """Return F2 and F3 of a log that holds the data of outputs too."""
    return _closed_forms(True)


def protection_of(link: str) -> LockstepSpec:
    """Return the guest's protection with a logging channel, its rate and latency written into it."""
    spec = system("netperf", LINKS[link])
    own, wire = spec.domains["guest"].protection, spec.networks["logging"]
    assert isinstance(own, LockstepSpec)
    channel = own.channel.model_copy(update={"network": None, "rate": wire.rate, "latency": wire.latency})
    return own.model_copy(update={"channel": channel})


def guest_costs(direction: str) -> GuestCosts:
    """Return what a segment and an acknowledgement cost the guest of the model."""
    guest = system("netperf").domains["guest"]
    way: Any = guest.interfaces["eth0"].path
    program: Any = guest.applications["sink" if direction == RECEIVE else "source"]
    return GuestCosts(
        way.packet_cost + program.segment_cost + program.copy_cost * forms.MSS / 1024,
        way.packet_cost + program.ack_cost, way.interrupt_cost / way.moderation if way.moderation else 0.0,
    )  # fmt: skip


def bounds_of(direction: str, policy: str, link: str) -> dict[str, float]:
    """Return the largest payload that each thing allows on a logging channel, Mbit/s."""
    spec = netperf_model(direction, policy, link, RECORD.seconds)
    flow: Any = spec.workloads[FLOWS[direction]]
    return forms.bounds(
        protection_of(link), guest_costs(direction), direction, POLICIES[policy][0],
        float(spec.networks["lan"].rate), flow.window,
    )  # fmt: skip


def tables(results: Results) -> list[Table]:
    """Return the whole record."""
    columns = ("key", "stated", "found", "verdict")
    return [
        Table(
            "Stated against found", (*columns, "without a mechanism"),
            [(*_cells(each), HELD_ANYWAY.get(each.key, "")) for each in judged(results)],
        ),
        Table("Wrong on purpose: the log holds the data of outputs too", columns, [_cells(e) for e in wrong_model()]),
        Table(
            "Largest payload that the counted costs allow, Mbit/s",
            ("logging channel", "direction", "acknowledged", "simulated", "bound", "what binds", "log", "CPU %"),
            [
                _bound_row(results, direction, policy, link)
                for link in LINKS for direction in FLOWS for policy in POLICIES
            ],
        ),
    ]  # fmt: skip


def _bound_row(results: Results, direction: str, policy: str, link: str) -> tuple[str, ...]:
    figures, found = results[f"{direction}, {policy}, {link}"], bounds_of(direction, policy, link)
    name = forms.binding(found)
    return (
        link, direction, policy, f"{_mean(figures['payload']):.0f}", f"{found[name]:.0f}", name,
        f"{_mean(figures['log']):.1f}", f"{_mean(figures['cpu']):.0f}",
    )  # fmt: skip


HELD_ANYWAY = {
    "F5": "holds: whatever is received is logged",
    "F6": "holds: the guest never sleeps",
    "F7": "holds: nothing costs anything",
}
"""Statements that a model without any cost of recording holds as well, and why."""


def scores(results: Results) -> list[str]:
    """Return how many statements hold, and how many of them cannot tell."""
    found = judged(results)
    held = [each for each in found if each.verdict == "holds"]
    anyway = sum(each.key in HELD_ANYWAY for each in held)
    return [
        f"{len(held)} of {len(found)} statements hold; {anyway} of these cannot tell: a model without any cost of "
        "recording holds them too."
    ]


def report(results: Results, budget: Budget) -> str:
    """Return the record as Markdown."""
    return in_markdown("VMware's white paper: stated against found", ran(budget), scores(results), tables(results))


def ran(budget: Budget) -> str:
    """Return what was run, as text."""
    return f"{budget.replications} replications, seed {budget.seed}; TCP for {budget.seconds:g} s."


def _cells(one: Statement) -> tuple[str, ...]:
    return one.key, one.stated, one.found, one.verdict


def _verdict(holds: bool) -> str:
    return "holds" if holds else "missed"


def _lies(value: float, between: Sequence[float]) -> str:
    return _verdict(min(between) <= value <= max(between))


def _both(values: Sequence[float]) -> str:
    return " and ".join(f"{value:.3g}" for value in values)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
