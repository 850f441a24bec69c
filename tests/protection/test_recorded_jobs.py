"""Jobs that wait for a disk, under mechanisms that record inputs: what is logged and what it costs, in closed form."""

from typing import Any

import pytest

from vftsim.composition.run import run_model
from vftsim.study.runs.model import load_model

JOB = """\
hosts: {host: {pcpus: 1}}
domains:
  vm:
    applications:
      db: {kind: batch, demand: 2 ms, disk_operations: 1, disk_wait: 3 ms, disk_size: 8 KiB, disk_reads: 25 %}
    protection: {kind: lockstep, log: {timer_rate: 0}, cost: {batch: 0 us}}
measure: {warm_up: 100 ms, duration: 2 s}
"""


def outcomes(tmp_path: Any, *changes: str) -> tuple[Any, Any]:
    path = tmp_path / "job.yaml"
    path.write_text(JOB)
    found = run_model(load_model(path, changes).spec, 1, 0).whole.outcomes
    return found["domains.vm.protection"], found["domains.vm.applications.db"]


def test_ends_of_disk_operations_are_logged_and_reads_with_their_data(tmp_path: Any) -> None:
    """A transaction takes 5 ms and what taking note costs: 10 us, and for a quarter of them 1 us a KiB of 8."""
    found, work = outcomes(tmp_path)
    transaction_ns = 5_000_000 + 10_000 + 8_000 / 4
    assert work.duration.mean == pytest.approx(transaction_ns, abs=2_000)
    per_s = 1e9 / transaction_ns
    bits = 1.062 * 8 * (32 + 8192 / 4)
    assert found.channel == pytest.approx(per_s * bits / 1e6, rel=0.02)


def test_a_secondary_that_reads_the_shared_disk_itself_needs_no_data(tmp_path: Any) -> None:
    found, _ = outcomes(tmp_path, "domains.vm.protection.log.disk_reads=false")
    assert found.channel == pytest.approx(1e9 / 5_010_000 * 1.062 * 8 * 32 / 1e6, rel=0.02)


def test_without_protection_nothing_is_noted(tmp_path: Any) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(JOB)
    model = load_model(path, ["domains.vm.protection={kind: none}"])
    work = run_model(model.spec, 1, 0).whole.outcomes["domains.vm.applications.db"]
    assert work.duration.mean == pytest.approx(5_000_000, abs=1)
