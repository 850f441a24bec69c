r"""What the documentation shows of a command: marks in its pages, what belongs between them, and whether it is there.

A mark names a command of ``docs/shown.yaml`` and what of its results stands up to the closing mark::

    <!-- shown NAME: WHAT -->98<!-- /shown -->

``WHAT`` is one figure or a whole text::

    comparison[model=lab-native,figure=capacity_saps].estimate as .0f
    @record.md ## Wrong models, each on the row that tells
    verdicts[environment=virtual].found /(\S+) % over/ else none
    rows[*phase=step_6,quantity~p\d].error median as .0%

a way into the JSON that the command printed (or into a file that it wrote, ``@file``; what it printed if it is no
JSON; see :func:`follow`), one figure of many (``sum``, ``median``, ``worst``, ``least``, ``most``), the section of a
text below a heading, the groups of a regular expression, a format, and what stands where there is nothing.  A mark
of several lines is a table, in YAML: ``rows`` (key and label of each), ``head`` (of the labels) and ``columns``, each a
``WHAT`` in which ``{row}`` is the key; or ``text``, a ``WHAT`` that is a table, and ``lines``, a regular expression for
those that are shown of it.
"""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

MARK = re.compile(r"<!-- shown (?P<name>[\w-]+):\s*(?P<what>.*?)\s*-->(?P<text>.*?)<!-- /shown -->", re.DOTALL)
WHAT = re.compile(
    r"^(?:@(?P<file>\S+)\s*)?(?P<way>(?:\[[^\]]*\]|[^#/\s])+)?\s*"
    r"(?P<of_all>sum|median|worst|least|most)?\s*(?:## (?P<section>.+?))?\s*"
    r"(?:/(?P<pattern>.+)/)?\s*(?:as (?P<form>\S+))?\s*(?:else ?(?P<instead>.*))?$"
)
STEP = re.compile(r"(?P<key>[^.\[\]]+)|\[(?P<where>[^\]]*)\]")
OF_ALL: dict[str, Callable[[Sequence[float]], float]] = {
    "sum": sum,
    "median": statistics.median,
    "worst": lambda values: max(values, key=abs),
    "least": min,
    "most": max,
}
"""What makes one figure of many."""
NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")


class ShownError(Exception):
    """What a mark asks for is not there."""


@dataclass(frozen=True, slots=True)
class Results:
    """What a command left: what it printed, and the folder with the files that it wrote."""

    printed: str
    folder: Path
    values: Mapping[str, str] = field(default_factory=dict)
    """Names that marks may use, and what they stand for."""

    def what(self, asked: str) -> str:
        """Return the text that belongs between marks.

        Raises
        ------
        ShownError
            There is no such thing.
        """
        if "\n" in asked:
            return self._table(YAML(typ="safe").load(asked))
        return self._one(self.values.get(asked, asked))

    def _one(self, asked: str) -> str:
        parts = WHAT.match(asked)
        if parts is None:
            raise ShownError(f"cannot be read: {asked}")
        try:
            found = self._found(parts)
        except (KeyError, IndexError, StopIteration, OSError, TypeError, ValueError) as error:
            if parts["instead"] is not None:
                return parts["instead"]
            raise ShownError(f"not in the results: {asked} ({type(error).__name__}: {error})") from None
        if parts["form"]:
            value = float(str(found).replace(",", ""))
            text = format(value, parts["form"])
            return format(value, ".0f") if "e+" in text else text  # 163, not 1.6e+02
        return str(found).strip("\n")

    def _found(self, parts: re.Match[str]) -> Any:
        text = (self.folder / parts["file"]).read_text(encoding="utf-8") if parts["file"] else self.printed
        found: Any = text
        if parts["way"]:
            found = follow(json.loads(text), parts["way"])
            if found is None:
                raise KeyError(parts["way"])
        if parts["of_all"]:
            found = OF_ALL[parts["of_all"]](found)
        if parts["section"]:
            found = section(str(found), parts["section"])
        if parts["pattern"]:
            match = re.search(parts["pattern"], str(found))
            if match is None:
                raise KeyError(parts["pattern"])
            found = "; ".join(match.groups())
        return found

    def _table(self, asked: Mapping[str, Any]) -> str:
        if "text" in asked:
            head, rule, *rest = self._one(asked["text"]).splitlines()
            return "\n".join([head, rule, *(line for line in rest if re.search(asked["lines"], line))])
        names = [asked.get("head", ""), *asked["columns"]]
        lines = [names, ["---"] * len(names)]
        for key, label in asked["rows"].items():
            lines.append([label, *(self._one(each.replace("{row}", str(key))) for each in asked["columns"].values())])
        return "\n".join(f"| {' | '.join(map(str, line))} |".replace("  ", " ") for line in lines)


