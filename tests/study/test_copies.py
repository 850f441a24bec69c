"""A domain that stands for several, each with clients of its own: every study looks at the copies."""

import re
from dataclasses import replace

import pytest

import vftsim
from vftsim.composition.record import RunRecord
from vftsim.composition.views import with_domain
from vftsim.outcome import Outcome, Phase, declare
from vftsim.platform.protection.ha_restart import HaRestartSpec
from vftsim.platform.protection.none import NoProtectionSpec
from vftsim.study.designs.capacity_by_search import _of_copies_the_busiest
from vftsim.study.designs.experiment import chosen
from vftsim.study.designs.run import precision_rule, run_study
from vftsim.study.execution import Execution
from vftsim.study.figures.names import catalogue, watched
from vftsim.study.figures.summary import Summary

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


def test_what_all_have_done_together_is_a_figure(model):
    """Counts add up, delays are those of all requests, and of guests that stand still it is the mean."""
    found = run_study(model, 1, Execution())
    (_, record), summary = found.records[0], found.figures_found
    each = [record.of(f"workloads.load-{number}") for number in (1, 2)]
    assert summary.estimate("workloads.load.rate").mean == pytest.approx(sum(one.answers for one in each) / 0.5)
    delays = record.of("workloads.load").latency
    answers = [one.latency.count for one in each]
    assert delays.mean == pytest.approx(
        sum(n * one.latency.mean for n, one in zip(answers, each, strict=True)) / sum(answers)
    )
    assert delays.max == max(one.latency.max for one in each)
    ends = sorted(one.latency.percentile(95.0) for one in each)
    assert ends[0] <= delays.percentile(95.0) <= ends[1]
    guards = [record.of(f"domains.vm-{number}.protection") for number in (1, 2)]
    together = record.of("domains.vm.protection")
    assert together.output_held == pytest.approx(sum(g.held_ns for g in guards) / sum(g.released for g in guards) / 1e6)
    assert together.stopped == pytest.approx(sum(g.stopped_ns for g in guards) / 2 / 0.5e7)
    assert together.channel == pytest.approx(sum(g.channel for g in guards))
    shown = [address.text for address in summary.addresses if address.leads]
    assert "workloads.load.latency.p99" in shown
    assert not any("-1" in text for text in shown)
    assert [address.text for address in summary.find("latency.p99")] == ["workloads.load.latency.p99"]
    assert [address.text for address in summary.find("load-2.rate")] == ["workloads.load-2.rate"]
    of_all = {"workloads.load.rate", "domains.vm.applications.srv.throughput", "domains.vm.protection.stopped"}
    assert of_all <= {address.text for address in catalogue(model.spec)}


class Failures(Outcome):
    failed: int = declare.total(headline=declare.IF_ANY)


def test_what_a_copy_has_in_a_later_run_alone_is_in_files_too():
    """Failures lead where there are any: of the second copy in the second run only."""

    def record(second: int) -> RunRecord:
        counts = {"load": second, "load-1": 0, "load-2": second}
        outcomes = {f"workloads.{name}": Failures(failed=failed, seconds=1.0) for name, failed in counts.items()}
        copies = {"workloads.load": ["workloads.load-1", "workloads.load-2"]}
        return RunRecord((Phase("", None, 0, 10**9, outcomes),), {}, 0, 0, {}, {}, copies)

    summary = Summary([(0, record(0)), (1, record(3))])
    assert [each.owner for _, each in chosen(summary, ())] == ["workloads.load", "workloads.load-2"]
    assert [each.owner for each in summary.addresses if each.leads] == ["workloads.load"]


def test_streams_of_all_have_one_delay_and_one_jitter(tmp_path):
    path = tmp_path / "relays.yaml"
    path.write_text(
        COPIES.replace("srv: {kind: service, demand: 1 ms}", "srv: {kind: media_relay}")
        .replace("{kind: open_requests, to: vm, rate: 200 /s}", "{kind: rtp, to: vm, streams: 20}")
        .replace("    protection: {kind: checkpoint, interval: 20 ms}\n", "")
    )
    record = run_study(vftsim.load(path), 1, Execution()).records[0][1]
    together, *each = (record.of(f"workloads.{name}") for name in ("load", "load-1", "load-2"))
    assert together.delivered == sum(one.delivered for one in each) > 0
    assert together.delay.count == together.delivered
    assert min(one.jitter for one in each) <= together.jitter <= max(one.jitter for one in each)


def test_reports_of_each_have_figures_together():
    """httperf and iperf report each test by itself: replies and rates add up, jitter is the mean of the flows."""
    sizes = ["hosts.host.pcpus=4", "domains.server.count=2", "workloads.web.connections=10"]
    lengths = ["workloads.tcp.duration=200 ms", "workloads.udp.duration=200 ms", "workloads.udp.rate=100 Mbit/s"]
    model = vftsim.load("net-bare", sizes + lengths)
    summary = run_study(model, 1, Execution()).figures_found

    def of(name: str) -> float:
        return summary.of_run(f"workloads.{name}")

    for added in ("web{}.replies", "tcp{}.throughput", "udp{}.received", "udp{}.offered"):
        assert of(added.format("")) == pytest.approx(of(added.format("-1")) + of(added.format("-2"))), added
        assert of(added.format("")) > 0
    assert of("udp.jitter") == pytest.approx((of("udp-1.jitter") + of("udp-2.jitter")) / 2)
    assert of("web.answered") == 100 * of("web.replies") / (of("web-1.connections") + of("web-2.connections"))
    leading = {address.owner for address in summary.addresses if address.leads}
    assert {"workloads.web", "workloads.tcp", "workloads.udp"} <= leading
    assert not any("-1" in owner for owner in leading)
    known = {address.text for address in catalogue(model.spec)}
    assert {"workloads.web.answered", "workloads.tcp.throughput", "workloads.udp.loss"} <= known
    assert "workloads.web.concurrent" not in known


