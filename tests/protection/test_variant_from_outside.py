"""A variant of a mechanism as the page has it: a file from outside, installed, judged, run in a model, type-checked."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "extend" / "add-a-protection-mechanism.md"
SOURCE = re.compile(r"^```python variant\n(?P<body>.*?)^```", re.MULTILINE | re.DOTALL)
JUDGED = """
from steady import SteadyCheckpointSpec
from vftsim.testing import judge

own = SteadyCheckpointSpec.model_validate(
    {
        "interval": "10 ms",
        "reprotection": None,
        "failover": {"detection": {"timeout": "300 ms", "backup_timeout": "300 ms"}, "go_live": "20 ms"},
    }
)
found = judge(own, crashes=3, until_ns=1_200_000_000)
print(found.wrong, found.breaches, found.judged > 1000)
"""
MODEL = """
networks: {lan: {rate: 1 Gbit/s, latency: 0 us}}
hosts: {host: {pcpus: 1}}
domains:
  vm:
    interfaces: {eth0: {path: {kind: native}}}
    applications: {srv: {kind: service, demand: 10 us, pages_per_request: 0}}
    protection: {kind: KIND, interval: 20 ms, state: {fixed: 1 MB}}
workloads: {load: {kind: request_response, to: vm, clients: 60, turn_around: 20 ms, turn_around_cv: 1.0, retry: 10 s}}
faults: [{kind: channel_degradation, at: 105 ms, duration: 10 ms, rate: 1 %}]
measure: {warm_up: 0 ms, duration: 500 ms}
"""
RUN = """
from vftsim.composition.model import ModelSpec
from vftsim.composition.run import run_model
from vftsim.spec import load

for kind in ("checkpoint", "steady_checkpoint"):
    with open("model.yaml", "w") as file:
        file.write(MODEL.replace("KIND", kind))
    found = [
        run_model(load("model.yaml", ModelSpec), seed=1, replication=0, engine=engine).whole.outcomes
        for engine in ("simpy", "compiled")
    ]
    own = [each["domains.vm.protection"] for each in found]
    print(own[0] == own[1], own[0].breaches, own[0].longest_held_ns // 1_000_000)
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder with the variant as an installer lays it out."""
    source = SOURCE.search(PAGE.read_text(encoding="utf-8"))
    assert source is not None
    (tmp_path / "steady.py").write_text(source["body"], encoding="utf-8")
    info = tmp_path / "steady-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: steady\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text("[vftsim.parts]\nsteady = steady\n", encoding="utf-8")
    return tmp_path


def printed(site: Path, *words: str) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(site), str(ROOT)))}
    ran = subprocess.run(
        [sys.executable, *words], cwd=site, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_it_passes_the_judge_in_both_engines(site: Path) -> None:
    assert printed(site, "-c", JUDGED) == "() 0 True\n"


@pytest.mark.thorough
def test_it_runs_in_a_model_and_differs_from_its_base_in_its_rule_alone(site: Path) -> None:
    """A state of 8 ms is on the wire when the channel stands still for 10 ms: outputs wait longer by that, or not."""
    (base, derived) = (line.split() for line in printed(site, "-c", f"MODEL = {MODEL!r}\n{RUN}").splitlines())
    assert base[:2] == derived[:2] == ["True", "0"]
    assert 8 <= int(base[2]) - int(derived[2]) <= 11


@pytest.mark.slow
def test_mypy_has_nothing_to_say_of_it(site: Path) -> None:
    words = ["--strict", "--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(site / "cache"), "steady.py"]
    assert "no issues found in 1 source file" in printed(site, "-m", "mypy", *words)
