"""``vftsim trace``: who ran where in a window, for Perfetto or as a figure."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from vftsim.cli import options
from vftsim.cli.window import Window
from vftsim.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vftsim.tracing.trace import Trace


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
    *,
    window: Window,
    force: bool = False,
) -> None:
    """Write a window of the schedule: as a Chrome trace (pCPUs, vCPUs, rings), as a Gantt chart, or both.

    Parameters
    ----------
    output : --output, -o FILE
        Trace to write (.json), for ui.perfetto.dev.
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
    from vftsim.cli.files import check_target, write_whole

    by_suffix = {".json": output, ".png": gantt, ".pcap": pcap}
    outputs = {suffix: path for suffix, path in by_suffix.items() if path is not None}
    if not outputs and beside is None:
        raise UsageError(
            "say what to write: -o schedule.json, --gantt schedule.png, --pcap packets.pcap or several, or what to lay "
            "the schedule beside: --beside FILE"
        )
    if beside is None and (match or cycles):
        raise UsageError("--match and --cycles are about the recording of --beside FILE")
    for suffix, path in outputs.items():
        check_target(path, force, suffix)
    real = None if beside is None else _recording(beside, cycles)
    recorded = window.recorded(window.loaded(model).spec)
    from vftsim.report.screen import print_blocks
    from vftsim.study.blocks.schedules import schedule_blocks
    from vftsim.tracing.chrome import write_chrome
    from vftsim.tracing.pcap import Point, write_pcap
    from vftsim.tracing.scheduled import pairs_of

    pairs = {} if real is None else pairs_of(recorded, real, match or ())
    writers = {
        ".json": lambda path: write_chrome(recorded, path, real),
        ".png": lambda path: _write_gantt(recorded, path),
        ".pcap": lambda path: write_pcap(recorded, Point(point.value), path),
    }
    for suffix, path in outputs.items():
        write_whole(path, writers[suffix])
    if real is not None:
        print_blocks(schedule_blocks(recorded, real, pairs))
    if outputs:
        _say_written(recorded, outputs)


def _say_written(recorded: Trace, outputs: Mapping[str, Path]) -> None:
    from vftsim.report.screen import print_text

    opened = "; open the trace at ui.perfetto.dev" if ".json" in outputs else ""
    print_text(f"Written: {' and '.join(map(str, outputs.values()))} ({recorded}){opened}")


def _recording(path: Path, cycles: str | None) -> Trace:
    from vftsim.spec.units import FREQUENCY
    from vftsim.tracing.recordings import read_recording

    per_s = None if cycles is None else options.parse_quantity("--cycles", cycles, FREQUENCY)
    if per_s is not None and not per_s > 0:
        raise UsageError("--cycles: above 0, e.g. '2.4 GHz'")
    return read_recording(path, per_s)


def _write_gantt(recorded: Trace, path: Path) -> None:
    from vftsim.report.charts import empty_figure
    from vftsim.report.pictures import write_figure
    from vftsim.tracing.gantt import draw_gantt

    figure, axes = empty_figure(10.0, 1.4 + 0.55 * recorded.pcpus)
    draw_gantt(recorded, axes)
    write_figure(figure, path)
