"""``sweep``, ``trace``, ``explain`` and ``record`` from outside."""

import csv
import io
import json
from functools import partial

import pytest

from vftsim.cli.main import main
from vftsim.records.forms import xen_nulls
from vftsim.records.forms.xen_media import costs_of, measured_rows

FEW = ["--set", "workloads.media.streams=20"]
SWEEP = ["sweep", "--grid", "streams=10,20", "-n", "2", "-j", "1", "--set", "measure.duration=100 ms", "-q"]


def run_main(capsys, *arguments):
    assert main([str(a) for a in arguments]) == 0
    return capsys.readouterr().out


@pytest.mark.thorough
@pytest.mark.usefixtures("inside")
def test_sweep_without_a_model_prints_a_table_and_keeps_its_files(tmp_path, capsys):
    out = run_main(capsys, *SWEEP, "--scheduler", "credit")
    assert {p.name for p in (tmp_path / "sweep-credit").iterdir()} == {
        "results.csv",
        "replications.csv",
        "charts.png",
        "points.json",
        "blocks.json",
        "manifest.json",
        "vftsim.sqlite",
    }
    for text in ("lost,", "p99,", "dom0: CPU, %", "seed 1", " to ", "measures 100 ms after 300 ms"):
        assert text in out
    table = list(csv.DictReader(io.StringIO(run_main(capsys, *SWEEP, "--scheduler", "credit", "--csv"))))
    loss = [row for row in table if row["figure"] == "workloads.media.loss"]
    assert [row["streams"] for row in loss] == ["10", "20"]
    assert all((row["estimate"], row["interval"]) == ("0.0", "none") for row in loss)
    printed = json.loads(run_main(capsys, *SWEEP, "--scheduler", "credit", "--json"))
    assert printed["manifest"]["sweep"]["factors"]["streams"]["values"] == ["10", "20"]
    assert printed["refused"] == {}


@pytest.mark.usefixtures("inside")
def test_sweep_of_a_sip_lab(tiny_path, capsys):
    arguments = [
        "sweep",
        tiny_path,
        "--grid",
        "domains.sut.applications.proxy.touch_cost=4 ms,8 ms",
        "-n",
        "1",
        "-j",
        "1",
        "-q",
        "--csv",
    ]
    table = csv.DictReader(io.StringIO(run_main(capsys, *arguments)))
    docs = [float(row["estimate"]) for row in table if row["figure"] == "workloads.calls.doc_saps"]
    assert len(docs) == 2
    assert docs[0] > docs[1] > 0, "twice the work a message, less capacity"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["sweep", "--scheduler", "credits"], "no scheduler 'credits'"),
        (["sweep", "--json", "--csv"], "choose one"),
        (["sweep", "lab-virtual", "--scheduler", "credit"], "needs axes"),
        (["trace", "lab-virtual", "-o", "x.json", "--start", "1000000 s"], "the run ends after"),
        (["trace", "xen-media", "-o", "no/such/x.json"], "no such directory"),
        (["trace", "xen-media"], "say what to write"),
        (["trace", "xen-media", "--gantt", "x.pdf"], "must end in .png"),
        (["trace", "xen-media", "--pcap", "x.png"], "must end in .pcap"),
        (["trace", "xen-media", "-o", "x.pcap"], "must end in .json"),
        (["trace", "xen-media", "--pcap", "x.pcap", "-o", "x.pcap"], "must end in .json"),
        (["trace", "xen-media", "--pcap", "no/such/x.pcap"], "no such directory"),
        (["record", "xen-media", "-o", "x.png"], "must end in .md"),
        (["record", "xen-media", "--jobs", "0"], "jobs"),
        (["record", "xen-media", "--model", "right"], "--model"),
        (["trace", "xen-media", "-o", "x.json", "--length", "0 s"], "above 0"),
        (["explain", "xen-media", "--packet", "slowest"], "worst"),
        (["explain", "xen-media", *FEW, "--length", "20 ms", "--of", "output"], "nothing protects the domain"),
        (
            ["explain", "xen-media", *FEW, "--start", "50 ms", "--length", "20 ms", "--packet", "99999"],
            "in this window",
        ),
    ],
)
@pytest.mark.usefixtures("inside")
def test_mistakes_are_one_message(arguments, message, tmp_path, capsys):
    before = sorted(tmp_path.iterdir())
    assert main(arguments) == 2
    streams = capsys.readouterr()
    assert message in streams.err
    assert streams.out == ""
    assert sorted(tmp_path.iterdir()) == before


