"""An address of the page is a question, and a question is a command line for each configuration.

Pairs of an address: ``model``, ``ask``, ``n``, ``seed``, ``quick``, ``protection``, ``objective``, ``least`` (ns that a
run of a first look measures at least); ``knob`` for each key that is shown without a change; ``0.KEY`` for a change of
today's configuration, ``1.KEY`` to ``3.KEY`` for one of a variant, which has today's changes too.  Everything else is
refused.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from vftsim.composition.model import ModelSpec
from vftsim.errors import UsageError
from vftsim.spec import DURATION, Document
from vftsim.spec.suggest import shown
from vftsim.study.figures.names import read_objective
from vftsim.study.runs.model import Model, model_of
from vftsim.ui.knobs import Knob, knobs_of

QUESTIONS = {
    "capacity": "What load does it carry?",
    "run": "What delays and losses do clients see?",
    "failover": "What do clients see when the host crashes?",
    "protection": "What does protection cost?",
}
_OF_A_LOAD, _OF_A_PRICE = "capacity", "protection"
COLUMNS = ("today", "variant 1", "variant 2", "variant 3")
MOST_RUNS, MOST_PAIRS, LONGEST_VALUE, LONGEST_KEY = 50, 200, 300, 200
_DEFAULT_RUNS, _DEFAULT_SEED = 3, 1
_PROTECTIONS = "none,lockstep,checkpoint"
_LONGEST_LOOK_NS = 86_400_000_000_000
_NUMBER = re.compile(r"[0-9]{1,15}")
_CHANGE = re.compile(r"([0-3])\.(.+)")
_KIND = ".kind"


@dataclass(frozen=True)
class Configuration:
    """One column of the page: what is changed of the model's file."""

    label: str
    changes: Mapping[str, str]
    """Value by key, today's included."""

    @property
    def assignments(self) -> tuple[str, ...]:
        """What ``--set`` is given: kinds of parts before what these parts have."""
        kinds_first = sorted(self.changes.items(), key=lambda change: not change[0].endswith(_KIND))
        return tuple(f"{key}={value}" for key, value in kinds_first)


@dataclass(frozen=True)
class Question:
    """What an address asks."""

    model: str
    """As the list of models has it."""
    ask: str = ""
    """One of :data:`QUESTIONS`; empty: nothing yet."""
    runs: int = _DEFAULT_RUNS
    seed: int = _DEFAULT_SEED
    is_quick: bool = True
    protection: str = _PROTECTIONS
    objective: str = ""
    """What a load or a mechanism has to achieve."""
    knobs: tuple[str, ...] = ()
    """Keys that are shown, beside those with a change."""
    columns: tuple[Mapping[str, str], ...] = ({}, {}, {}, {})
    """Changes of today's configuration and of each variant."""
    least_ns: int = 0
    """What a first look at a load measures at least, as one of several beside each other needs."""

    @property
    def configurations(self) -> list[Configuration]:
        """Today's, and the variants that differ from it."""
        today, *others = self.columns
        changed = [(label, settings) for label, settings in zip(COLUMNS[1:], others, strict=True) if settings]
        variants = [Configuration(label, {**today, **settings}) for label, settings in changed]
        return [Configuration(COLUMNS[0], today), *variants]

    def alone(self, configuration: Configuration) -> "Question":
        """Return the question of one configuration, with nothing else in its address."""
        changes = {key: configuration.changes[key] for key in sorted(configuration.changes)}
        plain = Question(self.model, self.ask, self.runs, self.seed, self.is_quick, columns=(changes, {}, {}, {}))
        plain = replace(plain, least_ns=self.least_ns)
        judged = replace(plain, objective=self.objective) if self.ask in (_OF_A_LOAD, _OF_A_PRICE) else plain
        return replace(judged, protection=self.protection) if self.ask == _OF_A_PRICE else judged

    @property
    def address(self) -> str:
        """Return the one address of this question, without what it has by default."""
        fields = [
            ("ask", self.ask, ""),
            ("n", str(self.runs), str(_DEFAULT_RUNS)),
            ("seed", str(self.seed), "1"),
            ("quick", "1" if self.is_quick else "0", "1"),
            ("protection", self.protection, _PROTECTIONS),
            ("objective", self.objective, ""),
            ("least", str(self.least_ns), "0"),
        ]
        changes = [(f"{n}.{key}", value) for n, settings in enumerate(self.columns) for key, value in settings.items()]
        pairs = [("model", self.model), *((name, value) for name, value, default in fields if value != default)]
        return urlencode([*pairs, *(("knob", key) for key in self.knobs), *changes])

    def words(self, configuration: Configuration, path: str, *, has_ramp: bool = True) -> list[str]:
        """Return the command line of a configuration, without where its result is kept.

        Without a ramp the load that a model carries is searched for, with as many runs as that takes.
        """
        settings = [word for each in configuration.assignments for word in ("--set", each)]
        quick = ["--quick"] if self.is_quick else []
        runs = ["-n", str(self.runs)] if has_ramp or self.ask != _OF_A_LOAD else []
        more = [*runs, "--seed", str(self.seed), *quick]
        objectives = ["--objective", self.objective] if self.objective else []
        if self.ask == _OF_A_PRICE:
            return ["compare", path, "--protection", self.protection, *objectives, *more, *settings]
        if self.ask != _OF_A_LOAD:
            return [self.ask, path, *more, *settings]
        least = ["--at-least", DURATION.format(self.least_ns)] if self.least_ns else []
        return [self.ask, path, *objectives, *more, *least, *settings]


