"""How busy every resource of a SIP lab is at a load, and which one is the limit.

The limiting resource is the one with the highest utilization.  Buffers have no utilization of their own:
what they lose is shown beside, because a buffer overflows when what empties it is too slow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from vftsim.platform.io.link import links, utilization
from vftsim.platform.protection.channel import channels
from vftsim.platform.protection.lockstep import LockstepSpec
from vftsim.sip.lab import SipLab
from vftsim.stats import t_interval
from vftsim.study.constant_load import ConstantLoad
from vftsim.study.sip_summary import estimate_columns

_UTILIZATION = "percent"


@dataclass(frozen=True, slots=True)
class ResourceTask:
    """One replication at one load, watched."""

    load: ConstantLoad
    saps: float
    replication: int


def watch(task: ResourceTask) -> dict[str, float]:
    """Return the use of every resource in the measured part of a run, by name with unit."""
    lab = task.load.prepare(task.saps, task.replication)
    workload = lab.spec.workload
    start_ns = workload.stir.duration + workload.steps.transient
    end_ns = workload.stir.duration + workload.steps.duration
    before: dict[str, float] = {}
    after: dict[str, float] = {}

    lab.at(start_ns, lambda: before.update(_totals(lab)))
    lab.at(end_ns, lambda: after.update(_totals(lab)))
    lab.run()
    return _uses(lab, {name: after[name] - before[name] for name in before}, end_ns - start_ns)


def limiting_resource(uses: Sequence[dict[str, float]], confidence: float = 0.95) -> pd.DataFrame:
    """Return the resources by falling utilization, losses last; the first row is the limit."""
    names = list(uses[0])
    table = pd.DataFrame([
        {
            "resource": name.rpartition(" ")[0], "unit": name.rpartition(" ")[2],
            **estimate_columns(t_interval([use[name] for use in uses], confidence)),
        }
        for name in names
    ])  # fmt: skip
    table["is_loss"] = table["unit"] != _UTILIZATION
    table = table.sort_values(["is_loss", "estimate"], ascending=[True, False], kind="stable")
    return table.drop(columns="is_loss").reset_index(drop=True)


def _totals(lab: SipLab) -> dict[str, float]:
    return {
        "cpu": float(lab.server_busy_ns()),
        **{name: sent_bytes for name, (sent_bytes, _) in _transmitters(lab).items()},
        "socket buffer": float(lab.dropped("socket buffer")),
        "NIC ring": float(lab.dropped("NIC ring")),
        "link queues": float(lab.dropped("link to the server") + lab.dropped("link from the server")),
    }


def _uses(lab: SipLab, done: dict[str, float], elapsed_ns: int) -> dict[str, float]:
    vcpus = lab.spec.domains["sut"].vcpus
    uses = {f"CPU {_UTILIZATION}": 100.0 * done["cpu"] / (vcpus * elapsed_ns)}
    for name, (_, rate) in _transmitters(lab).items():
        uses[f"{name} {_UTILIZATION}"] = 100.0 * utilization(done[name], rate, elapsed_ns)
    for place in ("socket buffer", "NIC ring", "link queues"):
        uses[f"loss in {place} datagrams/s"] = done[place] / (elapsed_ns / 1e9)
    return uses


def _transmitters(lab: SipLab) -> dict[str, tuple[float, int]]:
    """Return bytes sent and rate of every transmitter; the logging channel's if it has one of its own."""
    rows, built = lab.engine.rows(links), lab.built
    found = {"link to the server": rows[built.to_server], "link from the server": rows[built.to_agents]}
    if isinstance(built.protection, LockstepSpec) and not built.protection.channel.shared:
        found["logging channel"] = lab.engine.rows(channels)[built.guard]
    return {name: (float(one.sent_bytes), int(one.rate_bits_per_s)) for name, one in found.items()}
