"""CPU samples of ``sar``, however they are written: busy and stolen time by processor."""

from __future__ import annotations

from dataclasses import dataclass, field

from vftsim.labs.importing import Figure, Source, of_values

_ALL = {"-1", "all"}


@dataclass(slots=True)
class Samples:
    """Percentages of each sample by processor; ``cpu`` is 100 - idle - iowait - steal."""

    values: dict[str, list[float]] = field(default_factory=dict)

    def add(self, source: Source, line: int, processor: str, columns: list[str], cells: list[str]) -> None:
        """Take one sample."""
        if len(cells) != len(columns):
            source.refuse(f"has {len(cells)} percentages, the header {len(columns)}; was the file cut?", line)
        shares = {name: source.number(cell, line, name) for name, cell in zip(columns, cells, strict=True)}
        for name, share in shares.items():
            if not -0.5 <= share <= 100.5:
                source.refuse(f"{share:g} is no percentage", line, name)
        suffix = "" if processor in _ALL else f"/{processor}"
        busy = 100.0 - shares["%idle"] - shares.get("%iowait", 0.0) - shares.get("%steal", 0.0)
        self.values.setdefault(f"cpu{suffix}", []).append(max(busy, 0.0))
        if "%steal" in shares:
            self.values.setdefault(f"steal{suffix}", []).append(shares["%steal"])

    def figures(self) -> list[Figure]:
        """Return the figures of all processors."""
        return [of_values(name, "%", values) for name, values in self.values.items()]
