"""Protection on the kernel does what it did in the object model, to the last integer: the two run side by side."""

import pytest
from hypothesis import given, settings

from vftsim.kernel.choose import make_engine

from .lab import Lab, linked
from .old_lab import OldLab
from .scripts import scripts


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
@given(script=scripts())
@settings(max_examples=150, deadline=None)
def test_any_script_ends_as_it_did(engine, script):
    expected = OldLab(script).run()
    found = Lab(make_engine(linked(), engine), script).run()
    for key, value in expected.items():
        assert found[key] == value, key
