"""Every Python example in the documentation is run; one that opens with ``python slow`` if VFTSIM_SLOW_DOCS is set.

Those that open with ``python part`` belong to a distribution, which another test lays out
(``tests/platform/test_part_from_outside.py``, ``tests/composition/test_parts_from_outside.py``).
"""

import importlib.util
import os
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```python(?P<slow> slow)?\n(?P<body>.*?)^```", re.MULTILINE | re.DOTALL)


def examples():
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for number, block in enumerate(BLOCK.finditer(text)):
            if not block["slow"] or os.environ.get("VFTSIM_SLOW_DOCS"):
                yield pytest.param(block["body"], id=f"{page.relative_to(ROOT)}-{number}")


@pytest.mark.thorough
@pytest.mark.parametrize("body", list(examples()))
def test_example(body, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # The linker reads the source of functions, so an example is run from a file, as a user would.
    path = tmp_path / "example.py"
    path.write_text(body, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("vftsim_documentation_example", path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)


def test_there_are_examples():
    assert sum(1 for _ in examples()) >= 1