def follow(data: Any, way: str) -> Any:
    """Return what a way leads to: keys by dots; in brackets places, or conditions (``key=value``, ``key~pattern``).

    Conditions lead to the first member that meets them, after a star to all of them; a key is then that of each.
    """
    many = False
    for step in STEP.finditer(way):
        key, where = step["key"], step["where"]
        if key is not None:
            data = [_member(each, key) for each in data] if many else _member(data, key)
        elif where.startswith("*"):
            members = list(data.values()) if isinstance(data, dict) else data
            data, many = [each for each in members if _meets(each, where[1:])], True
        elif "=" in where or "~" in where:
            data = next(each for each in data if _meets(each, where))
        else:
            data = _member(data, where)
    return data


def _member(data: Any, key: str) -> Any:
    return data[int(key)] if isinstance(data, list) else data[key]


def _meets(member: Mapping[str, Any], conditions: str) -> bool:
    """Say whether a member has all values that are wanted, by comma."""
    for condition in filter(None, conditions.split(",")):
        key, sign, wanted = re.split("([=~])", condition, maxsplit=1)
        value = str(member.get(key))
        if not (value == wanted if sign == "=" else re.search(wanted, value)):
            return False
    return True


def section(text: str, title: str) -> str:
    """Return what stands below a heading, up to the next of its rank or above."""
    head = re.search(rf"^(#+) {re.escape(title)}$", text, re.MULTILINE)
    if head is None:
        raise KeyError(title)
    rest = text[head.end() :]
    end = re.search(rf"^#{{1,{len(head[1])}}} ", rest, re.MULTILINE)
    return (rest[: end.start()] if end else rest).strip("\n")


def between(text: str, script: str) -> str:
    """Return what a script wrote into a page between its own marks."""
    rest = text.split(f"<!-- generated: {script} -->", 1)[1]
    return rest.split("<!-- end of generated part -->", 1)[0]


def agree(shown: str, found: str, tolerance: float, exact: Sequence[str] = ()) -> bool:
    """Say whether two texts differ in figures by no more than a unit of the last digit shown, or by a share.

    Columns of tables that are named in ``exact`` have no share: what a run counts does not depend on the machine.
    """
    if [*words(shown)] != [*words(found)]:
        return False
    if exact and not agree(columns(shown, exact), columns(found, exact), 0.0):
        return False
    pairs = zip(NUMBER.findall(shown), NUMBER.findall(found), strict=True)
    return all(near(old, new, tolerance) for old, new in pairs)


def columns(text: str, names: Sequence[str]) -> str:
    """Return a table with some of its columns only."""
    head, *rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("|")]
    places = [head.index(name) for name in names]
    return "\n".join(" | ".join(row[place] for place in places) for row in rows)


def words(text: str) -> Sequence[str]:
    """Return what is no figure, without differences of blanks and of the rules of tables."""
    return re.sub(r"-{3,}", "---", NUMBER.sub(" 0 ", text)).replace("|", " | ").split()


def near(old: str, new: str, tolerance: float) -> bool:
    """Say whether two figures are the same within the tolerance; a share of a whole 0 is nothing."""
    digits = re.fullmatch(r"[-+]?[\d,]*(?:\.(\d+))?(?:e([-+]?\d+))?", old)
    assert digits is not None
    unit = 10.0 ** (int(digits[2] or 0) - len(digits[1] or ""))
    a, b = (float(each.replace(",", "")) for each in (old, new))
    room = max(unit, tolerance * abs(a)) if "." in old or (tolerance and a) else 0.0
    return abs(a - b) <= room * (1 + 1e-9)


@dataclass(frozen=True, slots=True)
class Block:
    """A place of a page that shows results of a command."""

    page: Path
    number: int
    """Of the marks of that page; 0: the whole page, or a script's own marks."""
    name: str
    what: str
    text: str


def blocks_of(page: Path) -> list[Block]:
    """Return the marks of a page, in order."""
    found = enumerate(MARK.finditer(page.read_text(encoding="utf-8")), 1)
    return [Block(page, number, mark["name"], mark["what"], mark["text"]) for number, mark in found]


def put(page: Path, texts: Mapping[int, str]) -> None:
    """Write new texts between marks of a page, by number."""
    number = 0

    def filled(mark: re.Match[str]) -> str:
        nonlocal number
        number += 1
        if number not in texts:
            return mark[0]
        begin, end = mark.span("text")
        return mark[0][: begin - mark.start()] + texts[number] + mark[0][end - mark.start() :]

    old = page.read_text(encoding="utf-8")
    new = MARK.sub(filled, old)
    if new != old:
        page.write_text(new, encoding="utf-8")
