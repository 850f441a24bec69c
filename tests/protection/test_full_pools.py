"""A run that needs more than it can hold ends with what it needs, also where no guest is protected."""

import pytest

from tests.kernel import toy
from tests.kernel.test_engines import ENGINES, LINKED
from vftsim.errors import RunFailure
from vftsim.kernel import Engine
from vftsim.platform.protection.passes import play


@pytest.mark.parametrize("kind", ENGINES)
def test_a_full_pool_without_protection_is_named(kind: type[Engine]):
    """Such a kernel has no table of what earlier passes have found."""

    def build() -> Engine:
        engine = kind(LINKED)
        toy.build(engine, [10], [1000])
        return engine

    with pytest.raises(RunFailure, match="more than 63 customers at one time; serve them faster"):
        play(build, lambda engine: engine, lambda engine: engine.run(100_000))
