"""What all commands that simulate have in common: their options as one object each, and what is done with them.

A command has one parameter of such a class; :func:`as_command` makes an option of each of its fields.  An option that
every command should have is a field here, and what it does stands beside it.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import Field, dataclass, fields, is_dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from vftsim.cli import options
from vftsim.cli.output import interrupted
from vftsim.errors import UsageError
from vftsim.interface.plan import Plan

_ENTRY = re.compile(
    r"^(?P<name>\w+) : (?:(?P<group>Model|Result|Work): )?(?P<flags>(?:-[^ ,\n]+(?:, -[^ ,\n]+)*)?) ?(?P<metavar>.*)\n"
    r"(?P<help>(?:    .+(?:\n|$))+)",
    re.MULTILINE,
)
PARAMETERS = "\n\nParameters\n----------\n"

if TYPE_CHECKING:
    from vftsim.study.execution import Shard
    from vftsim.study.runs.estimate import Needs
    from vftsim.study.runs.limits import Limits
    from vftsim.study.runs.model import Model
    from vftsim.study.runs.progress import Progress


@dataclass(kw_only=True)
class Work:
    """How something is simulated and said: of every command that does."""

    force: bool = False
    report: Path | None = None
    as_json: bool = False
    quiet: bool = False
    jobs: int | None = None
    cluster: str | None = None
    max_time: str | None = None
    max_memory: str | None = None
    engine: options.EngineName = options.EngineName.auto
    strict: bool = False

    def __post_init__(self) -> None:
        self.folder: Path | None = None
        """Where the result is kept, when that is known."""

    def begin(self) -> None:
        """Choose the engine and the cluster, start the clock of ``--max-time``, refuse wrong values and formats."""
        options.use_engine(self.engine, self.cluster, strict=self.strict)
        self.limits  # noqa: B018 - the clock begins with the command
        self.check_formats()

    @cached_property
    def limits(self) -> Limits:
        """What the command may take."""
        return options.read_limits(self.max_time, self.max_memory)

    def check_formats(self) -> None:
        """Refuse a page that cannot be written."""
        options.check_report(self.report, self.force)

    def limited(self) -> AbstractContextManager[None]:
        """End what is inside when it uses more memory than ``--max-memory`` allows."""
        return options.ended_beyond_memory(self.limits)

    @contextmanager
    def taking(self, needs: Callable[[], Needs], label: str) -> Iterator[Progress]:
        """Show how a study goes on, within what it may take; ``needs`` estimates what it does take."""
        from vftsim.study.runs.progress import make_progress

        with self.limited(), make_progress(label, self.quiet) as progress:
            yield progress

    def conduct(self, plan: Plan[Any], shard: Shard | None = None) -> Any:
        """Return the answer of a study, or of a share of its runs; say what is remarkable."""
        from vftsim.composition.without_effect import remarks

        with self.taking(plan.needs, plan.label) as progress:
            of_models = [remark for model in plan.models for remark in remarks(model.spec)]
            progress.beginning = (*of_models, *progress.beginning)
            result, notes = plan.answer(progress, shard)
            progress.begin()  # nothing was left to do
        options.say_remarks(notes)
        return result

    def show(self, result: Any) -> None:
        """Print a result in the format that was asked for, and write a page of it."""
        if self.as_json:
            from vftsim.report.screen import print_json

            print_json(result.for_machines())
        else:
            self.print(result)
        if self.report is not None:
            options.write_report(self.report, result.report(), self.folder)

    def print(self, result: Any) -> None:
        result.print_tables()


@dataclass(kw_only=True)
class Study(Work):
    """The same of studies, whose time is told beforehand and whose runs are kept.

    Parameters
    ----------
    output : Result: --output, -o DIR
        Keep every finished run and the answer here; the same command goes on.
    force : Result: --force
        Start over; what DIR holds goes when the new answer stands.
    """

    output: Path | None = None
    force: bool = False
    as_csv: bool = False
    yes: bool = False

    @cached_property
    def limits(self) -> Limits:
        return options.read_limits(self.max_time, self.max_memory, self.yes)

    def check_formats(self) -> None:
        """Refuse two formats at once; of a page the directory tells, which is known when the study is planned."""
        if self.as_json and self.as_csv:
            raise UsageError("--json and --csv: choose one")

    def conduct(self, plan: Plan[Any], shard: Shard | None = None) -> Any:
        """Return the answer of a study; refuse to force nothing: no directory, no page."""
        if self.force and not plan.files and not (self.output or self.report):
            raise UsageError("--force is about what a directory holds: name it with -o DIR")
        self.folder = plan.folder
        options.check_report(self.report, self.force, plan.folder)
        return super().conduct(plan, shard)

    @contextmanager
    def taking(self, needs: Callable[[], Needs], label: str) -> Iterator[Progress]:
        """Refuse a study by what it takes, or show how it goes on."""
        from vftsim.study.runs.progress import make_progress

        with (
            options.limited(self.limits, needs, self.jobs) as words,
            make_progress(label, self.quiet, (words,) if words else ()) as progress,
        ):
            yield progress

    def print(self, result: Any) -> None:
        if self.as_csv:
            from vftsim.study.figures.frames import csv_text

            print(csv_text(result.to_pandas()), end="")
        else:
            super().print(result)

    def share(self, shard: str | None) -> Shard:
        """Return the share of a study that ``--shard`` names, which has a directory of its own."""
        from vftsim.study.execution import Shard

        parsed = Shard.parse(shard)
        if shard is not None and self.output is None:
            raise UsageError("--shard: goes with -o DIR, a directory for each share")
        return parsed

    def show_all(self, plan: Plan[Any], result: Any) -> None:
        """Show an answer, say to people which files hold it, and end with what one rests on that was interrupted."""
        self.show(result)
        if plan.files and plan.folder is not None and not (self.as_json or self.as_csv):
            from vftsim.report.screen import print_text

            print_text(f"Written: {plan.folder}/ ({plan.files})")
        if result.interrupted:
            again = "the same command goes on" if plan.goes_on else "--resume continues"
            where = f"; it is in '{plan.folder}', {again}" if plan.folder is not None else ""
            raise interrupted(f"the figures above rest on what had finished{where}")


@dataclass(kw_only=True)
class ModelStudy(Study):
    """The same of studies of models that the command line names."""

    set_: list[str] | None = None
    seed: int = options.DEFAULT_SEED
    quick: bool = False

    def loaded(self, name: str, *changes: str) -> Model:
        """Return a model for a study that shortens it by itself if it is to be quick."""
        from vftsim.study.runs.model import load_model

        return load_model(name, [*(self.set_ or ()), *changes])


@dataclass(kw_only=True)
class ScaledStudy(ModelStudy):
    """The same of those whose measured time may be any multiple of the model's."""

    scale: float = 1.0

    def loaded(self, name: str, *changes: str) -> Model:
        if self.quick and self.scale != 1.0:
            raise UsageError("--quick and --scale both set the measured time: choose one")
        return super().loaded(name, *changes).scaled(self.scale)


