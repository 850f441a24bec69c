"""Every case gives the recorded values, to the last digit."""

import pytest

from .cases import CASES, FAST
from .cases_media import MEDIA
from .compact import differences, read
from .record import GOLDEN, observe

STORED = read(GOLDEN)


def test_every_case_is_recorded():
    assert STORED.keys() == CASES.keys()
    assert set(FAST) <= CASES.keys()


def _parameters():
    for name in sorted(CASES):
        for engine in ("simpy", "compiled") if name in MEDIA else ("simpy",):
            # Compiling takes longer than a run: one kernel in the normal test run, all of them in the long one.
            is_fast = name in FAST and (engine == "simpy" or name == "media-two-core")
            yield pytest.param(name, engine, marks=() if is_fast else pytest.mark.slow, id=f"{name}-{engine}")


@pytest.mark.parametrize(("name", "engine"), list(_parameters()))
def test_case_as_recorded(name: str, engine: str):
    found = observe(CASES[name], engine)
    for part in ("input", "values"):
        differing = list(differences(STORED[name][part], found[part]))
        assert not differing, f"{name}: {len(differing)} of {part} differ, the first: {differing[0]}"
