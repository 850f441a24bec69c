"""A user's mistake: exit code 2, one message on standard error, nothing on standard output, nothing written."""

import io
import subprocess
import sys

import pytest
from mutations import Mutation, mutations, to_yaml
from ruamel.yaml import YAML
from tiny import TINY

from vftsim.cli.main import console, main
from vftsim.composition import one_kernel

GOOD = YAML(typ="safe", pure=True).load(io.StringIO(TINY))
MUTATIONS = list(mutations(GOOD))


def refusal(capsys, *arguments):
    """Run a command line that must be refused; return its message."""
    code = main([str(a) for a in arguments])
    out, err = capsys.readouterr()
    assert code == 2
    assert out == ""
    assert err.startswith("vftsim: ")
    assert err.count("\n") == 1, "one message, on one line"
    assert "Traceback" not in err
    return err


def test_the_good_document_is_good(tmp_path, capsys):
    path = Mutation("good", to_yaml(GOOD)).write(tmp_path)
    assert main(["models", str(path)]) == 0
    assert "name: tiny" in capsys.readouterr().out


def test_there_are_many():
    assert len(MUTATIONS) >= 200


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda m: m.name)
def test_a_malformed_file_is_refused(mutation, tmp_path, capsys):
    path = mutation.write(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    message = refusal(capsys, "run", path, "-o", tmp_path / "out", "-q")
    assert str(tmp_path) in message
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["bogus"], "No such command 'bogus'. 'vftsim --help' lists them"),
        (["run"], "Missing argument 'MODEL'"),
        (["run", "nowhere.yaml"], "no file 'nowhere.yaml'"),
        (["run", "TINY", "--bogus"], "No such option"),
        (["run", "TINY", "--csv", "a.csv"], "--csv prints, and takes no file: --csv > a.csv"),
        (["compare", "TINY", "TINY", "--json", "a.json"], "--json prints, and takes no file: --json > a.json"),
        (["export", "result", "--csv", "nowhere/a.csv"], "there is no such directory\n"),
        (["run", "TINY", "--set", "a"], "--set"),
        (["run", "TINY", "--set", "workloads.calls.steps.most=0"], "'most' must be >= 1"),
        (["run", "TINY", "--set", "domains.sut.applications.proxy.touch_cost=4"], "has no unit"),
        (["run", "TINY", "--set", "workloads.calls.subscribers=1000000000000"], "subscribers"),
        (["run", "TINY", "-n", "0"], "replications"),
        (["run", "TINY", "-n", "x"], "--replications"),
        (["run", "TINY", "--seed", "-1"], "seed"),
        (["run", "TINY", "--jobs", "0"], "jobs"),
        (["run", "TINY", "--scale", "0"], "scale"),
        (["run", "TINY", "--scale", "nan"], "scale"),
        (["run", "TINY", "--scale", "0.5", "--quick"], "choose one"),
        (["run", "TINY", "--json", "--csv"], "choose one"),
        (["run", "TINY", "--resume"], "-o DIR"),
        (["run", "TINY", "-o", "out", "--resume", "--force"], "choose one"),
        (["run", "TINY", "-o", "/proc/nowhere/out"], "cannot write"),
        (["run", "TINY", "-o", "."], "is no result of vftsim; choose another name"),
        (["run", "TINY", "--set", "faults=[{kind: pause, at: stepp 1, duration: 1 s}]"], "'step 2 + 300 s'"),
        (["calibrate", "sip-lab/ft", "--jobs", "0"], "jobs"),
        (["calibrate", "sip-lab/ft", "-o", "nowhere/x.json"], "no such directory"),
        (["validate", "--jobs", "-3"], "jobs"),
        (["validate", "--report", "."], "is a directory"),
        (["validate", "--report", "nowhere/x.md"], "no such directory"),
        (["validate", "--report", "x.pdf"], "'x.pdf' must end in .html (a page) or .md (every row)"),
        (["trace", "xen-media", "-o", "x.png", "--gantt", "x.png"], "must end in .json"),
        (["trace", "xen-media", "-o", "x.json", "--start", "100 s"], "the run ends after 2.5 s"),
        (["run", "TINY", "--tables", "some"], "--tables"),
        (["capacity", "TINY", "--after-stop", "2"], "has no unit"),
        (["capacity", "TINY", "--after-stop", "0 s"], "takes time"),
        (["capacity", "TINY", "--after-stop", "-2s"], "must not be negative"),
        (["capacity", "TINY", "--ihs-limit", "20"], "cannot be judged"),
        (["capacity", "TINY", "--ihs-limit", "many"], "--ihs-limit"),
        (["capacity", "TINY", "--method", "guess"], "--method"),
        (["capacity", "TINY", "--method", "search", "--probability", "2"], "probability"),
        (["capacity", "TINY", "--loss-limit", "1"], "its limit is --ihs-limit"),
        (["capacity", "TINY", "--after-stop", "2s", "--budget", "53"], "give 153 or more (54 at the very least)"),
        (["capacity", "TINY", "--method", "search", "--quick", "--probability", "0.99"], "need 535 without a failure"),
        (["capacity", "TINY", "--budget", "5"], "goes with --method search"),
        (["capacity", "TINY", "--method", "search", "-n", "5"], "--budget bounds them"),
        (["capacity", "TINY", "--window", "5 s"], "goes with --after-stop"),
        (["capacity", "TINY", "-n", "0"], "replications"),
        (["capacity", "xen-media", "--method", "ramp"], "found by search"),
        (["capacity", "xen-media", "--ihs-limit", "5"], "its limit is --loss-limit"),
        (["capacity", "xen-media", "--after-stop", "2s"], "leaves no overload behind"),
        (["capacity", "xen-media", "-n", "5"], "--budget bounds them"),
        (["capacity", "xen-media", "--loss-limit", "100"], "below 100 %"),
        (["capacity", "xen-media", "--resolution", "2.5"], "whole number of streams"),
        (["capacity", "xen-media", "--budget", "0"], "above 0"),
        (["compare", "TINY"], "at least two models"),
        (["models", "--set", "a=b"], "name one"),
        (["models", "nowhere"], "no file 'nowhere'"),
        (["schema", "datasets"], "did you mean 'dataset'"),
        (["schema", "sip_lab"], "without a name that of model files"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
@pytest.mark.usefixtures("inside")
def test_a_wrong_command_line_is_refused(arguments, part, tiny_path, tmp_path, capsys):
    message = refusal(capsys, *(tiny_path if a == "TINY" else a for a in arguments))
    assert part in message
    assert [p.name for p in tmp_path.iterdir()] == ["tiny.yaml"]


def test_an_existing_file_in_the_way_is_left_alone(tiny_path, tmp_path, capsys):
    (tmp_path / "out").write_text("mine")
    refusal(capsys, "run", tiny_path, "-o", tmp_path / "out", "--force")
    assert (tmp_path / "out").read_text() == "mine"


def test_absurdly_long_words_are_shortened(tiny_path, capsys):
    message = refusal(capsys, "run", tiny_path, "--set", f"{'x' * 5000}=1")
    assert "xxx...xxx" in message
    assert len(message) < 1200


@pytest.mark.parametrize(
    ("words", "end"),
    [
        (["-n", "x"], ", got 'x'"),
        (["--set", "format=3"], "'format' must be one of 2, got 3"),
        (["--set", "extends=lab-virtual"], "and names the one that it changes; here name that one itself"),
        (["--engine", "foo"], ": 'foo' is not one of 'auto', 'compiled', 'simpy'."),
    ],
)
def test_a_value_of_an_option_is_refused_with_what_was_given(words, end, tiny_path, capsys):
    assert refusal(capsys, "run", tiny_path, *words).rstrip().endswith(end)


def test_what_points_of_a_sweep_ask_in_vain_is_said_when_it_runs_and_beside_no_refusal(tmp_path, capsys):
    """Of two points, once: the affinity of the model lets a single vCPU run."""
    short = ["workloads.udp=null", "workloads.web=null", "workloads.tcp.duration=5 ms", "domains.server.affinity=[0]"]
    sweep = ["sweep", "net-kvm", *(f"--set={each}" for each in short), "--grid", "domains.server.vcpus=1,2"]
    sweep += ["-q", "-j", "1", "-n", "1", "-o", str(tmp_path / "found")]
    assert main([*sweep, "--figure", "capasity"]) == 2
    assert capsys.readouterr().err.startswith("vftsim: --figure: there is no figure 'capasity'")
    assert main(sweep) == 0
    assert capsys.readouterr().err.count("of 2 vCPUs no more than 1 can run at a time") == 1


@pytest.mark.parametrize(
    "settings",
    [
        ["domains.sut.vcpus=4", "domains.sut.affinity=null", "hosts.host.pcpus=1"],
        [f"domains.sut.applications.proxy.{'x' * 300}.kind=x"],
    ],
    ids=["a remark before the refusal", "a long key, and the keys that there are"],
)
def test_a_refusal_is_one_message_that_can_be_read(settings, capsys):
    changes = [word for setting in settings for word in ("--set", setting)]
    one_kernel.make_ready()  # whoever needs the engine first says that it is built
    capsys.readouterr()
    assert main(["run", "lab-native", "-n", "1", "--quick", "-q", "-j", "1", *changes]) == 2
    printed = capsys.readouterr().err
    assert printed.count("\n") == 1
    assert len(printed) < 1000


@pytest.mark.parametrize(
    ("words", "where"),
    [
        (["run", "two-tier", "--set", "workloads.pages.rate=400"], "--set"),
        (["sweep", "two-tier", "--grid", "workloads.pages.rate=400,500"], "--grid"),
        (["sweep", "two-tier", "--grid=workloads.pages.rate=400,500"], "--grid"),
        (["sweep", "two-tier", "--grid", "workloads.pages.rate=400"], "--grid"),
        (["compare", "two-tier", "two-tier+workloads.pages.rate=400"], "two-tier+workloads.pages.rate=400"),
    ],
)
def test_an_assignment_is_refused_under_what_it_was_typed_in(words, where, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main([*words, "-n", "1", "--quick"]) == 2
    assert capsys.readouterr().err.startswith(f"vftsim: {where}: workloads.pages.rate=400: 'rate' 400 has no unit")


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ("workloads.pages.rate=4e+2+domains.server.weight=1", "workloads.pages.rate=4e+2: 'rate' 400.0 has no unit"),
        ("faults=[{kind: pause, at: step 2 + 6 s}]", "required key 'duration' is missing"),
        ("rate", "rate: is not of the form path.to.key=value"),
    ],
)
def test_a_plus_sign_of_a_value_ends_no_change_of_a_variant(changes, text, capsys):
    assert main(["compare", "two-tier", f"two-tier+{changes}", "-n", "1", "--quick"]) == 2
    assert text in capsys.readouterr().err


