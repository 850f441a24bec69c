"""Model files in the documentation: all of them are read, and the complete example is run."""

import re
from pathlib import Path

import pytest

from vftsim.composition.model import ModelSpec
from vftsim.composition.run import run_model
from vftsim.composition.views import phases_of
from vftsim.spec import load

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
BLOCK = re.compile(r"^```yaml\n(?P<body>.*?)^```", re.MULTILINE | re.DOTALL)
MODEL = re.compile(r"^(extends|domains):", re.MULTILINE)
OWN_PARTS = "extend"
"""Pages whose models need a part that another test installs."""


def models():
    for page in sorted(DOCS.rglob("*.md")):
        for number, block in enumerate(BLOCK.finditer(page.read_text(encoding="utf-8"))):
            if MODEL.search(block["body"]) and page.parent.name != OWN_PARTS:
                yield pytest.param(block["body"], id=f"{page.relative_to(DOCS)}-{number}")


@pytest.mark.parametrize("body", list(models()))
def test_model_is_one(body, tmp_path):
    path = tmp_path / "model.yaml"
    path.write_text(body, encoding="utf-8")
    assert load(path, ModelSpec).domains


@pytest.mark.thorough
def test_the_complete_example_runs(tmp_path):
    """The pause fails some attempts of step 2, and none of step 1; every domain had CPU time."""
    path = tmp_path / "xen-sip.yaml"
    page = (DOCS / "model-files.md").read_text(encoding="utf-8")
    path.write_text(next(BLOCK.finditer(page))["body"], encoding="utf-8")
    spec = load(path, ModelSpec)
    assert list(spec.expanded()) == ["dom0", "sip", "batch-1", "batch-2"]
    record = run_model(spec, seed=1, replication=0, engine="simpy")
    phases = {phase.name: phase for phase in phases_of(record)}
    assert list(phases) == ["pre_registration", "step_1", "step_2"]
    slowest_ms = {name: phase.delays["SES1"].max / 1e6 for name, phase in phases.items() if name != "pre_registration"}
    assert slowest_ms["step_1"] < 450 < slowest_ms["step_2"], "half a second of pause shows in the second step only"
    timeline = [what for _, what in record.timelines["sip"]]
    assert timeline == ["pause", "pause over"]
    window = record.windows[-1]
    assert all(used > 0.0 for used in window.domain_cpu.values())
    assert window.domain_cpu["batch-1"] <= 0.505, "capped at half a pCPU, but for the accounting period"


def test_there_are_models():
    assert sum(1 for _ in models()) >= 4
