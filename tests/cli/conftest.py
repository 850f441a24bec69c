import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
for room in ("spec", "study"):  # the generator of malformed files, the tiny model
    sys.path.insert(0, str(HERE.parent / room))

from tiny import TINY  # noqa: E402 - found there


@pytest.fixture
def inside(tmp_path, monkeypatch):
    """Work in the folder of the test."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def tiny_path(tmp_path):
    path = tmp_path / "tiny.yaml"
    path.write_text(TINY)
    return path