def read_question(pairs: Iterable[tuple[str, str]], models: Sequence[str]) -> Question:
    """Return what the pairs of an address ask; refuse what is none of a question's."""
    values: dict[str, str] = {}
    knobs: dict[str, None] = {}
    columns: list[dict[str, str]] = [{}, {}, {}, {}]
    for count, (name, text) in enumerate(pairs):
        _check_length(name, text, count)
        value = text.strip()
        if change := _CHANGE.fullmatch(name):
            if value:
                columns[int(change[1])][change[2]] = value
        elif name == "knob":
            knobs[value] = None
        elif name in ("model", "ask", "n", "seed", "quick", "protection", "objective", "least"):
            values[name] = value
        else:
            raise UsageError(f"the address says {shown(name)}, which is no part of a question")
    changed = {key for settings in columns for key in settings}
    return Question(
        _one_of("model", values.get("model") or models[0], models),
        _one_of("ask", values.get("ask", ""), ("", *QUESTIONS)),
        _whole("n", values.get("n") or str(_DEFAULT_RUNS), 1, MOST_RUNS),
        _whole("seed", values.get("seed") or str(_DEFAULT_SEED), 0, 999_999_999),
        _one_of("quick", values.get("quick", "1"), ("0", "1")) == "1",
        _kinds(values.get("protection") or _PROTECTIONS),
        _objective(values.get("objective", "")),
        tuple(sorted(key for key in knobs if key and key not in changed)),
        tuple({key: settings[key] for key in sorted(settings)} for settings in columns),
        _whole("least", values.get("least") or "0", 0, _LONGEST_LOOK_NS),
    )


def questions_of(spec: ModelSpec) -> dict[str, str]:
    """Return the questions of a model: without a load that could be raised none asks how much it carries."""
    has_load = any(workload.first_load_key for workload in spec.workloads.values())
    return {ask: words for ask, words in QUESTIONS.items() if has_load or ask != _OF_A_LOAD}


def checked(configuration: Configuration, document: Document, label: str) -> tuple[Model, dict[str, Knob]]:
    """Return the model of a configuration, and the knobs that it has.

    Only what is a knob of the model with its kinds of parts can be changed: no names, and nothing that holds a path.

    Refuses a change of no knob, and one that the model cannot have.
    """
    kinds = {key: value for key, value in configuration.changes.items() if key.endswith(_KIND)}
    model = model_of(document, label)
    knobs = knobs_of(model.spec)
    _refuse_unknown(kinds, knobs)
    if kinds:
        model = model_of(document, label, Configuration("", kinds).assignments)
        knobs = knobs_of(model.spec)
    _refuse_unknown(configuration.changes, knobs)
    if configuration.changes != kinds:
        model = model_of(document, label, configuration.assignments)
    return model, knobs


def _refuse_unknown(changes: Mapping[str, str], knobs: Mapping[str, Knob]) -> None:
    for key, value in changes.items():
        if key not in knobs:
            raise UsageError(f"{shown(key)} is no knob of this model")
        choices = knobs[key].choices
        if choices and value not in choices and value != "null":
            raise UsageError(f"{key}: {shown(value)} is none of {', '.join(choices)}")


def _check_length(name: str, text: str, count: int) -> None:
    if count >= MOST_PAIRS:
        raise UsageError(f"a question has {MOST_PAIRS} parts at most")
    if len(name) > LONGEST_KEY or len(text) > LONGEST_VALUE:
        raise UsageError(f"a key has {LONGEST_KEY} characters at most, a value {LONGEST_VALUE}")
    if not (name + text).isprintable():
        raise UsageError("a question has no line breaks and no control characters")


def _one_of(name: str, value: str, choices: Sequence[str]) -> str:
    if value not in choices:
        raise UsageError(f"{name}: {shown(value)} is none of {', '.join(filter(None, choices))}")
    return value


def _whole(name: str, text: str, low: int, high: int) -> int:
    if not _NUMBER.fullmatch(text) or not low <= int(text) <= high:
        raise UsageError(f"{name}: a whole number from {low} to {high}, not {shown(text)}")
    return int(text)


def _objective(text: str) -> str:
    if text:
        read_objective(text)
    return text


def _kinds(text: str) -> str:
    if text == _PROTECTIONS:
        return text
    from vftsim.study.designs.protections import kinds_named  # noqa: PLC0415 - what crashes need takes a tenth of a second

    return ",".join(kinds_named(text))
