"""JSON Schemas of a lab's own files: dataset, calibration, measured ramps, a validation in either of its forms."""

from __future__ import annotations

from typing import Any

from vftsim.calibrate.definition import CalibrationSpec
from vftsim.calibrate.validation import RunValidationSpec, ValidationSpec
from vftsim.labs.definition import DatasetSpec
from vftsim.labs.ramps import MeasuredRamps
from vftsim.spec import Spec, json_schema

KINDS = ("dataset", "calibration", "validation", "ramps")
_ROOTS: dict[str, type[Spec]] = {"dataset": DatasetSpec, "calibration": CalibrationSpec, "ramps": MeasuredRamps}


def lab_schema(kind: str) -> dict[str, Any]:
    """Return the schema of files of a kind, one of :data:`KINDS`."""
    if kind == "validation":
        return _validation()
    return json_schema(_ROOTS[kind], f"vftsim {kind}")


def _validation() -> dict[str, Any]:
    """A validation is one by runs where it names a model at its top, else one of a ramp.

    A file that extends another may leave that key to it, so it is held to either.
    """
    ramp, runs = json_schema(ValidationSpec, "vftsim validation"), json_schema(RunValidationSpec)
    by_form = {"if": {"required": ["model"]}, "then": runs["else"], "else": ramp["else"]}
    return ramp | {
        "then": {"anyOf": [ramp["then"], runs["then"]]},
        "else": by_form,
        "$defs": {**ramp["$defs"], **runs["$defs"]},
    }
