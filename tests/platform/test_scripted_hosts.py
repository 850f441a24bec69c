"""Hosts on the kernel do with their scripts what was recorded, in both engines.

What was recorded of the object model before the kernel holds, but for hosts on which a rule has changed since: those in
``changed_hosts.json.gz``, recorded by ``python -m tests.platform.record_changed_hosts``.
"""

from functools import cache

import pytest

from tests.golden.compact import differences, read
from tests.golden.host_scripts import HOSTS
from tests.platform.record_changed_hosts import CHANGED_HOSTS
from tests.platform.scripted_host import linked, result
from vftsim.kernel import Linked
from vftsim.kernel.choose import make_engine
from vftsim.platform.cpu.parameters import schedulers

STORED = read(HOSTS)
CHANGED = read(CHANGED_HOSTS)
_NAMES = sorted(STORED)
_EVERY_NTH = 6


def _kind(name: str) -> str:
    return name.partition("-")[0]


_FIRST_OF_KIND = {_kind(name): name for name in reversed(_NAMES)}


@cache
def kernel(*kinds: str) -> Linked:
    return linked(*kinds)


def _check(name: str, kernel_of_host: Linked, engine: str) -> None:
    script = STORED[name]["script"]
    found = result(make_engine(kernel_of_host, engine), script)
    differing = list(differences(CHANGED.get(name, STORED[name]["result"]), found))
    assert not differing, f"{name}: {len(differing)} values differ, the first: {differing[0]}"


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if number % _EVERY_NTH == 0 else pytest.mark.slow)
        for number, name in enumerate(_NAMES)
    ],
)
def test_host_in_simpy(name: str):
    _check(name, kernel(_kind(name)), "simpy")


def test_a_host_of_each_scheduler_compiled_in_one_kernel():
    # One test, so that one process compiles.
    for name in _FIRST_OF_KIND.values():
        _check(name, kernel(*schedulers()), "compiled")


@pytest.mark.slow
@pytest.mark.parametrize("name", _NAMES)
def test_host_compiled_in_a_kernel_of_all_schedulers(name: str):
    _check(name, kernel(*schedulers()), "compiled")
