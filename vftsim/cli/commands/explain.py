"""``vftsim explain``: where the time of one packet, exchange or held output went."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from vftsim.cli import options
from vftsim.cli.commands.trace import recorded_window
from vftsim.errors import UsageError


class Of(StrEnum):
    """What is explained."""

    packet = "packet"
    exchange = "exchange"
    output = "output"


def explain(
    model: str,
    packet: str = "worst",
    of: Of = Of.packet,
    start: str | None = None,
    length: str | None = None,
    set_: list[str] | None = None,
    seed: int = options.DEFAULT_SEED,
    replication: int = 0,
    as_json: bool = False,
    engine: options.EngineName = options.EngineName.auto,
    strict: bool = False,
) -> None:
    """Decompose the time of one packet, exchange or held output in a window into its parts; they sum to the total.

    Parameters
    ----------
    packet : --packet N|WORD
        worst, median or best delay, or the n-th delivered in the window from 0.
    of : --of
        A packet; an exchange: a call, a registration, a request, a transfer, from its first packet to the last one that
        its client got; or an output that protection held, longest first of all.
    """
    options.use_engine(engine, strict=strict)
    from vftsim.report.screen import print_json, print_text
    from vftsim.tracing.explain import WHICH, explained

    if packet not in WHICH and not packet.isdecimal():
        raise UsageError(f"--packet: a number from 0, or one of {', '.join(WHICH)}; got '{packet}'")
    found = explained(recorded_window(model, set_, seed, replication, start, length), of.value, packet)
    if as_json:
        data: dict[str, Any] = {
            of.value: found.number,
            "of": found.of_all,
            "title": found.title,
            "flow": found.flow,
            "stream": found.stream,
            "seed": seed,
            "delay_ns": found.delay_ns,
            "parts": [{"name": part.name, "length_ns": part.length_ns} for part in found.parts],
        }
        print_json(data)
        return
    what = {Of.packet: "sent and delivered", Of.exchange: "begun and ended", Of.output: "held and let go"}[of]
    print_text(f"{model}, seed {seed}: {of.value} {found.number} of {found.of_all} {what} in the window")
    print_text(str(found))
