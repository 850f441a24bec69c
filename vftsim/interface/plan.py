"""A study is planned from its arguments, then conducted by who asked for it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from vftsim.interface.arguments import refuse_others

if TYPE_CHECKING:
    from vftsim.study.execution import Execution, Shard
    from vftsim.study.runs.estimate import Needs
    from vftsim.study.runs.model import Model
    from vftsim.study.runs.progress import Progress

Arguments = ParamSpec("Arguments")
Answered = TypeVar("Answered")


@dataclass(frozen=True)
class Plan(Generic[Answered]):
    """A study that may begin."""

    command: str
    """The kind of study, as its directory has it."""
    label: str
    """What its progress is called."""
    models: Sequence[Model]
    """Those that it studies."""
    takes: Callable[[], Needs] | None
    """Estimates how much time and memory."""
    study: Callable[[Execution], Answered]
    """Makes the answer."""
    files: str = ""
    """What the directory holds then, where people are told so."""
    needs_store: bool = False
    """Whether runs are kept meanwhile where no directory is named."""
    goes_on: bool = True
    """Whether it goes on from what the directory holds; else that is refused."""
    bases: Sequence[Model] | None = None
    """Models whose answer a directory holds, where those that it studies are points of them."""
    about: tuple[Any, ...] = ()
    """What the study was made of, for who looks at it before."""
    directory: str | Path | None = None
    """Where finished runs and the answer are kept; that of the call wins."""
    seed: int = 1
    jobs: int | None = 1
    """Root seed and worker processes; those of the call win."""
    force: bool = False
    """Start over there, by the call."""
    progress: bool = False
    """Say how far it is, by the call."""

    @property
    def folder(self) -> Path | None:
        return None if self.directory is None else Path(self.directory)

    def needs(self) -> Needs:
        assert self.takes is not None
        return self.takes()

    def answer(self, show: Progress, shard: Shard | None = None) -> tuple[Answered, Sequence[str]]:
        """Return the answer, of a share of the runs if one is named, and remarks on it and on the directory."""
        from vftsim.study.blocks.printed import refuse_another, write_answer
        from vftsim.study.execution import WHOLE, Execution
        from vftsim.study.store.store import Opening, resumable_store

        digests = tuple(model.digest() for model in (self.models if self.bases is None else self.bases))
        execution = Execution(self.seed, self.jobs, show, shard=shard or WHOLE, asked=digests)
        with ExitStack() as opened:
            folder = self.folder
            if folder is None and self.needs_store:
                folder = Path(opened.enter_context(TemporaryDirectory())) / self.command
            if folder is None:
                result: Any = self.study(execution)
                return result, getattr(result, "remarks", ())
            if self.goes_on and not self.force:
                refuse_another(folder, digests, self.seed)
            opening = Opening.REPLACE if self.force else Opening.CONTINUE if self.goes_on else Opening.NEW
            store = opened.enter_context(resumable_store(folder, self.command, opening))
            result = self.study(replace(execution, store=store))
            return result, write_answer(store, result)


def conducted(plan: Callable[Arguments, Plan[Answered]]) -> Callable[Arguments, Answered]:
    """Return the function that conducts what a function plans; the plan alone is :func:`plan_of`."""

    @functools.wraps(plan)
    def study(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Answered:
        from vftsim.study.runs.progress import make_progress

        refuse_others(plan, *args, **kwargs)
        planned = _planned(plan, *args, **kwargs)
        with make_progress(planned.label, not planned.progress) as show:
            return planned.answer(show)[0]

    signature = inspect.signature(plan)
    answer = str(signature.return_annotation).partition("[")[2].removesuffix("]")
    study.__annotations__ = {**plan.__annotations__, "return": answer}
    study.__signature__ = signature.replace(return_annotation=answer)  # type: ignore[attr-defined]
    return study


def _planned(plan: Callable[..., Plan[Answered]], *args: Any, **kwargs: Any) -> Plan[Answered]:
    """Return a plan with what every call says of how it is executed, and of the directory."""
    planned, call = plan(*args, **kwargs), inspect.signature(plan).bind(*args, **kwargs)
    call.apply_defaults()
    common = {name: call.arguments[name] for name in ("force", "progress", "jobs") if name in call.arguments}
    directory = call.arguments.get("directory") or call.arguments.get("keep") or planned.directory
    seed = call.arguments.get("seed")
    return replace(planned, directory=directory, seed=planned.seed if seed is None else seed, **common)


def plan_of(study: Callable[..., Answered], arguments: dict[str, Any]) -> Plan[Answered]:
    """Return what a study would do with these arguments."""
    return _planned(inspect.unwrap(study), **arguments)
