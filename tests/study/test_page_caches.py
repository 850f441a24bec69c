"""A page cache takes writes that its disk does not keep up with: results say so, and a load is judged by it."""

import pytest

import vftsim
from vftsim.composition.run import run_model
from vftsim.study.designs.capacity import of_disks
from vftsim.study.designs.run import hidden_writes
from vftsim.study.runs.model import load_model

MODEL = """
domains:
  db:
    count: 2
    interfaces: {eth0: {path: {kind: moderated}}}
    disks: {data: {kind: local, writes: buffered, service: 4 ms, rate: 80 Gbit/s, flush_period: 1 s}}
    applications: {rows: {kind: service, demand: 10 us, writes: 1}}
  job:
    disks: {data: {kind: local, writes: buffered}}
    applications: {job: {kind: disk_bound}}
hosts: {host: {pcpus: 3}}
workloads: {load: {kind: open_requests, to: db, rate: 200 /s}}
measure: {warm_up: 1 s, duration: 5 s}
"""


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "cache.yaml"
    path.write_text(MODEL)
    return lambda *settings: vftsim.load(path, list(settings))


@pytest.mark.parametrize(("rate", "is_behind"), [(200, False), (330, True)])
def test_a_disk_that_does_not_keep_up_with_a_page_cache_is_told(model, rate, is_behind):
    """250 writes a second are all that it does; after 6 s at 330 it has (330 - 250) x 6 and more, 1.9 s of work."""
    spec = model(f"workloads.load.rate={rate} /s").spec
    record = run_model(spec, 1, 0)
    assert (record.of("domains.db-1.disks.data").unwritten > 1.0) is is_behind
    told = [text for text in hidden_writes(spec, [(0, record)]) if text.startswith("domains.db.")]
    assert [text.startswith("domains.db.disks.data does not keep up") for text in told] == [True] * is_behind


@pytest.mark.parametrize(("writes", "is_behind"), [("through", False), ("buffered", True)])
def test_disks_beside_a_ramp_are_those_of_its_last_step(writes, is_behind):
    """Four processes that only write: 250 a second are all that it does, and more is what a page cache takes."""
    disk = f"domains.sut.disks={{data: {{kind: local, writes: {writes}, rate: 80 Gbit/s, flush_period: 100 ms}}}}"
    job = "domains.sut.applications.job={kind: disk_bound, reads: 0 %}"
    phases = [f"workloads.calls.{phase}.duration=0 s" for phase in ("pre_registration", "stir")]
    steps = "workloads.calls.steps={most: 1, duration: 10 s, transient: 1 s}"
    spec = load_model("lab-native", [disk, job, *phases, steps]).spec
    told = hidden_writes(spec, [(0, run_model(spec, 1, 0))])
    assert [text.startswith("domains.sut.disks.data does not keep up") for text in told] == [True] * is_behind


def test_a_load_is_judged_by_the_disks_of_the_services_that_have_it(model):
    """Not by that of a job, which writes as much as it can whatever the load."""
    assert of_disks(model().spec) == [f"domains.db-{number}.disks.data.unwritten <= 1 s" for number in (1, 2)]
    assert of_disks(model("domains.db.disks.data.writes=through").spec) == []
