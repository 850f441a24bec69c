"""A scheduler that another distribution brings, as docs/extend/add-a-scheduler.md says."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]
_PAGE = _ROOT / "docs" / "extend" / "add-a-scheduler.md"
_BLOCK = re.compile(r"^```(?P<language>python|toml)(?: part)?\n(?P<body>.*?)^```", re.MULTILINE | re.DOTALL)


def _blocks(language: str) -> list[str]:
    found = _BLOCK.finditer(_PAGE.read_text(encoding="utf-8"))
    return [block["body"] for block in found if block["language"] == language]


def _install(site: Path) -> None:
    """Lay the page's part out as an installer does."""
    (site / "strict_priority.py").write_text(_blocks("python")[0], encoding="utf-8")
    group, *points = _blocks("toml")[0].splitlines()
    name = re.fullmatch(r'\[project\.entry-points\."(.+)"\]', group)
    assert name is not None
    info = site / "strict_priority-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: strict-priority\nVersion: 1.0\n", encoding="utf-8")
    body = "\n".join(point.replace('"', "") for point in points)
    (info / "entry_points.txt").write_text(f"[{name[1]}]\n{body}\n", encoding="utf-8")


def _run(site: Path, program: str) -> subprocess.CompletedProcess[str]:
    (site / "program.py").write_text(program, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(site), str(_ROOT)))}
    return subprocess.run(
        [sys.executable, str(site / "program.py")], env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("engine", ["simpy", pytest.param("compiled", marks=pytest.mark.slow)])
def test_the_worked_example_runs(tmp_path: Path, engine: str):
    _install(tmp_path)
    ran = _run(tmp_path, f'ENGINE = "{engine}"\n{_blocks("python")[1]}')
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "low 400 ms\nhigh 600 ms\n"


def test_a_part_that_cannot_be_imported_is_named_with_its_distribution(tmp_path: Path):
    _install(tmp_path)
    (tmp_path / "strict_priority.py").write_text("import no_such_module\n", encoding="utf-8")
    ran = _run(tmp_path, "from vftsim.platform.cpu.parameters import schedulers\nschedulers()\n")
    assert ran.returncode != 0
    assert "No module named 'no_such_module'" in ran.stderr
    assert "while importing the part 'strict_priority' (strict_priority) of strict-priority" in ran.stderr
