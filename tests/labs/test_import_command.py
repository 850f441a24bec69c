"""``vftsim import`` makes a dataset, adds to it, and leaves it alone when something is wrong."""

import json
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from vftsim.calibrate.validation import measured_runs
from vftsim.cli.main import main
from vftsim.labs import imported
from vftsim.labs.dataset import read_dataset

FILES = Path(__file__).parent / "files"
STAT, RTT = str(FILES / "sipp_uac_stat.csv"), str(FILES / "sipp_uac_rtt.csv")
LAB = FILES / "linux_lab"


@pytest.fixture
def lab(tmp_path):
    return tmp_path / "lab"


def run(lab, *words, environment="bare", phase="step_1"):
    more = ["--phase", phase] if phase else []
    return main(["import", *words, "-e", environment, *more, "-o", str(lab)])


def snapshot(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_a_new_dataset_holds_what_the_files_say(lab, capsys):
    assert run(lab, RTT, STAT, str(FILES / "sadf_u.csv"), "--rename", "cpu/1=cpu", "--rename", "rtd1=SES2") == 0
    printed = capsys.readouterr().out
    assert "Imported into" in printed
    assert "total" not in printed, "nothing here has one"
    assert sorted(snapshot(lab)) == ["dataset.schema.json", "dataset.yaml", "delays.csv", "rates.csv", "shares.csv"]
    found = read_dataset(lab).observations("bare")
    assert found["step_1", "SES2/max"] == 4.0
    assert found["step_1", "cpu"] == pytest.approx(99.667, abs=1e-3)
    assert found["step_1", "failed"] == 0.0


def test_cpu_of_a_domain_is_taken_by_a_fit_with_the_number_of_its_samples(lab):
    """Six samples are a count, not percent of a CPU."""
    assert run(lab, str(FILES / "sadf_u.csv"), "--rename", "cpu/1=cpu.vm") == 0
    found = measured_runs(lab, [("bare", "step_1")])
    assert found["bare/step_1", "cpu.vm"] == pytest.approx(99.667, abs=1e-3)
    assert found["bare/step_1", "cpu.vm/n"] == 6.0


def test_runs_repeats_and_environments_are_added_and_words_of_the_user_stay(lab):
    assert run(lab, STAT, "--json") == 0
    text = (lab / "dataset.yaml").read_text().replace("meaning: a run of constant load", "meaning: my runs  # mine")
    (lab / "dataset.yaml").write_text(text)
    assert run(lab, STAT, "--repeat", "2") == 0
    assert (lab / "dataset.yaml").read_text() == text
    assert run(lab, STAT, phase="step_2") == 0
    assert run(lab, str(FILES / "cgroup_v2.txt"), environment="guest") == 0
    dataset = read_dataset(lab)
    assert dataset.spec.phases.meaning == "my runs"
    assert "# mine" in (lab / "dataset.yaml").read_text()
    assert len(dataset.repeats("bare")["step_1", "load"]) == 2
    assert ("step_2", "load") in dataset.repeats("bare")
    assert dataset.observations("guest")["step_1", "cpu"] == pytest.approx(198.9, abs=0.1)


def test_two_imports_at_once_lose_nothing(lab, monkeypatch):
    """The second one starts when the first has read the tables, and has three seconds before they are written."""
    assert run(lab, STAT) == 0
    write, others = imported.write, []

    def slowly(folder, files):
        words = ["import", STAT, "-e", "bare", "--phase", "step_3", "-o", str(lab)]
        others.append(subprocess.Popen([sys.executable, "-m", "vftsim", *words], stdout=subprocess.DEVNULL))
        with suppress(subprocess.TimeoutExpired):
            others[0].wait(3.0)
        write(folder, files)

    monkeypatch.setattr(imported, "write", slowly)
    assert run(lab, STAT, phase="step_2") == 0
    assert others[0].wait(60.0) == 0
    assert {each.phase for each in read_dataset(lab).measurements} == {"step_1", "step_2", "step_3"}


def test_the_same_run_again_needs_force(lab, capsys):
    assert run(lab, STAT) == 0
    before = snapshot(lab)
    assert run(lab, STAT) == 2
    assert (
        "already has load of 'bare', 'step_1', repeat '1' (from sipp-stat); --force replaces" in capsys.readouterr().err
    )
    assert snapshot(lab) == before
    assert run(lab, STAT, "--force") == 0
    assert snapshot(lab) == before


def test_the_window_of_the_linux_lab(lab, capsys):
    capsys.readouterr()
    stat = str(LAB / "A_base_r50_n1_uac_stat.csv")
    assert run(lab, stat, "--from", "4 s", "--until", "22 s", "--json") == 0
    figures = {each["metric"]: each for each in json.loads(capsys.readouterr().out)["figures"]}
    assert set(figures) == {"load", "completed", "retransmissions", "failed"}
    assert figures["load"]["statistics"]["mean"] == pytest.approx(50, abs=1)


def test_the_file_named_first_wins_and_the_rest_is_told(lab, capsys):
    assert run(lab, RTT, STAT) == 0
    assert "1 of the figures of sipp_uac_stat.csv (sipp-stat) taken from sipp-rtt, which was named first: rtd1" in (
        capsys.readouterr().err
    )


MISTAKES = {
    "no phase": ([STAT], {"phase": None}, "does not say which phase it measured; add --phase"),
    "no file": (["nowhere.csv"], {}, "nowhere.csv: cannot be read: No such file"),
    "kind": ([STAT, "--as", "sip"], {}, "no importer 'sip'"),
    "window": ([STAT, "--from", "5 s", "--until", "2 s"], {}, "--until must be after --from"),
    "time": ([STAT, "--from", "5 parsec"], {}, "--from"),
    "rename": ([STAT, "--rename", "load"], {}, "--rename 'load' must be OLD=NEW"),
    "rename what": ([STAT, "--rename", "cpu/1=cpu"], {}, "--rename: no file has a metric 'cpu/1'"),
    "two of a name": (
        [STAT, "--rename", "load=x", "--rename", "completed=x"],
        {},
        "--rename: 'load' and 'completed' would both be called 'x'",
    ),
    "rename to a percentile": ([RTT, "--rename", "rtd1=SES1/p50"], {}, "statistics (p95) come by themselves"),
    "rename to no name": ([RTT, "--rename", "rtd1=a b"], {}, "--rename 'rtd1=a b': a metric is called by letters"),
    "environment": ([STAT], {"environment": "a/b"}, "environment 'a/b': its runs are called environment/phase, so its"),
    "name": ([STAT], {"phase": "a\nb"}, "--phase needs a name"),
    "wrong kind": ([STAT, "--as", "sipp-rtt"], {}, "sipp_uac_stat.csv:1: has no column 'Date_ms'"),
}


@pytest.mark.parametrize(("words", "keys", "message"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_told_and_writes_nothing(lab, capsys, words, keys, message):
    assert run(lab, *words, **keys) == 2
    assert message in capsys.readouterr().err
    assert not lab.exists()


def test_a_phase_that_the_dataset_does_not_name_is_taken_back(lab, capsys):
    assert run(lab, STAT) == 0
    text = (lab / "dataset.yaml").read_text()
    (lab / "dataset.yaml").write_text(text.replace("  repeats:", "  names: [step_1]\n  repeats:"))
    before = snapshot(lab)
    assert run(lab, STAT, phase="step_9") == 2
    assert "phase: 'step_9' is no phase of dataset.yaml" in capsys.readouterr().err
    assert snapshot(lab) == before


def test_a_folder_that_cannot_be_written_or_holds_other_tables_is_refused(lab, capsys):
    assert run(lab / "below", STAT) == 2
    lab.mkdir()
    (lab / "rates.csv").write_text("environment,phase\nx,y\n")
    assert run(lab, STAT) == 2
    assert "rates.csv:1: has no column 'repeat'" in capsys.readouterr().err
    assert sorted(snapshot(lab)) == ["rates.csv"]
