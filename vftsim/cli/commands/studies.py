"""``vftsim studies``: what results there are."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def studies(
    directory: Path = Path(),
    as_json: bool = False,
) -> None:
    """List the results in a directory: what each is of, how much of it is there, and the command that made it.

    Parameters
    ----------
    directory : [DIR]
        Where to look, two levels deep.
    """
    from vftsim.report.screen import print_json, print_table, print_text
    from vftsim.study.designs.past import list_results

    found = list_results(directory)
    if as_json:
        print_json(
            [{"directory": str(folder), **_about(said), "command_line": said["command_line"]} for folder, said in found]
        )
        return
    if not found:
        print_text(f"No result of vftsim in '{directory}' or two levels below it.")
        return
    columns = ("directory", "what", "models", "points", "n", "seed", "state", "begun (UTC)")
    rows = [(str(folder), *(str(value) for value in _about(said).values())) for folder, said in found]
    print_table("Results", columns, rows, "n: replications asked for.", texts=len(columns))


def _about(said: dict[str, Any]) -> dict[str, Any]:
    labels = list(dict.fromkeys(model["label"] for model in said.get("models", [])))
    points = (said.get("study") or said.get("sweep") or {}).get("points", len(labels))
    return {
        "command": said["command"],
        "models": ", ".join(labels),
        "points": points,
        "replications": said.get("replications_wanted", ""),
        "seed": said.get("seed", ""),
        "state": said.get("state", ""),
        "started_utc": said.get("started_utc", ""),
    }
