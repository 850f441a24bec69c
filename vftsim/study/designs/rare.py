"""``vftsim rare``: how probable it is that a level of the state reaches a limit before a run is over.

By multilevel splitting (:mod:`vftsim.stats.splitting`) of runs that are continued from states of themselves
(:mod:`vftsim.composition.branches`), or by brute force: as many runs from time 0.  A repetition is one task, so results
are the same in any number of workers.
"""

import math
import re
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from pydantic_core import PydanticCustomError

from vftsim.composition.branches import BACKLOG, HELD, LOST, Branches, level_names
from vftsim.composition.model import ModelSpec
from vftsim.errors import UsageError
from vftsim.platform.levels import LOSS
from vftsim.report.blocks import Answer, Block, Card, Cards, Cell, Counted, Note, Table
from vftsim.sampling import Streams
from vftsim.spec import DURATION
from vftsim.spec.suggest import counted, listing
from vftsim.stats import Estimate, binomial_interval, mean_interval
from vftsim.stats.splitting import Pilot, Trials, find_levels, split
from vftsim.study.blocks.head import head
from vftsim.study.blocks.printed import Printed
from vftsim.study.execution import Execution
from vftsim.study.figures.frames import CONFIDENCE, DataFrame, estimate_columns, frame, rows
from vftsim.study.runs.estimate import Needs, going_on_of, needs_of
from vftsim.study.runs.model import Model

COMMAND = "rare"
DEFAULT_TRIALS, DEFAULT_REPETITIONS = 100, 20
_FORM = re.compile(r"\s*(?P<level>\S+)\s*>=\s*(?P<limit>[0-9.]+\s*[a-z]*)\s*")
_LEVELS_ABOUT = 8
"""For an estimate of what a study takes: levels to a probability of 1e-6."""


@dataclass(frozen=True)
class Event:
    """A rare event: a figure reaches a level."""

    level: str
    """Address of the level."""
    limit: int
    """The level that it reaches: packets, ns of a backlog, or losses."""

    @property
    def is_of_losses(self) -> bool:
        return self.level.endswith(f".{LOST}")

    @property
    def queue(self) -> str:
        """Address of the level of the queue: the event's own, or that before its losses."""
        if not self.is_of_losses:
            return self.level
        return self.level.removesuffix(LOST) + (BACKLOG if self.level.startswith("networks.") else HELD)

    @property
    def target(self) -> int:
        """The limit as a level (:mod:`vftsim.platform.levels`)."""
        return self.limit * LOSS if self.is_of_losses else self.limit

    def shown(self, level: int) -> str:
        if self.is_of_losses and level >= LOSS:
            return f"{level // LOSS} lost" + (f", {self.shown(level % LOSS)} queued" if level % LOSS else "")
        return f"{level / 1e3:g} us" if self.queue.endswith(f".{BACKLOG}") else str(level)

    def __str__(self) -> str:
        limit = str(self.limit) if self.is_of_losses else self.shown(self.limit)
        return f"{self.level} >= {limit}"


def read_event(text: str, spec: ModelSpec) -> Event:
    """Return the event ``level >= number`` that a user wrote; a level may be named by its last words."""
    match = _FORM.fullmatch(text)
    if match is None:
        raise UsageError(f"--event: '{text}' is not of the form 'level >= number', e.g. 'server.queue.held >= 20'")
    names = level_names(spec)
    levels = [name for name in names if name == match["level"]] or [
        name for name in names if f".{short_name(name)}".endswith(f".{match['level']}")
    ]
    if len(levels) != 1:
        raise UsageError(
            f"--event: '{match['level']}' names {counted(len(levels), 'level')} of this "
            f"model; there are {listing([short_name(name) for name in names])}"
        )
    return Event(levels[0], read_level(match["limit"], levels[0], "--event"))


def short_name(level: str) -> str:
    """Return the address of a level without the words that say nothing."""
    return level.removeprefix("domains.").removeprefix("networks.").replace(".applications.", ".")


def read_level(text: str, level: str, option: str) -> int:
    """Return a limit that a user wrote, a time where the level is a backlog, else a number; refuse anything else."""
    if level.endswith(f".{BACKLOG}"):
        try:
            return max(round(float(DURATION.parse(text))), 1)
        except PydanticCustomError as error:
            raise UsageError(f"{option}: {error.message()}") from None
    if not text.strip().isdecimal() or not 1 <= int(text) < LOSS:
        raise UsageError(f"{option}: '{text.strip()}': {level} takes a whole number from 1 on")
    return int(text)


