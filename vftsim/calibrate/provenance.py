"""What a fitted file was made from, and whether that is still what the dataset says.

A hash covers the observations that a fit used and the measured traffic of their phases (CPU is compared at the
measured load and mix), not the tables they stand in: a column or environment added to a table changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from vftsim.labs.dataset import Observations
from vftsim.study.store.files import sha256_of

FITTED = "fitted"
"""Folder of the fitted files, beside the calibrations."""


def data_sha256(data: Observations, keys: Iterable[tuple[str, str]]) -> str:
    """Return the hash of the observations ``keys`` and of the traffic of their phases."""
    used = {*keys}
    used |= {(phase, traffic) for phase, _ in used for traffic in ("load", "touches")}
    return sha256_of([[phase, quantity, data.get((phase, quantity))] for phase, quantity in sorted(used)])


def warnings(folder: Path, environment: str, data: Observations) -> list[str]:
    """Return a line for every fitted file of an environment that was made from other data.

    Parameters
    ----------
    folder : Path
        That of the calibrations; without fitted files there is nothing to say.
    data : Observations
        What the dataset says now.
    """
    found = []
    for path in sorted((folder / FITTED).glob("*.json")):
        name = f"{FITTED}/{path.name}"
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            if record["calibration"]["environment"] != environment or "data_sha256" not in record:
                continue  # files of before there was a hash do not say
            keys = [(entry["phase"], entry["quantity"]) for entry in record["residuals"]]
        except (OSError, ValueError, KeyError, TypeError):
            found.append(f"{name} cannot be read as a fitted file")
            continue
        if record["data_sha256"] != data_sha256(data, keys):
            found.append(f"{name} was fitted to other data than the dataset holds now for '{environment}'")
    return found
