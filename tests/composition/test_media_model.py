"""References between the parts of a model, and the experiment files against the measured table."""

import pytest

from vftsim.composition.model import ModelSpec
from vftsim.composition.views import calls_of, streams_of
from vftsim.errors import ModelFileError
from vftsim.records.forms.xen_media import experiment, measured_rows
from vftsim.spec import load

from .media_systems import host

ROWS = measured_rows()
DOMAINS = {"dom0": "dom0", "media_vm": "media", "cpu_vm_1": "cpu1", "cpu_vm_2": "cpu2"}


def refuse(message, *overrides):
    with pytest.raises(ModelFileError, match=message):
        load("xen-media", ModelSpec, list(overrides))


def test_wrong_references_are_refused():
    refuse("'elsewhere' names no domain; domains are", "workloads.media.to=elsewhere")
    refuse("one application that takes rtp traffic; signaling has server", "workloads.media.to=signaling")
    refuse("affinity must name pCPUs 0 to 3", "domains.media.affinity=[4]")
    refuse("belongs to both", "domains.media.interfaces.eth0.path={kind: direct}")
    refuse("none of the host's: eth0", "domains.media.interfaces.eth0.nic=eth7")
    refuse("needs a driver domain on host 'host'", "domains.dom0.driver=null")
    refuse("several driver domains: dom0, cpu1", "domains.cpu1.driver={}")


def test_driver_domain_is_needed_by_a_split_driver_only():
    split = host({"kind": "paravirtual"}).model_dump()
    del split["domains"]["dom0"]
    with pytest.raises(ValueError, match="needs a driver domain"):
        ModelSpec.model_validate(split)
    assert host({"kind": "direct"}).driver_of("host") is None


@pytest.mark.parametrize("row", ROWS, ids=[row["experiment_key"] for row in ROWS])
def test_experiment_file_says_what_the_table_says(row):
    system = experiment(row["experiment_key"])
    assert system.hosts["host"].pcpus == int(row["cores"])
    assert streams_of(system).streams == int(row["streams"])
    if row["signaling_load_cps"]:
        assert calls_of(system).calls_per_s == float(row["signaling_load_cps"])
    domains = system.domains
    for column, name in (("weight_dom0", "dom0"), ("weight_media_vm", "media")):
        if row[column]:
            assert domains[name].weight == int(row[column])
    ratio = row["weight_media_to_dom0_ratio"]
    if ratio:
        assert domains["media"].weight / domains["dom0"].weight == pytest.approx(float(ratio), rel=1e-4)
    if row["cpu_bound_vms"]:
        assert sum(name.startswith("cpu") for name in domains) == int(row["cpu_bound_vms"])
    capped = {DOMAINS[vm] for vm in row["capped_vms"].split(";") if vm not in {"", "none"}}
    assert {name for name, domain in domains.items() if domain.cap == 1.0} == capped
    nic = system.hosts["host"].nics["eth0"]
    if row["interrupt_coalescing_us"]:
        assert nic.coalescing_time == 1000 * int(row["interrupt_coalescing_us"])
        assert nic.coalescing_packets == int(row["interrupt_coalescing_packets"])
    if row["experiment_key"] != "mixed.N":
        path = domains["media"].interfaces["eth0"].path.kind
        assert path == ("direct" if row["vmm_bypass"] == "yes" else "paravirtual")


PINS = {"pin_dom0": "dom0", "pin_media_vm": "media", "pin_signaling_vm": "signaling", "pin_cpu_vms": "cpu1"}


@pytest.mark.parametrize("row", ROWS, ids=[row["experiment_key"] for row in ROWS])
def test_pinning_is_that_of_the_table(row):
    domains = experiment(row["experiment_key"]).domains
    for column, name in PINS.items():
        pin = row[column]
        if name not in domains or pin in {"", "not_stated"}:
            continue
        affinity = domains[name].affinity
        if pin == "float":
            assert affinity is None
        elif pin.startswith("cores_"):
            assert affinity == tuple(int(core) for core in pin.split("_")[1:])
        elif pin == "away_from_media_vm":
            assert not set(affinity) & set(domains["media"].affinity)
        else:
            assert len(affinity) == (2 if "i_cores" in pin else int(pin.split("_")[1]))
