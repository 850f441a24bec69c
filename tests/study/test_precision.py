"""Replications until a figure is known well enough."""

from statistics import fmean

import pytest

from tests.study.grids import run_study
from tests.study.tiny import TINY
from vftsim.cli.main import main
from vftsim.errors import UsageError
from vftsim.report.blocks import in_words
from vftsim.stats import mean_interval
from vftsim.study import execution
from vftsim.study.designs.run import precision_rule, watched_in
from vftsim.study.execution import Execution
from vftsim.study.runs.model import load_model

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def tiny_path(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "tiny.yaml"
    path.write_text(TINY.replace("most: 5", "most: 1"))
    return path


@pytest.fixture(scope="module")
def tiny(tiny_path):
    return load_model(tiny_path)


@pytest.fixture(scope="module")
def loose(tiny):
    """CPU of step 1 within 60 %: reached at the first look, ten replications, and confirmed by five more."""
    return run_study(tiny, 1, Execution(5, 1), rule=precision_rule(tiny, 60.0, [], 30))


def test_it_stops_when_the_figure_is_known(loose):
    found = loose.precision
    assert (found.reached, found.n, len(loose.records)) == (True, 15, 15)
    values = loose.to_pandas("steps").query("phase == 'step_1'")["cpu_percent"].tolist()
    assert found.estimates["workloads.calls.step_1.cpu"] == mean_interval(values)
    assert loose.manifest["replications_wanted"] == 15


def test_of_a_percentile_the_mean_of_the_runs_own_is_known_and_that_is_said(tiny):
    """The table shows the percentile of all runs together, which is another number."""
    name = "calls.step_1.setup.p95"
    result = run_study(tiny, 1, Execution(5, 1), rule=precision_rule(tiny, 90.0, [name, "calls.step_1.cpu"], 30))
    delays = result.tables["delays"].query("phase == 'step_1' and metric == 'PX_TRT-SES1'")
    mean_of_runs, found = fmean(delays["p95_ms"]), result.figures_found
    together = found.estimate(found.find(name)[0].text)
    known = result.precision.estimates[name]
    assert known.mean == pytest.approx(mean_of_runs)
    assert together.mean != pytest.approx(mean_of_runs, rel=1e-6)
    message, means = str(result).replace("\n  ", " "), "as the mean of the replications' own; of all together it is"
    assert f"{name} = {in_words(known, 'ms')} {means} {in_words(together, 'ms')}, calls.step_1.cpu = " in message
    assert message.count(means) == 1, "the CPU is a mean in the table, too"
    assert result.for_machines()["precision"]["estimates"][name]["mean"] == known.mean
    assert "precision" not in run_study(tiny, 1, Execution(5, 1)).for_machines()


def test_the_replications_are_those_of_a_plain_run(tiny, loose):
    plain = run_study(tiny, 2, Execution(5, 1))
    assert plain.to_pandas("steps").equals(loose.to_pandas("steps").query("replication < 2"))


def test_a_result_that_is_there_is_gone_on_with(tiny, tmp_path, monkeypatch):
    folder = tmp_path / "out"
    run_study(tiny, 14, Execution(5, 1), directory=folder)
    asked = []
    simulate = execution._simulate

    def counted(task, tell=None):
        asked.append(task.replication)
        return simulate(task)

    monkeypatch.setattr(execution, "_simulate", counted)
    rule = precision_rule(tiny, 60.0, [], 30)
    result = run_study(tiny, 1, Execution(5, 1), directory=folder, resume=True, rule=rule)
    assert asked == [14]
    assert result.precision.n == 15


def test_a_result_that_is_there_does_not_shrink(tiny, tmp_path):
    folder = tmp_path / "out"
    run_study(tiny, 17, Execution(5, 1), directory=folder)
    rule = precision_rule(tiny, 60.0, [], 30)
    result = run_study(tiny, 1, Execution(5, 1), directory=folder, resume=True, rule=rule)
    assert result.precision.n == 15
    assert [number for number, _ in result.records] == result.manifest["replications"] == [*range(17)]
    assert not [remark for remark in result.remarks if "asked for" in remark]


def test_a_figure_that_is_not_there_is_named(loose):
    number, record = loose.records[0]
    with pytest.raises(UsageError, match=r"--figure step_9\.cpu_percent: nothing to measure in replication 0"):
        watched_in(record, number, ["step_9.cpu_percent"])
    with pytest.raises(UsageError, match="--figure: 'cpu_percent' is ambiguous"):
        watched_in(record, number, ["cpu_percent"])


def test_the_command_says_whether_it_was_reached(tiny_path, capsys):
    assert main(["run", str(tiny_path), "--precision", "0.001", "-n", "15", "-j", "1", "-q"]) == 0
    assert "Precision not reached with 15 replications: workloads.calls.step_1.cpu = " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--precision", "0"], "above 0 and below 100"),
        (["--precision", "5", "-n", "12"], "a precision takes 15 replications at least"),
    ],
)
def test_mistakes_are_explained(tiny_path, capsys, arguments, message):
    assert main(["run", str(tiny_path), *arguments, "-q"]) == 2
    assert message in capsys.readouterr().err


def test_a_figure_is_looked_for_before_the_work(tiny):
    """Fifteen replications ran before the message."""
    with pytest.raises(UsageError, match="--figure: there is no figure 'nosuch'; there are"):
        precision_rule(tiny, 5.0, ["nosuch"], 200)


def test_figures_that_are_asked_for_stand_alone(tiny_path, capsys):
    """Of each phase under their owners, and of no other; what no run has is said."""
    asked = ("calls.setup.p95", "domains.sut.cpu", "step_9.cpu")
    assert main(["run", str(tiny_path), "-n", "2", "-q", *(f"--figure={name}" for name in asked)]) == 0
    shown = capsys.readouterr().out
    assert "calls: SES1 p95, ms" in shown
    assert "sut: CPU, %" in shown
    assert "IHS" not in shown
    assert "step_9.cpu: no run has it: a step that none reaches" in shown
    assert main(["run", str(tiny_path), "--figure", "nosuch"]) == 2
    assert "--figure: there is no figure 'nosuch'" in capsys.readouterr().err
