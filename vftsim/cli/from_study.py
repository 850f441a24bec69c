"""Commands made from the studies of :mod:`vftsim.interface`, whose signatures and docstrings say what can be asked.

An entry of a study's docstring is an option as :func:`vftsim.cli.common.as_command` reads it; the help has their order.
What the common options hold (seed, jobs, directory, ...) is none.  A time in seconds and a percentage are typed with
their units, of a sequence each element with the option repeated.
"""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import Enum, StrEnum
from typing import Any, Self

from vftsim.cli import options
from vftsim.cli.common import PARAMETERS, ModelStudy, entries_of, is_choice
from vftsim.interface.plan import Plan, plan_of

_COMMON = {name: name for name in ("force", "jobs", "seed", "quick")} | {"directory": "output", "overrides": "set_"}
"""Parameters of studies that are fields of the common options, if those have them."""
_PLAIN: Mapping[str, Any] = {"int": int, "float": float, "bool": bool}


@dataclass(frozen=True)
class StudyCall:
    """What the command line asks of a study."""

    study: Callable[..., Any]
    arguments: dict[str, Any]
    """As the study takes them; what was not given is left to its defaults."""

    def plan(self, study: Callable[..., Any] | None = None, /, **instead: Any) -> Plan[Any]:
        """Return what the study, or another with parameters of the same names, is about to do."""
        chosen = study or self.study
        parameters = inspect.signature(chosen).parameters
        arguments = {**self.arguments, **instead}
        return plan_of(chosen, {name: value for name, value in arguments.items() if name in parameters})


@dataclass(frozen=True)
class _Parameter:
    """A parameter of a study, as the command line has it."""

    parameter: inspect.Parameter
    entry: Mapping[str, str]

    @property
    def unit(self) -> str:
        """Unit of what is a number with its unit there."""
        is_number = str(self.parameter.annotation).startswith("float")
        return {"TIME": "s", "PERCENT": "%"}.get(self.entry["metavar"], "") if is_number else ""

    @property
    def kind(self) -> Any:
        plain = str(self.parameter.annotation).removesuffix(" | None")
        if is_choice(self.entry["metavar"]):
            choice: Any = StrEnum
            return choice(self.parameter.name, {word: word for word in self.entry["metavar"].split("|")})
        if plain.startswith("Sequence"):
            return list[str]
        return str if self.unit else _PLAIN.get(plain, str)

    def with_default(self, default: Any) -> inspect.Parameter:
        if isinstance(default, tuple):
            default = None
        elif self.unit and isinstance(default, float):
            default = f"{default:g} {self.unit}"
        return inspect.Parameter(
            self.parameter.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=default,
            annotation=self.kind | None if default is None else self.kind,
        )

    def read(self, value: Any) -> Any:
        if isinstance(value, Enum):
            return value.value
        if not self.unit:
            return value
        from vftsim.spec import PERCENT

        option = self.entry["flags"].partition(",")[0]
        if self.unit == "s":
            return options.parse_seconds(option, value)
        return options.parse_quantity(option, value, PERCENT, "%")


