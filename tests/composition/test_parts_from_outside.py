"""Parts that other distributions bring, as the pages under docs/extend say: installed, and run in a model file."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("add-an-application", "add-a-workload", "add-a-path", "add-a-protection-mechanism")
CHECK = """
from vftsim.study.figures.names import check_names
from vftsim.study.figures.summary import Summary

check_names(Summary([(0, record)]).rows, [load("model.yaml", ModelSpec)])
"""
"""Every figure that the run has is known before it."""
EXPLAIN = """
import vftsim
from vftsim.tracing.explain import explain

trace = vftsim.trace("model.yaml", 0.2, 1.0)
alone = min(trace.packets, key=lambda packet: packet.delay_ns)
assert {part.name: part.length_ns for part in explain(alone, trace)} == {
    "wire, there and back": 20_000,
    "guest driver: works": 5_000,
    "application: waits and works": 252_500,
}
"""
"""A program that marks nothing of its work is in the decomposition of its packets' time all the same."""
BLOCK = re.compile(r"^```(?P<language>python|toml|yaml|text)(?: part)?\n(?P<body>.*?)^```", re.MULTILINE | re.DOTALL)
POINT = re.compile(r'\[project\.entry-points\."(?P<group>.+)"\]\n(?P<name>\w+) = "(?P<module>\w+)"\n')


def blocks(page: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {"python": [], "toml": [], "yaml": [], "text": []}
    for block in BLOCK.finditer((ROOT / "docs" / "extend" / f"{page}.md").read_text(encoding="utf-8")):
        found[block["language"]].append(block["body"])
    return found


def install(site: Path, toml: str, source: str) -> None:
    """Lay a part out as an installer does."""
    point = POINT.fullmatch(toml)
    assert point is not None
    (site / f"{point['module']}.py").write_text(source, encoding="utf-8")
    info = site / f"{point['name']}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {point['name']}\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(f"[{point['group']}]\n{point['name']} = {point['module']}\n")


@pytest.mark.parametrize("engine", ["simpy", pytest.param("compiled", marks=pytest.mark.slow)])
@pytest.mark.parametrize("page", PAGES)
def test_the_worked_example_runs(page: str, engine: str, tmp_path: Path) -> None:
    found = blocks(page)
    part, program = found["python"]
    install(tmp_path, found["toml"][0], part)
    (tmp_path / "model.yaml").write_text(found["yaml"][0], encoding="utf-8")
    checks = CHECK + (EXPLAIN if (page, engine) == ("add-an-application", "simpy") else "")
    (tmp_path / "program.py").write_text(f'ENGINE = "{engine}"\n{program}{checks}', encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path), str(ROOT))), "VFTSIM_ENGINE": engine}
    ran = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == found["text"][0]


@pytest.mark.parametrize("page", PAGES)
def test_a_part_is_short(page: str) -> None:
    statements = [line for line in blocks(page)["python"][0].splitlines() if line.strip()]
    assert len(statements) <= 60
