"""The judge of mechanisms: silent on those that are whole, loud on spoilt ones, and one from outside."""

from typing import ClassVar, Literal

import pytest

from tests.protection.breaches import PLANTED
from tests.protection.test_audit import CALLED, KINDS
from vftsim.kernel import Kind
from vftsim.kernel.simpy_engine import SimpyEngine
from vftsim.platform.protection.guard import protection
from vftsim.platform.protection.mechanism import ProtectionSpec, protections
from vftsim.spec.units import S
from vftsim.testing import judge

pytestmark = pytest.mark.thorough

READABLE = (SimpyEngine,)
SOON = {"timeout": "300 ms", "backup_timeout": "300 ms"}, {"timeout": "300 ms", "heartbeat_interval": "100 ms"}
"""How soon the death of a host is noticed: by states, and by lockstep."""
UNTIL_NS = 6 * S // 5


def spec_of(kind: str) -> ProtectionSpec:
    given = KINDS.get(kind, {"kind": kind})
    if "channel" in given:
        given = {**given, "failover": {"detection": SOON["state" not in given], "go_live": "20 ms"}}
    return protections()[given["kind"]].model_validate(given)


@pytest.mark.parametrize("kind", [*KINDS, "ha_restart"])
def test_every_mechanism_passes(kind: str) -> None:
    found = judge(spec_of(kind), crashes=4, until_ns=UNTIL_NS, engines=READABLE)
    assert found.wrong == ()
    assert found.judged > 500


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*KINDS, "ha_restart"])
def test_every_mechanism_passes_in_both_engines(kind: str) -> None:
    assert judge(spec_of(kind), crashes=40, until_ns=UNTIL_NS).wrong == ()


ELSEWHERE = ("live before the disk", "fencing ignored", "lockstep, an entry that left at the crash")
"""They need a disk, a lock, a crash just at that instant: `test_checkpoint_failover`, `test_grown_plant`."""
JUDGED = [what for what in PLANTED if what not in ELSEWHERE]


@pytest.mark.parametrize("what", JUDGED)
def test_a_spoilt_mechanism_does_not_pass(what: str) -> None:
    breach = PLANTED[what]
    mechanism = spec_of(CALLED.get(breach.kind, breach.kind))
    found = judge(mechanism, crashes=4, until_ns=UNTIL_NS, engines=READABLE, spoil=breach.spoil)
    assert found.wrong


hopeful = protection.kind("hopeful")


class Hopeful(ProtectionSpec):
    """From outside: it says that outputs wait, and lets them go."""

    kind: Literal["hopeful"] = "hopeful"
    part: ClassVar[Kind] = hopeful


class Candid(Hopeful):
    """The same, and it says so."""

    @property
    def breaks_promise(self) -> bool:
        """Yes."""
        return True


def test_one_from_outside_needs_no_registration_and_its_breaches_are_named() -> None:
    found = judge(Hopeful(), crashes=2, until_ns=UNTIL_NS, engines=READABLE)
    assert found.breaches == found.judged > 200
    assert found.wrong[0].startswith("quiet: ")
    assert "left before the backup could take over, the first at" in found.wrong[0]
    assert judge(Candid(), crashes=2, until_ns=UNTIL_NS, engines=READABLE).wrong == ()
