"""The file of a record: a published study as experiments, statements and tables (``calibration/NAME/record.yaml``)."""

from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from vftsim.spec import Items, Spec, json_schema
from vftsim.spec.suggest import instead, shown

Expression = str | float
"""A number, or arithmetic over names (:mod:`vftsim.records.expressions`)."""
Cells = Items[str]
RULES = ("near", "covers", "least", "most", "above", "below", "less_than", "more_than", "same_as", "so", "verdict")


class Judged(Spec):
    """By which rule a statement is judged, with the margins that its protocol fixed beforehand."""

    near: Expression | None = Field(None, description="A number: as stated, within `within`, `by` or `factor`.")
    within: Expression | None = Field(None, description="Most relative difference.")
    by: Expression | None = Field(None, description="Most difference, in the unit of the value.")
    factor: Expression | None = Field(None, description="Most ratio, either way.")
    covers: Expression | None = Field(None, description="A number that lies between the values.")
    least: Expression | None = Field(None, description="A word: the value is this or more.")
    most: Expression | None = Field(None, description="A word: the value is this or less.")
    above: Expression | None = Field(None, description="A word: the value is more.")
    below: Expression | None = Field(None, description="A word: the value is less.")
    less_than: Expression | None = Field(
        None, description="A comparison with other values, paired by replication; beyond `margin` in the mean."
    )
    more_than: Expression | None = Field(None, description="As `less_than`, the other way.")
    same_as: Expression | None = Field(
        None, description="As `less_than`: shown to be within `margin` by two one-sided tests at 5 %."
    )
    margin: Expression = Field(0.0, description="Margin of a comparison, as a share of what is compared with.")
    so: str | None = Field(None, description="What has to be so, where it is more than one thing.")
    verdict: str | None = Field(None, description="Not judged: input, prediction, derived, fitted, ...")

    @model_validator(mode="after")
    def _has_a_rule(self) -> Self:
        if all(getattr(self, rule) is None for rule in RULES):
            raise ValueError(f"a statement is judged by one of {', '.join(RULES)}")
        if self.near is not None and [self.within, self.by, self.factor].count(None) != 2:
            raise ValueError("'near' needs one of within, by, factor")
        return self


class Statement(Spec):
    """Something that a study states, what stands for it in the model, and how the two are compared."""

    key: str = Field("", description="Its name in the protocol.")
    over: Items[str] = Field((), description="One for each combination of these axes.")
    stated: str = Field(description="What is stated, a template.")
    value: Expression = Field(0.0, description="What the model says of it.")
    found: str = Field("{value:.3g}", description="How that is written, a template.")
    judged: Judged = Field(description="The rule.")
    null: Expression | None = Field(None, description="What a model that knows no mechanism says, judged alike.")
    notes: dict[str, str] = Field(default_factory=dict, description="Further cells by name, templates.")


class Metric(Spec):
    """A quantity that claims are about, and what differences of it count as; of a share of the value, if relative."""

    test: str = Field(description="Experiment that has it.")
    figure: str = Field(description="Its name there.")
    margin: float = Field(description="Difference from which one value is above another.")
    slightly: float | None = Field(None, description="Most that a slight difference may be.")
    alike: float = Field(description="Most by which equal values differ.")
    little: float = Field(0.0, description="What counts as negligible is below it.")
    is_relative: bool = Field(False, description="Whether these are shares of the value that is compared with.")


class Claims(Spec):
    """Claims in a study's words: the table that has them, and what the words mean."""

    table: str = Field(description="Name of the CSV file beside the record.")
    words: dict[str, dict[str, Statement]] = Field(
        default_factory=dict, description="By quantity: a word of the table, and the statement that it is."
    )
    metrics: dict[str, Metric] = Field(default_factory=dict, description="Quantities that comparisons are about.")
    models: dict[str, str] = Field(default_factory=dict, description="Model by which claims about a system are judged.")
    rivals: dict[str, str] = Field(default_factory=dict, description="Models that these stand beside.")
    elsewhere: Items[str] = Field((), description="Claims that are judged as statements of the record.")
    not_judged: Items[str] = Field((), description="Claims that cannot be judged.")
    contradicted: Items[str] = Field((), description="Claims that others of the source, or its tables, contradict.")


