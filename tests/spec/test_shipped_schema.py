"""The schema that editors find beside the shipped models."""

import json
import tomllib
from pathlib import Path

import pytest

from vftsim.spec import list_shipped, shipped_dir
from vftsim.study.runs.model import models_schema

ROOT = Path(__file__).resolve().parents[2]
NAME = "model.schema.json"


def test_it_is_that_of_the_specs():
    written = json.loads((shipped_dir("models") / NAME).read_text(encoding="utf-8"))
    assert written == models_schema(), f"run: vftsim schema > models/{NAME}"


def test_it_knows_every_part():
    text = (shipped_dir("models") / NAME).read_text(encoding="utf-8")
    for kind in ("credit2", "stub_domain", "sip_server", "ims_bench", "lockstep", "backup_crash"):
        assert f'"{kind}"' in text


@pytest.mark.parametrize("model", list_shipped("models"))
def test_shipped_models_name_it(model):
    first = (shipped_dir("models") / f"{model}.yaml").read_text(encoding="utf-8").splitlines()[0]
    assert first == f"# yaml-language-server: $schema={NAME}"


def test_wheels_carry_it():
    """All of the folder is put into a wheel, and nothing of it is left out."""
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]["targets"]
    assert wheel["wheel"]["force-include"]["models"] == "vftsim/_shipped/models"
    assert not {"exclude", "only-include"} & set(wheel["wheel"])
    assert NAME not in (ROOT / ".gitignore").read_text(encoding="utf-8")
