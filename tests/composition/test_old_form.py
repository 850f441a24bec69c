"""Files of the first form are refused with their new form, which loads and says the same."""

import pytest

from vftsim.composition.old_form import in_new_form, new_assignment
from vftsim.errors import ModelFileError
from vftsim.study.model import load_model

SIP_LAB = """\
kind: sip_lab
name: old lab
host: {pcpus: 2, scheduler: {kind: esxi}}
domains:
  sut: {affinity: [0], weight: 512}
  uac: {vcpus: 1, message_cost: 8 us}
  vmkernel: {affinity: [1], background: {busy: 0.1 ms, period: 10 ms}}
nics:
  cards: {vmnic0: {}, vmnic1: {rate: 100 Mbit/s}}
  layout: {vm: vmnic0, storage: vmnic1}
  background:
    storage: {burst: 64 KiB, period: 50 ms}
nic: {ring: 64}
virtualization: {cpu_inflation: 1.25, relay_cost: 0.1 ms, packet_cost: 3 us}
server: {touch_cost: 0.5 ms, quantum: 50 ms}
protection: {kind: ha_restart}
faults: [{kind: primary_crash, at: step 1 + 2 s}]
workload:
  subscribers: 1000
  steps: {initial: 20 /s, most: 3}
measured_doc: 100 /s
memory_available: 3777 MB
"""
MEDIA_HOST = """\
kind: media_host
title: old host
host: {pcpus: 2, scheduler: {kind: credit}, switch_cost_ns: 2 us}
nics: {eth0: {}, eth1: {}}
driver_domain: dom0
driver: {placement: one, receive_ns: 3 us}
domains:
  dom0: {vcpus: 2, affinity: [0, 1]}
  media:
    nic: eth1
    io_path: {kind: direct}
    quantum_ns: 50 ms
    applications: {relay: {kind: media_relay, packet_ns: 18 us}}
workload:
  rtp: {to: media, streams: 30}
  duration: 200 ms
  warm_up: 100 ms
"""


def refusal(path):
    with pytest.raises(ModelFileError, match="no kinds of systems any more") as caught:
        load_model(path)
    return caught.value


def converted(error):
    """The text of one file out of a refusal."""
    text = str(error)
    return text[text.index("\n\n") + 2 :]


def test_a_sip_lab_is_refused_with_a_model_that_says_the_same(tmp_path):
    path = tmp_path / "lab.yaml"
    path.write_text(SIP_LAB)
    error = refusal(path)
    assert (error.line, error.key) == (1, "kind")
    path.write_text(converted(error))
    spec = load_model(path).spec
    sut, calls = spec.domains["sut"], spec.workloads["calls"]
    proxy, eth0 = sut.applications["proxy"], sut.interfaces["eth0"]
    assert spec.hosts["host"].pcpus == 2
    assert spec.hosts["host"].scheduler.kind == "esxi"
    assert (sut.affinity, sut.weight, sut.cpu_inflation, sut.quantum) == ((0,), 512, 1.25, 50_000_000)
    assert (sut.memory_available, sut.protection.kind) == (3_777_000_000, "ha_restart")
    assert (proxy.touch_cost, proxy.relay_cost) == (500_000, 100_000)
    assert (eth0.network, eth0.path.kind, eth0.path.ring, eth0.path.packet_cost) == ("vmnic0", "moderated", 64, 3_000)
    assert spec.networks["vmnic1"].rate == 100_000_000
    assert spec.networks["vmnic1"].background["storage"].burst == 64 * 1024
    assert spec.domains["vmkernel"].applications["background"].busy == 100_000
    assert (calls.to, calls.agents_in, calls.message_cost) == ("sut.proxy", "uac", 8_000)
    assert (calls.subscribers, calls.steps.initial, calls.steps.most) == (1000, 20.0, 3)
    assert spec.faults[0].kind == "primary_crash"
    assert spec.measured.capacity == 100.0


def test_a_media_host_is_refused_with_a_model_that_says_the_same(tmp_path):
    path = tmp_path / "host.yaml"
    path.write_text(MEDIA_HOST)
    path.write_text(converted(refusal(path)))
    spec = load_model(path).spec
    host, media = spec.hosts["host"], spec.domains["media"]
    assert (host.pcpus, host.scheduler.kind, host.switch_cost) == (2, "credit", 2_000)
    assert list(host.nics) == ["eth0", "eth1"]
    driver = spec.domains["dom0"].driver
    assert (spec.driver_of("host"), driver.placement, driver.receive_cost) == ("dom0", "one", 3_000)
    assert spec.domains["dom0"].affinity == (0, 1)
    assert (media.interfaces["eth0"].nic, media.interfaces["eth0"].path.kind, media.quantum) == (
        "eth1", "direct", 50_000_000,
    )  # fmt: skip
    assert media.applications["relay"].packet_cost == 18_000
    assert (spec.workloads["media"].to, spec.workloads["media"].streams) == ("media", 30)
    assert (spec.measure.duration, spec.measure.warm_up) == (200_000_000, 100_000_000)
    assert spec.networks["lan"].latency == 10_000, "what every media host implied"


