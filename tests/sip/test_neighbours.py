"""Other domains on the server's host, and the shipped models as a whole."""

import pytest
from read_lab import domain_ns, link

from vftsim.composition.run import Run
from vftsim.composition.views import ramp_of
from vftsim.errors import ModelFileError
from vftsim.platform.cpu.background import cyclic_loads
from vftsim.platform.cpu.build import check_conservation
from vftsim.platform.cpu.records import pcpus, vcpus
from vftsim.study.runs.model import load_model

SHORT = (
    "workloads.calls.pre_registration.duration=0 s",
    "workloads.calls.stir.duration=3 s",
    "workloads.calls.steps.duration=12 s",
    "workloads.calls.steps.transient=2 s",
    "workloads.calls.steps.most=1",
    "workloads.calls.steps.initial=20 /s",
)
SIP_MODELS = ["lab-native", "lab-virtual", "lab-virtual-ft", "lab-virtual-shared-nic", "lab-single-host"]


def play(name, *changes):
    lab = Run(load_model(name, (*SHORT, *changes)).spec, 7, 0)
    return lab, lab.run().played()


@pytest.mark.parametrize("name", SIP_MODELS)
def test_shipped_model_runs_and_conserves(name):
    lab, phases = play(name)
    assert sum(phases[-1].attempts) > 100
    assert phases[-1].ihs_percent() == 0.0
    lab.check_conservation()


def test_user_agents_on_the_host_pay_for_each_message():
    """CPU time of the domain = messages received and sent by user agents x cost, to the nanosecond."""
    lab, _ = play("lab-single-host")
    cost_ns = ramp_of(lab.spec).message_cost
    messages = link(lab, "vmnic0", to_host=True).sent + link(lab, "vmnic0", to_host=False).delivered
    assert domain_ns(lab, "uac") == messages * cost_ns


def test_cyclic_load_takes_its_share_of_a_core():
    """20 ms in every second from time 0: one period more than whole seconds have passed, none unfinished."""
    lab, _ = play("lab-single-host")
    periods = lab.now_ns // 1_000_000_000 + 1
    used_ns = domain_ns(lab, "management")
    assert used_ns in {periods * 20_000_000, (periods - 1) * 20_000_000}


def test_a_busy_neighbour_on_the_same_core_delays_calls_and_takes_no_work_away():
    """A neighbour of equal shares uses half the core: the server still does all its work, but some of it later."""
    _, alone = play("lab-virtual")
    lab, beside = play(
        "lab-virtual",
        "domains.vmkernel.affinity=[0]",
        "domains.vmkernel.applications.background.busy=50 ms",
        "domains.vmkernel.applications.background.period=100 ms",
    )
    assert beside[-1].attempts == alone[-1].attempts
    assert beside[-1].ihs_percent() == 0.0
    assert beside[-1].delays["SES1"].mean > alone[-1].delays["SES1"].mean
    elapsed_ns = lab.now_ns
    assert domain_ns(lab, "vmkernel") == pytest.approx(elapsed_ns / 2, rel=0.02)


def test_impossible_placements_are_refused():
    with pytest.raises(ModelFileError, match=r"domains\.sut\.affinity must name pCPUs 0 to 1"):
        load_model("lab-virtual", ["domains.sut.affinity=[5]"])
    with pytest.raises(ModelFileError, match="message_cost is CPU time of a domain of the model"):
        load_model("lab-virtual", ["workloads.calls.message_cost=1 us"])
    with pytest.raises(ModelFileError, match="'vmnic9' is none of vmnic0, vmnic1"):
        load_model("lab-virtual", ["domains.sut.interfaces.eth0.network=vmnic9"])


def test_what_nobody_sees_is_accounted_for_as_if_it_had_run():
    """The vmkernel alone on its pCPU: computed in one run, simulated in the other, which is observed."""
    spec = load_model("lab-virtual", (*SHORT, "hosts.host.switch_cost=3 us")).spec
    computed = Run(spec, 7, 0)
    simulated = Run(spec, 7, 0, observed=True)
    phases, others = computed.run().played(), simulated.run().played()
    assert computed.engine.events < simulated.engine.events - 5_000
    assert [phase.series for phase in phases] == [phase.series for phase in others]
    for table in (vcpus, pcpus):
        for row in range(1, computed.engine.used(table) + 1):
            one, other = computed.engine.rows(table)[row], simulated.engine.rows(table)[row]
            for name in ("run_ns", "wait_ns", "wakeups", "context_switches", "migrations", "busy_ns", "switching_ns"):
                assert getattr(one, name, 0) == getattr(other, name, 0), name


@pytest.mark.parametrize("stop_ns", [0, 1, 3_000, 50_000, 103_000, 103_001, 10_000_000, 10_000_001, 10_100_000])
def test_an_unseen_load_is_accounted_for_at_any_instant(stop_ns):
    """0.1 ms every 10 ms after a switch of 3 us: against a run in which it is seen."""
    spec = load_model("lab-virtual", (*SHORT, "hosts.host.switch_cost=3 us")).spec
    found = []
    for observed in (False, True):
        lab = Run(spec, 7, 0, observed=observed)
        lab.built.start()
        lab.engine.run(stop_ns)
        lab.built.settle()
        check_conservation(lab.engine, lab.built.hosts["host"].row)
        vcpu = lab.engine.rows(vcpus)[2]
        load = lab.engine.rows(cyclic_loads)[1]
        found.append((vcpu.run_ns, vcpu.wakeups, vcpu.context_switches, load.done))
    assert found[0] == found[1]
