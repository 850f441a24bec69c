"""``vftsim schema``: JSON Schema of model files, study files and the files of a calibration, for editors."""

from vftsim.errors import UsageError


def schema(kind: str | None = None) -> None:
    """Print the JSON Schema of model files, of a study, prices, a record, or of the files of a lab (draft 2020-12).

    Parameters
    ----------
    kind : [KIND]
        study, prices, record; dataset, calibration, validation, ramps: files of a lab; a model file if not given.
    """
    from vftsim.calibrate.validation import LAB_SCHEMAS
    from vftsim.records.definition import record_schema
    from vftsim.report.screen import print_json
    from vftsim.spec.suggest import did_you_mean
    from vftsim.study.designs.optimize import prices_schema
    from vftsim.study.designs.study_spec import study_schema
    from vftsim.study.runs.model import models_schema

    schemas = {"study": study_schema, "prices": prices_schema, "record": record_schema, **LAB_SCHEMAS}
    if kind is not None and kind not in schemas:
        hint = did_you_mean(kind, schemas) or ";"
        raise UsageError(
            f"no schema '{kind}'{hint} there are {', '.join(schemas)}, and without a name that of model files"
        )
    print_json(schemas[kind]() if kind is not None else models_schema())
