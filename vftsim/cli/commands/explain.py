"""``vftsim explain``: where one packet's delay went."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from vftsim.cli import options
from vftsim.cli.commands.trace import Length, Replication, Start, recorded_window
from vftsim.errors import UsageError

if TYPE_CHECKING:
    from vftsim.tracing.trace import PacketTrace

_WORDS = ("best", "median", "worst")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("explain")(explain)


def explain(
    model: options.ModelName,
    packet: Annotated[
        str,
        typer.Option(metavar="N|WORD", help="worst, median or best delay, or the n-th delivered in the window from 0."),
    ] = "worst",
    start: Start = "500 ms",
    length: Length = "200 ms",
    set_: options.Set = None,
    seed: options.Seed = options.DEFAULT_SEED,
    replication: Replication = 0,
    as_json: options.Json = False,
    engine: options.Engine = options.EngineName.auto,
) -> None:
    """Decompose the delay of one packet, sent and delivered in a window, into its waits; they sum to the total."""
    options.use_engine(engine)
    if packet not in _WORDS and not packet.isdecimal():
        raise UsageError(f"--packet: a number from 0, or one of {', '.join(_WORDS)}; got '{packet}'")
    followed = [
        workload for workload in options.prepared(model, set_).spec.workloads.values() if not workload.needs_link
    ]
    if not followed:
        raise UsageError(
            f"packets of media streams and calls are explained; '{model}' has no workload of kind rtp or calls"
        )
    recorded = recorded_window(model, set_, seed, replication, start, length)
    number = _chosen(recorded.packets, packet)
    one = recorded.packets[number]
    from vftsim.report.screen import print_json, print_text
    from vftsim.tracing.explain import explain as decompose
    from vftsim.tracing.explain import format_parts

    parts = decompose(one, recorded)
    if as_json:
        data: dict[str, Any] = {
            "packet": number, "of": len(recorded.packets), "flow": one.flow, "stream": one.stream, "seed": seed,
            "delay_ns": one.delay_ns, "parts": [{"name": p.name, "length_ns": p.length_ns} for p in parts],
        }  # fmt: skip
        print_json(data)
        return
    print_text(f"{model}, seed {seed}: packet {number} of {len(recorded.packets)} sent and delivered in the window")
    print_text(format_parts(one, parts))


def _chosen(packets: list[PacketTrace], packet: str) -> int:
    """Return the number of the packet that the user means."""
    if not packets:
        raise UsageError("no packet was both sent and delivered in the window; make it longer with --length")
    if packet.isdecimal():
        if int(packet) >= len(packets):
            raise UsageError(f"--packet: from 0 to {len(packets) - 1} in this window; got {packet}")
        return int(packet)
    by_delay = sorted(range(len(packets)), key=lambda n: (packets[n].delay_ns, n))
    return by_delay[{"best": 0, "median": len(by_delay) // 2, "worst": -1}[packet]]
