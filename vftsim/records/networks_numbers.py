"""Judge the figures of Timalsena 2013, with the trivial baseline, closed forms and wrong models beside them.

Margins are those of ``calibration/networks/protocol.md``.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from vftsim.records.networks import (
    DATAGRAM_LINE_NS,
    MOST_CLIENTS,
    RIGHT,
    SLOW_READER_NS,
    WRONG,
    collapse_form_per_s,
    example_figures,
    first_rows,
)
from vftsim.records.networks_claims import Results, Verdict
from vftsim.workloads.bulk_tcp import line_payload_bits_per_s
from vftsim.workloads.bulk_udp import moderation_jitter_ns

_LINE_MBIT = line_payload_bits_per_s(1e9) / 1e6
_MODERATION_NS, _READ_NS = 125_000, 2_000
_FITTED = ("replies", "first_5_s")
PRINTED = (
    "requests", "test_duration", "concurrent_connections_max", "connection_time_min", "connection_time_mean",
    "connection_time_median", "connection_time_sd", "connection_time_max", "connection_time_connect",
    "reply_time_response", "reply_time_transfer",
)  # fmt: skip
"""Figures of httperf's printed example that nothing is fitted on."""
TELLING = ("connection_time_sd", "connection_time_connect", "reply_time_transfer")
"""Figures on which a wrong model should be twice as far off."""
_MEDIAN_LIMIT, _WORST_LIMIT = 0.12, 0.45


@dataclass(frozen=True, slots=True)
class Number:
    """A stated figure beside the prediction, and beside what a closed form or a trivial rule says."""

    what: str
    stated: str
    predicted: str
    beside: str
    verdict: Verdict
    null: Verdict | None = None
    """Whether what stands beside it, which knows no mechanism, holds too; None where nothing does."""


def numbers(results: Results) -> list[Number]:
    """Judge every stated figure but those of httperf's printed example."""
    return [*_tcp_numbers(results), *_udp_numbers(results), *_web_numbers(results)]


def _tcp_numbers(results: Results) -> list[Number]:
    rows, found = first_rows(), []
    for clients in range(1, MOST_CLIENTS + 1):
        value = mean(results[f"tcp net-bare {clients}"]["mbit_per_s"])
        off = value / rows[clients] - 1.0
        baseline = rows[1] / clients
        verdict: Verdict = "holds" if abs(off) <= 0.03 else "missed"
        if clients == MOST_CLIENTS:
            verdict = "contradicted by the source itself"
        found.append(Number(
            f"TCP, each of {clients}, Mbit/s", f"{rows[clients]:g}", f"{value:.1f} ({off:+.1%})",
            f"frames {_LINE_MBIT / clients:.1f}; baseline {baseline:.1f} ({baseline / rows[clients] - 1.0:+.1%})",
            verdict, _within(abs(baseline / rows[clients] - 1.0) <= 0.03),
        ))  # fmt: skip
    return found


def _udp_numbers(results: Results) -> list[Number]:
    stated, found = example_figures("iperf_udp_example"), results["udp example"]
    sent, jitter, loss = (mean(found[key]) for key in ("sent_mbit_per_s", "jitter_us", "loss_percent"))
    spacing_ns = 1470 * 8 / 0.9
    form = moderation_jitter_ns(spacing_ns, _MODERATION_NS, _READ_NS) / 1e3
    sent_off, jitter_off = sent / stated["client_bandwidth"] - 1.0, jitter / (1e3 * stated["jitter"])
    return [
        Number("UDP example, sent, Mbit/s", f"{stated['client_bandwidth']:g} of 900", f"{sent:.1f} ({sent_off:+.1%})",
               "the client's processor is not in the model; as asked 900", _within(abs(sent_off) <= 0.05),
               _within(abs(900.0 / stated["client_bandwidth"] - 1.0) <= 0.05)),
        Number("UDP example, jitter, us", f"{1e3 * stated['jitter']:g}", f"{jitter:.1f}", f"closed form {form:.1f}",
               _within(1 / 1.5 <= jitter_off <= 1.5), _within(1 / 1.5 <= form / (1e3 * stated["jitter"]) <= 1.5)),
        Number("UDP example, loss, %", f"{stated['datagram_loss']:g}", f"{loss:.2f}", "no loss",
               _within(abs(loss - stated["datagram_loss"]) <= 0.1), _within(stated["datagram_loss"] <= 0.1)),
    ]  # fmt: skip


