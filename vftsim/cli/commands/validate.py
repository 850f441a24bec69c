"""``vftsim validate``: models against measured data, with the accuracy that was declared."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from vftsim.cli.common import Work
from vftsim.cli.from_study import StudyCall, made_from
from vftsim.cli.output import OUTSIDE
from vftsim.errors import UsageError
from vftsim.interface import labs


@dataclass(kw_only=True)
class Validating(Work):
    """The same of a validation, which also writes a page of all its rows.

    Parameters
    ----------
    report : Result: --report FILE
        Write a page that needs nothing else (.html), or every row (.md).
    held_out : Result: --held-out FILE
        Write the rows that no fit used (JSON), from which 'vftsim predict --held-out' learns.
    """

    report: Path | None = None
    held_out: Path | None = None

    @property
    def rows(self) -> Path | None:
        """Where every row is to be written."""
        return None if self.report is None or self.report.suffix.lower() == ".html" else self.report

    def check_formats(self) -> None:
        from vftsim.cli.files import check_target

        if self.held_out is not None:
            check_target(self.held_out, self.force)
        if self.rows is None:
            super().check_formats()
        else:
            check_target(self.rows, self.force)
            if self.rows.suffix.lower() != ".md":
                raise UsageError(f"'{self.rows}' must end in .html (a page) or .md (every row)")


def _typed(arguments: Mapping[str, Any]) -> str:
    """Return what was asked, as it is typed behind the command."""
    options = [f"-e {shlex.quote(name)}" for name in arguments.get("environments") or ()]
    options += [f"-n {arguments['replications']}"] if arguments.get("replications") else []
    settings = (f"--set {shlex.quote(text)}" for text in arguments.get("overrides", ()))
    return " ".join([arguments["name_or_path"], *options, *settings])


@made_from(labs.validate, Validating)
def validate(call: StudyCall, *, common: Validating) -> None:
    """Predict every measured row; exit code 1 when the declared accuracy is missed."""
    from vftsim.calibrate import accuracy
    from vftsim.calibrate.validated import page
    from vftsim.cli.files import write_whole
    from vftsim.files import write_file

    rows = common.rows
    validated = common.conduct(call.plan())
    for warning in validated.warnings:
        typer.echo(f"warning: {warning}", err=True)
    if rows is not None:
        text = page(validated, _typed(call.arguments))
        write_whole(rows, lambda path: write_file(path, text.encode()))
        common.report = None
    if common.held_out is not None:
        if accuracy.held_out(validated.rows):
            written = accuracy.as_file(validated.rows)
            write_whole(common.held_out, lambda path: write_file(path, written))
        else:
            reason = "no row is held out and of a kind that errors are learned of (CPU, delays, IHS, completed)"
            typer.echo(f"warning: {reason}; '{common.held_out}' is not written", err=True)
    common.show(validated)
    if not validated.passed:
        raise typer.Exit(OUTSIDE)
