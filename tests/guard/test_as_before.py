"""Protection on the kernel does what it did in the object model, to the last integer: the two run side by side."""

from collections import Counter

import pytest

from vftsim.kernel.choose import make_engine

from .lab import Lab, linked
from .old_lab import OldLab
from .scripts import any_script

SCRIPTS = 300


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
def test_any_script_ends_as_it_did(engine):
    happened: Counter[str] = Counter()
    for seed in range(SCRIPTS):
        script = any_script(seed)
        expected = OldLab(script).run()
        found = Lab(make_engine(linked(), engine), script).run()
        differing = [key for key, value in expected.items() if found[key] != value]
        assert not differing, f"script {seed}: {differing}"
        happened.update(name for name, count in expected["counters"].items() if count)
        happened.update({what for _, what in expected["timeline"]})
    assert min(happened.values()) >= 3, happened
    assert len(happened) == 22, happened
