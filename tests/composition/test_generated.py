"""Both engines, to the last bit, on models drawn from everything that a model file can say, over one kernel."""

from tests.composition.generated import differences, everything, model
from vftsim.composition import run

COUNT = 600


def test_the_engines_agree_on_generated_models(monkeypatch):
    """One test, so that one process alone compiles the kernel, which takes minutes."""
    monkeypatch.setattr(run, "linked_for", lambda _: everything())
    ran, ended, found = differences(range(COUNT))
    assert found == [], "see what they are by python -m tests.composition.generated"
    assert ran >= 500
    assert ended >= 0.8 * ran


def test_what_is_drawn_covers_every_part():
    drawn = [spec for n in range(COUNT) if (spec := model(n)) is not None]
    assert len(drawn) >= 500
    guests = [spec.domains["guest"] for spec in drawn]
    assert len({spec.hosts["host"].scheduler.kind for spec in drawn}) == 9
    assert len({guest.interfaces["eth0"].path.kind for guest in guests}) == 6
    assert len({guest.protection.kind for guest in guests}) == 8
    assert len({guest.guest_scheduler.kind for guest in guests}) == 4
    assert {w.kind for spec in drawn for w in spec.workloads.values()} >= {
        "rtp", "calls", "ims_bench", "request_response", "bulk_tcp", "bulk_udp", "httperf"
    }  # fmt: skip
