"""Model files written for one test."""

import pytest


@pytest.fixture
def write(tmp_path):
    def write_file(text, name="model.yaml"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return write_file
