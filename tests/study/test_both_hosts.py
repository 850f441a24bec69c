"""What protection takes on both hosts: CPU time, memory and disk of the second one, from what was sent to it."""

import pytest
from tiny import tiny

from tests.composition.composed import checked
from vftsim.composition.run import run_model
from vftsim.study.runs.model import load_model

MB = 1e6
GUEST_MB = 4 * 1024**3 / MB


def run_under(tmp_path, protection):
    path = tmp_path / "protected.yaml"
    steps = "{initial: 10 /s, increment: 10 /s, duration: 6 s, transient: 2 s, most: 1}"
    path.write_text(tiny(steps=steps).replace("  sut:\n", f"  sut:\n    protection: {protection}\n"))
    return run_model(load_model(path).spec, 1, 0)


def costs(record):
    return record.whole.outcomes["domains.sut.protection"]


def test_states_cost_the_second_host_cpu_memory_and_disk(tmp_path):
    settings = "{kind: checkpoint, interval: 50 ms, state: {receive_cost: 10 us}, disk: {write_rate: 20 MB/s}}"
    found = costs(run_under(tmp_path, settings))
    assert found.dirty_pages > 0
    assert found.backup_cpu_ns == pytest.approx(10_000 * (found.dirty_pages + found.backup_disk_bytes / 4096), abs=2)
    assert 0 < found.backup_disk_bytes < found.channel_bytes
    assert found.memory * MB * found.states >= found.channel_bytes > found.memory * MB
    assert found.backup_memory > GUEST_MB + found.memory


def test_copies_that_stay_on_the_host_cost_no_second_one(tmp_path):
    found = costs(run_under(tmp_path, "{kind: micro_checkpoint, disk: {write_rate: 20 MB/s}}"))
    assert found.memory > 0
    assert found.backup_cpu_ns == found.backup_memory == found.backup_disk_bytes == 0


@pytest.mark.parametrize("kind", ["coarse_lockstep", "hypervisor_epoch"])
def test_a_copy_that_executes_costs_what_the_guest_does(tmp_path, kind):
    record = run_under(tmp_path, f"{{kind: {kind}, state: {{receive_cost: 0 us}}}}")
    (step,) = (phase.outcomes for phase in record.phases if phase.name == "step_1")
    assert step["domains.sut.protection"].backup_cpu == pytest.approx(step["domains.sut"].cpu, rel=0.01)
    assert costs(record).backup_memory >= GUEST_MB


def test_a_log_costs_buffers_on_both_hosts(tmp_path):
    found = costs(run_under(tmp_path, "{kind: lockstep, log: {buffer: 1 MB}, secondary: {buffer: 2 MB}}"))
    assert (found.memory, found.backup_memory) == (1.0, GUEST_MB + 2.0)
    assert found.backup_disk_bytes == 0


def played(protection, faults, duration):
    job = {"kind": "cpu_bound", "duty": "100 %"}
    guest = {"applications": {"job": job}, "protection": {**protection, "reprotection": None}}
    spec = checked(
        {"domains": {"sut": guest}, "faults": faults, "measure": {"warm_up": "0 s", "duration": f"{duration} ms"}}
    )
    return run_model(spec, 1, 0).whole.outcomes


@pytest.mark.parametrize("fault", ["backup_crash", "primary_crash"])
@pytest.mark.parametrize("kind", ["coarse_lockstep", "hypervisor_epoch"])
def test_a_copy_that_is_gone_executes_no_more(kind, fault):
    """It has had the guest's CPU time of a run that ends when the fault strikes, and of no instant after."""
    protection = {"kind": kind, "state": {"receive_cost": "0 us"}}
    crashed = played(protection, [{"kind": fault, "at": "100 ms"}], 3000)
    undisturbed = played(protection, [], 100)
    assert crashed["domains.sut"].cpu_ns > 10 * undisturbed["domains.sut"].cpu_ns > 0
    assert crashed["domains.sut.protection"].backup_cpu_ns == pytest.approx(
        undisturbed["domains.sut"].cpu_ns, abs=1_100_000
    )