@dataclass(frozen=True)
class _CommandOptions:
    """What a command can be asked: the options of a study, and of those beside it what their docstrings add."""

    study: Callable[..., Any]
    doc: str
    """Docstrings of all of them."""
    options: Mapping[str, _Parameter]
    common: Mapping[str, str]
    """Parameters that the common options have, and their fields there."""
    loads_model: bool
    """Whether the study takes a model as it was loaded, with the settings of ``--set``."""

    @classmethod
    def of(
        cls, study: Callable[..., Any], kind: Any, beside: Sequence[Callable[..., Any]], without: Sequence[str]
    ) -> Self:
        signature, doc = dict(inspect.signature(study).parameters), inspect.cleandoc(study.__doc__ or "")
        for another in beside:
            text = inspect.cleandoc(another.__doc__ or "")
            more = inspect.signature(another).parameters
            signature |= {name: more[name].replace(default=None) for name in entries_of(text)}
            doc += "\n" + text.partition(PARAMETERS)[2]
        entries, has = {**entries_of(options.__doc__ or ""), **entries_of(doc)}, {each.name for each in fields(kind)}
        common = {name: field for name, field in _COMMON.items() if name in signature and field in has}
        no_options = {"progress", *common, *without}
        names = [name for name in dict.fromkeys([*entries_of(doc), *signature]) if name not in no_options]
        names.sort(key=lambda name: entries[name]["flags"] != "")  # arguments first
        loads_model = "Model" in str(getattr(signature.get("model"), "annotation", ""))
        theirs = {name: _Parameter(signature[name], entries[name]) for name in names}
        return cls(study, doc, theirs, common, loads_model)

    def parameters(self, defaults: Mapping[str, Any]) -> dict[str, inspect.Parameter]:
        """Return the options, with other defaults than the study's where the command line has them."""
        return {
            name: option.with_default(defaults.get(name, option.parameter.default))
            for name, option in self.options.items()
        }

    def call(self, typed: Mapping[str, Any], common: Any) -> StudyCall:
        """Return what is asked by what was typed."""
        arguments = {name: option.read(typed[name]) for name, option in self.options.items() if typed[name] is not None}
        arguments |= {name: getattr(common, field) for name, field in self.common.items()}
        if self.loads_model:
            arguments["model"] = common.loaded(arguments["model"])
        if self.loads_model or arguments.get("overrides", ()) is None:
            arguments.pop("overrides", None)
        return StudyCall(self.study, arguments)


def made_from(
    study: Callable[..., Any],
    kind: Any = ModelStudy,
    *,
    beside: Sequence[Callable[..., Any]] = (),
    before: Mapping[str, str] | None = None,
    without: Sequence[str] = (),
    **defaults: Any,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return what makes a command from a study and a function that has it conducted.

    The function takes the call, its options, and the common ones.

    Parameters
    ----------
    kind : type
        The common options.
    beside : sequence of functions
        Further studies, of which the command has the options that their docstrings add.
    before : mapping, optional
        Before which other parameter one stands in the help; by default those of the function stand last.
    without : sequence of str
        Parameters of the study that are no options.
    defaults : dict
        Defaults that the command line has in place of the study's.
    """
    options = _CommandOptions.of(study, kind, beside, without)

    def make(conduct: Callable[..., None]) -> Callable[..., None]:
        own_options = dict(inspect.signature(conduct, eval_str=True).parameters)
        del own_options[next(iter(own_options))]
        common = own_options.pop("common")

        @functools.wraps(conduct)
        def command(**given: Any) -> None:
            common, typed = given.pop("common"), {name: given.pop(name) for name in options.options}
            conduct(options.call(typed, common), common=common, **given)

        placed = _placed({**options.parameters(defaults), **own_options}, before or {})
        parameters = [*placed.values(), common.replace(annotation=kind)]
        command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters]
        )
        command.__annotations__ = {each.name: each.annotation for each in parameters}
        text, _, more = inspect.cleandoc(conduct.__doc__ or "").partition(PARAMETERS)
        command.__doc__ = f"{text}{PARAMETERS}{options.doc.partition(PARAMETERS)[2]}\n{more}"
        return command

    return make


def _placed(parameters: dict[str, inspect.Parameter], before: Mapping[str, str]) -> dict[str, inspect.Parameter]:
    """Return parameters in the order of the help."""
    names = list(parameters)
    for name, before_name in before.items():
        names.remove(name)
        names.insert(names.index(before_name), name)
    return {name: parameters[name] for name in names}


def as_it_is(study: Callable[..., Any], kind: Any = ModelStudy, **defaults: Any) -> Callable[..., None]:
    """Return the command of a study that does nothing besides."""

    def conduct(call: StudyCall, *, common: ModelStudy) -> None:
        plan = call.plan()
        common.show_all(plan, common.conduct(plan))

    conduct.__doc__ = inspect.cleandoc(study.__doc__ or "").partition(PARAMETERS)[0]
    return made_from(study, kind, **defaults)(conduct)
