"""The decision: service figures beside those without protection, what is asked, the cheapest, any kind of model."""

import math

import pytest
from tiny import TINY

from vftsim.errors import UsageError
from vftsim.report.blocks import Bars, Note, Table
from vftsim.report.terminal import as_text
from vftsim.study.designs import failover
from vftsim.study.designs.availability import HostFailures
from vftsim.study.designs.decision import decide
from vftsim.study.designs.decision_crossovers import DecisionRequest
from vftsim.study.designs.decision_figures import computed
from vftsim.study.designs.failover import protected_domain
from vftsim.study.execution import Execution
from vftsim.study.figures.names import Objective, read_objective
from vftsim.study.runs.model import load_model

pytestmark = pytest.mark.thorough

S = 1_000_000_000
JOB = """\
hosts: {host: {pcpus: 1, scheduler: {kind: credit}}}
domains:
  vm:
    applications:
      db: {kind: batch, processes: 8, demand: 1 ms, demand_cv: 0.1, disk_operations: 0, pages: 20}
measure: {warm_up: 100 ms, duration: 2 s}
"""
WEB = """\
networks: {lan: {}}
hosts: {host: {pcpus: 1}}
domains:
  vm:
    interfaces: {eth0: {path: {kind: native}}}
    applications: {srv: {kind: service, demand: 100 us}}
workloads: {load: {kind: request_response, to: vm, clients: 4, turn_around: 20 ms, retry: 200 ms}}
measure: {warm_up: 200 ms, duration: 3 s}
"""


def decided(tmp_path, text, kinds, *objectives, replications=2, **asked):
    path = tmp_path / "model.yaml"
    path.write_text(text)
    question = DecisionRequest(tuple(map(read_objective, objectives)), **{"bands": False, **asked})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(failover, "AFTER_NS", 3 * S)
        patch.setattr(failover, "STEADY_AFTER_NS", 3 * S)
        return decide(load_model(path), kinds, replications, question, Execution(1, 1))


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """Return the decision about a job that nobody sees from outside."""
    kinds = ("none", "checkpoint", "hypervisor_epoch")
    return decided(tmp_path_factory.mktemp("job"), JOB, kinds, "work >= 90 %", "outage <= 3 s")


@pytest.fixture(scope="module")
def web(tmp_path_factory):
    """Return the decision about clients in a closed loop."""
    objectives = ("load.latency.p95 <= 10 ms", "outage <= 5 s", "downtime <= 1 min")
    kinds = ("none", "checkpoint", "lockstep", "coarse_lockstep", "ha_restart")
    return decided(tmp_path_factory.mktemp("web"), WEB, kinds, *objectives)


def test_a_key_that_one_mechanism_reads_is_not_said_to_be_idle(tmp_path):
    """Checkpoints read the pages of a request, and no mechanism the size of a transfer that there is not."""
    text = WEB.replace("demand: 100 us", "demand: 100 us, pages_per_request: 5, transfer_size: 64 KiB")
    found = decided(tmp_path, text, ("none", "checkpoint"), replications=1)
    said = [str(block) for block in found.blocks() if isinstance(block, Note) and "has no effect" in str(block)]
    assert len(said) == 1
    assert "domains.vm.applications.srv.transfer_size has no effect" in said[0]


def test_an_outage_that_never_ends_is_no_bar_of_length_nought(tmp_path, web):
    alone = decided(tmp_path, WEB, ("none",))
    assert not [block for block in alone.blocks() if isinstance(block, Bars)]
    (drawn,) = (block for block in web.blocks() if isinstance(block, Bars))
    assert "none" not in dict(drawn.rows)
    assert drawn.x == "seconds since the last packet"


# Service


def test_work_and_price_are_of_the_guest_whatever_others_do(job, tmp_path):
    """A web server on a host of its own, which nobody protects, changes neither."""
    text = JOB.replace("hosts: {host: {pcpus: 1,", "networks: {lan: {}}\nhosts: {h2: {}, host: {pcpus: 1,")
    text = (
        text.replace("  vm:\n", "  vm:\n    host: host\n    protection: {kind: checkpoint}\n")
        + "workloads: {load: {kind: open_requests, to: web, rate: 100 /s}}\n"
    )
    web = "  web: {host: h2, interfaces: {eth0: {path: {kind: direct}}}, applications: {s: {kind: service}}}\n"
    beside = decided(tmp_path, text.replace("measure:", f"{web}measure:"), ("none", "checkpoint", "hypervisor_epoch"))
    for kind in ("checkpoint", "hypervisor_epoch"):
        for figure in ("work", "price"):
            assert beside.estimate(kind, figure).mean == pytest.approx(job.estimate(kind, figure).mean, abs=0.2)


