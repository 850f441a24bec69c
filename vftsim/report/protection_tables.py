"""Tables of failovers, of mechanisms side by side, and of a year with them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from vftsim.report.head import INTERVALS, print_head, print_outside
from vftsim.report.screen import error_bar, print_table, print_text
from vftsim.stats import binomial_interval
from vftsim.study.validity import MARK

if TYPE_CHECKING:
    from vftsim.stats import Estimate
    from vftsim.study.availability import AvailabilityStudy
    from vftsim.study.failover import FailoverStudy
    from vftsim.study.protections import ProtectionComparison

_WORDS = {
    "before_crash_s": "last packet to crash (s)",
    "detection_s": "detection (s)",
    "takeover_s": "takeover: replay, rollback or boot (s)",
    "announcement_s": "announcement (s)",
    "first_packet_s": "wait for the first packet (s)",
    "outage_s": "outage as clients see it (s)",
    "unprotected_s": "unprotected after the crash (s)",
    "retransmissions": "messages repeated more",
    "rollback_s": "rolled back by (s)",
    "execution_lost_s": "execution undone (s of CPU)",
    "outputs_lost": "outputs that died with the primary",
    "outputs_issued_again": "outputs issued again",
    "outputs_underivable": "outputs seen that the backup lacks",
}
_COMPARED = (
    ("capacity_saps", "DOC SAPS"), ("cpu_percent", "CPU %"), ("SES1_p50_ms", "SES1 p50 ms"),
    ("SES1_p95_ms", "SES1 p95 ms"), ("media_loss_percent", "media loss %"), ("media_delay_p99_ms", "delay p99 ms"),
    ("media_mos", "MOS"), ("output_wait_ms", "output held ms"), ("stopped_percent", "stopped %"),
    ("channel_mbit_per_s", "channel Mbit/s"), ("failover.outage_s", "outage s"),
    ("failover.unprotected_s", "unprotected s"), ("failover.rollback_s", "rolled back s"),
)  # fmt: skip
_ASK_AGAIN = "clients that lose an answer wait for ever (their workload's retry, or timeout, is off)."
_OF_CRASHES = (
    "± or [..]: 95 % interval of the mean, crashes being one in each part of a stretch, from ten crashes on; none, but "
    "lowest and highest crash (x to y), where fewer than five differ from the rest. Crashes with any: how many, and "
    "their share (binomial interval, at least 95 %, Clopper and Pearson). Coverage: docs/interval-coverage.md."
)
_NEVER = {"failover.outage_s", "failover.unprotected_s"}
"""What a mechanism that lacks it never ends."""


def print_failovers(study: FailoverStudy) -> None:
    """Print the figures of failovers, and the timeline of the middle one."""
    print_head(study.manifest["models"], study.manifest["seed"])
    load = study.load + _mark(study.outside)
    print_text(
        f"Mechanism: {study.mechanism}; load: {load}; crashes of the primary's host: {len(study.failovers)}, "
        f"the service came back after {len(study.recovered)} ({_share(study.came_back)} of crashes)"
    )
    unasked = sum(each.is_unasked for each in study.failovers)
    if unasked:
        print_text(f"After {unasked} of them the guest was back and no client asked again: {_ASK_AGAIN}")
    print_table(
        "Failover", ("", "mean", "least", "middle", "largest", "crashes with any"),
        [_figure(study, row) for row in study.to_pandas().itertuples()],
        "The parts, from the last packet on, add up to the outage. Failed, lost and repeated: beyond the same traffic "
        f"without the crash. {_OF_CRASHES}",
    )  # fmt: skip
    if study.outside:
        print_outside(study.model)
    middle = sorted(study.failovers, key=lambda each: each.outage_s)[len(study.failovers) // 2]
    print_text(f"The crash of the middle outage, {middle.crash_s:.6f} s after the beginning of the stretch:")
    for time_s, what in middle.timeline:
        if time_s >= 0:
            print_text(f"{time_s:12.6f} s  {what}")


def _figure(study: FailoverStudy, row: Any) -> tuple[str, ...]:
    """Return one figure of failovers as a row."""
    name = str(row.figure)
    words = _WORDS.get(name, name.replace("failed_", "failed more: ").replace("lost_", "packets lost: "))
    if not row.of_which_known:
        return words, "never", "", "", "", ""
    if row.of_which_known < row.crashes:
        words += f", {row.of_which_known} of {row.crashes}"
    share = study.share(name)
    some = "" if share is None else f"{row.crashes_with_any:g} ({_share(share)})"
    return words, _bar(row), *(_plain(x) for x in (row.least, row.middle, row.largest)), some


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


def print_availability(study: AvailabilityStudy) -> None:
    """Print a year with each mechanism."""
    print_head(study.manifest["models"], study.manifest["seed"])
    print_text(
        f"Each host fails once in {study.mtbf_s / 86_400:.4g} days on average; second outage {study.restart_s:g} s"
    )
    body = [
        (
            row["mechanism"], f"{row['came_back']} of {row['crashes']} ({_came_back(row)})",
            _plain(row["outage_s"]) + ("" if row["came_back"] else " (assumed)"), _plain(row["reprotection_s"]),
            f"{row['unavailability']:.3g}", _nines(row["nines"]), _of_year(row, "downtime", "downtime_s_per_year"),
            _plain(row["unprotected_h_per_year"]), _of_year(row, "failed", "failed_per_year"),
        )
        for row in study.rows
    ]  # fmt: skip
    heads = ("mechanism", "came back", "outage s", "protected again after s", "unavailability", "nines",
             "downtime s/year", "unprotected h/year", "attempts failed/year")  # fmt: skip
    print_table(
        f"A year{_mark(study.outside)}", heads, body,
        "Outage and time unprotected: means of the simulated failovers; the year: a Markov model of failures, failover "
        "and re-protection. What does not come back by itself somebody restarts by hand, and has it back after "
        f"--restart ({study.restart_s:g} s): assumed, not simulated as that of ha_restart is. Came back: share of "
        "crashes (binomial, at least 95 %, Clopper and Pearson). ± or [..]: 95 % interval of the simulated outages, "
        "failures taken as given, from ten crashes on that all came back; (x to y): of the lowest and highest crash.",
    )  # fmt: skip
    for row in study.rows:
        if row["not_asked_again"]:
            print_text(
                f"{row['mechanism']}: after {row['not_asked_again']} of {row['crashes']} crashes the guest was back "
                f"and no client asked again: {_ASK_AGAIN} The outage is until the guest could be reached."
            )
    if study.outside:
        print_outside(study.model)
    for kind, why in study.refused.items():
        print_text(f"Left out: {kind}: {why}")


def _came_back(row: dict[str, Any]) -> str:
    return _share(binomial_interval(row["came_back"], row["crashes"]))


def _nines(value: float) -> str:
    return f"{value:.2f}" if math.isfinite(value) else "no outage"


def _of_year(row: dict[str, Any], name: str, figure: str) -> str:
    if row[f"{name}_interval"] == "none":
        return _plain(row[figure])
    return error_bar(row[figure], row[f"{name}_low"], row[f"{name}_high"], row[f"{name}_interval"])


def _share(e: Estimate) -> str:
    """Return a share of crashes in percent."""
    if e.kind == "upper bound":
        return f"< {100 * e.high:.2g} %"
    if e.kind == "lower bound":
        return f"> {100 * e.low:.2g} %"
    return " to ".join(f"{100 * x:.2g}" if x < 0.99 else f"{100 * x:.1f}" for x in (e.low, e.high)) + " %"


def _bar(row: Any) -> str:
    return error_bar(row.estimate, row.low, row.high, row.interval)


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
