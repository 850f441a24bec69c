"""Where output goes: closed, full, ASCII alone, read-only. One message, an exit code, and what is done is kept."""

import contextlib
import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import vftsim
from vftsim.calibrate import run as calibrate_run
from vftsim.calibrate import validate
from vftsim.cli import files
from vftsim.cli.files import check_target, write_whole
from vftsim.cli.main import main
from vftsim.errors import StorageError, UsageError
from vftsim.report.screen import print_json

COMMAND = [sys.executable, "-m", "vftsim"]
FULL = Path("/dev/full")


WITHOUT_CHARTS = """
from vftsim.report import pictures
from vftsim.__main__ import begin

pictures.drawn = lambda charts: None
pictures.write_figure = lambda figure, path: path.write_bytes(b"a figure")
raise SystemExit(begin())
"""
"""The command; drawing would take half of its time."""


def run(tiny_path, *options, **streams):
    words = [sys.executable, "-c", WITHOUT_CHARTS, "run", str(tiny_path), "-n", "1", "-j", "1", "-q"]
    return subprocess.run([*words, *map(str, options)], check=False, stderr=subprocess.PIPE, text=True, **streams)


@pytest.mark.thorough
@pytest.mark.skipif(not FULL.exists(), reason="no full device here")
@pytest.mark.parametrize("more", [[], *(pytest.param([word], marks=pytest.mark.slow) for word in ("--json", "--csv"))])
def test_a_full_output_is_one_message_and_the_result_is_kept(tiny_path, tmp_path, more):
    with FULL.open("w") as full:
        done = run(tiny_path, *more, "-o", tmp_path / "out", stdout=full)
    assert done.returncode == 3
    assert done.stderr == "vftsim: cannot use standard output: No space left on device\n"
    assert (tmp_path / "out" / "summary.csv").exists()


@pytest.mark.thorough
@pytest.mark.parametrize("descriptor", [0, 2])
def test_a_closed_descriptor_disturbs_nothing(tiny_path, tmp_path, descriptor):
    """The database must not get the number of standard output, or tables would be printed into it."""
    done = run(tiny_path, "-o", tmp_path / "out", stdout=subprocess.DEVNULL, preexec_fn=lambda: os.close(descriptor))
    assert (done.returncode, done.stderr) == (0, "")
    assert main(["check", str(tmp_path / "out")]) == 0


@pytest.mark.thorough
def test_a_closed_standard_output_is_an_error_and_the_result_is_kept(tiny_path, tmp_path):
    done = run(tiny_path, "-o", tmp_path / "out", preexec_fn=lambda: os.close(1))
    assert (done.returncode, done.stderr) == (3, "vftsim: cannot use standard output: Bad file descriptor\n")
    assert main(["check", str(tmp_path / "out")]) == 0


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["models"]])
def test_what_is_asked_for_and_cannot_be_printed_is_an_error(words):
    done = subprocess.run(
        [*COMMAND, *words], check=False, stderr=subprocess.PIPE, text=True, preexec_fn=lambda: os.close(1)
    )
    assert (done.returncode, done.stderr) == (3, "vftsim: cannot use standard output: Bad file descriptor\n")


@pytest.mark.thorough
def test_a_warning_of_ours_is_said_as_all_else(tmp_path):
    """With its place in our source, which says nothing to who gave the command, where a library warns alone."""
    (tmp_path / "file").touch()
    code = (
        "import warnings; from vftsim.cli import output; from vftsim.kernel.cache_files import kernel_folder; "
        "output.prepare(); kernel_folder('name'); warnings.warn('of a library')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "VFTSIM_CACHE_DIR": str(tmp_path / "file")},
    )
    ours, *others = done.stderr.splitlines()
    assert ours.startswith(f"vftsim: the kernel cache is not used ('{tmp_path / 'file'}': File exists); every process")
    assert others == ["<string>:1: UserWarning: of a library"]


def test_an_ascii_terminal_gets_plain_characters_and_whole_json(tiny_path):
    plain = {**os.environ, "PYTHONIOENCODING": "ascii"}
    tables = run(tiny_path, env=plain, stdout=subprocess.PIPE)
    assert tables.returncode == 0
    assert "+- or [..]: 95 % interval" in tables.stdout
    assert "\n----------" in tables.stdout
    assert "??" not in tables.stdout


def test_json_that_a_stream_cannot_show_is_escaped():
    written = io.BytesIO()
    with contextlib.redirect_stdout(io.TextIOWrapper(written, "ascii", write_through=True)):
        print_json({"µ": "±1"})
        assert json.loads(written.getvalue()) == {"µ": "±1"}


@pytest.mark.parametrize("number", [28, 30])
def test_a_target_that_cannot_be_written_is_refused_before_the_work(tmp_path, monkeypatch, number, capsys):
    def fails(*_, **__):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(calibrate_run, "run_calibration", None)
    monkeypatch.setattr(validate, "run_validation", None)
    monkeypatch.setattr(files.Path, "open", fails)
    for words in (["calibrate", "sip-lab/virtual", "-o"], ["validate", "--report"], ["trace", "xen-media", "-o"]):
        assert main([*words, str(tmp_path / "x.json")]) == 2
        assert os.strerror(number) in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "darwin", reason="its file systems refuse such names")
