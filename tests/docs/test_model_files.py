"""Model files in the documentation: all of them are read, and the complete example is run."""

import re
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from vftsim.composition.model import ModelSpec
from vftsim.composition.run import run_model
from vftsim.platform.cpu.guest_parameters import GUEST_SCHEDULERS
from vftsim.platform.cpu.parameters import SCHEDULERS
from vftsim.platform.io.disk import DISKS
from vftsim.platform.io.parameters import IO_PATHS
from vftsim.platform.protection.faults import FAULTS
from vftsim.platform.protection.mechanism import PROTECTIONS
from vftsim.spec import load
from vftsim.workloads.parts import APPLICATIONS, WORKLOADS

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
BLOCK = re.compile(r"^```yaml\n(?P<body>.*?)^```", re.MULTILINE | re.DOTALL)
MODEL = re.compile(r"^(extends|domains):", re.MULTILINE)
OWN_PARTS = "extend"
"""Pages whose models need a part that another test installs."""


PARTS = {
    "schedulers": SCHEDULERS,
    "guest schedulers": GUEST_SCHEDULERS,
    "paths": IO_PATHS,
    "disks": DISKS,
    "applications": APPLICATIONS,
    "protection": PROTECTIONS,
    "workloads": WORKLOADS,
    "faults": FAULTS,
}


@pytest.mark.parametrize("family", PARTS)
def test_every_part_is_named_with_a_page_that_tells_of_it(family):
    page = (DOCS / "model-files.md").read_text(encoding="utf-8")
    listed = page.split(f"<!-- parts: {family} -->")[1].split("<!-- /parts -->")[0]
    pages = dict(re.findall(r"\[(\w+)\]\(([^)]+)\)", listed))
    known = PARTS[family].choices()
    shipped = {kind for kind in known if known[kind].__module__.startswith("vftsim.")}
    assert pages.keys() == shipped, f"docs/model-files.md lists them below '<!-- parts: {family} -->'"
    silent = [kind for kind, link in pages.items() if kind not in (DOCS / link).read_text(encoding="utf-8")]
    assert silent == []


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: str(page.relative_to(DOCS)))
def test_every_block_of_yaml_is_yaml(page):
    for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
        assert isinstance(YAML(typ="safe").load(block["body"]), dict | list)


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
    record = run_model(spec, seed=1, replication=0)
    phases = {phase.name: phase for phase in record.played()}
    assert list(phases) == ["pre_registration", "step_1", "step_2"]
    slowest_ms = {name: phase.delays["SES1"].max / 1e6 for name, phase in phases.items() if name != "pre_registration"}
    assert slowest_ms["step_1"] < 450 < slowest_ms["step_2"], "half a second of pause shows in the second step only"
    timeline = [what for _, what in record.timelines["sip"]]
    assert timeline == ["pause", "pause over"]
    used = record.pcpus()
    assert all(share > 0.0 for share in used.values())
    assert used["batch-1"] <= 0.505, "capped at half a pCPU, but for the accounting period"


def test_there_are_models():
    assert sum(1 for _ in models()) >= 4
