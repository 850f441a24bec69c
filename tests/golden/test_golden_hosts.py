"""Hosts with one scheduler each do with their scripts what was recorded."""

import pytest

from .compact import differences, read
from .host_results import result
from .record_hosts import HOSTS

STORED = read(HOSTS)
_EVERY_NTH = 6


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if number % _EVERY_NTH == 0 else pytest.mark.slow)
        for number, name in enumerate(sorted(STORED))
    ],
)
def test_host_as_recorded(name: str):
    differing = list(differences(STORED[name]["result"], result(STORED[name]["script"])))
    assert not differing, f"{name}: {len(differing)} values differ, the first: {differing[0]}"