def test_a_job_without_clients_has_its_figures_beside_those_without_protection(job):
    names = {one.name for one in job.quantities if one.group == "service"}
    assert "domains.vm.applications.db.rate" in names
    # A fifth of the time in epoch boundaries is a fifth of a CPU-bound job.
    assert job.estimate("hypervisor_epoch", "work").mean == pytest.approx(80.0, abs=1.0)
    less = job.difference("hypervisor_epoch", "domains.vm.applications.db.rate").mean
    assert less == pytest.approx(-0.2 * job.estimate("none", "domains.vm.applications.db.rate").mean, rel=0.05)


@pytest.mark.parametrize("kinds", [("none", "checkpoint"), ("checkpoint", "none")])
def test_a_short_name_of_a_figure_that_not_every_mechanism_has(kinds, tmp_path):
    """The objective is judged on the figure of those that have it; without protection no output is held."""
    found = decided(tmp_path, WEB, kinds, "output_held <= 1 s")
    assert found.figure_of(found.request.objectives[0]) == "domains.vm.protection.output_held"
    assert {kind: found.verdicts(kind) for kind in kinds} == {"none": "yes", "checkpoint": "yes"}


def test_an_objective_of_two_workloads_is_refused_as_ambiguous(tmp_path):
    second = WEB.replace("workloads: {", "workloads: {again: {kind: request_response, to: vm, clients: 1}, ")
    with pytest.raises(UsageError, match=r"'latency.p95' is ambiguous: workloads\.again.*, workloads\.load"):
        decided(tmp_path, second, ("none", "checkpoint"), "latency.p95 <= 10 ms")


def test_what_never_comes_back_loses_more_than_any_limit(tmp_path):
    """Of a machine that is booted again after some 77 s so much is lost; of one that is not, all from then on."""
    found = decided(tmp_path, WEB, ("none", "ha_restart"), "requests_lost <= 1e9")
    assert {kind: found.verdicts(kind) for kind in found.protected} == {"none": "no", "ha_restart": "yes"}
    assert "no: all from then on" in as_text(found.blocks(), 100)


def test_fewer_lost_than_without_a_crash_are_said_in_words(web):
    """Unprotected after the takeover, four clients get an answer each 20 ms, and not one an epoch of 200 ms."""
    assert web.estimate("checkpoint", "requests_lost").mean < 0.0
    text = " ".join(as_text(web.blocks(), 1000).split())
    assert "fewer than without" in text
    assert "the guest goes on without protection after a takeover" in text


def test_the_difference_is_that_of_pairs(web):
    name = "workloads.load.latency.mean"
    values_by_kind = [web.protected[kind].summary.values(name) for kind in ("lockstep", "none")]
    pairs = [values_by_kind[0][number] - values_by_kind[1][number] for number in (0, 1)]
    found = web.difference("lockstep", name)
    assert (found.low, found.high) == pytest.approx((min(pairs), max(pairs)))


def test_checkpoints_hold_an_exchange_for_an_epoch(web):
    """A closed loop whose turn-around is short against the interval gets one answer a client and epoch."""
    assert web.estimate("checkpoint", "workloads.load.rate").mean == pytest.approx(4 / 0.2, rel=0.1)
    assert web.difference("checkpoint", "workloads.load.latency.p50").mean > 90.0


# Costs


def test_the_price_is_the_cpu_of_both_hosts_beyond_the_same_work(job):
    for kind in ("checkpoint", "hypervisor_epoch"):
        of, none = job.protected[kind].summary, job.protected["none"].summary
        guard = "domains.vm.protection"
        for number, price in job.protected[kind].computed["price"].items():
            work = job.protected[kind].computed["work"][number] / 100.0
            parts = [of.values(f"{guard}.{name}")[number] for name in ("stopped", "backup_cpu")]
            busy = [each.values("hosts.host.busy")[number] for each in (of, none)]
            assert price == pytest.approx(busy[0] - work * busy[1] + sum(parts), abs=1e-3)
        assert job.price(kind) > 1.0
    # Epochs: the second host does all that the guest does, and a fifth of the first stands still.
    assert job.price("hypervisor_epoch") == pytest.approx(80.0 + 20.0, abs=1.0)
    assert job.price("none") == 0.0


