"""A result in its directory: what every result writes beside the store, and one read back from that alone."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError

from vftsim.errors import UsageError
from vftsim.files import codec, write_file, write_json
from vftsim.report.blocks import Block
from vftsim.report.pictures import write_charts
from vftsim.study.blocks.printed import Printed
from vftsim.study.figures.frames import DataFrame, csv_text, rows
from vftsim.study.store.opened import read_answer, read_data, read_manifest
from vftsim.study.store.store import ANSWER, MANIFEST, Store


def write_answer(store: Store, answer: Any) -> list[str]:
    """Write an answer beside the store, in its own form or :func:`write_result`'s; return remarks on both."""
    main = getattr(answer, "to_pandas", None)

    def write(folder: Path) -> None:
        write_result(folder, answer, {} if main is None else {answer.table: main()})

    store.finish(getattr(answer, "write_files", write))
    remarks: list[str] = getattr(answer, "remarks", [])
    return remarks + store.remarks


def refuse_another(folder: Path, asked: Collection[str], seed: int) -> None:
    """Refuse a directory whose tables are of other models than those asked about, by digest, or under another seed."""
    manifest: dict[str, Any] = {}
    with contextlib.suppress(OSError, ValueError):  # none, or no longer as it was written
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    before = manifest.get("asked")
    if before and asked and (set(before).isdisjoint(asked) or manifest["seed"] != seed):
        raise UsageError(
            f"'{folder}' tells of another model or seed, and what is asked now would take its place; choose another "
            "name, or --force to replace it"
        )


BLOCKS = "blocks.json"
_TABLES = ("results.csv", "sensitivity.csv", "configurations.csv", "answer.csv")
_KINDS = {kind.__name__: kind for kind in get_args(Block)}


@dataclass(frozen=True)
class Stored(Printed):
    """A result as its directory describes it."""

    folder: Path
    name: str
    """Its title."""
    found: list[Block]
    manifest: dict[str, Any]

    @classmethod
    def opened(cls, folder: Path) -> Stored:
        """Return what is in a directory; refuse one that does not describe itself, or is damaged."""
        manifest, data = read_manifest(folder), read_data(folder, BLOCKS)
        try:
            blocks = [_block(entry) for entry in data["blocks"]]
            return cls(folder, str(data["title"]), blocks, manifest)
        except (ValidationError, KeyError, TypeError, AttributeError):
            raise UsageError(
                f"'{folder / BLOCKS}': damaged; the command that made '{folder}' writes it again"
            ) from None

    @property
    def title(self) -> str:
        return self.name

    def blocks(self) -> list[Block]:
        return self.found

    def to_pandas(self) -> DataFrame:
        """Return the main table; refuse a directory without one."""
        import pandas as pd  # noqa: PLC0415 - takes its time

        name = next((each for each in _TABLES if (self.folder / each).is_file()), None)
        if name is None:
            raise UsageError(f"'{self.folder}' has no table; the command that made it writes it again")
        # An empty cell alone is none: "null" and "NA" are values of settings.
        return pd.read_csv(self.folder / name, keep_default_na=False, na_values=[""])

    def for_machines(self) -> dict[str, Any]:
        """Return everything as plain data, or the main table where that is all that is kept."""
        if (self.folder / ANSWER).is_file():
            return read_answer(self.folder)
        return {"manifest": self.manifest, "results": rows(self.to_pandas())}


def write_result(folder: Path, result: Printed, tables: Mapping[str, DataFrame], *, has_answer: bool = True) -> None:
    """Write a result's tables by name, its charts, what it says of itself, all of its answer, and the manifest."""
    for name, table in tables.items():
        write_file(folder / name, csv_text(table).encode())
    blocks = result.blocks()
    write_charts(folder, blocks)
    if not hasattr(result, "opened"):  # whose class reads it back
        entries = [{"is": type(block).__name__, **_plain(block)} for block in blocks]
        write_json(folder / BLOCKS, {"title": result.title, "blocks": entries}, indent=None)
    if has_answer:
        write_json(folder / ANSWER, result.for_machines())
    write_json(folder / MANIFEST, result.origin)


def _block(entry: Mapping[str, Any]) -> Block:
    kind = _KINDS[entry["is"]]
    block: Block = codec(kind)[1]({name: value for name, value in entry.items() if name != "is"})
    return block


def _plain(data: Any) -> Any:
    """Return blocks as JSON has them; where a field must have a number, one that JSON lacks is its word.

    A cell without a number is one of which nothing is known.
    """
    if is_dataclass(data):
        values = {each.name: getattr(data, each.name) for each in fields(data)}
        return {name: _word(value) if name != "cell" else _plain(value) for name, value in values.items()}
    if isinstance(data, (list, tuple)):
        return [_plain(each) for each in data]
    return data


def _word(value: Any) -> Any:
    is_word = isinstance(value, float) and not math.isfinite(value)
    return str(float(value)) if is_word else _plain(value)
