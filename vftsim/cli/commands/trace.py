"""``vftsim trace``: who ran where in a window, for Perfetto or as a figure."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from vftsim.cli import options
from vftsim.errors import UsageError

if TYPE_CHECKING:
    from vftsim.composition.model import ModelSpec
    from vftsim.tracing.trace import Trace

_LONGEST_NS = 10_000_000_000


class CapturePoint(StrEnum):
    """Where packets are captured: at the clients, at the host's card, in the guest."""

    client = "client"
    host = "host"
    guest = "guest"


def trace(
    model: str,
    output: Path | None = None,
    gantt: Path | None = None,
    pcap: Path | None = None,
    point: CapturePoint = CapturePoint.client,
    beside: Path | None = None,
    match: list[str] | None = None,
    cycles: str | None = None,
    start: str | None = None,
    length: str | None = None,
    set_: list[str] | None = None,
    seed: int = options.DEFAULT_SEED,
    replication: int = 0,
    force: bool = False,
    engine: options.EngineName = options.EngineName.auto,
    strict: bool = False,
) -> None:
    """Write a window of the schedule: as a Chrome trace (pCPUs, vCPUs, rings), as a Gantt chart, or both.

    Parameters
    ----------
    output : --output, -o FILE
        Trace to write (JSON), for ui.perfetto.dev.
    gantt : --gantt FILE
        Figure to write (.png): who ran on which pCPU.
    pcap : --pcap FILE
        Packets to write (.pcap), for tshark and Wireshark.
    point : --point
        Where packets are captured; with --pcap.
    beside : --beside FILE
        A schedule that a real system recorded: text of 'perf sched script', 'trace-cmd report' or 'xentrace_format'.
        Prints shares, waits and switches of both; in the trace both stand together.
    match : --match VCPU=NAME
        With --beside: which vCPU goes with which thread or vCPU recorded, e.g. 'sut.0=CPU 0/KVM-*'; repeatable
        (default: those of one name).
    cycles : --cycles FREQUENCY
        With --beside of xentrace_format: cycles a second, e.g. '2.4 GHz'.
    force : --force
        Replace an existing file.
    """
    options.use_engine(engine, strict=strict)
    from vftsim.cli.files import check_target, write_whole

    targets = [(output, ""), (gantt, ".png"), (pcap, ".pcap")]
    asked = [(path, suffix) for path, suffix in targets if path is not None]
    if not asked and beside is None:
        raise UsageError(
            "say what to write: -o schedule.json, --gantt schedule.png, --pcap packets.pcap or several, or what to lay "
            "the schedule beside: --beside FILE"
        )
    if beside is None and (match or cycles):
        raise UsageError("--match and --cycles are about the recording of --beside FILE")
    if len({path for path, _ in asked}) < len(asked):
        raise UsageError(f"'{asked[-1][0]}' cannot be two things at once; name two files")
    for path, suffix in asked:
        check_target(path, force, suffix)
    real = None if beside is None else _recording(beside, cycles)
    recorded = recorded_window(model, set_, seed, replication, start, length)
    from vftsim.report.screen import print_blocks, print_text
    from vftsim.study.blocks.schedules import schedule_blocks
    from vftsim.tracing.chrome import write_chrome
    from vftsim.tracing.pcap import Point, write_pcap
    from vftsim.tracing.scheduled import pairs_of

    pairs = {} if real is None else pairs_of(recorded, real, match or ())

    if output is not None:
        write_whole(output, lambda path: write_chrome(recorded, path, real))
    if gantt is not None:
        write_whole(gantt, lambda path: _write_gantt(recorded, path))
    if pcap is not None:
        write_whole(pcap, lambda path: write_pcap(recorded, Point(point.value), path))
    if real is not None:
        print_blocks(schedule_blocks(recorded, real, pairs))
    if not asked:
        return
    print_text(
        f"Written: {' and '.join(str(path) for path, _ in asked)} "
        f"({recorded.start_ns / 1e6:g} to {recorded.end_ns / 1e6:g} ms: {len(recorded.slices)} "
        f"slices, {len(recorded.waits)} waits, {len(recorded.packets)} packets delivered, "
        f"{len(recorded.dropped)} dropped)" + ("; open the trace at ui.perfetto.dev" if output is not None else "")
    )


def _recording(path: Path, cycles: str | None) -> Trace:
    from vftsim.spec.units import FREQUENCY
    from vftsim.tracing.recordings import read_recording

    per_s = None if cycles is None else options.parse_quantity("--cycles", cycles, FREQUENCY)
    if per_s is not None and not per_s > 0:
        raise UsageError("--cycles: above 0, e.g. '2.4 GHz'")
    return read_recording(path, per_s)


def _write_gantt(recorded: Trace, path: Path) -> None:
    from vftsim.report.charts import empty_figure
    from vftsim.study.results import write_figure
    from vftsim.tracing.gantt import draw_gantt

    figure, axes = empty_figure(10.0, 1.4 + 0.55 * recorded.pcpus)
    draw_gantt(recorded, axes)
    write_figure(figure, path)


def recorded_window(
    model: str, overrides: list[str] | None, seed: int, replication: int, start: str | None, length: str | None
) -> Trace:
    """Run a model up to the end of a window and return what was recorded in it."""
    return window_of(options.prepared(model, overrides).spec, seed, replication, start, length)


def window_of(spec: ModelSpec, seed: int, replication: int, start: str | None, length: str | None) -> Trace:
    """Run a checked model up to the end of a window and return what was recorded in it."""
    from vftsim.spec import DURATION
    from vftsim.tracing.trace import run_traced, usual_window_ns

    asked_start_ns = None if start is None else int(options.parse_quantity("--start", start, DURATION))
    asked_length_ns = None if length is None else int(options.parse_quantity("--length", length, DURATION))
    if asked_length_ns is not None and not 0 < asked_length_ns <= _LONGEST_NS:
        raise UsageError("--length: above 0 and at most 10 s")
    start_ns, length_ns = usual_window_ns(spec, asked_start_ns, asked_length_ns)
    end_ns = spec.longest_ns
    if start_ns + length_ns > end_ns:
        raise UsageError(
            f"--start, --length: the run ends after {end_ns / 1e9:g} s, before the window does; "
            "--set measure.duration=... makes it longer"
        )
    from vftsim.study.replicate import check_study

    check_study(1, seed, 1)
    if replication < 0:
        raise UsageError("--replication: 0 or above")
    return run_traced(spec, seed, replication, start_ns, length_ns)[1]