def test_want_of_memory_that_a_library_renames_is_said(tiny_path, monkeypatch, capsys):
    def starved(*_, **__):
        try:
            raise MemoryError
        except MemoryError as error:
            raise ValueError("Error calling function") from error

    monkeypatch.setattr("vftsim.study.execution.Replications.run", starved)
    assert main(["run", str(tiny_path), "-q"]) == 3
    assert "not enough memory" in capsys.readouterr().err


def test_want_of_memory_before_a_command_is_read_is_said(monkeypatch, capsys):
    def starved():
        raise MemoryError

    monkeypatch.setattr("vftsim.cli.output.prepare", starved)
    assert console() == 3
    assert capsys.readouterr().err.count("\n") == 1


def test_a_bug_is_not_dressed_up_as_a_mistake(tiny_path, monkeypatch):
    def bug(*_, **__):
        raise ZeroDivisionError

    monkeypatch.setattr("vftsim.study.execution.Replications.run", bug)
    with pytest.raises(ZeroDivisionError):
        main(["run", str(tiny_path), "-q"])


@pytest.mark.parametrize(
    "words", [["warmup"], ["run", "xen-media-native", "--quick", "-n", "1", "--engine", "compiled"]]
)
def test_the_compiled_engine_without_llvm_is_a_mistake(words):
    begin = "import sys; sys.modules['llvmlite'] = None; from vftsim.__main__ import begin; sys.exit(begin())"
    done = subprocess.run([sys.executable, "-c", begin, *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("vftsim: the compiled engine cannot be used (")
    assert done.stderr.endswith("); 'simpy' gives the same results\n")