def _described(hints: Mapping[str, Any], *docs: str | None) -> dict[str, Any]:
    """Return the annotations of parameters that docstrings describe, the last of them first."""
    described = dict(hints)
    for doc in (options.__doc__, *docs):
        for name, parameter in _parameters(doc or "").items():
            if name in hints:
                described[name] = Annotated[hints[name], parameter]
    return described


@functools.cache
def entries_of(doc: str) -> dict[str, dict[str, str]]:
    """Return what a docstring says of each parameter that it describes."""
    entries = inspect.cleandoc(doc).partition(PARAMETERS)[2]
    return {entry["name"]: entry.groupdict() for entry in _ENTRY.finditer(entries)}


@functools.cache
def _parameters(doc: str) -> dict[str, Any]:
    return {name: _parameter(entry) for name, entry in entries_of(doc).items()}


def is_choice(metavar: str) -> bool:
    """Whether a metavar lists all that can be said, as ``ramp|search``."""
    return "|" in metavar and metavar.islower()


def _parameter(entry: Mapping[str, str]) -> Any:
    shown, help_text, least = entry["metavar"] or None, " ".join(entry["help"].split()), None
    if shown and is_choice(shown):
        shown = None  # as its type shows it
    elif shown and shown.startswith(">="):
        least = int(shown.removeprefix(">="))
        shown = None
    offered = options.offered(entry["name"], shown)
    if entry["flags"]:
        flags, group = entry["flags"].split(", "), entry["group"]
        return typer.Option(
            *flags, metavar=shown, help=help_text, rich_help_panel=group, min=least, autocompletion=offered
        )
    return typer.Argument(metavar=shown, help=help_text, autocompletion=offered)


def as_command(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function whose parameters are the arguments and options that its docstring describes.

    An entry says ``name : METAVAR`` of an argument, ``name : --option, -o METAVAR`` of an option, ``Group:`` before it
    if it is to stand in one, and below its help.  What it does not describe is as :mod:`vftsim.cli.options` has it.  A
    parameter of one of these classes is an option for each field, and its work begins before the function does.
    """
    text, hints = inspect.cleandoc(function.__doc__ or ""), get_type_hints(function, include_extras=True)
    bundle = next((name for name, each in hints.items() if is_dataclass(each)), "")
    kind: Any = hints.get(bundle)
    shared = {each.name: each for each in fields(kind)} if bundle else {}
    keyword, theirs = inspect.Parameter.KEYWORD_ONLY, _described(hints, text)
    parameters = []
    for name, each in inspect.signature(function).parameters.items():
        if name == bundle:
            parameters += _of_fields(kind, shared)
        else:
            parameters.append(each.replace(annotation=theirs[name], kind=keyword))

    @functools.wraps(function)
    def called(**given: Any) -> Any:
        if not bundle:
            return function(**given)
        common = kind(**{name: given.pop(name) for name in shared})
        common.begin()
        return function(**given, **{bundle: common})

    called.__doc__ = text.partition(PARAMETERS)[0]
    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {each.name: each.annotation for each in parameters}
    return called


def _of_fields(kind: Any, shared: Mapping[str, Field[Any]]) -> list[inspect.Parameter]:
    """Return the options that the fields of a class are; what is special comes first in the help."""
    named = dict.fromkeys(name for each in kind.__mro__ for name in inspect.get_annotations(each))
    theirs = _described(get_type_hints(kind), *(each.__doc__ for each in reversed(kind.__mro__)))
    keyword = inspect.Parameter.KEYWORD_ONLY
    return [inspect.Parameter(name, keyword, default=shared[name].default, annotation=theirs[name]) for name in named]
