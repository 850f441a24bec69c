"""Every case gives the recorded values, to the last digit."""

import pytest

from .cases import CASES, FAST
from .compact import differences, read
from .record import GOLDEN, observe

STORED = read(GOLDEN)


def test_every_case_is_recorded():
    assert STORED.keys() == CASES.keys()
    assert set(FAST) <= CASES.keys()


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in FAST else pytest.mark.slow) for name in sorted(CASES)]
)
def test_case_as_recorded(name: str):
    found = observe(CASES[name])
    for part in ("input", "values"):
        differing = list(differences(STORED[name][part], found[part]))
        assert not differing, f"{name}: {len(differing)} of {part} differ, the first: {differing[0]}"
