"""``vftsim run``: replications of one model, as many as a precision takes (``--precision``), and what they show.

The rule is :mod:`vftsim.stats.replications`: after each replication look at the interval of every watched figure, and
stop when all are narrow enough and stay so for five more.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from vftsim.composition.model import ModelSpec
from vftsim.composition.record import RunRecord
from vftsim.composition.record import RunRecord as Record
from vftsim.errors import UsageError
from vftsim.files import write_file, write_json
from vftsim.outcome.declare import Verdict
from vftsim.outcome.estimators import Percentile, Ratio
from vftsim.report.blocks import Answer, Block, Card, Cards, Cell, Marked, Note, Table, in_words
from vftsim.report.pictures import write_charts
from vftsim.spec.suggest import counted
from vftsim.stats import Estimate, ReplicationResult, StoppingRule
from vftsim.stats.replications import replicate as rounds_of
from vftsim.study.blocks.head import head, intervals, missing_notes, outside_notes, share_in_words, unseen
from vftsim.study.blocks.printed import Printed
from vftsim.study.blocks.run_charts import Known, leading, run_charts, words
from vftsim.study.execution import Execution, Replications
from vftsim.study.figures.frames import CONFIDENCE, DataFrame, csv_text, rows
from vftsim.study.figures.names import Address, check_names, watched
from vftsim.study.figures.protection_costs import of_runs
from vftsim.study.figures.summary import Row, Summary, figures_in, of_no_run, short_owner, summary_table, tables
from vftsim.study.figures.validity import MARK, Missing, is_of_load_outside, missing_in, outside_phases, rows_of
from vftsim.study.runs.model import Model, in_yaml
from vftsim.study.runs.versions import source_elsewhere
from vftsim.study.runs.workers import Interrupted
from vftsim.study.store.opened import identity, model_of, read_manifest, records_of
from vftsim.study.store.store import MANIFEST


@dataclass(eq=False)
class RunResult(Printed):
    """Replications of one model."""

    model: Model
    records: list[tuple[int, Record]]
    """In the order of the replications."""
    manifest: dict[str, Any]
    confidence: float = CONFIDENCE
    """Level of the intervals."""
    remarks: list[str] = field(default_factory=list)
    """Remarks on the directory for the user."""
    precision: ReplicationResult | None = None
    """Whether the precision that was asked for was reached."""
    figures: Sequence[str] = ()
    """Names of the figures to show; none: those that lead."""

    def __post_init__(self) -> None:
        if not self.records:
            raise UsageError("a result needs at least one finished replication")

    @cached_property
    def tables(self) -> dict[str, DataFrame]:
        """Tidy tables, one row a replication and observation."""
        return tables(self.model.name, self.records)

    @cached_property
    def summary(self) -> DataFrame:
        """All figures across replications, with intervals."""
        return summary_table(self.figures_found)

    @cached_property
    def figures_found(self) -> Summary:
        """Every declared figure of the model across replications."""
        return Summary(self.records, self.confidence)

    @cached_property
    def shown(self) -> tuple[Summary, list[str]]:
        """The figures, of which those lead that are to be shown, and the names of which no run has one."""
        if not self.figures:
            return self.figures_found, []
        summary = Summary(self.records, self.confidence)
        return summary, summary.lead(self.figures)

    @property
    def missing(self) -> list[Missing]:
        """Traffic and faults that were asked for and did not occur."""
        return missing_in(self.model.spec, self.records)

    def to_pandas(self, table: str = "summary") -> DataFrame:
        """Return a table as its file has it: every figure with its interval, or one of :attr:`tables` (``steps``)."""
        if table == "summary":
            return self.summary
        if table not in self.tables:
            raise UsageError(f"no table '{table}'; tables: summary, {', '.join(self.tables)}")
        return self.tables[table]

    def estimates(self) -> DataFrame:
        """Return every figure of every phase with its interval."""
        return self.summary.drop(
            columns=["table", "metric", "scenario", "statistic", "step_index", "requested_saps"], errors="ignore"
        )

    @classmethod
    def opened(cls, folder: Path) -> RunResult:
        manifest = read_manifest(folder)
        return cls(model_of(manifest), records_of(folder, manifest), manifest)

    def for_machines(self) -> dict[str, Any]:
        return {
            "manifest": self.manifest,
            "confidence": self.confidence,
            "outside_calibration": outside_phases(self.model.spec, self.records),
            "not_offered": rows_of(self.missing),
            **({} if self.precision is None else {"precision": asdict(self.precision)}),
            "summary": rows(self.summary),
            "tables": {name: rows(table) for name, table in self.tables.items() if name != "series"},
        }

    def blocks(self, everything: bool = False) -> list[Block]:
        """Return what was measured: charts and cards, the figures of phases and of the whole run."""
        (summary, lacking), spec = self.shown, self.model.spec
        marks = outside_phases(spec, self.records) or ()
        owners = "" if self.figures else "workloads."
        tables = [phase_table(summary, marks, owners), figures_table(summary, spec, everything=everything)]
        if everything:
            tables += every_phase_table(summary, marks)
        n = len(self.records)
        return [
            *head(self.manifest["models"], self.manifest["seed"]),
            run_answer(self),
            *_cards(summary, spec),
            *run_charts(summary, spec, self.records),
            *(table for table in tables if table.rows),
            *(outside_notes(self.model) if marks else []),
            Note(f"{counted(n, 'replication')}, seed {self.manifest['seed']}. {intervals(self.confidence)}{unseen(n)}"),
            *(Note(text, warns=True) for text in of_no_run(lacking)),
            *map(Note, summary.partly_known(figures_of_run(summary, everything=everything))),
            *_mixed_notes(summary),
            *missing_notes(self.missing),
            *([] if self.precision is None else [_precision_note(self.precision, summary)]),
        ]

    def write_files(self, folder: Path) -> None:
        """Write manifest, resolved model, tables and charts."""
        for name, table in {"summary": self.summary, **self.tables}.items():
            write_file(folder / f"{name}.csv", csv_text(table).encode())
        write_file(folder / "model.yaml", in_yaml(self.model.resolved()).encode())
        write_charts(folder, run_charts(self.figures_found, self.model.spec, self.records))
        write_json(folder / MANIFEST, self.manifest)


def run_study(
    model: Model,
    replications: int,
    execution: Execution,
    *,
    rule: StoppingRule | None = None,
    figures: Sequence[str] = (),
) -> RunResult:
    """Run a model, going on from what the execution's store has of it; an interrupted run returns what is done.

    The result shows ``figures``, or what leads.  A rule says when there are enough replications; ``replications`` are
    then what a result has at least.
    """
    execution.check(replications)
    of_model, store = identity(model, execution.seed), execution.store
    if store is not None:
        store.check_only(of_model, source_elsewhere(model.spec))
    stored = store.numbers(of_model) if store is not None else []
    # Replications beyond those asked for are kept: a result never shrinks by being continued.
    target = max(replications, *(n + 1 for n in stored), 0)

    done = Replications([model], execution)
    precision = None if rule is None else run_until(rule, done)
    if not done.interrupted:
        done.run(target)  # a precision may have taken fewer
    records = sorted(done.records[0].items())
    if not records:
        execution.shard.refuse_idle(done.interrupted)
        raise Interrupted("nothing had finished")
    most = target if rule is None else max(target, len(records))
    numbers = [number for number, _ in records]
    manifest = execution.manifest([model], "run", numbers, wanted=most, interrupted=done.interrupted)
    result = RunResult(model, records, {**manifest, "identity": of_model})
    result.precision, result.figures = precision, figures
    result.remarks += [*of_runs(model.spec, records), *hidden_writes(model.spec, records)]
    if target > replications and rule is None:
        result.remarks.append(
            f"{replications} replications were asked for and the result held more; it never shrinks and has {target}"
        )
    return result


def precision_rule(model: Model, percent: float, figures: Sequence[str], most: int) -> StoppingRule:
    """Return the rule for a percentage of each figure, the most; refuse one out of range, or an unknown figure."""
    if not 0.0 < percent < 100.0:
        raise UsageError(f"--precision: above 0 and below 100 %, got {percent:g} %")
    check_names(figures, [model.spec])
    chosen = tuple(dict.fromkeys(figures)) or (watched(model.spec),)
    return StoppingRule(chosen, relative_half_width=percent / 100.0, budget=most)


def run_until(rule: StoppingRule, done: Replications) -> ReplicationResult | None:
    """Run replications of a model until the rule is met, or its budget used up; None where the user ends it."""
    procedure, records = rounds_of(rule), done.records[0]
    numbers = next(procedure)
    if done.run(1):  # one shows which figures there are, before the others cost their time
        watched_in(records[0], 0, rule.metrics)
    while not done.interrupted and done.run(numbers.stop):
        try:
            numbers = procedure.send([watched_in(records[n], n, rule.metrics) for n in numbers])
        except StopIteration as end:
            verdict: ReplicationResult = end.value
            return verdict
    return None


def watched_in(record: Record, replication: int, figures: Sequence[str]) -> dict[str, float]:
    """Return the watched figures of one replication; refuse a figure of which it says nothing."""
    figures_there = figures_in(record, figures)
    for name, value in figures_there.items():
        if not math.isfinite(value):
            raise UsageError(f"--figure {name}: nothing to measure in replication {replication}")
    return figures_there


_MOST_CARDS = 6
_MOST_SAID = 3


def _mixed_notes(summary: Summary) -> list[Note]:
    """Return in how many runs a step went beyond the limit, of steps in which some did and others did not."""
    verdicts = [row for row in summary.rows.values() if isinstance(row.address.entry.figure, Verdict)]
    mixed = [row for row in verdicts if row.address.phase in summary.mixed]
    shares = ((row.phase.name or row.address.text, summary.estimate(row.address.text)) for row in mixed)
    return [
        Note(
            f"{where}: {round(e.mean * e.n / 100)} of {e.n} runs beyond the limit, "
            f"{share_in_words(e.times(0.01))} of all (binomial interval, at least 95 %, Clopper and Pearson); "
            "its figures are means of two kinds of runs, without interval",
            warns=True,
        )
        for where, e in shares
        if e is not None and e.mean not in {0.0, 100.0}
    ]


def _precision_note(precision: ReplicationResult, summary: Summary) -> Note:
    """Return whether a precision was reached, with how many replications, and of what: means of what each says."""
    reached = "reached with" if precision.reached else "not reached with"
    texts = []
    for name, estimate in precision.estimates.items():
        address = summary.find(name)[0]
        texts.append(f"{name} = {in_words(estimate, address.entry.unit)}")
        if isinstance(address.entry.estimator, Percentile | Ratio):
            together = in_words(summary.estimate(address.text), address.entry.unit)
            texts[-1] += f" as the mean of the replications' own; of all together it is {together}"
    advice = "" if precision.reached else "; more --replications, or a longer --scale"
    spent = counted(precision.n, "replication")
    return Note(f"Precision {reached} {spent}: {', '.join(texts)}{advice}", warns=not precision.reached)


def _led(result: RunResult) -> list[Known]:
    """Return the figures that lead: of the whole run; where it has none, of the last phase that all runs reached."""
    phases = min((record.phases for _, record in result.records), key=len)
    last = max(phases, key=lambda phase: phase.begin_ns)
    summary, _ = result.shown
    return leading(summary) or leading(summary, last.word)


def run_answer(result: RunResult) -> Answer:
    """Return the first figures that lead, in words."""
    texts = []
    for address, e in _led(result)[:_MOST_SAID]:
        whose = ", ".join(filter(None, (address.owner.rpartition(".")[2], address.step)))
        shown = in_words(_marked(result.model.spec, address, e), address.entry.unit)
        texts.append(f"{whose}: {words(address)} {shown}")
    count = len(result.records)
    who = f"{'does' if count == 1 else 'do'} {counted(count, 'replication')}"
    question = f"What {who} of {result.model.name} show?"
    nothing = "no figure that was asked for" if result.figures else "nothing that leads"
    return Answer(texts[0] if texts else nothing, question, "; ".join(texts[1:]))


def _marked(spec: ModelSpec, address: Address, estimate: Estimate) -> Cell:
    """Return a figure, with an asterisk if it is a load, or of one, that is outside of the calibration."""
    return Marked(estimate, MARK) if is_of_load_outside(spec, address, estimate.mean) else estimate


def _cards(summary: Summary, spec: ModelSpec) -> list[Block]:
    cards = [
        Card(f"{address.owner}: {words(address)}", _marked(spec, address, e), address.entry.unit)
        for address, e in leading(summary)
    ]
    return [Cards(cards[:_MOST_CARDS])] if cards else []


def figures_of_run(summary: Summary, *, everything: bool) -> list[Address]:
    """Return the figures of the whole run: the leading ones, or all."""
    return [each for each in summary.addresses if not each.phase and (everything or each.leads)]


def figures_table(summary: Summary, spec: ModelSpec, *, everything: bool = False) -> Table:
    """Return the figures of the whole run, those of one place together: the leading ones, or all."""
    addresses = figures_of_run(summary, everything=everything)
    places: dict[str, list[list[Cell]]] = {address.prefix: [] for address in addresses}
    for address in addresses:
        if (estimate := summary.estimate(address.text)) is not None:
            places[address.prefix].append([f"  {address.entry.words}", _marked(spec, address, estimate)])
    rows: list[Sequence[Cell]] = []
    for owner, figure_rows in places.items():
        rows += [[owner], *figure_rows] if figure_rows else []
    return Table(["", "estimate"], rows)


def phase_table(summary: Summary, marked: Collection[str] = (), owners: str = "workloads.") -> Table:
    """Return the figures of such owners that lead, a row a phase; those marked bear an asterisk."""
    rows = [row for row in summary.rows.values() if row.address.phase and row.address.owner.startswith(owners)]
    return _by_phase(summary, [row for row in rows if row.address.leads], marked)


def every_phase_table(summary: Summary, marked: Collection[str] = ()) -> list[Table]:
    """Return a table for each figure that has phases, under its owner and label: a row a phase, a column a part."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in summary.rows.values():
        if row.address.phase:
            figure = row.address.entry.figure
            unit = f", {figure.unit}" if figure.unit else ""
            groups.setdefault((row.address.owner, f"{figure.label}{unit}"), []).append(row)
    return [_by_phase(summary, rows, marked, f"{owner}: {label}") for (owner, label), rows in groups.items()]


