"""How busy every resource of a SIP lab is at a load, and which one is the limit.

The limiting resource is the one with the highest utilization.  Buffers have no utilization of their own:
what they lose is shown beside, because a buffer overflows when what empties it is too slow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from vftsim.engine import EventKind
from vftsim.net.link import utilization
from vftsim.sip.lab import SipLab
from vftsim.stats import mean_interval
from vftsim.study.constant_load import ConstantLoad
from vftsim.study.sip_summary import estimate_columns

_ENTITY = 3
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

    def note(into: dict[str, float]) -> None:
        into.update(_totals(lab))

    lab.clock.at(start_ns, EventKind.CONTROL, _ENTITY, note, before)
    lab.clock.at(end_ns, EventKind.CONTROL, _ENTITY, note, after)
    lab.run()
    return _uses(lab, {name: after[name] - before[name] for name in before}, end_ns - start_ns)


def limiting_resource(uses: Sequence[dict[str, float]], confidence: float = 0.95) -> pd.DataFrame:
    """Return the resources by falling utilization, losses last; the first row is the limit."""
    names = list(uses[0])
    table = pd.DataFrame([
        {
            "resource": name.rpartition(" ")[0], "unit": name.rpartition(" ")[2],
            **estimate_columns(mean_interval([use[name] for use in uses], confidence)),
        }
        for name in names
    ])  # fmt: skip
    table["is_loss"] = table["unit"] != _UTILIZATION
    table = table.sort_values(["is_loss", "estimate"], ascending=[True, False], kind="stable")
    return table.drop(columns="is_loss").reset_index(drop=True)


def _totals(lab: SipLab) -> dict[str, float]:
    to_server, to_agents = lab.to_server, lab.to_agents
    return {
        "cpu": float(lab.server_busy_ns()),
        "link to the server": float(to_server.sent_bytes),
        "link from the server": float(to_agents.sent_bytes),
        "socket buffer": float(lab.socket_dropped()),
        "NIC ring": float(lab.nic.dropped),
        "link queues": float(to_server.dropped + to_agents.dropped),
        **{name: sent_bytes for name, (sent_bytes, _) in _channels(lab).items()},
    }


def _uses(lab: SipLab, done: dict[str, float], elapsed_ns: int) -> dict[str, float]:
    uses = {f"CPU {_UTILIZATION}": 100.0 * done["cpu"] / (len(lab.guest.vcpus) * elapsed_ns)}
    transmitters = {
        "link to the server": lab.to_server.rate_bits_per_s,
        "link from the server": lab.to_agents.rate_bits_per_s,
        **{name: rate for name, (_, rate) in _channels(lab).items()},
    }
    for name, rate in transmitters.items():
        uses[f"{name} {_UTILIZATION}"] = 100.0 * utilization(done[name], rate, elapsed_ns)
    for place in ("socket buffer", "NIC ring", "link queues"):
        uses[f"loss in {place} datagrams/s"] = done[place] / (elapsed_ns / 1e9)
    return uses


def _channels(lab: SipLab) -> dict[str, tuple[float, int]]:
    """Return bytes sent and rate of the logging channel, if the protection has one of its own."""
    channel: Any = getattr(lab.mechanism, "channel", None)
    if channel is None or channel.shared is not None:
        return {}
    return {"logging channel": (float(channel.sent_bytes), channel.rate_bits_per_s)}
