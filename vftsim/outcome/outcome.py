"""Outcomes and phases: what somebody measured, and when."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeVar, dataclass_transform

from vftsim.errors import UsageError
from vftsim.outcome import declare
from vftsim.outcome.declare import Entry, Figure
from vftsim.stats import DelayHistogram

_HISTOGRAM = "histogram"
OutcomeT = TypeVar("OutcomeT", bound="Outcome")


class Attribute:
    """A value that an outcome holds and that is no figure by itself, such as the number of a step."""


def attribute(*, default: Any = None) -> Any:
    """Say that an outcome holds a value that is no figure by itself."""
    return Attribute()


@dataclass_transform(
    kw_only_default=True,
    field_specifiers=(
        declare.total,
        declare.number,
        declare.middle,
        declare.verdict,
        declare.delays,
        declare.series,
        attribute,
    ),
)
class Declared:
    """A record whose class declares what it holds.

    A TypeError tells of a class with an annotated attribute that declares nothing, and of an instance that lacks what
    its class declares, or holds what it does not.
    """

    declared: ClassVar[Mapping[str, Figure]] = {}
    held: ClassVar[tuple[str, ...]] = ()

    def __init__(self, **held: Any) -> None:
        if missing := [name for name in self.held if name not in held and name != "seconds"]:
            raise TypeError(f"{type(self).__name__} lacks {', '.join(missing)}")
        if further := [name for name in held if name not in self.held]:
            raise TypeError(f"{type(self).__name__} declares no {', '.join(further)}")
        self.__dict__.update({"seconds": math.nan, **held})

    def __init_subclass__(cls) -> None:
        hints = vars(cls).get("__annotations__", {})
        names = [name for name, hint in hints.items() if not str(hint).startswith(("ClassVar", "typing.ClassVar"))]
        for name in names:
            if not isinstance(vars(cls).get(name), Figure | Attribute):
                raise TypeError(
                    f"{cls.__name__}.{name} declares no figure; say what it is, or that it is only `Attribute`"
                )
        figures = {name: each for name, each in vars(cls).items() if isinstance(each, Figure)}
        if again := [name for name in figures if name in cls.declared]:
            raise TypeError(f"{cls.__name__} declares {', '.join(again)} again")
        cls.declared = {**cls.declared, **figures}
        cls.held = (*cls.held, *(name for name in names if name not in cls.held))


class Outcome(Declared):
    """What somebody measured in a phase.

    An instance holds sums, distributions and samples; the class says what they are.
    """

    seconds: float = attribute(default=math.nan)
    """Measured time, by which rates divide."""

    watched: ClassVar[str] = ""
    """Figure by which a precision is judged where nobody names one; the first that leads if not given."""
    kinds: ClassVar[dict[str, type["Outcome"]]] = {}
    """Every class of outcomes by its kind, which stands in files."""
    kind: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.kind = f"{cls.__module__}.{cls.__qualname__}"
        Outcome.kinds[cls.kind] = cls

    @classmethod
    def of_copies(cls) -> "type[Outcome] | None":
        """Return the kind of what several copies measure together: the nearest of its kinds that adds up whole."""
        return next((kind for kind in cls.__mro__ if issubclass(kind, Outcome) and kind._adds_up()), None)

    @classmethod
    def _adds_up(cls) -> bool:
        held = [cls.declared.get(name) for name in cls.held if name != "seconds"]
        return bool(held) and all(figure is not None and figure.adds_up for figure in held)

    @classmethod
    def together(cls, outcomes: Sequence[Any]) -> Self:
        """Return what several measured, as one; where one measured for longer, over its time.

        A class that holds ``copies`` is told how many they are.
        """
        copies = {"copies": len(outcomes)} if "copies" in cls.held else {}
        return cls(**cls.sums(outcomes), **copies, seconds=max(each.seconds for each in outcomes))

    @classmethod
    def sums(cls, outcomes: Sequence[Any]) -> dict[str, Any]:
        """Return what this class holds and what adds up, each of several outcomes together."""
        figures = [(name, cls.declared.get(name)) for name in cls.held]
        added = ((name, figure) for name, figure in figures if figure is not None and figure.adds_up)
        return {name: figure.together([vars(outcome)[name] for outcome in outcomes]) for name, figure in added}

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]

    @classmethod
    def of_row(cls, row: Any, **others: Any) -> Self:
        """Return what a row counts under the names that this class declares, with ``others`` that it does not."""
        names = [name for name in cls.held if name != "seconds" and name not in others]
        return cls(**{name: int(getattr(row, name)) for name in names}, **others)

    @classmethod
    def patterns(cls) -> Iterator[Entry]:
        """Yield every figure as it is known before a run."""
        for figure in cls.declared.values():
            yield from figure.entries()

    def entries(self) -> Iterator[Entry]:
        for figure in self.declared.values():
            yield from figure.entries(self)

    def columns(self) -> dict[str, float]:
        """Return what this replication says of every figure, by the names that columns of files have."""
        values = {entry.column: entry.value(self) for entry in self.entries()}
        return {name: value for name, value in values.items() if not math.isnan(value)}

    def since(self: OutcomeT, before: OutcomeT, seconds: float) -> OutcomeT:
        """Return what was measured between an earlier reading and this one; what is no total stays as it is now."""
        held = dict(self.__dict__)
        for name, figure in self.declared.items():
            if name in held and isinstance(figure, declare.Total):
                held[name] = figure.since(held[name], before.__dict__[name])
        return type(self)(**{**held, "seconds": seconds})

    @classmethod
    def restated(cls, measured: Mapping[str, float]) -> dict[str, float]:
        """Return what a dataset measured of a phase in the terms of these figures; a ValueError for a contradiction."""
        return dict(measured)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, **{name: _plain(getattr(self, name)) for name in self.held}}

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> "Outcome":
        """Rebuild what :meth:`to_dict` returned.

        Refuses a kind that no installed part measures, and one of another version, which had other attributes.
        """
        kind = Outcome.kinds.get(str(data.get("kind"))) or _moved(str(data.get("kind")))
        if kind is None:
            raise UsageError(f"a result holds outcomes of kind {data.get('kind')!r}, which no installed part measures")
        held = {name: _rebuilt(value) for name, value in data.items() if name != "kind"}
        try:
            return kind(**held)
        except TypeError as error:
            raise UsageError(
                f"a result is of another version of vftsim ({error}): read it with that one, or run it anew elsewhere"
            ) from None


def _moved(kind: str) -> type[Outcome] | None:
    """Return the class of a kind whose module had another name when the file was written, if only one can be meant."""
    package, name = kind.partition(".")[0], kind.rpartition(".")[2]
    kinds = [each for each in Outcome.kinds.values() if each.__name__ == name and each.__module__.startswith(package)]
    return kinds[0] if len(kinds) == 1 else None


def _plain(value: Any) -> Any:
    if isinstance(value, DelayHistogram):
        return {_HISTOGRAM: value.to_dict()}
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    return value


def _rebuilt(value: Any) -> Any:
    if isinstance(value, Mapping):
        if set(value) == {_HISTOGRAM}:
            return DelayHistogram.from_dict(value[_HISTOGRAM])
        return {name: _rebuilt(each) for name, each in value.items()}
    return value


@dataclass(frozen=True, slots=True)
class Phase:
    """A measured stretch of a run, the same for all owners."""

    name: str
    """``""``: the whole run, or its measured time; else the step of a ramp (``step_3``) or ``pre_registration``."""
    load: float | None
    """What was offered, in the workload's unit; it is what tells steps of different ramps apart."""
    begin_ns: int
    end_ns: int
    outcomes: Mapping[str, Outcome]
    """What each owner measured in it, by address: ``workloads.calls``, ``domains.sut``, ``networks.lan.to_host``."""

    @property
    def seconds(self) -> float:
        return (self.end_ns - self.begin_ns) / 1e9

    @property
    def word(self) -> str:
        """The phase in an address: ``at_50`` by its load, its name where it has none; empty for the whole run."""
        if not self.name.startswith("step_") or self.load is None:
            return self.name
        return declare.path_word(f"at_{self.load:g}".replace(".", "_"))

    def to_dict(self) -> dict[str, Any]:
        outcomes = {owner: outcome.to_dict() for owner, outcome in self.outcomes.items()}
        return {
            "name": self.name,
            "load": self.load,
            "begin_ns": self.begin_ns,
            "end_ns": self.end_ns,
            "outcomes": outcomes,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        outcomes = {owner: Outcome.from_dict(outcome) for owner, outcome in data["outcomes"].items()}
        return cls(data["name"], data["load"], data["begin_ns"], data["end_ns"], outcomes)