def read_levels(text: str | None, event: Event) -> tuple[int, ...] | None:
    """Return the levels that a user wrote with commas; None for none: of losses they are of the queue before."""
    if text is None:
        return None
    return tuple(read_level(each, event.queue, "--levels") for each in text.split(","))


@dataclass(frozen=True)
class Request:
    """The event and the method."""

    model: Model
    event: Event
    levels: tuple[int, ...] | None = None
    """On the way, without the limit; None: a pilot finds them; empty: brute force."""
    trials: int = DEFAULT_TRIALS
    """At each level."""
    repetitions: int = DEFAULT_REPETITIONS

    def check(self) -> None:
        if self.trials < 2:
            raise UsageError(f"--trials: at least 2, got {self.trials}")
        path = (0, *(self.levels or ()), self.event.target)
        if any(threshold >= further for threshold, further in pairwise(path)):
            raise UsageError("--levels: ascending, from 1 on, and below the limit of the event")

    def takes(self) -> Needs:
        """Return what it takes, about."""
        levels = _LEVELS_ABOUT if self.levels is None else len(self.levels) + 1
        tasks, spec = self.repetitions + (self.levels is None), self.model.spec
        return needs_of(spec).times(tasks) + going_on_of(spec).times(levels * self.trials * tasks)


def request_for(
    model: Model, event: str, levels: str | None, trials: int, repetitions: int, *, brute_force: bool
) -> Request:
    """Return what a user asks, in words; refuse what makes no sense."""
    if brute_force and levels is not None:
        raise UsageError("levels are of splitting, and brute force has none: choose one")
    parsed = read_event(event, model.spec)
    request = Request(model, parsed, () if brute_force else read_levels(levels, parsed), trials, repetitions)
    request.check()
    return request


@dataclass(frozen=True)
class _Task:
    """A repetition, or the pilot before them: that is number 0, and has no levels yet."""

    spec: ModelSpec
    seed: int
    number: int
    event: Event
    levels: tuple[int, ...]
    trials: int

    def process(self) -> Branches:
        return Branches(self.spec, self.seed, self.number, self.event.level)

    def choose(self) -> Any:
        return Streams(self.seed, self.number).generator("splitting.continued")


def play(task: _Task) -> Trials:
    return split(task.process(), (*task.levels, task.event.target), task.trials, task.choose())


def pilot(task: _Task) -> Pilot:
    return find_levels(task.process(), task.event.target, task.trials, task.choose(), task.event.shown)


