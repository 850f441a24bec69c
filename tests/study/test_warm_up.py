"""Is the transient long enough?  On the tiny lab, and on series whose start-up is known."""

import numpy as np
import pytest

from vftsim.cli.main import main
from vftsim.errors import UsageError
from vftsim.stats import warm_up
from vftsim.study.designs.warm_up import PILOTS, WarmUpStudy, pilots_take, warm_up_study
from vftsim.study.execution import Execution
from vftsim.study.runs.model import load_model

S = 1_000_000_000
LONG = ["workloads.calls.steps.duration=60 s"]


def study_of(tiny, cut_s, transient_s):
    """Twenty series that start with ``cut_s`` seconds at half of what follows."""
    rng = np.random.default_rng(1)
    level = np.where(np.arange(400) < cut_s, 10.0, 20.0)
    found = warm_up([(level + rng.normal(0.0, 1.0, 400)).tolist() for _ in range(20)])
    return WarmUpStudy(tiny, 10.0, S, transient_s * S, {"cpu_percent": found})


def test_twice_the_start_up_is_held_against_the_transient(tiny):
    assert study_of(tiny, 20, 60).needed_ns == 40 * S
    assert study_of(tiny, 20, 60).is_enough
    assert not study_of(tiny, 40, 60).is_enough


def test_what_does_not_settle_is_not_enough(tiny):
    study = WarmUpStudy(tiny, 10.0, S, 300 * S, {"cpu_percent": "the warm-up takes 40% of the run"})
    assert (study.needed_ns, study.is_enough) == (None, False)


@pytest.mark.thorough
def test_the_pilots_see_the_start_of_the_step(tiny_path):
    """60 s at 5 attempts a second, sampled each second from the first: 60 samples a series."""
    study = warm_up_study(load_model(tiny_path, LONG), Execution(1, 1), 5.0)
    assert {found.length for found in study.by_figure.values()} == {60}
    assert {found.pilots for found in study.by_figure.values()} == {PILOTS}
    assert study.by_figure["cpu_percent"].averaged[-1] == pytest.approx(5 * 8.5 * 0.4, rel=0.5)


def test_other_systems_have_no_series():
    with pytest.raises(UsageError, match="no workload that plays steps"):
        warm_up_study(load_model("xen-media"), Execution(1, 1))


@pytest.mark.thorough
def test_the_command_says_what_a_short_step_lacks(tiny_path, capsys):
    assert main(["pilot", str(tiny_path), "-j", "1"]) == 2
    assert "a step of 6 s has fewer; let it last 50 s or longer" in capsys.readouterr().err


@pytest.mark.thorough
def test_a_first_look_has_as_many_pilots_of_shorter_steps(tiny_path, capsys):
    """The rule needs twenty; a quarter of them was refused, whatever the model."""
    assert main(["pilot", str(tiny_path), "--set", LONG[0], "--quick", "-j", "1", "-q"]) == 0
    assert "20 pilots averaged" in capsys.readouterr().out


def test_a_model_without_steps_is_called_what_the_user_called_it(tmp_path):
    path = tmp_path / "unnamed.yaml"
    path.write_text("domains: {vm: {applications: {job: {kind: cpu_bound}}}}\n")
    with pytest.raises(UsageError, match=f"'{path}' has no workload that plays steps"):
        pilots_take(load_model(path), None)
