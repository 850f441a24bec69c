"""A small model file to break, and how a refusal is looked at."""

from pathlib import Path

import pytest
from small_model import Model

from vftsim.errors import ModelFileError
from vftsim.spec import load

BASE = """\
name: base
arrivals: 50 /s
latency: 1 ms
scheduler:
  kind: rtds
  period: 10 ms
domains:
  dom0:
    memory: 512 MiB
  sut:
    weight: 512
    memory: 4 GiB
    pinned: [1, 2]
phases: [1 s, 2 s]
"""


def refused(path, *overrides) -> ModelFileError:
    with pytest.raises(ModelFileError) as caught:
        load(path, Model, overrides)
    return caught.value


def place(error):
    return Path(error.file).name, error.line, error.key
