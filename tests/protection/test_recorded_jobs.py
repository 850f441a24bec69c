"""Jobs that wait for a disk, under mechanisms that record inputs: what is logged and what it costs, in closed form."""

from typing import Any

import pytest

from vftsim.composition.run import run_model
from vftsim.composition.without_effect import without_effect
from vftsim.platform.protection._lockstep_records import locksteps
from vftsim.platform.protection.pair import pairs
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


def behind_ms(tmp_path: Any, engine: str, *changes: str) -> float:
    """How far the secondary is behind after the last entry of 600 ms of reading, which is not in the log."""
    runs: list[Any] = []
    reads = "domains.vm.applications.db.disk_reads=100 %", "domains.vm.protection.log.disk_reads=false"
    path = tmp_path / "job.yaml"
    path.write_text(JOB)
    spec = load_model(path, [*reads, "measure.duration=500 ms", *changes]).spec
    run_model(spec, 1, 0, engine, prepare=runs.append)
    rows = runs[-1].engine.rows
    return int(rows(pairs)[rows(locksteps)[1].pair].secondary.lag_ns) / 1e6


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
@pytest.mark.parametrize(
    ("service", "rate", "a_cycle_ms"),
    [("3 ms", "null", 0.0), ("2 ms", "9 Mbit/s", 6.282), ("5 ms", "null", 2.0)],
)
def test_a_secondary_reads_on_its_own_path(
    tmp_path: Any, engine: str, service: str, rate: str, a_cycle_ms: float
) -> None:
    """The primary waits 3 ms in each cycle of 5.01 ms; what the secondary takes longer, it falls behind in each.

    8 KiB at 9 Mbit/s are 7.282 ms. A path as fast as the primary's leaves it where it is without one: behind by 2 ms of
    execution, an entry's way and its 5 us.
    """
    plain_ms = behind_ms(tmp_path, engine)
    assert plain_ms == pytest.approx(2.0 + 0.075 + 0.005, abs=0.005)
    path = f"domains.vm.protection.secondary.disk={{service: {service}, rate: {rate}}}"
    cycles = 600 // 5.01
    assert behind_ms(tmp_path, engine, path) - plain_ms == pytest.approx(cycles * a_cycle_ms, rel=0.02, abs=0.02)


def test_a_path_of_the_secondary_that_nothing_uses_is_named(tmp_path: Any) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(JOB)
    model = load_model(path, ["domains.vm.protection.secondary.disk={service: 5 ms}"])
    assert any("secondary.disk: what is read travels over the log" in text for text in without_effect(model.spec))


def test_without_protection_nothing_is_noted(tmp_path: Any) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(JOB)
    model = load_model(path, ["domains.vm.protection={kind: none}"])
    work = run_model(model.spec, 1, 0).whole.outcomes["domains.vm.applications.db"]
    assert work.duration.mean == pytest.approx(5_000_000, abs=1)
