"""The measured time of workloads that are tests of a length of their own ends with them."""

import pytest

from vftsim.composition.run import run_model
from vftsim.study.designs.resources import WatchedRun, watch
from vftsim.study.runs.model import load_model

WEB = ["workloads.tcp=null", "workloads.udp=null", "workloads.web.connections=120"]
TCP = ["workloads.web=null", "workloads.udp=null"]
SCRIPT_S = 0.117647


def played(*changes):
    record = run_model(load_model("net-bare", changes).spec, 1, 0)
    return record.whole, record.whole.outcomes["workloads.tcp" if "workloads.web=null" in changes else "workloads.web"]


def cpu_percent(whole):
    return 100 * whole.outcomes["domains.server"].cpu_ns / (whole.end_ns - whole.begin_ns)


@pytest.mark.parametrize("rate", [6, 12])
def test_cpu_is_that_of_the_test_whatever_the_run_lasts(rate):
    """Each connection runs a script: use is rate x its CPU time, as in Little's law."""
    whole, test = played(*WEB, f"workloads.web.rate={rate} /s")
    assert whole.end_ns / 1e9 == pytest.approx(test.duration_s, rel=0.002)
    assert cpu_percent(whole) == pytest.approx(100 * rate * SCRIPT_S, rel=0.02)


def test_a_watched_run_ends_with_its_tests():
    class Load:
        def play(self, level, replication, prepare):
            return run_model(
                load_model("net-bare", [*WEB, "workloads.web.rate=12 /s"]).spec, 1, replication, prepare=prepare
            )

    uses = {name: value for name, unit, value in watch(WatchedRun(Load(), 12.0, 0, 0, 30_000_000_000)) if unit == "%"}
    assert uses["2 pCPUs"] == pytest.approx(100 * 12 * SCRIPT_S / 2, rel=0.03)


@pytest.mark.parametrize(
    "change",
    [
        "measure.duration=30 s",
        "measure.duration=300 ms",
        "workloads.tcp.duration=500 ms",
        "workloads.tcp.duration=2500 ms",
        "workloads.tcp.interval=5 s",
    ],
)
def test_tcp_fills_the_line_and_its_cpu_is_that_of_the_test(change):
    """1448 of 1538 bytes on the wire are payload, of 1 Gbit/s; CPU by packet is the same however long it is."""
    whole, test = played(*TCP, change)
    assert sum(test.throughput.values()) == pytest.approx(1000 * 1448 / 1538, rel=0.002)
    assert cpu_percent(whole) == pytest.approx(43.0, rel=0.01)


def test_a_fault_or_a_figure_of_something_else_keeps_the_whole_time():
    spec = load_model("net-bare", TCP).spec
    assert spec.tests_ns == 1_001_000_000
    assert load_model("net-bare", [*TCP, "faults=[{kind: primary_crash, at: 20 s}]"]).spec.tests_ns == 0
    assert load_model("net-bare", [*TCP, "domains.server.applications.job={kind: batch}"]).spec.tests_ns == 0