def _by_phase(summary: Summary, rows: Sequence[Row], marked: Collection[str], title: str = "") -> Table:
    """Return a row a phase; the columns have their heads where the table has no title, else the names of parts."""
    columns: dict[tuple[str, ...], str] = {}
    phases: dict[str, dict[tuple[str, ...], Address]] = {}
    loads: dict[str, str] = {}
    has_several = len({row.address.owner for row in rows}) > 1
    for row in rows:
        entry, phase, owner = row.address.entry, row.phase, row.address.owner
        path = (owner, *entry.path)
        whose = f"{short_owner(owner)}: " if has_several else ""
        columns[path] = (" ".join(entry.path[1:]) or "all") if title else whose + entry.head
        phases.setdefault(phase.name, {})[path] = row.address
        loads[phase.name] = "" if phase.load is None else f"{phase.load:g}"
    body: list[list[Cell]] = []
    for phase_name, addresses in phases.items():
        estimates = [summary.estimate(addresses[path].text) if path in addresses else None for path in columns]
        n = max((each.n for each in estimates if each is not None), default=0)
        body.append([f"{phase_name}{MARK if phase_name in marked else ''}", loads[phase_name], *estimates, str(n)])
    return Table(["phase", "asked, /s", *columns.values(), "n"], body, title)


def hidden_writes(spec: ModelSpec, records: Iterable[tuple[int, RunRecord]]) -> list[str]:
    """Return for each disk, of copies for the first, what its figures say of it in a run that has something to say."""
    remarks: dict[str, str] = {}
    for _, record in records:
        uses = record.last_measured.outcomes
        for name, domain in spec.expanded().items():
            for key, disk in domain.disks.items():
                entry = f"domains.{spec.entry_of(name)}.disks.{key}"
                if entry not in remarks and (text := disk.remark(uses[f"domains.{name}.disks.{key}"])):
                    remarks[entry] = f"{entry} {text}"
    return list(remarks.values())
