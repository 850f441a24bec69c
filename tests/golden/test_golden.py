"""Every case gives the recorded values, to the last digit, in both engines.

Recorded is what the object model did that came before the kernel (``golden.json.gz``), but for cases that a later
change of a rule has moved: those are in ``changed.json.gz`` with their new values.  Changes so far, all found by
recorded schedules of Xen's own code (``tests/platform/cpu/test_xen_traces.py``):

* order at one instant: ticks and accounting of a scheduler come before ends of slices, and a pCPU that several
  causes ask chooses once (Xen 3.2, ``schedule.c``: a slice timer only raises a softirq, served after all timers);
* credit: the idle slice of 3.2, the tick that moves a running vCPU to an idle pCPU, stealing in turn, the residue of
  a debit, kicks of the pre-empted, last tickled pCPU kept by each pCPU.
"""

from typing import Any

import pytest

from .cases import CASES, FAST
from .compact import differences, read
from .record import GOLDEN, observe

STORED = read(GOLDEN)
CHANGED = read(GOLDEN.with_name("changed.json.gz"))


def test_every_case_is_recorded():
    assert STORED.keys() == CASES.keys()
    assert set(FAST) <= CASES.keys()


def _runs() -> list[Any]:
    runs = []
    for name in sorted(CASES):
        for engine in ("simpy", "compiled"):
            # A kernel takes most of a minute to compile for the first time: one of each kind in the normal run.
            is_fast = name in FAST and (engine == "simpy" or name in (FAST[0], "media-two-core"))
            runs.append(pytest.param(name, engine, marks=() if is_fast else pytest.mark.slow, id=f"{name}-{engine}"))
    return runs


def without_later_keys(found: Any, stored: Any) -> Any:
    """What a model says without keys that came after the recording; their defaults change no value."""
    if isinstance(found, dict) and isinstance(stored, dict):
        return {key: without_later_keys(value, stored[key]) for key, value in found.items() if key in stored}
    return found


@pytest.mark.parametrize(("name", "engine"), _runs())
def test_case_as_recorded(name: str, engine: str):
    found = observe(CASES[name], engine)
    found["input"] = without_later_keys(found["input"], STORED[name]["input"])
    stored = {**STORED[name], "values": CHANGED.get(name, STORED[name]["values"])}
    for part in ("input", "values"):
        differing = list(differences(stored[part], found[part]))
        assert not differing, f"{name}: {len(differing)} of {part} differ, the first: {differing[0]}"
