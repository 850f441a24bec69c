"""Fitted parameters on disk: values, intervals, residuals, what was held out, and how they came to be.

Also what a fitted file was made from, and whether that is still what the dataset says.  A hash covers the observations
that a fit used and the measured traffic of their phases (CPU is compared at the measured load and mix), not the tables
they stand in: a column or environment added to a table changes nothing.
"""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from vftsim._version import __version__
from vftsim.calibrate.definition import CalibrationSpec
from vftsim.calibrate.intervals import Coverage, End, Fit, Profile
from vftsim.composition.model import ModelSpec
from vftsim.files import codec, sha256_of, write_file
from vftsim.labs.dataset import Observations
from vftsim.study.runs.model import Model

FORMAT = 1
FITTED = "fitted"
"""Folder of the fitted files, beside the calibrations."""


def as_record(
    definition: CalibrationSpec,
    spec: ModelSpec,
    data: Observations,
    fit: Fit,
    manifest: dict[str, Any],
    units: Mapping[str, str],
) -> dict[str, Any]:
    """Return a fit as plain data, sufficient to tell how it came to be; units are those of the parameters by path."""
    calibration = definition.model_dump(mode="json")
    return {
        "format": FORMAT,
        "vftsim_version": __version__,
        "calibration_sha256": sha256_of(calibration),
        "model_sha256": Model("", spec).digest(),
        "data_sha256": data_sha256(data, fit.residuals),
        "calibration": calibration,
        "parameters": {
            path: {
                "value": value,
                "low_95": fit.low[path],
                "high_95": fit.high[path],
                "identified": path not in fit.undetermined,
                "unit": units[path],
                "meaning": next(p.meaning for p in definition.parameters if p.path == path),
            }
            for path, value in fit.values.items()
        },
        "cost": fit.cost,
        "evaluations": fit.evaluations,
        "ends": [asdict(end) for end in fit.ends],
        "not_identified": fit.not_identified,
        "sensitivity": _sensitivity(fit),
        "chance_of_runs": {
            "replications": definition.replications,
            "in_intervals": bool(fit.chance_share),
            "share_of_variance": {path: round(share, 4) for path, share in fit.chance_share.items()},
        },
        "correlations": fit.correlations,
        "profiles": [asdict(each) for each in fit.profiles],
        "coverage": [asdict(each) for each in fit.coverage],
        "residuals": [
            {"phase": phase, "quantity": quantity, "scaled_residual": round(value, 4)}
            for (phase, quantity), value in sorted(fit.residuals.items())
        ],
        "held_out": list(definition.held_out),
        "manifest": manifest,
    }


def from_record(record: dict[str, Any]) -> Fit:
    """Return the fit that a record is of, but for what it rounds and for how the data told the parameters."""
    parameters = record["parameters"]
    values, low, high = (
        {path: float(each[key]) for path, each in parameters.items()} for key in ("value", "low_95", "high_95")
    )
    return Fit(
        values,
        low,
        high,
        {(each["phase"], each["quantity"]): each["scaled_residual"] for each in record["residuals"]},
        record["cost"],
        record["evaluations"],
        record["not_identified"],
        record["correlations"],
        [path for path, each in parameters.items() if not each.get("identified", True)],
        None,
        [End(**end) for end in record.get("ends", ())],
        record.get("chance_of_runs", {}).get("share_of_variance", {}),
        codec(list[Profile])[1](record.get("profiles", [])),
        [Coverage(**each) for each in record.get("coverage", ())],
    )


def _sensitivity(fit: Fit) -> dict[str, Any] | None:
    """Return rank and condition of the fit, and what the data leave of each parameter's spread."""
    sensitivity = fit.sensitivity
    if sensitivity is None:
        return None
    return {
        "rank": sensitivity.rank,
        "condition": sensitivity.condition if math.isfinite(sensitivity.condition) else None,
        "remaining": {path: round(share, 4) for path, share in zip(fit.values, sensitivity.remaining, strict=True)},
    }


def write(path: Path, record: dict[str, Any]) -> None:
    write_file(path, (json.dumps(record, indent=1, sort_keys=True) + "\n").encode())


def data_sha256(data: Observations, keys: Iterable[tuple[str, str]]) -> str:
    """Return the hash of the observations ``keys`` and of the traffic of their phases."""
    used = {*keys}
    used |= {(phase, traffic) for phase, _ in used for traffic in ("load", "touches")}
    return sha256_of([[phase, quantity, data.get((phase, quantity))] for phase, quantity in sorted(used)])


def warnings(folder: Path, environment: str, data: Observations) -> list[str]:
    """Return a line for every fitted file of an environment that was made from other data than the dataset has now.

    There is nothing to say of a folder of calibrations without fitted files.
    """
    lines = []
    for path in sorted((folder / FITTED).glob("*.json")):
        name = f"{FITTED}/{path.name}"
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            if record["calibration"]["environment"] != environment or "data_sha256" not in record:
                continue  # files of before there was a hash do not say
            keys = [(entry["phase"], entry["quantity"]) for entry in record["residuals"]]
        except (OSError, ValueError, KeyError, TypeError):
            lines.append(f"{name} cannot be read as a fitted file")
            continue
        if record["data_sha256"] != data_sha256(data, keys):
            lines.append(f"{name} was fitted to other data than the dataset holds now for '{environment}'")
    return lines
