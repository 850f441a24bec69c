"""The white paper on fault tolerance: bytes and bounds by hand, what the runs must show, the command."""

import json

import pytest

from vftsim.cli.main import main
from vftsim.records import vmware_ft as paper
from vftsim.records import vmware_ft_bounds as forms
from vftsim.records.vmware_ft import RECEIVE, RECORD, TRANSMIT, Budget
from vftsim.spec import shipped_dir
from vftsim.study.progress import make_progress

FIRST = "10 Gbit/s"


def test_the_figures_are_the_datasets():
    assert (paper.stated_rate("specjbb"), paper.stated_rate(RECEIVE), paper.stated_rate(TRANSMIT)) == (1.4, 500.0, 36.0)
    assert len(paper.stated_figures()) == 72


def test_bytes_of_a_segment_by_hand():
    """A frame of 1538 bytes and an entry of 64, an output of 32, an acknowledgement of 90, all times 1.2."""
    spec = paper.protection_of(FIRST)
    assert forms.log_bytes(spec, RECEIVE, 0.5) == pytest.approx(1.2 * (1538 + 64 + 16))
    assert forms.log_bytes(spec, TRANSMIT, 0.5) == pytest.approx(1.2 * (32 + 0.5 * (90 + 64)))
    assert forms.log_bytes(spec, TRANSMIT, 1.0, True) == pytest.approx(1.2 * (1538 + 32 + 90 + 64))
    assert forms.timer_mbit_per_s(spec) == pytest.approx(1.152)


def test_netperf_lies_between_the_acknowledgement_policies():
    """Rx/Tx of the latency case, and Tx from Rx; a log with the data of outputs misses both."""
    spec = paper.protection_of(FIRST)
    ratios = [forms.log_bytes(spec, RECEIVE, k) / forms.log_bytes(spec, TRANSMIT, k) for k in (1.0, 0.5)]
    assert ratios[0] < 500 / 36 < ratios[1]
    assert forms.other_rate(spec, 500.0, 0.5) < 36.0 < forms.other_rate(spec, 500.0, 1.0)
    assert [each.verdict for each in paper.wrong_model()] == ["missed", "missed"]


def test_bounds_by_hand():
    """Log of 100 Mbit/s; a window of 8 segments over a round trip of 1 ms; a price of 100 us a packet."""
    spec = paper.protection_of("100 Mbit/s")
    costs = paper.guest_costs(RECEIVE)
    found = forms.bounds(spec, costs, RECEIVE, 0.5, 1e9, 128 * 1024)
    assert found["line"] == pytest.approx(1000 * 1448 / 1538)
    assert found["log bytes"] == pytest.approx(100 * 1448 / (1.2 * 1618))
    assert forms.binding(found) == "log bytes"
    slow = spec.model_copy(update={"channel": spec.channel.model_copy(update={"latency": 500_000, "rate": 10**12})})
    found = forms.bounds(slow, costs, TRANSMIT, 0.5, 1e9, 8 * 1448)
    assert found["acknowledgement of outputs"] == pytest.approx(8 * 1448 * 8 / 1000, rel=1e-3)
    assert forms.binding(found) == "acknowledgement of outputs"
    dear = spec.model_copy(update={"cost": spec.cost.model_copy(update={"output": 100_000, "entry": 0, "kibibyte": 0})})
    found = forms.bounds(dear, forms.GuestCosts(0.0, 0.0, 0.0), TRANSMIT, 0.5, 1e9, 1 << 20)
    assert found["CPU"] == pytest.approx(0.999 * 1448 * 8 / 100)
    replaying = spec.model_copy(update={"secondary": spec.secondary.model_copy(update={"factor": 20.0})})
    assert forms.binding(forms.bounds(replaying, costs, RECEIVE, 0.5, 1e9, 1 << 20)) == "replay"


