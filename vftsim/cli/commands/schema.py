"""``vftsim schema``: JSON Schema of model files, study files and the files of a calibration, for editors."""

from __future__ import annotations

from vftsim.errors import UsageError

STUDY, PRICES, RECORD = "study", "prices", "record"


def schema(
    kind: str | None = None,
) -> None:
    """Print the JSON Schema of model files, of a study, prices, a record, or of the files of a lab (draft 2020-12).

    Parameters
    ----------
    kind : [KIND]
        study, prices, record; dataset, calibration, validation, ramps: files of a lab; a model file if not given.
    """
    from vftsim.calibrate.schemas import KINDS, lab_schema
    from vftsim.report.screen import print_json
    from vftsim.spec.suggest import did_you_mean
    from vftsim.study.runs.model import models_schema

    if kind is None:
        print_json(models_schema())
    elif kind == STUDY:
        from vftsim.study.designs.study_spec import study_schema

        print_json(study_schema())
    elif kind == PRICES:
        from vftsim.study.designs.prices import prices_schema

        print_json(prices_schema())
    elif kind == RECORD:
        from vftsim.records.definition import record_schema

        print_json(record_schema())
    elif kind in KINDS:
        print_json(lab_schema(kind))
    else:
        known = (STUDY, PRICES, RECORD, *KINDS)
        hint = did_you_mean(kind, known) or ";"
        raise UsageError(
            f"no schema '{kind}'{hint} there are {', '.join(known)}, and without a name that of model files"
        )
