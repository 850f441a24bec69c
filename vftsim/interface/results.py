"""Results that were kept: opened, shown, checked, put together, run again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vftsim.interface.arguments import checked

if TYPE_CHECKING:
    from vftsim.study.blocks.printed import Printed
    from vftsim.study.designs.past import Merged
    from vftsim.study.figures.frames import DataFrame
    from vftsim.study.store.check import CheckReport


_CLASSES = {
    "run": ("study.designs.run", "RunResult"),
    "compare": ("study.designs.compare", "Comparison"),
    "failover": ("study.designs.failover", "FailoverStudy"),
    "availability": ("study.designs.availability", "AvailabilityStudy"),
    "predict": ("calibrate.prediction", "Prediction"),
    "calibrate": ("calibrate.run", "Calibrated"),
    "validate": ("calibrate.validated", "Validated"),
    "capacity": ("study.designs.capacity_answer", "CapacityStudy"),
}
"""Class of the result of a command; of others a directory says what they are."""


@checked
def open(directory: str | Path) -> Printed:
    """Return the object that the call returned which made a result's directory.

    Of sweeps, studies, sensitivity, decisions, rare events and pilots it is what the directory says of itself.

    Refuses a directory that holds no finished result.
    """
    from importlib import import_module

    from vftsim.study.store.opened import read_answer, read_manifest

    folder = Path(directory)
    command, stored = read_manifest(folder)["command"], ("study.blocks.printed", "Stored")
    is_decision = command == "compare" and "objectives" in read_answer(folder)
    module, name = stored if is_decision else _CLASSES.get(command, stored)
    result: Printed = getattr(import_module(f"vftsim.{module}"), name).opened(folder)
    return result


@checked
def report(directories: Sequence[str | Path], path: str | Path | None = None) -> str:
    """Return a page about one result, or about several beside each other; with ``path``, write it there.

    Refuses a directory that holds no result, and any where the extra ``report`` is not installed.
    """
    from vftsim.files import write_file
    from vftsim.study.blocks.printed import page_of

    folders = [Path(each) for each in directories]
    names = [folder.resolve().name for folder in folders]
    labels = names if len(set(names)) == len(names) else [*map(str, folders)]
    text = page_of([open(folder) for folder in folders], labels)
    if path is not None:
        write_file(Path(path), text.encode())
    return text


@checked
def studies(directory: str | Path = ".") -> list[tuple[Path, dict[str, Any]]]:
    """Return the finished results in a directory and two levels below it, each with its manifest, the oldest first.

    Refuses a missing directory.
    """
    from vftsim.study.designs.past import results_in

    return results_in(Path(directory))[0]


@checked
def export(directory: str | Path) -> DataFrame:
    """Return every run of a study, a run or a comparison with all its figures, one row a run.

    Refuses a result that does not keep its points.
    """
    from vftsim.study.designs.past import export as table_of

    return table_of(Path(directory))


@checked
def replay(directory: str | Path, run: int) -> bool | None:
    """Run one run of a result again; return whether it is what was kept, to the last bit, None if it was not kept.

    Refuses a run that there is not, or whose model cannot be made again as it was.
    """
    from vftsim.study.designs.past import is_reproduced, stored_run

    folder = Path(directory)
    return is_reproduced(folder, stored_run(folder, run))


@checked
def check(directory: str | Path, *, repair: bool = False) -> CheckReport:
    """Return what a result's directory holds and what is damaged; with ``repair``, save what is whole."""
    from vftsim.study.store.check import check as look

    return look(Path(directory), repair)


@checked
def merge(directories: Sequence[str | Path], output: str | Path) -> Merged:
    """Put the finished replications of several shards into one directory; the whole command then writes its tables.

    Refuses those that are not of one command, model and seed, and one that is no finished result.
    """
    from vftsim.study.designs.past import merge as put_together

    return put_together([Path(each) for each in directories], Path(output))