class Runs(Spec):
    """Experiments: one for each combination of the axes named."""

    name: str = Field(description="Name of each, a template.")
    over: Items[str] = Field((), description="Axes, the outermost first; those with `case`, its own alone.")
    model: str = Field("", description="Model file in the record's folder, else a shipped model; a template.")
    set: Items[str] = Field((), description="Settings, templates.")
    sets: Items[str] = Field((), description="Lists of further settings: values of the axes, calls of the forms.")
    figures: dict[str, Expression] = Field(
        default_factory=dict, description="What is kept of each replication: addresses of declared figures."
    )
    read: str | None = Field(
        None, description="Further figures, by name, that the forms read of a run: a call with `spec` and `record`."
    )
    play: str | None = Field(None, description="A call of the forms that plays runs itself; with a model, of `spec`.")

    @model_validator(mode="after")
    def _plays_something(self) -> Self:
        if not self.model and self.play is None:
            raise ValueError("an experiment needs a model, or a function of the forms that plays it")
        return self


class Rows(Spec):
    """An axis that is a table: a case for each row, its columns are the values."""

    table: str = Field(description="Name of the CSV file beside the record.")
    column: str = Field(description="Column with the names of the cases.")


class Table(Spec):
    """A table of the record."""

    title: str = Field(description="Its title, a template.")
    columns: Cells = Field(description="Its head.")
    statements: str | None = Field(None, description="A row for each statement of this group.")
    over: Items[str] = Field((), description="A row for each combination of these axes.")
    values: dict[str, Expression] = Field(default_factory=dict, description="Values of a row, each may use the former.")
    rows: Items[Cells] = Field((), description="Rows, templates.")
    call: str | None = Field(None, description="Function of the forms that returns the rows.")
    cells: Cells = Field(("{key}", "{stated}", "{found}", "{verdict}"), description="Templates of a row's cells.")


class RecordSpec(Spec):
    """A published study: what is run, what is stated, how it is judged, what is shown."""

    title: str = Field(description="Title of the report.")
    about: str = Field(description="What it is, in a few words.")
    sources: Items[str] = Field((), description="Where what is stated is published.")
    forms: str | None = Field(
        None, pattern="^[a-z_]+$", description="Module of `vftsim.records.forms` with what has to be computed."
    )
    budget: dict[str, int | float] = Field(description="Seed, replications, lengths: names for expressions.")
    quick: dict[str, int | float] = Field(description="What of the budget differs in a first look.")
    ran: str = Field(description="What was run, a template.")
    axes: dict[str, dict[str, dict[str, str | int | float | Items[str]]]] = Field(
        default_factory=dict, description="Axes of experiments: cases by name, each with values by name."
    )
    rows_of: dict[str, Rows] = Field(default_factory=dict, description="Axes that are tables.")
    variants: str | None = Field(
        None, description="Axis of models: the first is the record's, those with an `option` are played with --model."
    )
    judgement: str | None = Field(None, description="Class of the forms that judges and writes in its own way.")
    runs: Annotated[Items[Runs], Field(min_length=1)] = Field(description="Experiments.")
    values: dict[str, Expression] = Field(default_factory=dict, description="Values by name, each may use the former.")
    statements: dict[str, Items[Statement]] = Field(default_factory=dict, description="Statements by group.")
    claims: Claims | None = Field(None, description="Claims in the study's words, which the forms judge.")
    tables: Items[Table] = Field((), description="Tables; without any, one of each group of statements.")
    scores: Cells = Field((), description="Lines that sum up, templates.")

    @model_validator(mode="after")
    def _knows_what_it_names(self) -> Self:
        for changes in ({}, self.quick):
            replications = {**self.budget, **changes}.get("replications", 0)
            if replications < 1 or replications != int(replications):
                raise ValueError("needs a budget with replications, a whole number from 1 on")
        if "seed" not in self.budget:
            raise ValueError("needs a budget with a seed")
        for table in self.tables:
            if table.statements is not None and table.statements not in self.statements:
                others = instead(table.statements, self.statements, "there are")
                raise ValueError(f"table '{table.title}': no statements {shown(table.statements)}{others}")
        return self


def record_schema() -> dict[str, Any]:
    return json_schema(RecordSpec, "vftsim record")
