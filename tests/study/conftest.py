import pytest
from tiny import TINY

from vftsim.study.runs.model import load_model


@pytest.fixture(scope="session")
def tiny_path(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "tiny.yaml"
    path.write_text(TINY)
    return path


@pytest.fixture(scope="session")
def tiny(tiny_path):
    return load_model(tiny_path)
