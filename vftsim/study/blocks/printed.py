"""Results that describe themselves as blocks: for the terminal, a page, a notebook and a plot.

A page ends with the origin of a result: enough to make it again, and to judge how far to trust it.
In its directory a result writes itself beside the store, and is read back from that alone.
"""

# ruff: noqa: PLC0415 - what renders a result is imported by who asks for it

from __future__ import annotations

import contextlib
import json
import math
import shlex
from collections.abc import Collection, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, fields, is_dataclass, replace
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from pydantic import ValidationError

from vftsim.errors import UsageError
from vftsim.files import codec, write_file, write_json
from vftsim.report.blocks import Answer, Bars, Block, Cards, Chart, Facts, Listing, Note, Table, Timeline
from vftsim.report.pictures import write_charts
from vftsim.spec.suggest import together
from vftsim.study.figures.frames import DataFrame, csv_text, rows
from vftsim.study.runs.model import in_yaml
from vftsim.study.runs.versions import ELSEWHERE, NONE, parts_elsewhere
from vftsim.study.store.opened import read_answer, read_data, read_manifest
from vftsim.study.store.store import ANSWER, MANIFEST, Store

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from xarray import Dataset


_PART = "a part of what was asked for: it ended before all was done, and the figures rest on what had finished"


class Printed:
    """Base of results: what they say of themselves, for whoever renders it."""

    def __init_subclass__(cls, **named: Any) -> None:
        """Let a Python session show what the command prints: a dataclass would show all that it holds."""
        super().__init_subclass__(**named)
        cls.__repr__ = cls.__str__  # type: ignore[method-assign,assignment]

    table = "answer.csv"
    """File of the main table."""

    @property
    def origin(self) -> Mapping[str, Any]:
        """Manifest of the result."""
        manifest: Mapping[str, Any] = getattr(self, "manifest")  # noqa: B009 - each has it in a form of its own
        return manifest

    @property
    def interrupted(self) -> bool:
        """Whether the user ended the study before all was done."""
        return bool(self.origin["state"] == "interrupted")

    def page_blocks(self) -> list[Block]:
        """Return the blocks as a page or a notebook has them, where nobody else says that the study ended early."""
        is_part = self.origin.get("state") == "interrupted"
        return [*([Note(_PART, warns=True)] if is_part else []), *self.blocks()]

    @property
    def title(self) -> str:
        """Title: the study and its method."""
        labels = list(dict.fromkeys(model["label"] for model in self.origin["models"]))
        return f"{together(labels)}: {self.origin['command']}"

    def blocks(self) -> list[Block]:
        """Return everything for people as blocks."""
        raise TypeError(f"{type(self).__name__} must say what it consists of")

    def for_machines(self) -> dict[str, Any]:
        """Return everything as plain data: what ``--json`` prints."""
        raise TypeError(f"{type(self).__name__} must say what it is as plain data")

    def print_tables(self) -> None:
        """Print everything for people."""
        from vftsim.report.screen import print_blocks

        print_blocks(self.blocks())

    def report(self, path: str | Path | None = None) -> str:
        """Return the result as a page that needs nothing else; with ``path``, write it there; see :func:`page_of`."""
        from vftsim.files import write_file

        text = page_of([self], [self.title])
        if path is not None:
            write_file(Path(path), text.encode())
        return text

    def plot(self, ax: Axes | None = None, chart: int | str = 0) -> Axes:
        """Draw a chart, by its number or its title on a page, on axes or a figure; refuse one that there is not."""
        from vftsim.report.charts import draw, figure_of

        charts = [block for block in self.blocks() if isinstance(block, Chart | Bars)]
        titles = [each.title for each in charts]
        numbers = {title.casefold(): number for number, title in reversed([*enumerate(titles)])}
        number = numbers.get(chart.casefold()) if isinstance(chart, str) else chart
        if number is None or not 0 <= number < len(charts):
            raise UsageError(f"no chart '{chart}'; charts: {'; '.join(titles) or 'none'}")
        if ax is None:
            return figure_of([charts[number]]).axes[0]
        draw(charts[number], ax)
        return ax

    def estimates(self) -> pd.DataFrame:
        """Return the main table with the figures and their intervals."""
        table: pd.DataFrame = getattr(self, "to_pandas")()  # noqa: B009 - each has it in a form of its own
        return table

    def to_xarray(self) -> Dataset:
        """Return the figures with their intervals as a dataset over all that names them: settings, figure.

        Refuses a result that has no such figures, and any where the extra ``xarray`` is not installed.
        """
        from vftsim.study.figures.frames import as_dataset
        from vftsim.study.runs.extras import extra

        extra("xarray", "xarray", "to_xarray()")
        return as_dataset(self.estimates())

    def _repr_html_(self) -> str | None:
        from vftsim.report.html import fragment

        try:
            return fragment(self.title, self.page_blocks())
        except UsageError:  # without the extra a notebook shows the text
            return None

    def __str__(self) -> str:
        with redirect_stdout(StringIO()) as text:
            self.print_tables()
        return text.getvalue()