def _web_numbers(results: Results) -> list[Number]:
    one, two = (mean(results[f"web net-bare {n}"]["rate_per_s"]) for n in (1, 2))
    handled = mean(results["handled by two"]["answered_percent"])
    static = results["static pages"]
    most = [collapse_form_per_s("net-bare", n) for n in (1, 2)]
    forms = [f"closed form {each:.2f}" for each in most]
    return [
        Number("web, 17/s from one client (C20)", "handled", "", "the script's cost", "fitted"),
        Number("web, collapse, one client (C21), /s", "20", f"{one:.1f}", forms[0], _within(abs(one - 20.0) <= 1.5),
               _within(abs(most[0] - 20.0) <= 1.5)),
        Number("web, collapse, each of two (C23), /s", "10", f"{two:.1f}", forms[1], _within(abs(two - 10.0) <= 1.0),
               _within(abs(most[1] - 10.0) <= 1.0)),
        Number("web, 8/s from each of two (C22)", "handled", f"{handled:.1f} %", forms[1], _within(handled == 100.0),
               _within(most[1] > 8.0)),
        Number("web, static pages at 800/s (C17-C19)", "no error", f"{mean(static['replies_per_s']):.0f}/s, "
               f"{sum(static['errors']):.0f} errors", "", _within(sum(static["errors"]) == 0.0)),
    ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Printed:
    """A model of the web server against httperf's printed example: figures and relative errors by name."""

    model: str
    values: dict[str, float]
    errors: dict[str, float]

    @property
    def median_error(self) -> float:
        """Median of the absolute errors of the figures that nothing was fitted on."""
        return statistics.median(abs(self.errors[key]) for key in PRINTED)

    @property
    def worst(self) -> str:
        """The figure that is furthest off."""
        return max(PRINTED, key=lambda key: abs(self.errors[key]))

    @property
    def verdict(self) -> Verdict:
        """Whether both limits are kept."""
        return _within(self.median_error <= _MEDIAN_LIMIT and abs(self.errors[self.worst]) <= _WORST_LIMIT)


def printed(results: Results) -> list[Printed]:
    """Return the models of the web server against the printed example, the right one first."""
    stated = example_figures("httperf_example") | {"first_5_s": 25.0}
    found = []
    for name in (RIGHT, *WRONG):
        values = {key: mean(results[f"example {name}"][key]) for key in (*_FITTED, *PRINTED)}
        found.append(Printed(name, values, {key: value / stated[key] - 1.0 for key, value in values.items()}))
    return found


def twice_as_far(right: Printed, wrong: Printed) -> list[str]:
    """Return the telling figures on which a wrong model is at least twice as far off."""
    return [key for key in TELLING if abs(wrong.errors[key]) >= 2.0 * abs(right.errors[key])]


@dataclass(frozen=True, slots=True)
class Mechanism:
    """A figure over the number of clients, its closed form, and whether it goes the stated way."""

    what: str
    values: list[float]
    form: list[float]
    verdict: Verdict


def mechanisms(results: Results) -> list[Mechanism]:
    """Judge how jitter and loss go with clients on bare metal; the shared buffer is to fail."""
    counts = range(1, MOST_CLIENTS + 1)
    jitter = [mean(results[f"udp net-bare {n}"]["jitter_us"]) for n in counts]
    # An equal share of the line: with n flows each has a datagram in n.
    forms = [moderation_jitter_ns(n * DATAGRAM_LINE_NS, _MODERATION_NS, _READ_NS) / 1e3 for n in counts]
    found = [Mechanism("jitter, us, rises", jitter, forms, _rise(jitter, 1.0))]
    lost = 100.0 * (1.0 - DATAGRAM_LINE_NS / SLOW_READER_NS)
    for buffers, form in (("own", [lost, 0.0, 0.0, 0.0, 0.0]), ("shared", [lost] * MOST_CLIENTS)):
        losses = [mean(results[f"slow reader {buffers} {n}"]["loss_percent"]) for n in counts]
        falls = all(losses[0] - loss >= 0.1 for loss in losses[1:])
        found.append(Mechanism(f"loss per flow, %, falls: {buffers} buffer", losses, form, _within(falls)))
    return found


def _rise(values: Sequence[float], margin: float) -> Verdict:
    """Whether each step is up by the margin; a smaller step either way is noise."""
    least = min(later - earlier for earlier, later in pairwise(values))
    return "holds" if least >= margin else "within noise" if least > -margin else "missed"


def _within(does_hold: bool) -> Verdict:
    return "holds" if does_hold else "missed"


def mean(values: Sequence[float]) -> float:
    """Mean over replications."""
    return sum(values) / len(values)
