"""Schemas of datasets, calibrations, validations and records: shipped files pass, mistakes do not."""

import copy
import json

import pytest
from ruamel.yaml import YAML

from tests.labs.json_schema_check import mistakes
from vftsim.calibrate.validation import LAB_SCHEMAS
from vftsim.records.definition import record_schema
from vftsim.spec import shipped_dir

ROOM = shipped_dir("calibration")
KINDS = (*LAB_SCHEMAS, "record")
SCHEMAS = {**{kind: schema() for kind, schema in LAB_SCHEMAS.items()}, "record": record_schema()}


def kind_of(path):
    if path.name == "dataset.yaml":
        return "dataset"
    return {"validation.yaml": "validation", "ramps.yaml": "ramps", "record.yaml": "record"}.get(
        path.name, "calibration"
    )


def files():
    found = [path for path in ROOM.glob("*/*.yaml") if "model.schema.json" not in path.read_text().split("\n")[0]]
    return sorted([*found, *ROOM.glob("*/data/dataset.yaml"), ROOM / "ramps.yaml"])


def read(path):
    return json.loads(json.dumps(YAML(typ="safe").load(path.read_text(encoding="utf-8"))))


def test_all_forms_are_shipped():
    assert {kind_of(path) for path in files()} == set(KINDS)
    forms = {"model" in read(path) for path in files() if kind_of(path) == "validation"}
    assert forms == {True, False}, "by runs and of a ramp"


@pytest.mark.parametrize("kind", KINDS)
def test_schemas_are_shipped_as_they_are_printed(kind):
    written = json.loads((ROOM / f"{kind}.schema.json").read_text(encoding="utf-8"))
    assert written == SCHEMAS[kind], f"run: vftsim schema {kind} > calibration/{kind}.schema.json"


@pytest.mark.parametrize("path", files(), ids=lambda path: str(path.relative_to(ROOM)))
def test_shipped_files_name_their_schema_and_satisfy_it(path):
    kind = kind_of(path)
    up = "../" * len(path.relative_to(ROOM).parts[:-1])
    assert path.read_text().split("\n")[0] == f"# yaml-language-server: $schema={up}{kind}.schema.json"
    assert mistakes(SCHEMAS[kind], read(path)) == []


def changed(relative, change):
    """Return a shipped file with something changed in place, and its schema."""
    path = ROOM / relative
    data = copy.deepcopy(read(path))
    change(data)
    return SCHEMAS[kind_of(path)], data


WRONG = {
    "no environment, no environments": ("sip-lab/virtual.yaml", lambda d: d.pop("environment")),
    "both of them": ("sip-lab/virtual.yaml", lambda d: d.update(environments={"virtual": []})),
    "a key nobody knows": ("sip-lab/virtual.yaml", lambda d: d.update(parameter=[])),
    "a parameter without bounds": ("own-lab/fit.yaml", lambda d: d["parameters"][0].pop("low")),
    "a ramp without step length": ("sip-lab/validation.yaml", lambda d: d.pop("step_duration")),
    "a ramp's targets by runs": ("own-lab/validation.yaml", lambda d: d.update(targets={"next_step_worst": "40 %"})),
    "a target of two kinds": ("own-lab/validation.yaml", lambda d: d["targets"][0].update(points=3)),
    "a target of no kind": ("own-lab/validation.yaml", lambda d: d["targets"][0].pop("median")),
    "a record without runs": ("remus/record.yaml", lambda d: d.update(runs=[])),
    "a statement without a rule": ("remus/record.yaml", lambda d: d["statements"]["stated"][0].pop("judged")),
    "runs without predictions": ("own-lab/validation.yaml", lambda d: d.pop("predicted")),
    "a unit nobody knows": (
        "sip-lab/data/dataset.yaml",
        lambda d: d["tables"]["steps"]["columns"]["cpu_percent"].update(unit="percent"),
    ),
    "a column without metric": (
        "sip-lab/data/dataset.yaml",
        lambda d: d["tables"]["steps"]["columns"]["cpu_percent"].pop("metric"),
    ),
    "a metric although rows say it": (
        "sip-lab/data/dataset.yaml",
        lambda d: d["tables"]["delays"]["columns"]["p50_ms"].update(metric="SES1"),
    ),
    "no environment of a table": (
        "sip-lab/data/dataset.yaml",
        lambda d: d["tables"]["steps"]["keys"].pop("environment"),
    ),
    "an environment twice": (
        "sip-lab/data/dataset.yaml",
        lambda d: d["tables"]["steps"].update(constant={"environment": "native"}),
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_mistakes_do_not_pass(name):
    schema, data = changed(*WRONG[name])
    assert mistakes(schema, data)


def test_an_extending_file_may_leave_out_what_it_inherits():
    short = {"extends": "sip-lab/validation", "replications": 50}
    assert mistakes(SCHEMAS["validation"], short) == []
    assert mistakes(SCHEMAS["validation"], short | {"replicas": 50})
