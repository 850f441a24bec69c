"""Options that several commands share, with one wording: what a parameter of this name is, if a command does not say.

Parameters
----------
model : MODEL
    A shipped model (see 'vftsim models') or the path of a model file.
set_ : Model: --set KEY=VALUE
    Change a value of the model, e.g. --set 'hosts.host.switch_cost=4 us'; repeatable.
seed : Model: --seed
    Root seed; the same seed gives the same results to the last bit.
scale : Model: --scale
    Measured time as a multiple of the model's; transients and warm-up stay.
quick : Model: --quick
    First look: a minute of each step, half a second of a steady state but no less than a workload's test and ten
    checkpoints, a quarter of the crashes.
replications : --replications, -n
    Independent replications.
replication : --replication
    Number of the replication, from 0.
start : --start TIME
    Where the window begins in simulated time; if not given, just before the first fault, a second into the first step
    of a ramp, or after the warm-up.
length : --length TIME
    Length of the window; if not given, 100 ms, around a fault 10 s.
force : Result: --force
    Replace an existing result.
report : Result: --report FILE
    Write a page of the result that needs nothing else (.html).
keep : Result: --keep DIR
    Keep every finished run and the answer here; the same command goes on.
as_json : Result: --json
    Print one JSON document instead of tables.
as_csv : Result: --csv
    Print CSV instead of tables.
quiet : Work: --quiet, -q
    Show no progress.
jobs : Work: --jobs, -j
    Worker processes (default: all cores); no influence on results.
cluster : Work: --cluster ADDRESS
    Run on a Dask cluster: its scheduler's address (tcp://host:8786) or scheduler file; no influence on results.
shard : Work: --shard I/N
    Compute share I of N only, into a DIR of its own; 'vftsim merge' puts them together.
engine : Work: --engine
    compiled: fast; simpy: plain Python, to read and to debug; auto: compiled where that is possible. No influence on
    results.
strict : Work: --strict
    End a run with the first output that leaves before the backup can take over from there, unless the model asks for
    that; such outputs are counted in any case.
yes : Work: --yes, -y
    Begin although it takes above an hour or a quarter of the memory.
max_time : Work: --max-time TIME
    End after this time in all, e.g. 30 min; what has finished is kept.
max_memory : Work: --max-memory SIZE
    Refuse what needs more memory, end what uses more, e.g. 4 GB.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from vftsim.cli.output import say
from vftsim.errors import UsageError

if TYPE_CHECKING:
    from vftsim.study.runs.estimate import Needs
    from vftsim.study.runs.limits import Limits
    from vftsim.study.runs.model import Model


MODEL, RESULT, WORK = "Model", "Result", "Work"
"""Groups of the shared options in the help of every command."""


class EngineName(StrEnum):
    """What runs the model; without influence on results."""

    auto = "auto"
    compiled = "compiled"
    simpy = "simpy"


def offered(name: str, metavar: str | None) -> Callable[[str], list[str]] | None:
    """Return what tells the shell the values of a parameter, of which some are typed; files it offers by itself."""
    if name in ("protection", "scheduler"):
        return lambda incomplete: _kinds(name, incomplete)
    rooms = {"MODEL": "models", "CALIBRATION": "calibration", "VALIDATION": "calibration"}
    room = rooms.get((metavar or "").strip("[.]"))
    return (lambda incomplete: _shipped(room, incomplete)) if room else None


def _shipped(room: Any, incomplete: str) -> list[str]:
    from vftsim.spec.shipped import list_shipped

    return [name for name in list_shipped(room) if name.startswith(incomplete)]


def _kinds(family: str, incomplete: str) -> list[str]:
    """Return kinds of parts; of several, for the last."""
    from vftsim.platform.cpu.parameters import schedulers
    from vftsim.platform.protection.mechanism import protections

    before, comma, begun = incomplete.rpartition(",")
    kinds = protections() if family == "protection" else schedulers()
    return [f"{before}{comma}{kind}" for kind in (*kinds, "all") if kind.startswith(begun)]


DEFAULT_SEED = 1
_LONGEST_D = 10**12
"""Days of a time that is typed: older than the universe, and a number that can be read."""


def prepared(name: str, overrides: list[str] | None) -> Model:
    from vftsim.composition.without_effect import remarks
    from vftsim.study.runs.model import load_model

    model = load_model(name, overrides or ())
    say_remarks(remarks(model.spec))
    return model


def read_limits(max_time: str | None, max_memory: str | None, yes: bool = False) -> Limits:
    """Return what the options allow a study."""
    from vftsim.spec import BYTE_COUNT, DURATION
    from vftsim.study.runs.limits import Limits, ended_beyond

    most_ns = None if max_time is None else round(parse_quantity("--max-time", max_time, DURATION))
    most_bytes = None if max_memory is None else round(parse_quantity("--max-memory", max_memory, BYTE_COUNT))
    for option, value in (("--max-time", most_ns), ("--max-memory", most_bytes)):
        if value == 0:
            raise UsageError(f"{option}: above 0")
    end_watch()
    _watch.enter_context(ended_beyond(most_ns, None, say))
    return Limits(yes, most_ns, most_bytes)


_watch = ExitStack()
"""What ends the command under way beyond its limits, from when they are read until its study is over."""


def end_watch() -> None:
    """Let nothing more end the command: its study is over, or it was refused."""
    _watch.close()


@contextmanager
def limited(limits: Limits, needs: Callable[[], Needs], jobs: int | None) -> Iterator[str]:
    """Refuse a study that takes too much, or ask about it, or yield what to say of it; then its limits end."""
    from vftsim.study.runs.limits import check
    from vftsim.study.runs.workers import checked_jobs

    words = check(needs(), checked_jobs(jobs), limits, _agrees)
    with ended_beyond_memory(limits):
        yield words


@contextmanager
def ended_beyond_memory(limits: Limits) -> Iterator[None]:
    """End what is inside when it uses more memory than it may; then its limits end."""
    from vftsim.study.runs.limits import ended_beyond

    _watch.enter_context(ended_beyond(None, limits.most_bytes, say))
    try:
        yield
    finally:
        end_watch()


def _agrees(question: str) -> bool:
    """Ask at a terminal; elsewhere nobody agrees."""
    return sys.stdin.isatty() and sys.stderr.isatty() and typer.confirm(f"vftsim: {question}", err=True)


def use_engine(engine: EngineName, cluster: str | None = None, *, strict: bool = False) -> None:
    """Have this process and its workers use an engine and a cluster, and end runs with a breach of the promise.

    What is not given is left to the environment (``VFTSIM_ENGINE``, ``VFTSIM_STRICT``).
    """
    if strict:
        os.environ["VFTSIM_STRICT"] = "1"
    if engine is not EngineName.auto:
        os.environ["VFTSIM_ENGINE"] = engine.value
    leave_cluster()
    if cluster is not None:
        from vftsim.study.runs.cluster import on_cluster

        _cluster.enter_context(on_cluster(cluster, say))


_cluster = ExitStack()
"""The cluster that the command under way uses."""


def leave_cluster() -> None:
    """Let what follows run on this machine."""
    _cluster.close()


def say_remarks(remarks: Iterable[str]) -> None:
    """Say on standard error what a user must know of a model, or of a result's directory."""
    for remark in dict.fromkeys(remarks):
        say(remark)


