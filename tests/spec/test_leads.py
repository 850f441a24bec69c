"""Messages lead to what was meant: products' names, missing keys, units of bytes, the line of a check across parts."""

import pytest

from vftsim.cli.main import main
from vftsim.errors import ModelFileError, UsageError
from vftsim.study.designs.protections import kinds_named
from vftsim.study.runs.model import load_model

MODEL = """\
format: 2
hosts:
  host: {pcpus: 2}
networks:
  lan: {rate: 1 Gbit/s}
domains:
  vm:
    vcpus: 1
    interfaces: {eth0: {path: {kind: native}}}
    applications: {app: {kind: service}}
  other:
    affinity: [7]
workloads:
  load: {kind: request_response, to: vm}
  second:
    kind: request_response
    to: nobody
faults:
  - {kind: primary_crash, domain: vm, at: 1 s}
  - {kind: backup_crash, domain: vm, at: 1 s}
"""


@pytest.fixture
def written(tmp_path):
    def write(text, **changes):
        for old, new in changes.items():
            assert old in text
            text = text.replace(old, new)
        path = tmp_path / "model.yaml"
        path.write_text(text)
        return path

    return write


def refusal(path, settings=()):
    with pytest.raises(ModelFileError) as caught:
        load_model(path, settings)
    return caught.value


@pytest.mark.parametrize(
    ("key", "name", "kind"),
    [
        ("hosts.host.scheduler", "kvm", "'cfs'"),
        ("hosts.host.scheduler", "VMware", "'esxi'"),
        ("hosts.host.scheduler", "xen", "'credit'"),
        ("hosts.host.scheduler", "remus", "the protection mechanism 'checkpoint'"),
        ("domains.sut.protection", "remus", "'checkpoint'"),
        ("domains.sut.protection", "kemari", "'event_sync'"),
        ("domains.sut.protection", "COLO", "'coarse_lockstep'"),
        ("domains.sut.protection", "vmware ft", "'lockstep'"),
        ("domains.sut.interfaces.eth0.path", "virtio", "'paravirtual'"),
        ("domains.sut.interfaces.eth0.path", "SR-IOV", "'direct'"),
        ("hosts.host.scheduler", "credti", "'credit'"),
        ("workloads.calls", "SIPp", "'ims_bench'"),
        ("workloads.calls", "iperf", "'bulk_tcp'"),
        ("domains.sut.applications.proxy", "kamailio", "'sip_server'"),
    ],
)
def test_a_products_name_leads_to_the_part(key, name, kind):
    assert f"did you mean {kind}?" in refusal("lab-virtual", [f"{key}={{kind: {name}}}"]).message


def test_options_know_them_too(capsys):
    with pytest.raises(UsageError, match="no mechanism 'remus'; did you mean 'checkpoint'"):
        kinds_named("none,remus")
    assert main(["sweep", "xen-media", "--scheduler", "kvm"]) == 2
    assert "did you mean 'cfs'?" in capsys.readouterr().err


def test_a_missing_key_is_not_hidden_behind_a_number(written):
    printed = refusal(written("format: 2\nvms: {vm: {}}\n"))
    assert "required key 'domains' is missing" in printed.message
    assert "(and 1 more: unknown key 'vms')" in printed.message
    printed = refusal(written("vms: {vm: {}}\nformat: 2\n"))
    assert "vms" in printed.message
    assert "domains" in printed.message


def test_bytes_a_second_are_told_in_bits():
    printed = refusal("lab-virtual", ["networks.vmnic0.rate=1 GB/s"])
    assert "'1 GB/s' is bytes a second, and a bit rate is in bits: '8 Gbit/s'" in printed.message
    assert "'800 Mbit/s'" in refusal("lab-virtual", ["networks.vmnic0.rate=100 MB/s"]).message


@pytest.mark.parametrize(
    ("right", "at", "expected"),
    [
        ((), "[7]", "domains.other.affinity must name pCPUs 0 to 1"),
        (("[7]",), "to: nobody", "workloads.second.to"),
        (("[7]", "nobody"), "kind: backup_crash", "faults.1: a fault of the backup"),
    ],
)
def test_a_check_across_parts_points_to_its_line(written, right, at, expected):
    text = MODEL
    for wrong, good in (("[7]", "[1]"), ("nobody", "vm")):
        text = text.replace(wrong, good) if wrong in right else text
    found = refusal(written(text))
    assert expected in found.message
    assert at in text.splitlines()[found.line - 1]