def page_of(results: Sequence[Printed], labels: Sequence[str]) -> str:
    """Return a page about one result, or several beside each other; refused without the extra that writes pages."""
    from vftsim.report.html import page

    return page(*whole(results, labels))


def whole(results: Sequence[Printed], labels: Sequence[str]) -> tuple[str, list[Block]]:
    """Return title and blocks of such a page; refuse one of nothing."""
    if not results:
        raise UsageError("a page is of one result or several: name a directory")
    if len(results) == 1:
        origin = results[0].origin
        return results[0].title, [*results[0].page_blocks(), *(origin_blocks(origin) if origin else [])]
    commands = dict.fromkeys(str(each.origin["command"]) for each in results)
    title = f"{' beside '.join(labels)}: {together(list(commands))}"
    return title, beside([each.page_blocks() for each in results], [each.origin for each in results], labels)


_DIGITS = 16
_OF_SOURCES = {"measured", "calibrated"}
"""Keys of a model that say what was measured on it, or fitted to: not what it is."""


def origin_blocks(manifest: Mapping[str, Any]) -> list[Block]:
    """Return how far the models are calibrated, the command, seed, versions, hashes, and the models in full."""
    of, played = manifest["replications_wanted"], len(manifest["replications"])
    is_count = of and (played == of or manifest["state"] != "finished")  # a search plays what it takes
    facts = [
        ("command", command_of(manifest)),
        ("vftsim", _version(manifest)),
        ("seed, streams", f"{manifest['seed']}, {manifest['stream_scheme']}"),
        *([("replications", f"{played} of {of}")] if is_count else []),
        *(("model", f"{each['label']}, sha256 {_short(each)}, {_changed(each)}") for each in manifest["models"]),
        ("state", f"{manifest['state']}, {manifest['started_utc']} to {manifest['ended_utc']}"),
        ("Python", f"{manifest['python']} on {manifest['os']}"),
        ("packages", ", ".join(f"{name} {version}" for name, version in manifest["packages"].items() if version)),
    ]
    models = manifest["models"]
    labels = [model["label"] for model in models]
    trust = [*dict.fromkeys(fact for model in models for fact in _trust(model, len(models) > 1))]
    return [
        *([Facts("How far the model is known", trust)] if trust else []),
        Facts("How to get it again", facts),
        *(
            Listing(
                f"The model {model['label']}{f', sha256 {_short(model)}' if labels.count(model['label']) > 1 else ''}, "
                "all values written out",
                in_yaml(model["resolved"]),
            )
            for model in models
        ),
    ]


def command_of(manifest: Mapping[str, Any]) -> str:
    """Return the command line of a result, or what kind of study it was where it was called from Python."""
    words = manifest.get("command_line") or []
    if not words or words[0] not in {"vftsim", "__main__.py"}:
        return f"vftsim.{manifest['command']} from Python"
    return shlex.join(["vftsim", *words[1:]])