def test_a_directory_whose_name_is_no_utf8_is_kept_and_read(tiny_path, tmp_path, monkeypatch):
    """A name of an older disk (Latin-1): kept, checked, gone on with, and made a page of."""
    pytest.importorskip("jinja2", reason="pages need the extra: pip install 'vftsim[report]'")
    out, page = str(tmp_path / os.fsdecode(b"gr\xf6\xdfe")), tmp_path / "page.html"
    monkeypatch.setattr(sys, "argv", ["vftsim", "run", "-o", out])
    vftsim.run(tiny_path, 1, directory=out)
    assert vftsim.check(out).whole == 1
    vftsim.run(tiny_path, 2, directory=out, resume=True)
    vftsim.report([out], page)
    assert json.loads((Path(out) / "manifest.json").read_text(encoding="utf-8"))["command_line"][-1] == out
    assert r"gr\udcf6\udcdfe" in page.read_text(encoding="utf-8")


@pytest.mark.skipif(sys.platform == "darwin", reason="its file systems refuse such names")
def test_a_model_whose_name_is_no_utf8_is_compared_and_written(tiny_path, tmp_path, capsys):
    odd = tiny_path.rename(tmp_path / os.fsdecode(b"mod\xffl.yaml"))
    short = ("--set", "workloads.calls.steps.most=1", "-n", "1", "-j", "1", "-q", "-o", str(tmp_path / "out"))
    assert main(["compare", str(odd), f"{odd}+domains.sut.weight=2", *short]) == 0
    with (tmp_path / "out" / "answer.csv").open(newline="", encoding="utf-8") as file:
        assert {Path(row["model"].partition("+")[0]).name for row in csv.DictReader(file)} == {r"mod\xffl.yaml"}
    capsys.readouterr()


def test_a_target_with_an_absurd_name_is_refused(tmp_path):
    for path in (tmp_path / ("x" * 300), tmp_path / ("x" * 300) / "y"):
        with pytest.raises(UsageError):
            check_target(path, force=True)


def test_a_page_may_lie_in_the_directory_of_its_result_and_be_no_directory(tiny_path, tmp_path, capsys):
    out, short = tmp_path / "out", ("--set", "workloads.calls.steps.most=1", "-n", "1", "-j", "1", "-q")
    named = ("run", str(tiny_path), *short, "-o", str(out), "--report")
    assert main([*named, f"{out}.html", "-o", f"{out}.html"]) == 2
    assert "is a directory; name a file" in capsys.readouterr().err
    assert main([*named, str(out / "page.html")]) == 0
    assert (out / "page.html").is_file()
    assert main([*named, str(out), "--force"]) == 2
    assert "must end in .html" in capsys.readouterr().err
    with pytest.raises(UsageError, match="is a directory; name a file"):
        check_target(out, force=True)


def test_the_same_command_goes_on_with_its_page_and_takes_no_other_file_for_it(tiny_path, tmp_path, capsys):
    page, short = tmp_path / "page.html", ("--set", "workloads.calls.steps.most=1", "-j", "1", "-q")
    compare = ["compare", str(tiny_path), f"{tiny_path}+domains.sut.weight=2", *short, "--report", str(page)]
    kept = [*compare, "-o", str(tmp_path / "out")]
    assert [main([*kept, "-n", n]) for n in ("1", "2")] == [0, 0]
    assert "2 of 2 ramps" in page.read_text(encoding="utf-8")
    assert main(["check", str(tmp_path / "out")]) == 0
    for command in ([*compare, "-n", "1"], [*compare, "-n", "1", "-o", str(tmp_path / "other")]):
        assert main(command) == 2, "a page of another result"
        assert "exists; --force replaces a file" in capsys.readouterr().err
    page.write_text(page.read_text(encoding="utf-8") + "<!-- mine -->", encoding="utf-8")
    assert main([*kept, "-n", "2"]) == 2, "somebody has edited it"


def test_a_disk_that_fills_meanwhile_leaves_nothing_half_written(tmp_path):
    def fills(path):
        path.write_text("half")
        raise OSError(28, "No space left on device")

    (tmp_path / "x.md").write_text("before")
    with pytest.raises(StorageError, match="No space left"):
        write_whole(tmp_path / "x.md", fills)
    assert [path.name for path in tmp_path.iterdir()] == ["x.md"]
    assert (tmp_path / "x.md").read_text() == "before"


@pytest.mark.thorough
@pytest.mark.parametrize("option", ["workloads.calls.sample_period=1 h", "workloads.calls.steps.duration=2500 ms"])
def test_steps_without_a_sample_have_results_all_the_same(tiny_path, tmp_path, capsys, option):
    words = ["run", str(tiny_path), "-n", "1", "-j", "1", "-q", "--set", option, "--tables", "all"]
    assert main([*words, "-o", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().err == ""
    rows = list(csv.DictReader(io.StringIO((tmp_path / "out" / "summary.csv").read_text())))
    assert {"step_1", "step_2"} <= {row["phase"] for row in rows}


def test_extending_a_name_that_is_too_long_is_refused(tmp_path, capsys):
    model = tmp_path / "m.yaml"
    for name in ("x" * 300 + ".yaml", "x" * 300 + "/y.yaml", "x" * 300):
        model.write_text(f"extends: {name}\n")
        assert main(["models", str(model)]) == 2
        assert "no file" in capsys.readouterr().err
