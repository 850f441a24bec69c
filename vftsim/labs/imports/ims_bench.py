"""Report of IMS Bench SIPp (ETSI TS 186 008): the tables by step, from the HTML page or its text with tabs.

The report has one summary table, whose columns are steps, and tables whose rows are steps and whose columns are
statistics.  A response time keeps its own name where it comes first in the report (``REG1``); where it comes again
for one scenario, the scenario is added (``REG1/ims_reg``).  CPU and memory are of a machine: where the report has
several of a kind, each has its name (``cpu/sut2``), as none is the server by itself.
"""

import re
from collections import Counter
from dataclasses import dataclass, replace

from vftsim.labs.importing import Figure, Source, importer
from vftsim.labs.report_text import Table, blocks

_STATISTICS = {
    "mean": "mean",
    "standard deviation": "sd",
    "minimum": "min",
    "maximum": "max",
    "variance": "",
    "percentile 50": "p50",
    "percentile 90": "p90",
    "percentile 95": "p95",
    "percentile 99": "p99",
}
_DELAY = re.compile(r"PX_TRT-(?P<name>[A-Z]+[0-9]+) \((?P<unit>msec)\)")
_STEP = re.compile(r"(?P<pre>Pre-?reg\w*)|(?:Step )?(?P<step>[0-9]{1,3})", re.IGNORECASE)
_SCENARIO = re.compile(r"\b(ims_[a-z]+)\b")
_SUMMARY = (
    (re.compile(r"effective load"), "load", "/s"),
    (re.compile(r"ratio (?P<scenario>ims_\w+) %"), "mix/{scenario}", "%"),
    (re.compile(r"ihs (?P<scenario>ims_\w+) %"), "ihs/{scenario}", "%"),
    (re.compile(r"global ihs %"), "ihs/global", "%"),
    (re.compile(r"cpu (?P<machine>.*)"), "cpu/{machine}", "%"),
    (re.compile(r"memory (?P<machine>.*)"), "memory/{machine}", "MB"),
    (re.compile(r"sipp cpu (?P<machine>.*)"), "generator_cpu/{machine}", "%"),
    (re.compile(r"sipp mem (?P<machine>.*)"), "generator_memory/{machine}", "MB"),
)
_TITLES = (
    ("effective load", "load", "/s"),
    ("sipp cpu", "generator_cpu", "%"),
    ("sipp mem", "generator_memory", "MB"),
    ("cpu", "cpu", "%"),
    ("memory", "memory", "MB"),
    ("retransmit", "retransmissions", "/s"),
    ("ihs per use_case", "ihs_each_second/global", "%"),
    ("ihs per scenario", "ihs_each_second", "%"),
)
_OF_MACHINES = ("cpu", "memory", "generator_cpu", "generator_memory")


@dataclass(slots=True)
class _Report:
    source: Source
    found: dict[tuple[str, str], Figure]
    metrics: set[str]

    def add(self, phase: str, metric: str, unit: str, statistics: dict[str, float]) -> None:
        before = self.found.get((phase, metric))
        merged = {**(before.statistics if before else {}), **statistics}
        self.found[phase, metric] = Figure(metric, unit, merged, phase)
        self.metrics.add(metric)

    def figures(self) -> list[Figure]:
        """Return what was found; a machine that is the only one of its kind is not named."""
        of_kind = Counter(metric.partition("/")[0] for metric in self.metrics)
        alone = {kind for kind in _OF_MACHINES if of_kind[kind] == 1}
        figures = ((each, each.metric.partition("/")[0]) for each in self.found.values())
        return [replace(each, metric=kind) if kind in alone else each for each, kind in figures]


@importer(
    "ims-bench",
    "report of IMS Bench SIPp, HTML or text with tabs",
    lambda text: "Requested" in text and ("PX_TRT" in text or "IMS Bench" in text),
    windowed=False,
)
def _read(source: Source) -> list[Figure]:
    opened, closed = (len(re.findall(tag, source.text, re.IGNORECASE)) for tag in (r"<table\b", "</table"))
    if opened > closed:
        source.refuse("ends within a table; was the file cut?")
    report = _Report(source, {}, set())
    heading = ""
    for block in blocks(source.text):
        if isinstance(block, str):
            heading = block
        elif len(block) > 2 and any(_phase(cell) is not None for cell in block[0][1][1:]):
            _summary(report, block)
        elif any(_statistic(cell) is not None for _, row in block for cell in row):
            _steps(report, block, heading)
    if not report.found:
        source.refuse("has no table by step; give the report of IMS Bench SIPp as HTML, or as text with tabs")
    return report.figures()


def _summary(report: _Report, table: Table) -> None:
    """Read the table whose columns are steps."""
    phases = [_phase(cell) for cell in table[0][1][1:]]
    for line, row in table[1:]:
        for pattern, metric, unit in _SUMMARY:
            match = pattern.fullmatch(row[0].lower())
            if match is None:
                continue
            if len(row) != len(phases) + 1:
                report.source.refuse(f"has {len(row) - 1} values for {len(phases)} steps", line, row[0])
            for phase, cell in zip(phases, row[1:], strict=True):
                value = report.source.number(cell, line, row[0])
                report.add(str(phase), metric.format(**match.groupdict()), unit, {"mean": value})


def _steps(report: _Report, table: Table, heading: str) -> None:
    """Read a table whose rows are steps."""
    first = next((i for i, (_, row) in enumerate(table) if _phase(row[0]) is not None), len(table))
    head = [cell for _, row in table[:first] for cell in row]
    statistics = [statistic for cell in head if (statistic := _statistic(cell)) is not None]
    title = next((cell for cell in head if _metric(report, cell, heading)), "")
    metric = _metric(report, title, heading)
    if metric is None:
        return  # a table of something else
    for line, row in table[first:]:
        phase = _phase(row[0])
        values = row[2:]
        if phase is None or len(values) != len(statistics):
            report.source.refuse(
                f"a row of this table needs a step, its load and {len(statistics)} numbers, found {len(row)} cells",
                line,
                title,
            )
        numbers = {s: report.source.number(v, line, title) for s, v in zip(statistics, values, strict=True) if s}
        report.add(phase, *metric, numbers)


def _metric(report: _Report, title: str, heading: str) -> tuple[str, str] | None:
    scenario = _SCENARIO.search(heading)
    delay = _DELAY.fullmatch(title.strip())
    if delay:
        name = delay["name"]
        return (f"{name}/{scenario[1]}" if scenario and name in report.metrics else name), "ms"
    for start, metric, unit in _TITLES:
        if title.lower().startswith(start):
            if metric in _OF_MACHINES:
                return f"{metric}/{title.lower().removeprefix(start).strip()}", unit
            return (f"{metric}/{scenario[1]}" if scenario and "/" not in metric else metric), unit
    return None


def _statistic(cell: str) -> str | None:
    return _STATISTICS.get(cell.strip().lower())


def _phase(cell: str) -> str | None:
    match = _STEP.fullmatch(cell.strip().replace("Pre-registration", "Pre-reg"))
    if match is None:
        return None
    return "pre_registration" if match["pre"] else f"step_{int(match['step'])}"