def differences(manifests: Sequence[Mapping[str, Any]], labels: Sequence[str]) -> Block:
    """Return the keys in which the first models of results differ, a column a result, and nothing else."""
    firsts = [manifest["models"][0]["resolved"] for manifest in manifests]
    flat = [dict(_flat({key: value for key, value in first.items() if key not in _OF_SOURCES})) for first in firsts]
    keys = dict.fromkeys(key for each in flat for key in each)
    values_of = {key: [each.get(key, "-") for each in flat] for key in keys}
    rows = [[key, *values] for key, values in values_of.items() if len(set(values)) > 1]
    seeds = [str(manifest["seed"]) for manifest in manifests]
    if len(set(seeds)) > 1:
        rows.append(["seed", *seeds])
    if not rows:
        return Note(f"{', '.join(labels)}: their first models differ in nothing but how they were asked.")
    return Table(("key", *labels), rows, "What differs", texts=1 + len(labels))


def _flat(data: Any, path: str = "") -> list[tuple[str, str]]:
    if not isinstance(data, Mapping) or not data:
        return [(path, "none" if data is None else str(data))]
    return [pair for key, value in data.items() for pair in _flat(value, f"{path}.{key}" if path else str(key))]


def _version(manifest: Mapping[str, Any]) -> str:
    git = manifest.get("git")
    if not git:
        return str(manifest["vftsim"])
    return f"{manifest['vftsim']}, commit {git['commit'][:12]}{', changed since' if git['dirty'] else ''}"


def _changed(model: Mapping[str, Any]) -> str:
    return ", ".join([*model["set"], *model["notes"]]) or "nothing changed"


def _short(model: Mapping[str, Any]) -> str:
    return str(model["sha256"][:_DIGITS])


def _trust(model: Mapping[str, Any], is_one_of_several: bool) -> list[tuple[str, str]]:
    """Return what a model was fitted to, what is not covered by that, and what its costs rest on."""
    of = f"{model['label']}: " if is_one_of_several else ""
    facts = []
    if calibrated := model["resolved"].get("calibrated"):
        low, high = calibrated["loads"]
        facts.append((f"{of}fitted to", f"{calibrated['by']}, loads from {low} to {high}"))
    else:
        facts.append((f"{of}fitted to", "the model does not say"))
    if keys := model.get("not_covered"):
        facts.append((f"{of}not covered by that", ", ".join(keys)))
    if (measured := model["resolved"].get("measured") or {}).get("capacity") is not None:
        facts.append((f"{of}measured capacity", str(measured["capacity"])))
    facts += [(f"{of}costs", text) for text in model.get("costs", ())]
    return facts


B = TypeVar("B", bound=Block)


def beside(
    parts: Sequence[Sequence[Block]], manifests: Sequence[Mapping[str, Any]], labels: Sequence[str]
) -> list[Block]:
    """Return the blocks of several results, what each says of itself, as those of one page, called by their labels."""
    named = list(zip(labels, parts, strict=True))
    notes = [(label, [each for each in _of(blocks, Note) if not each.warns]) for label, blocks in named]
    behind = _told_apart([(label, note.text) for label, each in notes for note in each[1:]], len(named))
    cards = [(label, card) for label, blocks in named for each in _of(blocks, Cards) for card in each.cards]
    page: list[Block] = [
        *(Note(f"{label}: {note.text}") for label, each in notes for note in each[:1]),
        *(replace(a, question=f"{label}: {a.question}") for label, blocks in named for a in _of(blocks, Answer)),
        *(Note(f"{label}: {note.text}", True) for label, blocks in named for note in _of(blocks, Note) if note.warns),
        Cards([replace(card, label=f"{label}: {card.label}") for label, card in cards]),
        *_charts(named),
        differences(manifests, labels),
    ]
    tables = [(label, table) for label, blocks in named for table in _of(blocks, Table)]
    for title in dict.fromkeys(table.title for _, table in tables):
        alike = [(f"{title}, {label}" if title else label, table) for label, table in tables if table.title == title]
        page += [replace(table, title=whole) for whole, table in alike]
    page += [Note(whose + text) for whose, text in behind]
    page += [replace(each, title=f"{label}: {each.title}") for label, blocks in named for each in _of(blocks, Timeline)]
    origins = [(label, origin_blocks(manifest)) for label, manifest in zip(labels, manifests, strict=True)]
    page += [replace(e, title=f"{e.title}: {label}") for label, blocks in origins for e in _of(blocks, Facts)]
    page += [replace(e, title=f"{e.title}: {label}") for label, blocks in origins for e in _of(blocks, Listing)]
    return page


