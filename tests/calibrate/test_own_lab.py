"""A user's calibration: names of environments are free, paths are relative to the file that names them."""

import csv
import shutil
import subprocess

import pytest

from vftsim.calibrate.definition import CalibrationSpec, read_definition
from vftsim.calibrate.figures import measured
from vftsim.cli.main import main
from vftsim.errors import ModelFileError
from vftsim.labs.named_files import dataset_path, model_file
from vftsim.spec import shipped_dir

DATA = shipped_dir("calibration") / "sip-lab" / "data"

CALIBRATION = """\
name: own
model: {model}
dataset: {dataset}
environment: lab_42
parameters:
  - path: domains.sut.applications.proxy.touch_cost
    low: 0.3 ms
    high: 1.2 ms
    start: 0.6 ms
    meaning: cost of a message
in_sample: [step_1]
"""


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """A lab of one's own in a folder that is not the working directory."""
    folder, elsewhere = tmp_path / "own", tmp_path / "elsewhere"
    (folder / "data").mkdir(parents=True)
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    return folder


def write(folder, model="lab-virtual", dataset="data"):
    (folder / "own.yaml").write_text(CALIBRATION.format(model=model, dataset=dataset))
    return read_definition(str(folder / "own.yaml"), CalibrationSpec)[1]


def renamed(path, target):
    """Copy a table, its environment called ``lab_42``."""
    with path.open(newline="") as source, target.open("w", newline="") as copy:
        for row in csv.reader(source):
            csv.writer(copy).writerow(["lab_42" if cell == "virtual" else cell for cell in row])


def test_delays_are_read_whatever_the_environment_is_called(lab):
    for path in DATA.glob("*.csv"):
        renamed(path, lab / "data" / path.name)
    text = (DATA / "dataset.yaml").read_text().replace("  virtual: {desc", "  lab_42: {desc")
    (lab / "data" / "dataset.yaml").write_text(text)
    assert measured(lab / "data", "lab_42") == measured(DATA, "virtual")


def test_paths_are_relative_to_the_file_that_names_them(lab):
    (lab / "mine.yaml").write_text("extends: lab-virtual\nname: mine\n")
    (lab.parent / "elsewhere" / "mine.yaml").write_text("nonsense")
    (lab.parent / "elsewhere" / "data").mkdir()
    for model in ("mine.yaml", "mine"):
        tree = write(lab, model=model)
        assert model_file(tree.at("model"), "model") == lab / "mine.yaml"
        assert dataset_path(tree.at("dataset")) == lab / "data"


def test_shipped_names_are_the_fallback(lab):
    tree = write(lab, model="lab-native", dataset="sip-lab/data")
    assert model_file(tree.at("model"), "model") == shipped_dir("models") / "lab-native.yaml"
    assert dataset_path(tree.at("dataset")) == DATA


def test_a_file_of_the_working_directory_does_not_stand_in_for_a_shipped_model(lab):
    (lab.parent / "elsewhere" / "lab-virtual.yaml").write_text("nonsense")
    tree = write(lab, model="lab-virtual.yaml")
    assert model_file(tree.at("model"), "model") == shipped_dir("models") / "lab-virtual.yaml"


def both(tree):
    return model_file(tree.at("model"), "model"), dataset_path(tree.at("dataset"))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"model": "lab-virtul"},
            r"own\.yaml:2: model: there is no model 'lab-virtul' beside own\.yaml .* did you mean",
        ),
        ({"dataset": "date"}, r"own\.yaml:3: dataset: there is no dataset 'date' beside .* shipped: .*sip-lab/data"),
        ({"model": "xen-media/mixed"}, r"own\.yaml:2: model: "),
    ],
)
def test_names_that_lead_nowhere_are_told_with_file_line_and_key(lab, changed, message):
    tree = write(lab, **changed)
    with pytest.raises(ModelFileError, match=message):
        both(tree)


def test_the_command_tells_a_mistake_in_the_data(lab, capsys):
    write(lab)
    (lab / "data" / "dataset.yaml").write_text(
        "name: own\nenvironments: {lab_42: {}}\nphases: {meaning: a step}\ntables:\n  steps:\n    file: steps.csv\n"
        '    keys: {environment: env, phase: phase}\n    columns: {cpu: {metric: cpu, unit: "%"}}\n'
    )
    (lab / "data" / "steps.csv").write_text("env,phase,cpu\nlab_42,step_1,\n")
    assert main(["calibrate", str(lab / "own.yaml"), "-q"]) == 2
    assert "steps.csv:2: cpu: the cell is empty" in capsys.readouterr().err
    (lab / "data" / "steps.csv").write_text("env,phase,cpu\nlab_42,step_1,40\n")
    text = (lab / "data" / "dataset.yaml").read_text()
    (lab / "data" / "dataset.yaml").write_text(text.replace('unit: "%"', "unit: ms"))
    assert main(["calibrate", str(lab / "own.yaml"), "-q"]) == 2
    assert "steps.csv:1: cpu: cpu is in % in the model, not in ms" in capsys.readouterr().err


def test_half_a_mix_is_refused(lab):
    (lab / "data" / "dataset.yaml").write_text(
        "name: own\nenvironments: {lab_42: {}}\nphases: {meaning: a step}\ntables:\n  steps:\n    file: steps.csv\n"
        "    keys: {environment: env, phase: phase}\n    columns:\n      calls: {metric: mix/ims_uac, unit: ratio}\n"
    )
    (lab / "data" / "steps.csv").write_text("env,phase,calls\nlab_42,step_1,0.5\n")
    with pytest.raises(ModelFileError, match="add up to 50 %, not to 100"):
        measured(lab / "data", "lab_42")
    (lab / "data" / "steps.csv").write_text("env,phase,calls\nlab_42,step_1,1.0\n")
    assert measured(lab / "data", "lab_42") == {("step_1", "touches"): 13.0}


def test_the_script_that_plays_says_which_program_is_missing(tmp_path):
    """Nothing is begun or written without it."""
    script = shipped_dir("calibration") / "own-lab" / "play.sh"
    played = subprocess.run(
        [shutil.which("sh") or "sh", str(script), "100"],
        cwd=tmp_path,
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (played.returncode, played.stdout, [*tmp_path.iterdir()]) == (1, "", [])
    assert played.stderr.startswith("play.sh: there is no ")
    assert len(played.stderr.splitlines()) == 1