def test_what_is_named_like_a_copy_is_shown_as_what_it_is(tmp_path):
    """``vm-2`` beside ``vm`` is another domain, and ``load-2`` other clients; of ``count: 2`` each is a copy."""
    path = tmp_path / "two.yaml"
    alone = COPIES.replace("    count: 2\n", "")
    (domain,) = re.findall(r"  vm:\n(?:    .*\n)+", alone)
    path.write_text(
        alone.replace(domain, domain + domain.replace("vm:", "vm-2:")).replace(
            "rate: 200 /s}", "rate: 200 /s}, load-2: {kind: open_requests, to: vm-2, rate: 100 /s}"
        )
    )
    model = vftsim.load(path)
    summary = run_study(model, 1, Execution()).figures_found
    for addresses in (summary.addresses, catalogue(model.spec)):
        leading = {address.owner for address in addresses if address.leads}
        assert {"workloads.load", "workloads.load-2", "domains.vm", "domains.vm-2"} <= leading


def test_models_with_other_numbers_of_copies_differ_by_figures(model):
    """One guest beside two: what its clients see, its CPU and its mechanism are compared with what all have."""
    alone = vftsim.load(model.label, ["domains.vm.count=1"])
    of_two, of_one = (run_study(each, 2, Execution()).figures_found for each in (model, alone))
    for name in ("workloads.load.rate", "domains.vm.cpu", "domains.vm.protection.channel"):
        assert of_one.difference(of_two, name).mean == pytest.approx(
            of_two.estimate(name).mean - of_one.estimate(name).mean
        )
    assert of_one.difference(of_two, "workloads.load.rate").mean > 100


def test_precision_is_that_of_all_together(model):
    assert watched(model.spec) == "workloads.load.latency.p50"
    found = run_study(model, 1, Execution(), rule=precision_rule(model, 50.0, [], 30))
    assert list(found.precision.estimates) == ["workloads.load.latency.p50"]
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
    assert none.year["failed_per_year"] == pytest.approx(77.0 * 200 * 365.25 * 86_400 / (365 * 86_400 + 77.0))
    assert held.estimate("price").mean > 0.0


def test_a_channel_that_is_not_the_models_network_is_said(tmp_path):
    """Checkpoints of the model share a network; at their defaults others have a link of 1 Gbit/s a guest."""
    path = tmp_path / "shared.yaml"
    text = COPIES.replace("lan: {}", "lan: {}, states: {}").replace("path: {kind", "network: lan, path: {kind")
    path.write_text(text.replace("interval: 20 ms", "interval: 20 ms, channel: {network: states}"))
    kinds = "checkpoint,coarse_lockstep,ha_restart"
    decided = vftsim.decide(vftsim.load(path), kinds, replications=1, prices=False)
    notes_of = {kind: [text for text in notes if "networks.states" in text] for kind, notes in decided.notes.items()}
    remark = "its channel, 1 Gbit/s for each guest, is its default; it shares nothing with networks.states"
    assert notes_of == {"checkpoint": [], "coarse_lockstep": [remark], "ha_restart": []}


def test_a_crash_of_the_first_is_said_to_end_the_others(model):
    """Those of a domain that nothing protects; both studies ended with a traceback."""
    free = replace(model, spec=with_domain(model.spec, "vm", protection=NoProtectionSpec()))
    for study in (vftsim.availability(free, 1e6, "none", 2), vftsim.decide(free, "none", replications=1)):
        assert "a crash of the host of vm-1 ends vm-2, too" in "\n".join(str(block) for block in study.blocks())


def test_a_table_of_resources_has_the_busiest_of_many_copies():
    """A farm of fifteen servers had thirty lines of them; of two or three each stands there."""
    uses = {"link of lan": 90.0, "a-1: 1 vCPU": 40.0, "a-2: 1 vCPU": 50.0, "b-1: 1 vCPU": 10.0, "a-3: 1 vCPU": 30.0}
    uses |= {"a-4: 1 vCPU": 20.0, "b-2: 1 vCPU": 9.0, "a-1: disk d": 5.0}
    rows = [{"resource": name, "estimate": use} for name, use in uses.items()]
    named = [name for _, name in _of_copies_the_busiest(rows)]
    assert named == ["link of lan", "a-2: 1 vCPU, most of the copies", "b-1: 1 vCPU", "b-2: 1 vCPU", "a-1: disk d"]


def test_what_leaves_too_early_is_said_once_for_all_copies(model):
    """A restart keeps nothing: every output of both breaks the promise that a backup could take over from there."""
    bare = replace(model, spec=with_domain(model.spec, "vm", protection=HaRestartSpec()))
    result = run_study(bare, 1, Execution())
    (message,) = [text for text in result.remarks if "outputs left" in text]
    left = sum(result.summary.set_index("figure").estimate[f"domains.vm-{n}.protection.judged"] for n in (1, 2))
    assert message.startswith(f"domains.vm-1 and 1 more of its copies: {left:.0f} of {left:.0f} outputs left")
