"""Every case gives the recorded values, to the last digit, in both engines."""

from typing import Any

import pytest

from .cases import CASES, FAST
from .cases_media import MEDIA
from .compact import differences, read
from .record import GOLDEN, observe

STORED = read(GOLDEN)


def test_every_case_is_recorded():
    assert STORED.keys() == CASES.keys()
    assert set(FAST) <= CASES.keys()


def _runs() -> list[Any]:
    runs = []
    for name in sorted(CASES):
        for engine in ("simpy",) if name in MEDIA else ("simpy", "compiled"):
            # A kernel takes most of a minute to compile for the first time.
            is_fast = name in FAST and (engine == "simpy" or name == FAST[0])
            runs.append(pytest.param(name, engine, marks=() if is_fast else pytest.mark.slow))
    return runs


@pytest.mark.parametrize(("name", "engine"), _runs())
def test_case_as_recorded(name: str, engine: str):
    found = observe(CASES[name], engine)
    for part in ("input", "values"):
        differing = list(differences(STORED[name][part], found[part]))
        assert not differing, f"{name}: {len(differing)} of {part} differ, the first: {differing[0]}"
