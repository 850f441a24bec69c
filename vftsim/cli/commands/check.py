"""``vftsim check``: what is wrong with a result's directory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from vftsim.cli.output import OUTSIDE

if TYPE_CHECKING:
    from vftsim.study.store.check import CheckReport


def check(directory: Path, repair: bool = False, as_json: bool = False) -> None:
    """Say what a result's directory holds and what is damaged; exit code 1 when something is.

    Parameters
    ----------
    directory : DIR
        What a command kept with -o.
    repair : --repair
        Save what is whole; the damaged database is kept beside.
    """
    from vftsim.report.screen import print_json
    from vftsim.study.store.check import check as look

    report = look(directory, repair)
    if as_json:
        print_json(report.for_machines())
    else:
        _print(report)
    if report.damage and not report.repaired:
        raise typer.Exit(OUTSIDE)


def _print(report: CheckReport) -> None:
    from vftsim.report.screen import print_text
    from vftsim.spec.suggest import counted

    whole = counted(report.whole, "finished replication")
    print_text(f"{report.folder}: a {report.command or 'study'} of vftsim, {whole}")
    for study in report.studies:
        identity = ", ".join(f"{name} {str(value)[:40]}" for name, value in study.identity.items())
        print_text(f"  {counted(len(study.replications), 'replication')} of {identity}")
    for text in report.damage:
        print_text(f"Damaged: {text}")
    for text in report.notes:
        print_text(f"Note: {text}")
    if report.repaired:
        print_text(f"Repaired: {report.repaired}")
    elif report.damage:
        print_text(f"Nothing damaged is ever counted. 'vftsim check {report.folder} --repair' saves what is whole.")
    else:
        print_text("Nothing is damaged.")