@pytest.fixture(scope="module")
def short():
    """Receiving and transmitting for a moment, in the engine for reading."""
    budget = Budget(7, 1, 0.1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VFTSIM_ENGINE", "simpy")
        return {(d, link): paper.netperf(d, "every second", link, budget)
                for d, link in ((RECEIVE, FIRST), (TRANSMIT, FIRST), (RECEIVE, "100 Mbit/s"))}  # fmt: skip


def test_simulated_netperf_is_bound_by_what_the_closed_form_says(short):
    for direction in (RECEIVE, TRANSMIT):
        bound = paper.bounds_of(direction, "every second", FIRST)
        assert forms.binding(bound) == "CPU"
        (payload,), (cpu,) = short[direction, FIRST]["payload"], short[direction, FIRST]["cpu"]
        assert 0.8 * bound["CPU"] < payload < bound["CPU"]
        assert cpu > 95.0


def test_a_log_that_is_full_holds_the_receiver_back(short):
    """What comes in 100 ms over 100 Mbit/s, and the 512 KiB of the primary's buffer."""
    (payload,), bound = short[RECEIVE, "100 Mbit/s"]["payload"], paper.bounds_of(RECEIVE, "every second", "100 Mbit/s")
    buffered = 512 * 1024 * 8 * 1e-6 / 0.1 * forms.MSS / (1.2 * 1618)
    assert bound["log bytes"] * 0.95 < payload < (bound["log bytes"] + buffered) * 1.05
    assert short[RECEIVE, "100 Mbit/s"]["cpu"][0] < short[RECEIVE, FIRST]["cpu"][0]


def test_simulated_log_is_the_bytes_of_its_segments(short):
    spec = paper.protection_of(FIRST)
    for direction in (RECEIVE, TRANSMIT):
        (payload,), (log,) = short[direction, FIRST]["payload"], short[direction, FIRST]["log"]
        formed = payload / forms.MSS * forms.log_bytes(spec, direction, 0.5) + forms.timer_mbit_per_s(spec)
        # Segments under way at the end are logged and not yet taken in.
        assert formed * 0.97 < log < formed * 1.1


def shipped():
    return json.loads((shipped_dir("calibration") / "vmware-ft" / "record.json").read_text(encoding="utf-8"))


def test_the_shipped_record_says_what_its_results_say():
    said = shipped()
    assert set(said["results"]) == set(paper.tasks())
    found = [[list(row) for row in table.rows] for table in paper.tables(said["results"])]
    assert found == [table["rows"] for table in said["tables"]]
    written = (shipped_dir("calibration") / "vmware-ft" / "record.md").read_text(encoding="utf-8")
    assert written == paper.report(said["results"], Budget(**said["budget"]))


def test_what_the_record_must_show():
    verdicts = [(each.key, each.verdict) for each in paper.judged(shipped()["results"])]
    assert [key for key, verdict in verdicts if verdict == "missed"] == ["F4"]  # the level of Tx


@pytest.mark.thorough
def test_the_command_prints_writes_and_says_the_same(monkeypatch, tmp_path, capsys):
    results = shipped()["results"]
    monkeypatch.setattr(paper, "run_record", lambda jobs, budget, progress: results)
    path = tmp_path / "record.md"
    assert main(["record", "vmware-ft", "-j", "1", "-q", "-o", str(path)]) == 0
    assert "Largest payload" in capsys.readouterr().out
    assert path.read_text(encoding="utf-8") == paper.report(results, RECORD)
    assert main(["record", "vmware-ft", "-j", "1", "-q", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["results"] == results
    assert main(["record", "vmware-ft", "--curve", "duty"]) != 0
    assert "of xen-media" in capsys.readouterr().err


@pytest.mark.slow
def test_the_whole_record_runs():
    with make_progress("record vmware-ft", True) as progress:
        results = paper.run_record(1, Budget(303, 1, 0.1), progress)
    assert set(results) == set(paper.tasks())
