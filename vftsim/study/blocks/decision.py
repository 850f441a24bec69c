"""A decision as blocks: what was asked, who does it and the cheapest; then every figure, of each mechanism."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from vftsim.report.blocks import Answer, Bars, Block, Cell, Note, Table, shown
from vftsim.stats import Estimate
from vftsim.stats.intervals import FEWEST_RUNS
from vftsim.study.blocks.crossovers import crossover_answers, crossover_blocks
from vftsim.study.blocks.failover import FEWER_FAILED
from vftsim.study.blocks.head import head
from vftsim.study.decision_figures import CAPACITY, COST, FAILURE, OUTAGE, PRICE, SERVICE, YEAR, Quantity
from vftsim.study.figures.tables import short_owner
from vftsim.study.validity import MARK, below_table

if TYPE_CHECKING:
    from vftsim.study.decision import Decision

_WIDTH = 98
_LESS = "less "
_GAP = 2
_DAY_S = 86_400.0
_OF_STATE = {"rolled_back", "execution_lost"}


def decision_blocks(found: Decision) -> list[Block]:
    """Return answers, the table of what was asked, tables of all figures, notes."""
    said = found.manifest["models"][0]
    notes = [note for note in said["notes"] if not note.startswith("protection")]
    blocks: list[Block] = [*head([{**said, "costs": [], "notes": notes}], found.manifest["seed"])]
    if found.asked.objectives:
        blocks += [*(Answer(text) for text in _answers(found)), *crossover_answers(found.crossovers), _asked(found)]
    else:
        blocks += crossover_answers(found.crossovers)
    for place in dict.fromkeys(one.place for one in found.quantities if one.group == SERVICE):
        own = [one for one in found.quantities if one.group == SERVICE and one.place == place]
        blocks += _tables(found, short_owner(place), own, with_differences=True)
    titles = {COST: "costs", FAILURE: "a crash", YEAR: "a year"}
    for group, title in titles.items():
        blocks += _tables(found, title, [one for one in found.quantities if one.group == group])
    crossing = crossover_blocks(found.crossovers, found.ordered)
    return [*blocks, *_deciding(found), *crossing, *_outages(found), *(Note(text) for text in _notes(found))]


def _deciding(found: Decision) -> list[Block]:
    """Return which price moves the figures most that were asked for, the price of all, and the outage."""
    asked = [(found.figure_of(one), str(one)) for one in found.asked.objectives]
    columns = dict([*asked, (PRICE, "price"), (OUTAGE, "outage")])
    rows: list[list[Cell]] = []
    for kind in found.ordered:
        bands = [found.bands.get(kind, {}).get(name) for name in columns]
        if any(bands):
            rows.append([kind, *(f"{band.decides} {100 * band.share:.0f} %" if band else None for band in bands)])
    said = "of the variance over the ranges of prices; docs/protection/prices.md"
    return [Table(["decides", *columns.values()], rows, caption=said, texts=len(columns) + 1)] if rows else []


def _outages(found: Decision) -> list[Block]:
    """Return the parts of the outages that end."""
    names = [one.name for one in found.quantities if one.name.startswith(f"{OUTAGE}.")]
    rows = [(kind, [found.estimate(kind, name) for name in names]) for kind in found.ordered]
    ending = [(kind, [each.mean for each in parts if each is not None]) for kind, parts in rows]
    known = [(kind, parts) for kind, parts in ending if len(parts) == len(names)]
    title = "Outages when the primary's host crashes"
    return [Bars(title, "s", [name.partition(".")[2].replace("_", " ") for name in names], known)] if known else []


def _answers(found: Decision) -> Iterator[str]:
    said = " and ".join(str(one) for one in found.asked.objectives)
    meets, is_open = ([kind for kind in found.ordered if found.verdicts(kind) == word] for word in ("yes", "open"))
    if not meets:
        yield f"None of these mechanisms meets {said}{' for certain' if is_open else ''}."
    elif len(meets) == 1:
        yield f"{meets[0]} alone meets {said}; {_priced(found, meets[0])}."
    else:
        more = found.price(meets[1]) - found.price(meets[0])
        yield (
            f"{', '.join(meets)} meet {said}. The cheapest is {meets[0]}: {_priced(found, meets[0])}, {more:.3g} % "
            f"less than {meets[1]}."
        )
    if is_open:
        yield f"Open, since an interval holds the limit: {', '.join(is_open)}."


def _priced(found: Decision, kind: str) -> str:
    price = found.estimate(kind, PRICE)
    return "price not known" if price is None else f"price {' '.join(shown(price)).strip()} % of a pCPU"


def _asked(found: Decision) -> Table:
    """Return a verdict and the figure for each mechanism and objective."""
    rows: list[list[Cell]] = []
    for kind in found.ordered:
        row: list[Cell] = [kind]
        for one in found.asked.objectives:
            figure = " ".join(shown(_cell(found, kind, found.figure_of(one)))).strip()
            row.append(f"{found.verdict(kind, one)}: {figure}")
        rows.append([*row, _cell(found, kind, PRICE)])
    return Table(["asked", *(str(one) for one in found.asked.objectives), "price, % of a pCPU"], rows)


def _tables(found: Decision, title: str, figures: Sequence[Quantity], *, with_differences: bool = False) -> list[Block]:
    """Return tables of figures, as many columns in each as fit; what nobody has any of is left out."""
    labels = _labels(found, with_differences)
    beyond = {name for _, name in found.outside or ()}
    room = _WIDTH - max(map(len, (title, *labels)))
    parts: list[list[tuple[str, list[Cell]]]] = [[]]
    left = room
    for one in figures:
        cells = _column(found, one, with_differences)
        if all(map(_is_nothing, cells)):
            continue
        head = f"{one.words}{MARK if one.name in beyond else ''}"
        wide = _GAP + _wide(head, cells)
        if parts[-1] and wide > left:
            parts.append([])
            left = room
        parts[-1].append((head, cells))
        left -= wide
    return [_table(title, labels, part) for part in parts if part]


def _labels(found: Decision, with_differences: bool) -> list[str]:
    labels = []
    for kind in found.ordered:
        labels += [kind, f"{_LESS}{found.first}"] if with_differences and kind != found.first else [kind]
    return labels


def _column(found: Decision, one: Quantity, with_differences: bool) -> list[Cell]:
    cells: list[Cell] = []
    for kind in found.ordered:
        cells.append(_cell(found, kind, one.name))
        if with_differences and kind != found.first:
            cells.append(found.difference(kind, one.name))
    return cells


def _wide(head: str, cells: Sequence[Cell]) -> int:
    """Return the columns that a figure takes with intervals behind the values."""
    texts = [shown(cell) for cell in cells]
    return max(len(head), max(len(value) for value, _ in texts) + 1 + max(len(behind) for _, behind in texts))


def _table(title: str, labels: Sequence[str], part: Sequence[tuple[str, list[Cell]]]) -> Table:
    rows: list[list[Cell]] = [list(row) for row in zip(labels, *(cells for _, cells in part), strict=True)]
    differing = [row for row in rows if not (str(row[0]).startswith(_LESS) and all(map(_is_nothing, row[1:])))]
    return Table([title, *(head for head, _ in part)], differing)


def _is_nothing(cell: Cell) -> bool:
    return cell is None or (isinstance(cell, Estimate) and cell.low == cell.high == 0.0)


def _cell(found: Decision, kind: str, name: str) -> Cell:
    """Return a figure, or in words what has none: an outage without end, a state of which nothing is left."""
    each, estimate = found.protected[kind], found.estimate(kind, name)
    crashes = each.failovers.failovers if each.failovers is not None else ()
    if name in _OF_STATE and each.is_lost:
        return "all"
    if estimate is None:
        of_never = "never ends" if each.never == len(crashes) else f"{each.never} of {len(crashes)} never end"
        return {OUTAGE: of_never, "unprotected": "never again"}.get(name) if crashes else None
    if name == CAPACITY and each.capacity is not None and 2 * each.capacity.unfailed >= estimate.n:
        return f"at least {estimate.mean:.4g}"
    is_meant = name.endswith(".breaches") and estimate.mean and each.breaks_promise
    return f"{shown(estimate)[0]} by design" if is_meant else estimate


def _notes(found: Decision) -> Iterator[str]:
    yield (
        "price: CPU time of both hosts beyond what the same work takes unprotected, time the guest stands still "
        "included; work done: mean of the leading rates. breaches: outputs that left before a backup could take over."
    )
    yield (
        f"A year: each host fails once in {found.asked.mtbf_s / _DAY_S:.4g} days on average (--mtbf); what does not "
        f"come back by itself is brought back by hand in {found.asked.restart_s:g} s (--restart)."
    )
    count = len(found.manifest["replications"])
    rests_on = "± and [ ]: 95 % intervals" if count >= FEWEST_RUNS else "(x to y): lowest and highest of them"
    yield f"{count} replications under the same random numbers, {max(count, 2)} crashes. {rests_on}."
    if found.bands:
        yield (
            "Where a mechanism has prices of its own, ± and [ ] are of replications and of the ranges of these prices "
            "together: 95 % of what prices drawn from them make (--no-prices: none)."
        )
    lost = (found.estimate(kind, "requests_lost") for kind in found.protected)
    if any(each is not None and each.mean < 0.0 for each in lost):
        yield FEWER_FAILED
    if found.outside:
        yield below_table([(found.base.label, found.base.spec)])
    for kind, said in found.notes.items():
        yield from (f"{kind}: {text}" for text in said)
    for kind, why in found.refused.items():
        yield f"Left out: {kind}: {why}"