def test_domains_of_one_entry_cost_as_much_each(tmp_path, job):
    """Two of them on two pCPUs have a second host's CPU each, and stand still each."""
    text = JOB.replace("pcpus: 1", "pcpus: 2").replace("  vm:\n", "  vm:\n    count: 2\n")
    both = decided(tmp_path, text, ["none", "hypervisor_epoch"], replications=1)
    assert both.price("hypervisor_epoch") == pytest.approx(2.0 * job.price("hypervisor_epoch"), rel=0.02)
    stopped = both.estimate("hypervisor_epoch", "domains.vm-1.protection.stopped").mean
    assert stopped == pytest.approx(20.0, abs=1.0), "of one: it stands still for a fifth of its time, as it does alone"
    (message,) = [block.text for block in both.blocks() if isinstance(block, Note) and "2 copies" in block.text]
    assert "price, work done and what clients and programs get are those of all together" in message
    tables = [block.columns[0] for block in both.blocks() if isinstance(block, Table)]
    assert "vm.db" in tables
    assert not {"vm-1.db", "vm-2.db"} & set(tables)
    assert {"domains.vm-1.applications.db.rate", "domains.vm-2.applications.db.rate"} <= set(both.to_pandas()["figure"])


def test_more_work_than_without_protection_is_not_credited(job):
    """What an overloaded guest gets done once its clients are held back has no price without protection."""
    less, more = (job.protected[kind] for kind in ("hypervisor_epoch", "none"))
    found = computed(more.model, "vm", more.summary, less.summary)
    assert set(found["work"].values()) == {100.0}
    busy = [each.summary.values("hosts.host.busy") for each in (more, less)]
    assert found["price"] == {n: pytest.approx(busy[0][n] - busy[1][n], abs=1e-3) for n in busy[0]}


def test_what_neither_works_nor_stands_still_is_left(web):
    left = web.estimate("checkpoint", "cpu_left").mean
    of = web.protected["checkpoint"].summary
    used = of.estimate("domains.vm.cpu").mean + of.estimate("domains.vm.protection.stopped").mean
    assert left == pytest.approx(100.0 - used, abs=1e-3)


# Failures and the year


def test_a_crash_of_a_job_lasts_until_it_could_be_reached_and_loses_transactions(job):
    outage = job.estimate("checkpoint", "outage").mean
    assert 1.0 < outage < 1.3
    rate = job.estimate("checkpoint", "domains.vm.applications.db.rate").mean
    assert job.estimate("checkpoint", "requests_lost").mean == pytest.approx(rate * outage, rel=0.5)


def test_requests_that_nobody_answered_are_lost(web):
    rate = web.estimate("none", "workloads.load.rate").mean
    # Nobody answers from the crash, in one of two halves of a second, until the end 3 s after that second.
    lost = [sum(each.failed.values()) for each in web.protected["none"].failovers.failovers]
    assert sum(lost) / len(lost) == pytest.approx(3.5 * rate, rel=0.1)
    # That is of the end of the run: nobody would ever answer.
    assert web.protected["none"].sample("requests_lost") == [math.inf] * len(lost)


def test_the_year_follows_from_outage_and_repair_by_hand(tmp_path):
    found = decided(tmp_path, WEB, ["none"], failures=HostFailures(1e6, 3600.0))
    year_s = 365.25 * 86_400.0
    assert found.estimate("none", "downtime").mean == pytest.approx(year_s * 3600.0 / (1e6 + 3600.0))
    assert found.estimate("none", "nines").mean == pytest.approx(-math.log10(3600.0 / (1e6 + 3600.0)))


# Prices