def check_report(report: Path | None, force: bool, folder: Path | None = None) -> None:
    """Refuse a page that cannot be written, before the work; the folder is that of its result."""
    if report is not None:
        from vftsim.cli.files import check_target
        from vftsim.report.html import check_extra

        check_extra()
        check_target(report, force, ".html", folder)


def write_report(path: Path, text: str, folder: Path | None = None) -> None:
    """Write a page whole or not at all, and say so on standard error: standard output is the result's."""
    from vftsim.cli.files import write_whole
    from vftsim.files import write_file

    write_whole(path, lambda to: write_file(to, text.encode()), folder)
    say(f"written: {path}")


def parse_seconds(option: str, text: str) -> float:
    """Return an option's time in seconds, of any length: what simulates so long has a bound of its own."""
    from dataclasses import replace

    from vftsim.spec import DURATION

    return parse_quantity(option, text, replace(DURATION, upper=_LONGEST_D * 86_400 * 10**9)) / 1e9


def parse_quantity(option: str, text: str, quantity: Any, base_unit: str = "") -> float:
    """Return an option's quantity in its base unit; a bare number is taken in ``base_unit`` if that is given."""
    from pydantic_core import PydanticCustomError

    try:
        bare = text.strip().replace(".", "", 1).isdigit()
        return float(quantity.parse(f"{text} {base_unit}" if bare and base_unit else text))
    except PydanticCustomError as error:
        raise UsageError(f"{option}: {error.message()}") from None