def _of(blocks: Sequence[Block], kind: type[B]) -> list[B]:
    return [block for block in blocks if isinstance(block, kind)]


def _charts(named: Sequence[tuple[str, Sequence[Block]]]) -> list[Block]:
    """Return charts of the same axes as one with the lines of each result that has them, the others as they are."""
    every: dict[tuple[str, str, str, Sequence[str]], list[tuple[str, Chart]]] = {}
    alone: list[Block] = []
    for label, blocks in named:
        for chart in _of(blocks, Chart):
            every.setdefault((chart.title, chart.x, chart.y, tuple(chart.names)), []).append((label, chart))
        alone += [replace(bars, title=f"{bars.title}: {label}") for bars in _of(blocks, Bars)]
    return [*(_together(charts) for charts in every.values()), *alone]


def _together(charts: Sequence[tuple[str, Chart]]) -> Chart:
    """Return a chart of several results: the lines of each, then what was measured, so each has its own colour.

    It is shaded where all are shaded alike, and has a scale on which each can be read.
    """
    first = charts[0][1]
    lines = [(label, series) for label, chart in charts for series in chart.series]
    measured = _told_apart([line for line in lines if line[1].style == "measured"], len(charts))
    return replace(
        first,
        series=[
            *(replace(series, name=f"{label}: {series.name}") for label, series in lines if series.style != "measured"),
            *(replace(series, name=whose + series.name) for whose, series in measured),
        ],
        limits=_marks([(label, mark) for label, chart in charts for mark in chart.limits], len(charts)),
        at=_marks([(label, mark) for label, chart in charts for mark in chart.at], len(charts)),
        within=first.within if all(chart.within == first.within for _, chart in charts) else None,
        scale=max((chart.scale for _, chart in charts), key=("linear", "log", "symlog").index),
        reach=[y for _, chart in charts for y in chart.reach],
    )


def _marks(marks: Sequence[tuple[str, tuple[float, str]]], count: int) -> list[tuple[float, str]]:
    return [(value, whose + text) for whose, (value, text) in _told_apart(marks, count)]


T = TypeVar("T")


def _told_apart(each: Sequence[tuple[str, T]], count: int) -> list[tuple[str, T]]:
    """Return what results have, by label: once and without one where all have it, else with that of its own."""
    having: dict[str, list[tuple[str, T]]] = {}
    for label, result in each:
        having.setdefault(repr(result), []).append((f"{label}: ", result))
    return [pair for pairs in having.values() for pair in (pairs if len(pairs) < count else [("", pairs[0][1])])]


def write_answer(store: Store, answer: Any) -> list[str]:
    """Write an answer beside the store, in its own form or :func:`write_result`'s; return remarks on both."""
    main = getattr(answer, "to_pandas", None)

    def write(folder: Path) -> None:
        write_result(folder, answer, {} if main is None else {answer.table: main()})

    store.finish(getattr(answer, "write_files", write))
    remarks: list[str] = getattr(answer, "remarks", [])
    return remarks + store.remarks


def refuse_another(folder: Path, digests: Collection[str], seed: int) -> None:
    """Refuse a directory whose tables are of other models than those asked about, by digest, or under another seed."""
    manifest: dict[str, Any] = {}
    with contextlib.suppress(OSError, ValueError):  # none, or no longer as it was written
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    before = manifest.get("asked")
    if before and digests and (set(before).isdisjoint(digests) or manifest["seed"] != seed):
        made_with, now = manifest.get("versions", {}).get(ELSEWHERE, NONE), parts_elsewhere()
        changed = "" if made_with == now else f" ({ELSEWHERE}: {now}, not {made_with})"
        raise UsageError(
            f"'{folder}' tells of another model or seed{changed}, and what is asked now would take its place; choose "
            "another name, or --force to replace it"
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
            blocks: list[Block] = [codec(_KINDS[entry.pop("is")])[1](entry) for entry in data["blocks"]]
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
        import pandas as pd

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
