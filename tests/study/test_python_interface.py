"""The package's own functions: what the commands do, as objects that print themselves."""

import pytest

import vftsim
from vftsim.errors import UsageError

SHORT = ["measure.duration=100 ms", "measure.warm_up=20 ms", "workloads.media.streams=20"]


@pytest.fixture(scope="module")
def model():
    return vftsim.load("xen-media-native", SHORT)


def test_a_run_prints_what_the_command_prints(model, tmp_path, capsys):
    result = vftsim.run(model, replications=2)
    assert str(result).startswith("xen-media-native (rtp, calls), seed 1; --set measure.duration=100 ms")
    result.print_tables()
    assert capsys.readouterr().out == str(result)


def test_quick_shortens(model):
    quick = vftsim.run(vftsim.load("xen-media-native", SHORT[1:]), replications=1, quick=True)
    assert quick.manifest["models"][0]["resolved"]["measure"]["duration"] == "500 ms"


def test_a_sweep_needs_no_directory():
    result = vftsim.sweep("xen-media-native", ["workloads.media.streams=10,20"], replications=1, overrides=SHORT[:2])
    assert result.results.query("metric == 'workloads.media.loss'")["estimate"].tolist() == [0.0, 0.0]
    assert "lost, %" in str(result)


def test_a_trace_holds_the_window_alone(model, tmp_path):
    found = vftsim.trace(model, 0.03, 0.05, path=tmp_path / "schedule.json")
    assert found.slices
    assert all(30_000_000 <= one.start_ns <= one.end_ns <= 80_000_000 for one in found.slices)
    assert (tmp_path / "schedule.json").stat().st_size > 0
    with pytest.raises(UsageError, match="is not within"):
        vftsim.trace(model, 0.1, 0.05)
