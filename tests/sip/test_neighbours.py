"""Other domains on the server's host, and the shipped models as a whole."""

import pytest

from vftsim.errors import ModelFileError
from vftsim.sip.lab import SipLab
from vftsim.study.model import load_model

SHORT = (
    "workload.pre_registration.duration=0 s",
    "workload.stir.duration=3 s",
    "workload.steps.duration=12 s",
    "workload.steps.transient=2 s",
    "workload.steps.most=1",
    "workload.steps.initial=20 /s",
)
SIP_MODELS = ["lab-native", "lab-virtual", "lab-virtual-ft", "lab-virtual-shared-nic", "lab-single-host"]


def play(name, *changes):
    lab = SipLab(load_model(name, (*SHORT, *changes)).spec, 7, 0)
    return lab, lab.run()


@pytest.mark.parametrize("name", SIP_MODELS)
def test_shipped_model_runs_and_conserves(name):
    lab, phases = play(name)
    assert sum(phases[-1].attempts) > 100
    assert phases[-1].ihs_percent() == 0.0
    lab.host.check_conservation()


def test_user_agents_on_the_host_pay_for_each_message():
    """CPU time of the domain = messages received and sent by user agents x cost, to the nanosecond."""
    lab, _ = play("lab-single-host")
    cost_ns = lab.spec.domains["uac"].message_cost
    messages = lab.to_server.sent + lab.to_agents.delivered
    assert lab.neighbours["uac"].vcpus[0].run_ns == messages * cost_ns


def test_cyclic_load_takes_its_share_of_a_core():
    """20 ms in every second from time 0: one period more than whole seconds have passed, none unfinished."""
    lab, _ = play("lab-single-host")
    periods = lab.clock.now_ns // 1_000_000_000 + 1
    used_ns = lab.neighbours["management"].vcpus[0].run_ns
    assert used_ns in {periods * 20_000_000, (periods - 1) * 20_000_000}


def test_a_busy_neighbour_on_the_same_core_delays_calls_and_takes_no_work_away():
    """A neighbour of equal shares uses half the core: the server still does all its work, but some of it later."""
    _, alone = play("lab-virtual")
    lab, beside = play(
        "lab-virtual", "domains.vmkernel.affinity=[0]", "domains.vmkernel.background.busy=50 ms",
        "domains.vmkernel.background.period=100 ms",
    )  # fmt: skip
    assert beside[-1].attempts == alone[-1].attempts
    assert beside[-1].ihs_percent() == 0.0
    assert beside[-1].delays["SES1"].mean > alone[-1].delays["SES1"].mean
    elapsed_ns = lab.clock.now_ns
    assert lab.neighbours["vmkernel"].vcpus[0].run_ns == pytest.approx(elapsed_ns / 2, rel=0.02)


def test_impossible_placements_are_refused():
    with pytest.raises(ModelFileError, match="affinity names a pCPU"):
        load_model("lab-virtual", ["domains.sut.affinity=[5]"])
    with pytest.raises(ModelFileError, match="message_cost belongs to the domain"):
        load_model("lab-virtual", ["domains.vmkernel.message_cost=1 us"])
    with pytest.raises(ModelFileError, match="names the card"):
        load_model("lab-virtual", ["nics.layout.storage=vmnic9"])
