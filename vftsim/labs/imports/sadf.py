"""sysstat ``sadf -d FILE -- -u [ALL] [-P ALL]``: CPU samples as a semicolon table."""

from __future__ import annotations

from datetime import UTC, datetime

from vftsim.labs.cpu_samples import Samples
from vftsim.labs.importing import Figure, Importer, Source, register

_HEAD = ["# hostname", "interval", "timestamp", "CPU"]


def _read(source: Source) -> list[Figure]:
    columns: list[str] = []
    samples = Samples()
    start: float | None = None
    for line, text in enumerate(source.text.splitlines(), start=1):
        cells = text.strip().split(";")
        if text.startswith("#"):
            if cells[: len(_HEAD)] != _HEAD or "%idle" not in cells:
                source.refuse("is not a table of CPU use; make it with  sadf -d FILE -- -u", line)
            columns = cells[len(_HEAD) :]
        elif text.strip() and "LINUX-RESTART" not in text and not cells[-1].startswith("COM "):
            if len(cells) < len(_HEAD):
                source.refuse(
                    f"has {len(cells)} cells, the header {len(_HEAD) + len(columns)}; was the file cut?", line
                )
            interval = source.number(cells[1], line, "interval")
            end = _epoch_s(source, cells[2], line)
            start = end - interval if start is None else start
            if source.window.holds(end - interval - start, end - start):
                samples.add(source, line, cells[3], columns, cells[len(_HEAD) :])
    return samples.figures()


def _epoch_s(source: Source, cell: str, line: int) -> float:
    if cell.isascii() and cell.isdigit():
        return source.number(cell, line, "timestamp")
    try:
        return datetime.strptime(cell.removesuffix(" UTC"), "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return source.refuse(f"'{cell[:60]}' is not a time YYYY-MM-DD HH:MM:SS", line, "timestamp")


register(Importer("sadf", "sysstat sadf -d", lambda text: text.startswith(";".join(_HEAD)), _read))
