"""Tables of failovers, of mechanisms side by side, and of a year with them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from vftsim.report.head import INTERVALS, print_head, print_outside
from vftsim.report.screen import error_bar, print_table, print_text
from vftsim.study.validity import MARK

if TYPE_CHECKING:
    from vftsim.study.protections import ProtectionComparison

_COMPARED = (
    ("capacity_saps", "DOC SAPS"), ("cpu_percent", "CPU %"), ("SES1_p50_ms", "SES1 p50 ms"),
    ("SES1_p95_ms", "SES1 p95 ms"), ("media_loss_percent", "media loss %"), ("media_delay_p99_ms", "delay p99 ms"),
    ("media_mos", "MOS"), ("output_wait_ms", "output held ms"), ("stopped_percent", "stopped %"),
    ("channel_mbit_per_s", "channel Mbit/s"), ("failover.outage_s", "outage s"),
    ("failover.unprotected_s", "unprotected s"), ("failover.rollback_s", "rolled back s"),
)  # fmt: skip
_NEVER = {"failover.outage_s", "failover.unprotected_s"}
"""What a mechanism that lacks it never ends."""


def print_protections(result: ProtectionComparison) -> None:
    """Print mechanisms side by side."""
    first = result.manifest["models"][0]
    notes = [note for note in first["notes"] if not note.startswith("protection")]
    print_head([{**first, "costs": [], "notes": notes}], result.manifest["seed"])
    known, beyond = set(result.names()), result.outside or []
    columns = [(name, head) for name, head in _COMPARED if name in known]
    body = [
        (kind, *(_estimate(result, kind, name, _mark([kind, name] in beyond)) for name, _ in columns))
        for kind in result.kinds
    ]
    print_table(
        "Protection mechanisms", ("mechanism", *(head for _, head in columns)), body,
        "CPU and delays at the first load step (or in the measured time); output held: mean wait of an output, stopped "
        "and channel: in the measured time; outage: gap that clients see when the primary's host crashes, unprotected: "
        f"from then on. {INTERVALS}",
    )  # fmt: skip
    if beyond:
        print_outside(result.base)
    for kind, text in result.notes.items():
        print_text(f"Costs of {kind}: {text}")
    for kind, why in result.refused.items():
        print_text(f"Left out: {kind}: {why}")


def _plain(value: float) -> str:
    return "-" if value is None or math.isnan(value) else "never" if math.isinf(value) else f"{value:.4g}"


def _mark(is_outside: object) -> str:
    return MARK if is_outside else ""


def _estimate(result: ProtectionComparison, kind: str, name: str, mark: str) -> str:
    estimate = result.estimate(kind, name)
    if estimate is None:
        return "never" if name in _NEVER and kind in result.failovers else "-"
    if name == "capacity_saps" and 2 * result.capacities[kind].unfailed >= estimate.n:
        return f"at least {estimate.mean:.4g}{mark}"
    return f"{error_bar(estimate.mean, estimate.low, estimate.high, estimate.kind)}{mark}"