@dataclass(frozen=True)
class RareStudy(Printed):
    """The probability of an event."""

    request: Request
    levels: tuple[int, ...]
    """The limit last."""
    repetitions: list[Trials]
    pilot: Pilot | None
    """Runs by which the levels were found."""
    manifest: dict[str, Any]

    @property
    def values(self) -> list[float]:
        """The estimate of each repetition."""
        return [each.probability(len(self.levels)) for each in self.repetitions]

    @property
    def probability(self) -> Estimate:
        return self.probability_of(len(self.levels))

    def probability_of(self, levels: int) -> Estimate:
        """Return the probability that a run comes through so many levels.

        Where no repetition has, or each in all its trials, what so many repetitions bound: no estimate of one is above
        1, so the event shows in at least as many of them as it is probable.
        """
        values = [each.probability(levels) for each in self.repetitions]
        if set(values) in ({0.0}, {1.0}):
            return binomial_interval(round(math.fsum(values)), len(values), CONFIDENCE)
        return mean_interval(values, CONFIDENCE).times(1.0, most=1.0)

    @property
    def events(self) -> int:
        """Events simulated in all, those of the pilot included."""
        return sum(each.events for each in self.repetitions) + (self.pilot.events if self.pilot else 0)

    def shares(self, number: int) -> Estimate | None:
        """Return the share of the trials of a level that came to it; None if no repetition came to the one before."""
        came = [each.reached[number] / each.tried for each in self.repetitions if len(each.reached) > number]
        return mean_interval(came).times(1.0, most=1.0) if came else None

    @property
    def brute_force_events(self) -> float | None:
        """Events that runs from time 0 take for an estimate with the same standard error; None if it is not known."""
        values, mean = self.values, self.probability.mean
        if self.pilot is None or len(values) < 2 or not 0.0 < mean < 1.0:
            return None
        variance = math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1) / len(values)
        return mean * (1.0 - mean) / variance * self.pilot.run_events if variance else None

    def to_pandas(self) -> DataFrame:
        """Return one row a level, the event last, with the probability that a run comes to it."""
        table = []
        for number, level in enumerate(self.levels):
            arrived = [each.reached[number] if len(each.reached) > number else 0 for each in self.repetitions]
            row: dict[str, Any] = {"level": level, "reached": self.request.event.shown(level)}
            tried = sum(each.tried for each in self.repetitions if len(each.reached) > number)
            row |= {"trials": tried, "arrived": sum(arrived), "share": sum(arrived) / tried if tried else None}
            estimated = estimate_columns(self.probability_of(number + 1))
            table.append({**row, "probability": estimated.pop("estimate"), **estimated})
        return frame(table)

    def blocks(self) -> list[Block]:
        """Return the probability, the shares that came from level to level, and what it rests on."""
        event, request = self.request.event, self.request
        table: list[list[Cell]] = [[event.shown(level), self.shares(n)] for n, level in enumerate(self.levels)]
        by = "brute force" if len(self.levels) == 1 else "multilevel splitting"
        return [
            *head(self.manifest["models"], self.manifest["seed"]),
            Answer(
                f"{' '.join(filter(None, _small(self.probability)))} of a run, by {by}", f"How probable is {event}?"
            ),
            Cards([Card("probability", Counted(*_small(self.probability)))]),
            Table(["level", "share that came there"], table, "From level to level"),
            *(Note(text) for text in _notes(self)),
            Note(
                f"{request.repetitions} independent repetitions of {request.trials} trials at each level; shares are "
                "of those that came to the level before. ± or [..]: 95 % interval over repetitions, corrected for "
                "skewness, from ten on; (x to y): lowest and highest."
            ),
        ]

    def for_machines(self) -> dict[str, Any]:
        return {
            "manifest": self.manifest,
            "event": str(self.request.event),
            "probability": estimate_columns(self.probability),
            "levels": rows(self.to_pandas()),
            "repetitions": [
                {"probability": value, "events": each.events}
                for value, each in zip(self.values, self.repetitions, strict=True)
            ],
            "events": self.events,
            "brute_force_events": self.brute_force_events,
        }


def rare_study(request: Request, execution: Execution) -> RareStudy:
    """Find the probability of an event; refuse a model whose states cannot be kept, and trials that come no further."""
    request.check()
    execution.check(request.repetitions)
    event, model, pilot_found = request.event, request.model, None
    first = _Task(model.spec, execution.seed, 0, event, (), request.trials)
    determinants = {COMMAND: [event.level, event.limit, request.trials]}
    levels = request.levels
    if levels is None:
        cache = execution.cache(model, Pilot, **determinants, of="pilot")
        ((pilot_found,),) = execution.play(pilot, [cache], [{0: first}], jobs=1)
        levels = pilot_found.levels[:-1]
    tasks = {n: replace(first, number=n, levels=levels) for n in range(1, request.repetitions + 1)}
    cache = execution.cache(model, Trials, **determinants, levels=list(levels))
    (repetitions,) = execution.play(play, [cache], [tasks])
    manifest = execution.manifest([model], COMMAND, list(tasks), wanted=request.repetitions)
    return RareStudy(request, (*levels, event.target), repetitions, pilot_found, manifest)


def _small(chance: Estimate) -> tuple[str, str]:
    """Return a probability, however small, and its interval or range."""
    if bound := chance.bound("{:.2g}".format):
        return bound, ""
    low, high = f"{chance.low:.2g}", f"{chance.high:.2g}"
    if chance.low == chance.high or not math.isfinite(chance.half_width):
        return f"{chance.mean:.2g}", ""
    return f"{chance.mean:.2g}", f"[{low}, {high}]" if chance.is_interval else f"({low} to {high})"


def _notes(study: RareStudy) -> list[str]:
    notes = [f"{study.events:,} events were simulated."]
    brute = study.brute_force_events
    if brute is not None and len(study.levels) > 1:
        notes[0] += (
            f" Runs from time 0 take about {brute:.2g} for the same standard error, {brute / study.events:.2g} times "
            "as many."
        )
    if not study.probability.mean:
        nearer = "levels nearer to each other (--levels)" if len(study.levels) > 1 else "no --brute-force"
        notes.append(f"No repetition saw the event: more --trials, or {nearer}.")
    elif len(study.levels) > 1:
        notes.append(
            "Trials that go on from one state share what it holds. With too few of them most repetitions come out too "
            f"low, and the interval with them: --trials {4 * study.request.trials} shows whether these were enough."
        )
    return notes
