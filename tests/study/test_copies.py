"""A domain that stands for several, each with clients of its own: every study looks at the copies."""

from dataclasses import replace

import pytest

import vftsim
from vftsim.composition.views import with_domain
from vftsim.platform.protection.none import NoProtectionSpec
from vftsim.study.designs.run import precision_rule, run_study
from vftsim.study.figures.catalogue import watched
from vftsim.study.runs.execution import Execution

COPIES = """\
networks: {lan: {}}
hosts: {host: {pcpus: 2}}
domains:
  vm:
    count: 2
    interfaces: {eth0: {path: {kind: moderated}}}
    applications: {srv: {kind: service, demand: 1 ms}}
    protection: {kind: checkpoint, interval: 20 ms}
workloads: {load: {kind: open_requests, to: vm, rate: 200 /s}}
measure: {warm_up: 100 ms, duration: 500 ms}
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("copies") / "copies.yaml"
    path.write_text(COPIES)
    return vftsim.load(path)


def test_precision_is_that_of_the_first(model):
    assert watched(model.spec) == "workloads.load-1.latency.p50"
    found = run_study(model, 1, Execution(), rule=precision_rule(model, 50.0, [], 30))
    assert list(found.precision.estimates) == ["workloads.load-1.latency.p50"]
    assert found.precision.reached


def test_a_trace_follows_packets_of_each(model):
    flows = {(packet.flow, packet.domain) for packet in vftsim.trace(model, 0.2, 0.1).packets}
    assert flows == {("load-1", "vm-1"), ("load-2", "vm-2")}
    explained = vftsim.explain(model, "packet", "worst")
    assert sum(part.length_ns for part in explained.parts) == explained.delay_ns > 0


def test_a_crash_is_told_by_the_one_that_is_asked_for(model):
    study = vftsim.failover(model, domain="vm-2", crashes=2, prices=False)
    assert set(study.figures()) >= {"failed_load-2", "lost_load-2"}
    assert "failed_load-1" not in study.figures()


def test_mechanisms_are_compared_with_a_year_of_one_of_them(model):
    decided = vftsim.decide(model, "none,checkpoint", replications=2, prices=False)
    none, held = (decided.protected[kind] for kind in ("none", "checkpoint"))
    assert none.year["failed_per_year"] == pytest.approx(77.0 * 200 * 365.25 / 365)
    assert held.estimate("price").mean > 0.0


def test_a_crash_of_the_first_is_said_to_end_the_others(model):
    """Those of a domain that nothing protects; both studies ended with a traceback."""
    free = replace(model, spec=with_domain(model.spec, "vm", protection=NoProtectionSpec()))
    for study in (vftsim.availability(free, 1e6, "none", 2), vftsim.decide(free, "none", replications=1)):
        assert "a crash of the host of vm-1 ends vm-2, too" in "\n".join(str(block) for block in study.blocks())
