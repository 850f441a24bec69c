"""The summary of a model without a benchmark and without flows of packets."""

import pytest

from vftsim.kernel.choose import VARIABLE
from vftsim.study.designs.run import run_study
from vftsim.study.execution import Execution
from vftsim.study.runs.model import load_model

MODEL = """
format: 2
name: two-programs
domains:
  vm:
    applications:
      job: {kind: cpu_bound, duty: 60 %, cv: 0, cycle: 10 ms}
      load: {kind: periodic_load, busy: 1 ms, period: 20 ms}
  idle: {}
hosts: {host: {pcpus: 2, scheduler: {kind: credit}}}
measure: {warm_up: 20 ms, duration: 200 ms}
"""


def test_the_summary_has_the_cpu_time_of_every_domain(tmp_path, monkeypatch):
    """6 ms of 10 and 1 ms of 20: 65 %, or less by what the load delays the other's cycles."""
    monkeypatch.setenv(VARIABLE, "simpy")
    (tmp_path / "two.yaml").write_text(MODEL)
    summary = run_study(load_model(str(tmp_path / "two.yaml")), 1, Execution(1, 1)).summary
    found = dict(zip(summary["figure"], summary["estimate"], strict=True))
    assert found["domains.vm.cpu"] == pytest.approx(63.0, abs=3.0)
    assert found["domains.idle.cpu"] == 0.0
