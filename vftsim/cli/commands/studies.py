"""``vftsim studies``: what results there are."""

import re
from pathlib import Path
from typing import Any

from vftsim.cli import options


def studies(directory: Path = Path(), as_json: bool = False) -> None:
    """List the results in a directory: what each is of, how much of it is there, and the command that made it.

    Parameters
    ----------
    directory : [DIR]
        Where to look, two levels deep.
    """
    from vftsim.report.screen import print_json, print_table, print_text
    from vftsim.study.designs.past import results_in

    results, refused = results_in(directory)
    options.say_remarks(refused)
    if as_json:
        listed = [{"directory": str(folder), **_about(m), "command_line": m["command_line"]} for folder, m in results]
        print_json(listed)
        return
    if not results:
        print_text(f"No finished result of vftsim in '{directory}' or two levels below it.")
        return
    columns = ("directory", "what", "models", "points", "n", "seed", "state", "begun (UTC)")
    rows = [(str(folder), *(_in_words(value) for value in _about(manifest).values())) for folder, manifest in results]
    print_table("Results", columns, rows, "n: replications asked for.", texts=len(columns))


def _in_words(value: Any) -> str:
    """Return a value, an instant to the minute and in two words, which a narrow column holds."""
    text = str(value)
    return text[:16].replace("T", " ") if re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:]+Z", text) else text


def _about(manifest: dict[str, Any]) -> dict[str, Any]:
    from vftsim.study.designs.past import design_of

    labels = list(dict.fromkeys(model["label"] for model in manifest.get("models", [])))
    return {
        "command": manifest["command"],
        "models": ", ".join(labels),
        "points": design_of(manifest).get("points", len(labels)),
        "replications": manifest.get("replications_wanted") or "",  # 0: each point as many as it needs
        "seed": manifest.get("seed", ""),
        "state": manifest.get("state", ""),
        "started_utc": manifest.get("started_utc", ""),
    }