def test_trace_writes_what_perfetto_reads(tmp_path, capsys):
    path = tmp_path / "schedule.json"
    arguments = ["trace", "xen-media", *FEW, "--start", "50 ms", "--length", "20 ms", "-o", path]
    run_main(capsys, *arguments)
    events = json.loads(path.read_text())["traceEvents"]
    tracks = {e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert {"pCPU 0", "pCPU 3", "media.1", "cpu1.0"} <= tracks
    times = [e["ts"] for e in events if e["ph"] == "B"]
    assert min(times) >= 50_000
    assert max(times) < 70_000
    assert main([str(a) for a in arguments]) == 2, "an existing file stays"


def test_trace_of_a_ramp_shows_its_first_step(tiny_path, tmp_path, capsys):
    """Nobody has said which window: something happens in the one that is chosen."""
    path = tmp_path / "trace.json"
    printed = run_main(capsys, "trace", tiny_path, "--engine", "simpy", "-o", path)
    assert " 0 packets delivered" not in printed
    names = {e["name"] for e in json.loads(path.read_text())["traceEvents"] if e["ph"] == "B"}
    assert any(name.startswith("INVITE") for name in names), "messages by their names"


def test_trace_draws_the_schedule(tmp_path, capsys):
    figure, trace = tmp_path / "schedule.png", tmp_path / "schedule.json"
    window = ["trace", "xen-media", *FEW, "--start", "50 ms", "--length", "20 ms"]
    assert "schedule.png" in run_main(capsys, *window, "--gantt", figure)
    assert figure.read_bytes().startswith(b"\x89PNG")
    run_main(capsys, *window, "--gantt", figure, "--force", "-o", trace)
    assert {p.name for p in tmp_path.iterdir()} == {"schedule.png", "schedule.json"}, "nothing half written"


def test_explain_sums_to_the_delay(capsys):
    arguments = ["explain", "xen-media", *FEW, "--start", "50 ms", "--length", "40 ms"]
    delays = {}
    for which in ("best", "median", "worst"):
        printed = json.loads(run_main(capsys, *arguments, "--packet", which, "--json"))
        assert sum(part["length_ns"] for part in printed["parts"]) == printed["delay_ns"]
        delays[which] = printed["delay_ns"]
    assert delays["best"] < delays["median"] < delays["worst"]
    assert "total" in run_main(capsys, *arguments)


def test_a_call_is_explained_from_its_first_message_to_its_last(tiny_path, capsys):
    arguments = ["explain", tiny_path, "--engine", "simpy", "--length", "5 s"]
    printed = json.loads(run_main(capsys, *arguments, "--of", "exchange", "--json"))
    assert sum(part["length_ns"] for part in printed["parts"]) == printed["delay_ns"]
    names = [part["name"] for part in printed["parts"]]
    assert names[0].partition(":")[0] in printed["title"]
    assert any(name.endswith("application: works") for name in names)
    packet = json.loads(run_main(capsys, *arguments, "--json"))
    assert sum(part["length_ns"] for part in packet["parts"]) == packet["delay_ns"] < printed["delay_ns"]


def outcome(loss_percent):
    flat = {"loss_percent": [loss_percent], "delay_mean_ms": [0.2], "delay_p95_ms": [0.3], "delay_p99_ms": [0.4]}
    return {"outcome": flat, "mean": {name: values[0] for name, values in flat.items()}, "drops": {}}


@pytest.fixture
def experiments(monkeypatch):
    """Experiments lose nothing under the model and 50 % under all others; returns what was run."""
    seen = []

    def fake(self, number, case):
        seen.append((case["experiment"], costs_of(case["model"]), self.budget["replications"]))
        return outcome(0.0 if case["model"] == "any vCPU" else 50.0)

    monkeypatch.setattr("vftsim.records.runner.Record.play", fake)
    monkeypatch.setattr(xen_nulls, "chance", partial(xen_nulls.chance, deals=20))
    return seen


RECORD = ["record", "xen-media", "--quick", "-j", "1", "-q"]


@pytest.mark.thorough
def test_record_prints_every_experiment_with_verdicts(experiments, capsys):
    out = run_main(capsys, *RECORD)
    assert all(row["experiment_key"] in out for row in measured_rows())
    assert len(measured_rows()) == len(experiments) == 49
    assert {(costs, n) for _, costs, n in experiments} == {((20.0, 18.0), 1)}, "the costs of the shipped model"
    assert "missed" in out
    assert "holds" in out
    assert "What separates" not in out


@pytest.mark.thorough
def test_record_shows_what_separates_a_wrong_model(experiments, tmp_path, capsys):
    report = tmp_path / "record.md"
    out = run_main(capsys, *RECORD, "--model", "one-vcpu", "--model", "round-robin", "-o", report)
    assert len(experiments) == 3 * 49
    assert {costs for _, costs, _ in experiments} == {(20.0, 18.0), (15.0, 2.0), (19.0, 18.0)}, "each its own fit"
    separating = out[out.index("What separates the models") :]
    assert "mixed.N" in separating, "stated: no loss"
    assert "holds (0 %)" in separating
    assert "all on one vCPU (back-end 15 us, relay 2 us)" in separating
    assert "## What separates the models" in report.read_text()
    assert "| statement | any vCPU | all on one vCPU | round robin |" in report.read_text()


@pytest.mark.thorough
def test_record_of_all_models_is_one_document(experiments, capsys):
    printed = json.loads(run_main(capsys, *RECORD, "--model", "all", "--json"))
    assert len(printed["models"]) == 6
    assert len(experiments) == 6 * 49
    right = printed["models"][printed["right"]]
    assert len(right["judged"]) == 90
    assert sum(sum(counts.values()) for counts in right["score"].values()) == 90
