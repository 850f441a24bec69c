"""``vftsim explain``: where the time of one packet, exchange or held output went."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vftsim.cli import options
from vftsim.cli.commands.trace import Length, Replication, Start, recorded_window
from vftsim.errors import UsageError

if TYPE_CHECKING:
    from vftsim.tracing.explain import Part
    from vftsim.tracing.trace import Trace

_WORDS = ("best", "median", "worst")


class Of(StrEnum):
    """What is explained."""

    packet = "packet"
    exchange = "exchange"
    output = "output"


_NONE = {
    Of.packet: "no packet was both sent and delivered in the window; make it longer with --length",
    Of.exchange: "no call, request or transfer began and ended in the window; make it longer with --length, or explain "
    "--of packet",
    Of.output: "no output was held in the window: nothing protects the domain, or it was too short (--length)",
}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("explain")(explain)


def explain(
    model: options.ModelName,
    packet: Annotated[
        str,
        typer.Option(metavar="N|WORD", help="worst, median or best delay, or the n-th delivered in the window from 0."),
    ] = "worst",
    of: Annotated[
        Of,
        typer.Option(
            help="A packet; an exchange: a call, a registration, a request, a transfer, from its first packet to the "
            "last one that its client got; or an output that protection held, longest first of all."
        ),
    ] = Of.packet,
    start: Start = None,
    length: Length = None,
    set_: options.Set = None,
    seed: options.Seed = options.DEFAULT_SEED,
    replication: Replication = 0,
    as_json: options.Json = False,
    engine: options.Engine = options.EngineName.auto,
    strict: options.Strict = False,
) -> None:
    """Decompose the time of one packet, exchange or held output in a window into its parts; they sum to the total."""
    options.use_engine(engine, strict=strict)
    if packet not in _WORDS and not packet.isdecimal():
        raise UsageError(f"--packet: a number from 0, or one of {', '.join(_WORDS)}; got '{packet}'")
    recorded = recorded_window(model, set_, seed, replication, start, length)
    found = _found(recorded, of)
    number = _chosen([delay_ns for delay_ns, _ in found], packet, _NONE[of])
    from vftsim.report.screen import print_json, print_text
    from vftsim.tracing.explain import format_parts

    about, parts = _explained(recorded, of, found[number][1])
    if as_json:
        data: dict[str, Any] = {
            of.value: number, "of": len(found), **about, "seed": seed, "delay_ns": found[number][0],
            "parts": [{"name": part.name, "length_ns": part.length_ns} for part in parts],
        }  # fmt: skip
        print_json(data)
        return
    what = {Of.packet: "sent and delivered", Of.exchange: "begun and ended", Of.output: "held and let go"}[of]
    print_text(f"{model}, seed {seed}: {of.value} {number} of {len(found)} {what} in the window")
    print_text(format_parts(about["title"], parts))


def _found(recorded: Trace, of: Of) -> list[tuple[int, Any]]:
    """Return what can be explained, with the time that it took, in order of its end."""
    from vftsim.tracing.explain import exchanges

    if of is Of.exchange:
        return [(one.delay_ns, one) for one in exchanges(recorded)]
    if of is Of.output:
        return [(one.held_ns, one) for one in recorded.packets if one.held_ns]
    return [(one.delay_ns, one) for one in recorded.packets]


def _explained(recorded: Trace, of: Of, one: Any) -> tuple[dict[str, Any], list[Part]]:
    from vftsim.tracing import explain as explaining

    first = one.chain[0] if of is Of.exchange else one
    title = f"{first.flow} stream {first.stream}" + (f", {first.label} {first.begun}" if first.label else "")
    if of is Of.exchange:
        title = f"{first.flow} stream {first.stream}, {first.label or 'packet'} to {one.chain[-1].label or 'answer'}"
        parts = explaining.explain_exchange(one, recorded)
    elif of is Of.output:
        parts = explaining.explain_hold(one, recorded)
    else:
        parts = explaining.explain(one, recorded)
    return {"title": title, "flow": first.flow, "stream": first.stream}, parts


def _chosen(delays_ns: list[int], packet: str, none: str) -> int:
    """Return the number of what the user means."""
    if not delays_ns:
        raise UsageError(none)
    if packet.isdecimal():
        if int(packet) >= len(delays_ns):
            raise UsageError(f"--packet: from 0 to {len(delays_ns) - 1} in this window; got {packet}")
        return int(packet)
    by_delay = sorted(range(len(delays_ns)), key=lambda n: (delays_ns[n], n))
    return by_delay[{"best": 0, "median": len(by_delay) // 2, "worst": -1}[packet]]