def test_a_file_that_extends_keeps_what_it_extends(tmp_path):
    """Without a kind: it had that of the file it extends, which may be of the new form already."""
    path = tmp_path / "mine.yaml"
    path.write_text("extends: lab-virtual\nname: mine\nserver: {touch_cost: 0.6 ms}\nmeasured_doc: 90 /s\n")
    error = refusal(path)
    assert (error.line, error.key) == (3, "server")
    text = converted(error)
    assert text.startswith("extends: lab-virtual\n")
    path.write_text(text)
    spec, base = load_model(path).spec, load_model("lab-virtual").spec
    assert spec.domains["sut"].applications["proxy"].touch_cost == 600_000
    assert spec.domains["sut"].cpu_inflation == base.domains["sut"].cpu_inflation
    assert (spec.name, spec.measured.capacity) == ("mine", 90.0)
    path.write_text("extends: xen-media\nworkload: {rtp: {streams: 40}, warm_up: 100 ms}\n")
    path.write_text(converted(refusal(path)))
    spec = load_model(path).spec
    assert (spec.workloads["media"].streams, spec.measure.warm_up) == (40, 100_000_000)


def test_old_files_that_extend_each_other_are_all_said_anew(tmp_path):
    base, child = tmp_path / "base.yaml", tmp_path / "child.yaml"
    base.write_text(SIP_LAB)
    child.write_text("extends: base\nname: child\nserver: {touch_cost: 0.7 ms}\n")
    text = converted(refusal(child))
    first, second = text.split(f"# {base}\n")
    child.write_text(first)
    base.write_text(second)
    spec = load_model(child).spec
    assert (spec.name, spec.domains["sut"].applications["proxy"].touch_cost) == ("child", 700_000)
    assert spec.domains["sut"].interfaces["eth0"].path.ring == 64


def test_a_mistyped_key_of_the_new_form_is_not_taken_for_the_old(tmp_path):
    path = tmp_path / "m.yaml"
    path.write_text("host: {pcpus: 2}\nnetworks: {lan: {}}\ndomains: {a: {}}\n")
    with pytest.raises(ModelFileError, match="unknown key 'host'; did you mean 'hosts'"):
        load_model(path)


@pytest.mark.parametrize(
    ("kind", "old", "new"),
    [
        ("sip_lab", "server.touch_cost=1 ms", "domains.sut.applications.proxy.touch_cost=1 ms"),
        ("sip_lab", "virtualization.relay_cost=1 us", "domains.sut.applications.proxy.relay_cost=1 us"),
        ("sip_lab", "workload.steps.most=2", "workloads.calls.steps.most=2"),
        ("sip_lab", "host.pcpus=1", "hosts.host.pcpus=1"),
        ("media_host", "workload.duration=1 s", "measure.duration=1 s"),
        ("media_host", "workload.rtp.streams=5", "workloads.media.streams=5"),
        ("media_host", "domains.media.io_path.backend_receive_ns=1 us",
         "domains.media.interfaces.eth0.path.backend_receive_cost=1 us"),
    ],
)  # fmt: skip
def test_an_assignment_moves_with_its_value(kind, old, new):
    assert new_assignment(kind, old) == new


def test_storage_on_the_servers_card_and_a_shared_channel_go_to_its_network():
    old = {
        "domains": {"sut": {}},
        "nics": {"cards": {"a": {}, "b": {}}, "layout": {"vm": "b", "storage": "b"},
                 "background": {"storage": {"burst": "1 KiB", "period": "1 s"}}},
        "protection": {"kind": "lockstep", "channel": {"shared": True, "rate": "1 Gbit/s"}},
    }  # fmt: skip
    new = in_new_form("sip_lab", old)
    assert new["networks"]["b"]["background"] == {"storage": {"burst": "1 KiB", "period": "1 s"}}
    assert new["domains"]["sut"]["interfaces"]["eth0"]["network"] == "b"
    assert new["domains"]["sut"]["protection"]["channel"] == {"network": "b"}