def test_no_figure_that_rests_on_an_assumption_has_an_interval_of_no_width(tmp_path):
    found = decided(tmp_path, WEB, ["none", "lockstep"], "load.latency.p98 <= 10 ms", bands=True, replications=1)
    p98 = "workloads.load.latency.p98"
    for name in ("price", "outage", "downtime", "domains.vm.protection.channel", "domains.vm.cpu", p98):
        estimate = found.estimate("lockstep", name)
        assert estimate.low < estimate.mean < estimate.high, name
    assert found.estimate("none", "domains.vm.cpu").half_width in (0.0, math.inf)
    assert found.bands["lockstep"]["outage"].decides == "failover.detection.timeout"
    row = next(
        r for r in found.for_machines()["comparison"] if r["figure"] == "outage" and r["mechanism"] == "lockstep"
    )
    assert row["decided_by"] == found.bands["lockstep"]["outage"].decides
    assert row["prices_low"] < row["estimate"] < row["prices_high"]
    assert "failover.detection.timeout" in "".join(as_text(found.blocks(), 100).split())


# What is asked


def test_verdicts_order_and_the_cheapest(web):
    assert web.verdicts("none") == "no"
    assert web.verdict("checkpoint", web.request.objectives[0]) == "no"
    assert {kind for kind in web.protected if web.verdicts(kind) == "yes"} == {"lockstep", "coarse_lockstep"}
    assert web.ordered[:2] == sorted(("lockstep", "coarse_lockstep"), key=web.price)
    text = as_text(web.blocks(), 100)
    assert f"The cheapest is {web.ordered[0]}: price" in " ".join(text.split())
    assert "Answer" not in text
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.parametrize("figure", ["rolled_back", "execution_lost", "outputs_lost"])
def test_who_goes_on_from_where_the_primary_was_has_nothing_undone(figure, web):
    """A state of before lacks what came after it, a boot and no return all; replay and a second replica nothing."""
    verdicts = {kind: web.verdict(kind, Objective(figure, "<=", 0.0)) for kind in web.protected}
    going_on = {"lockstep": "yes", "coarse_lockstep": "yes"}
    assert verdicts == going_on | dict.fromkeys(("none", "ha_restart", "checkpoint"), "no")


def test_a_second_host_that_is_not_there_holds_nothing_up(web):
    at_once = Objective("backup_outage", "<=", 0.0, "s")
    assert {kind for kind in web.protected if web.verdict(kind, at_once) == "yes"} == {"none", "ha_restart"}


def test_an_objective_whose_limit_lies_within_the_interval_is_open(job):
    found = job.estimate("checkpoint", "price")
    assert found.low < found.mean < found.high
    assert job.verdict("checkpoint", Objective("price", "<=", (found.low + found.mean) / 2)) == "open"
    assert job.verdict("checkpoint", Objective("price", "<=", found.high * 1.01)) == "yes"


def test_objectives_have_units_and_are_refused_before_anything_runs(tmp_path, monkeypatch):
    monkeypatch.setattr("vftsim.study.execution.Replications.run", None)
    for wrong, text in (
        ("load.latency.p95 <= 1 MB", "load.latency.p95 is in ms, not in MB"),
        ("nines >= 5 s", "nines has no unit, not in s"),
        ("latenzy <= 3 ms", "there is no figure 'latenzy'"),
    ):
        with pytest.raises(UsageError, match=text):
            decided(tmp_path, WEB, ["none"], wrong)


def test_units_are_turned_into_those_of_the_figure():
    assert read_objective("outage <= 1.5 min").in_unit("s") == Objective("outage", "<=", 90.0, "s")
    assert read_objective("a.p95<=100 ms").in_unit("us").value == pytest.approx(1e5)
    assert read_objective("a >= 3").in_unit("/s").value == 3.0


# Which domain


def test_a_model_without_work_has_nothing_to_protect(tmp_path):
    path = tmp_path / "idle.yaml"
    path.write_text("hosts: {host: {}}\ndomains: {vm: {}}\n")
    with pytest.raises(UsageError, match="no workload and no job"):
        protected_domain(load_model(path))


def test_a_percentile_that_nobody_lists_can_be_asked_for(tmp_path):
    short = TINY.replace("most: 5", "most: 1")
    found = decided(tmp_path, short, ["none", "lockstep"], "calls.setup.p99_9 <= 10 s", replications=1)
    assert found.verdicts("lockstep") == "yes"
    assert found.for_machines()["objectives"][0]["figure"] == "workloads.calls.at_10.setup.p99_9"
