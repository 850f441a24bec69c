"""Both engines, to the last bit, on models drawn from everything that a model file can say, over one kernel."""

import pytest

from tests.composition.generated import differences, everything, model
from vftsim.composition import run

EACH, PORTIONS = 60, 10


@pytest.fixture(autouse=True)
def _one_kernel(monkeypatch):
    """Compiled once, and not once for each of the structures that are drawn."""
    monkeypatch.setattr(run, "linked_for", lambda _: everything())


@pytest.mark.parametrize("portion", range(PORTIONS))
def test_the_engines_agree_on_generated_models(portion):
    ran, ended, found = differences(range(portion * EACH, (portion + 1) * EACH))
    assert found == [], "see what they are by python -m tests.composition.generated"
    assert ran >= 0.8 * EACH
    assert ended >= 0.8 * ran


def test_what_is_drawn_covers_every_part():
    drawn = [spec for n in range(EACH * PORTIONS) if (spec := model(n)) is not None]
    assert len(drawn) >= 500
    guests = [spec.domains["guest"] for spec in drawn]
    assert len({spec.hosts["host"].scheduler.kind for spec in drawn}) == 9
    assert len({guest.interfaces["eth0"].path.kind for guest in guests}) == 6
    assert len({guest.protection.kind for guest in guests}) == 8
    assert len({guest.guest_scheduler.kind for guest in guests}) == 4
    assert {w.kind for spec in drawn for w in spec.workloads.values()} >= {
        "rtp", "calls", "ims_bench", "request_response", "bulk_tcp", "bulk_udp", "httperf"
    }  # fmt: skip
