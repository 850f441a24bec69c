"""``sweep``, ``trace``, ``explain`` and ``record`` from outside."""

import csv
import io
import json

import pytest

from vftsim.cli.main import main
from vftsim.media.record import measured_rows

FEW = ["--set", "workload.rtp.streams=20"]
SWEEP = ["sweep", "--grid", "streams=10,20", "-n", "2", "-j", "1", "--duration", "0.1", "-q"]


def run_main(capsys, *arguments):
    assert main([str(a) for a in arguments]) == 0
    return capsys.readouterr().out


@pytest.mark.usefixtures("inside")
def test_sweep_without_a_model_prints_a_table_and_keeps_its_files(tmp_path, capsys):
    out = run_main(capsys, *SWEEP, "--scheduler", "credit")
    assert {p.name for p in (tmp_path / "sweep-credit").iterdir()} == {
        "results.csv", "replications.csv", "sweep.png", "manifest.json", "sweep.sqlite",
    }  # fmt: skip
    for text in ("loss %", "p99 ms", "CPU dom0", "seed 1", "±", "measures 0.1 s"):
        assert text in out
    table = list(csv.DictReader(io.StringIO(run_main(capsys, *SWEEP, "--scheduler", "credit", "--csv"))))
    loss = [row for row in table if row["metric"] == "loss_percent"]
    assert [row["streams"] for row in loss] == ["10", "20"]
    assert all(row["interval"] == "upper bound" for row in loss)
    said = json.loads(run_main(capsys, *SWEEP, "--scheduler", "credit", "--json"))
    assert said["manifest"]["sweep"]["axes"]["streams"]["values"] == ["10", "20"]
    assert said["refused"] == {}


@pytest.mark.usefixtures("inside")
def test_sweep_of_a_sip_lab(tiny_path, capsys):
    arguments = ["sweep", tiny_path, "--grid", "server.touch_cost=4 ms,8 ms", "-n", "1", "-j", "1", "-q", "--csv"]
    table = csv.DictReader(io.StringIO(run_main(capsys, *arguments)))
    docs = [float(row["estimate"]) for row in table if row["metric"] == "doc_saps"]
    assert len(docs) == 2
    assert docs[0] > docs[1] > 0, "twice the work a message, less capacity"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["sweep", "--scheduler", "credits"], "no scheduler 'credits'"),
        (["sweep", "--duration", "1 us"], "at least 100 ms"),
        (["sweep", "--json", "--csv"], "choose one"),
        (["sweep", "lab-virtual", "--scheduler", "credit"], "no CPU scheduler"),
        (["trace", "lab-virtual", "-o", "x.json"], "media_host"),
        (["trace", "xen-media", "-o", "no/such/x.json"], "no such directory"),
        (["trace", "xen-media", "-o", "x.json", "--length", "0 s"], "above 0"),
        (["explain", "xen-media", "--packet", "slowest"], "worst"),
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
    times = [e["ts"] for e in events if e["ph"] == "X"]
    assert min(times) >= 50_000
    assert max(times) < 70_000
    assert main([str(a) for a in arguments]) == 2, "an existing file stays"


def test_explain_sums_to_the_delay(capsys):
    arguments = ["explain", "xen-media", *FEW, "--start", "50 ms", "--length", "40 ms"]
    delays = {}
    for which in ("best", "median", "worst"):
        said = json.loads(run_main(capsys, *arguments, "--packet", which, "--json"))
        assert sum(part["length_ns"] for part in said["parts"]) == said["delay_ns"]
        delays[which] = said["delay_ns"]
    assert delays["best"] < delays["median"] < delays["worst"]
    assert "total" in run_main(capsys, *arguments)


def test_record_prints_every_experiment_with_verdicts(monkeypatch, capsys):
    flat = {"loss_percent": [0.0], "delay_mean_ms": [0.2], "delay_p95_ms": [0.3], "delay_p99_ms": [0.4]}
    result = {"outcome": flat, "mean": {name: values[0] for name, values in flat.items()}, "drops": {}}
    seen = []

    def fake(key, costs, structure, budget):
        seen.append((costs, budget.replications))
        return result

    monkeypatch.setattr("vftsim.media.record.run_experiment", fake)
    out = run_main(capsys, "record", "xen-media", "--quick", "-j", "1", "-q")
    assert all(row["experiment_key"] in out for row in measured_rows())
    assert len(measured_rows()) == len(seen) == 49
    assert set(seen) == {((20.0, 18.0), 1)}, "the costs of the shipped model"
    assert "missed" in out
    assert "holds" in out
