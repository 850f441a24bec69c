"""Results of every kind that has a directory, each made once by its command from a small model."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.study.tiny import tiny
from vftsim.calibrate.accuracy import Row, Verdict
from vftsim.calibrate.definition import CalibrationSpec
from vftsim.calibrate.fitted import from_record
from vftsim.calibrate.run import Calibrated
from vftsim.calibrate.validated import Validated
from vftsim.calibrate.validation import RunValidationSpec
from vftsim.cli.main import main
from vftsim.report import charts
from vftsim.spec.shipped import shipped_dir
from vftsim.study.execution import Execution
from vftsim.study.runs.model import load_model

SERVER = """\
format: 2
name: server
hosts: {host: {pcpus: 1, scheduler: {kind: native}, nics: {eth0: {}}}}
networks: {lan: {latency: 10 us}}
domains:
  server:
    interfaces: {eth0: {path: {kind: native, event_cost: 0, driver_receive_cost: 0, driver_transmit_cost: 0}}}
    applications: {app: {kind: service, demand: 1 ms}}
workloads:
  load: {kind: request_response, to: server, clients: 15, turn_around: 20 ms}
measure: {duration: 100 ms, warm_up: 100 ms}
"""
FITTED = '\nmeasured: {capacity: 20 /s}\ncalibrated: {by: "tiny, first step", loads: [10 /s, 15 /s]}\n'
STUDY = """\
name: clients
models: [{model: server.yaml}]
factors: {clients: {key: workloads.load.clients, values: [5, 15]}}
figures: [load.latency.p95]
replications: 2
"""
COST = "domains.sut.applications.proxy.touch_cost"
FIT = {
    "format": 1,
    "calibration": {
        "name": "tiny",
        "model": "tiny.yaml",
        "dataset": ".",
        "environment": "bare",
        "in_sample": ["step_1"],
        "parameters": [{"path": COST, "low": "1 ms", "high": "8 ms", "start": "4 ms", "meaning": "cost of a message"}],
    },
    "parameters": {COST: {"value": 4e6, "low_95": 3.6e6, "high_95": 4.4e6}},
    "correlations": {},
}
SMALL = tiny(
    subscribers="600",
    pre_registration="{duration: 1 s, rate: 20 /s, transient: 500 ms}",
    steps="{initial: 10 /s, increment: 10 /s, duration: 3 s, transient: 1 s, most: 3}",
)
COMMANDS = {
    "run": ["run", "tiny.yaml", "-n", "2"],
    "compare": ["compare", "tiny.yaml", "tiny.yaml+domains.sut.cpu_inflation=1.2", "-n", "2"],
    "failover": ["failover", "tiny.yaml", "--protection", "lockstep", "-n", "2", "--after", "4 s"],
    "availability": [
        "availability",
        "tiny.yaml",
        "--mtbf",
        "8760 h",
        "--protection",
        "none,lockstep",
        "-n",
        "2",
        "--after",
        "4 s",
    ],
    "ramp": ["capacity", "tiny.yaml", "-n", "3"],
    "levels": [
        "capacity",
        "server.yaml",
        "--probability",
        "0.5",
        "--resolution",
        "2",
        "--budget",
        "24",
        "--objective",
        "load.latency.p95 <= 5.5",
    ],
    "predict": ["predict", "tiny.yaml", "--fit", "fit.json", "--draws", "2"],
    "decision": ["compare", "server.yaml", "--protection", "none,checkpoint", "--no-prices", "-n", "2"],
    "sweep": ["sweep", "server.yaml", "--grid", "workloads.load.clients=5,15", "-n", "2"],
    "study": ["study", "study.yaml"],
    "sensitivity": [
        "sensitivity",
        "server.yaml",
        "--figure",
        "load.latency.p95",
        "--range",
        "workloads.load.clients=5..15",
        "--range",
        "hosts.host.cpu_speed=0.8..1.2",
        "--trajectories",
        "2",
        "--samples",
        "4",
    ],
    "optimize": [
        "optimize",
        "server.yaml",
        "--choose",
        "hosts.host.pcpus=1,2",
        "--choose",
        "workloads.load.clients=5,10",
        "--objective",
        "load.latency.p95 <= 20",
        "--looks",
        "4",
    ],
    "pilot": ["pilot", "tiny.yaml", "--set", "workloads.calls.steps.duration=60 s"],
}
"""How a result of each kind is made, but for where it goes."""


@dataclass(frozen=True)
class Made:
    """A result's directory, what its command printed, and the page that it wrote at once."""

    folder: Path
    page: str


@pytest.fixture(scope="session")
def place(tmp_path_factory):
    """Models and a fit, in the folder where all results go."""
    folder = tmp_path_factory.mktemp("results")
    (folder / "tiny.yaml").write_text(SMALL + FITTED)
    (folder / "server.yaml").write_text(SERVER)
    (folder / "fit.json").write_text(json.dumps(FIT))
    (folder / "study.yaml").write_text(STUDY)
    return folder


@pytest.fixture(scope="session")
def made(place):
    """Return a function that makes a result of a kind, once."""
    known: dict[str, Made] = {}

    def make(kind: str) -> Made:
        if kind not in known:
            with pytest.MonkeyPatch.context() as patch:
                patch.chdir(place)
                page = place / f"{kind}.html"
                assert main([*COMMANDS[kind], "-j", "1", "-q", "-o", kind, "--report", str(page)]) == 0
            known[kind] = Made(place / kind, page.read_text(encoding="utf-8"))
        return known[kind]

    return make


@pytest.fixture(scope="session")
def calibrated():
    """A shipped fit as its command returns it."""
    record = json.loads((shipped_dir("calibration") / "sip-lab/fitted/virtual.json").read_text())
    model = load_model("lab-virtual")
    record["manifest"] = Execution(1, 1).manifest([model], "calibrate", [0])
    definition = CalibrationSpec.model_validate(record["calibration"])
    return Calibrated(definition, model.spec, from_record(record), record)


@pytest.fixture(scope="session")
def validated():
    """Two predicted runs, one of which missed its target."""
    spec = RunValidationSpec(
        name="lab",
        model="lab-virtual",
        dataset="lab",
        environments={"bare": ()},
        predicted=("bare/a",),
        quantities=("cpu",),
    )
    rows = [
        Row("bare", f"step_{n}", "cpu", "in" if n < 3 else "out", 10.0 * n, 10.5 * n, 9.0 * n, 12.0 * n, 5, {})
        for n in range(1, 5)
    ]
    verdicts = [Verdict("CPU within 1 point", True, "0.5"), Verdict("delays within 10 %", False, "12 %")]
    return Validated(spec, rows, verdicts=verdicts)


@pytest.fixture(autouse=True, scope="session")
def _a_chart_is_drawn_once():
    """One of several pages is drawn for the first; that it is drawn alike again, a test of its own shows."""
    drawn, svg_of = {}, charts.svg_of

    def known(chart, prefix):
        key = repr(chart), prefix
        if key not in drawn:
            drawn[key] = svg_of(chart, prefix)
        return drawn[key]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(charts, "svg_of", known)
        yield
