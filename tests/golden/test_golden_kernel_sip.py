"""Every case of the SIP lab gives the recorded values on the kernel too, in both engines."""

import pytest

from .cases import CASES, FAST
from .cases_sip import PROTECTED, SIP
from .compact import differences, read
from .observe_kernel_sip import observe_kernel_sip
from .record import GOLDEN, spec_of

STORED = read(GOLDEN)
PORTED = sorted(SIP | PROTECTED)


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in FAST else pytest.mark.slow) for name in PORTED]
)
def test_case_as_recorded(name: str, engine: str):
    case = CASES[name]
    found, _ = observe_kernel_sip(spec_of(case), case.seed, case.replication, engine)
    differing = list(differences(STORED[name]["values"], found))
    assert not differing, f"{name}: {len(differing)} values differ, the first: {differing[0]}"
