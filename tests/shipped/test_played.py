"""Everything that ships is played once, in a short form: models, calibrations, validations, records.

What is held is that each still runs to its end, serves what it is given, and says figures.  The figures are too few to
judge; the whole of each is played by ``.ci/nightly``.
"""

import json
import math

import pytest

from vftsim.calibrate import fit, validate
from vftsim.calibrate.figures import observe
from vftsim.calibrate.run import run_calibration
from vftsim.calibrate.validation import Play, RunValidationSpec, played
from vftsim.cli.main import main
from vftsim.composition.keys import read, with_values
from vftsim.records import runner
from vftsim.spec import list_shipped, shipped_dir
from vftsim.study.execution import Execution
from vftsim.study.runs.model import load_model
from vftsim.study.runs.progress import make_progress

pytestmark = pytest.mark.thorough

MODELS = list_shipped("models")
SECOND = 10**9
SHORT = {
    "workloads.calls.pre_registration.duration": 4 * SECOND,
    "workloads.calls.pre_registration.transient": SECOND,
    "workloads.calls.stir.duration": SECOND,
    "workloads.calls.steps.duration": SECOND,
    "workloads.calls.steps.transient": SECOND // 4,
    "workloads.calls.sample_period": SECOND // 4,
}
"""A benchmark of seconds; what is shorter stays, and what is left out."""


def shortened(spec):
    """Return a model whose benchmark takes seconds."""
    if spec.ramp is None:
        return spec
    return with_values(spec, {key: min(read(spec, key), most) for key, most in SHORT.items()})


def definitions(kind):
    """Names of the shipped files of a kind, by the schema that each names."""
    room = shipped_dir("calibration")
    texts = {name: (room / f"{name}.yaml").read_text(encoding="utf-8") for name in list_shipped("calibration")}
    return [name for name, text in texts.items() if f"{kind}.schema.json" in text]


def values_of(data):
    """Yield every value of nested lists and mappings."""
    members = data.values() if isinstance(data, dict) else data if isinstance(data, list) else None
    if members is None:
        yield data
    else:
        for member in members:
            yield from values_of(member)


def quietly(what):
    return make_progress(what, True)


def test_there_are_some_of_each():
    assert len(MODELS) >= 29
    assert len(definitions("calibration")) >= 9
    assert len(definitions("validation")) >= 3


@pytest.mark.parametrize("name", MODELS)
def test_a_model_runs(name, capsys):
    spec = load_model(name).spec
    few = [f"--set={key}={most} ns" for key, most in SHORT.items()] if spec.ramp is not None else ["--quick"]
    if spec.ramp is not None:
        few += ["--set=workloads.calls.steps.most=1"]
    assert main(["run", name, "-n", "1", "-j", "1", "-q", "--json", *few]) == 0
    printed = json.loads(capsys.readouterr().out)
    numbers = [value for value in values_of(printed["summary"]) if isinstance(value, float)]
    assert all(math.isfinite(value) for value in numbers)
    assert any(value > 0.0 for value in numbers)


class Played(Exception):  # noqa: N818
    """The one evaluation that is wanted was made."""


@pytest.mark.parametrize("name", definitions("calibration"))
def test_one_evaluation_of_a_calibration(name, monkeypatch):
    """The point where the search begins: every phase in sample is played, and most observations have a residual."""

    def once(search, start, _):
        problem = search.evaluate.problem
        seen = problem.observed(search.low + start * search.span, problem.definition.seed, 0)
        raise Played(problem.definition, seen, problem.keys)

    monkeypatch.setattr(fit.Search, "run", once)
    monkeypatch.setattr(fit, "observe", lambda spec, *rest: observe(shortened(spec), *rest))
    with quietly(name) as progress, pytest.raises(Played) as end:
        run_calibration(name, Execution(jobs=1, progress=progress))
    definition, seen, keys = end.value.args
    assert {phase for phase, _ in seen} >= {*definition.in_sample}
    assert sum(key in seen for key in keys) > len(keys) / 2
    assert all(math.isfinite(value) for value in seen.values())


@pytest.mark.parametrize("name", definitions("validation"))
def test_a_validation_plays_all_its_runs(name, monkeypatch):
    """One replication of each: every environment gets rows, every target a verdict."""
    monkeypatch.setattr(validate, "played", once)
    with quietly(name) as progress:
        found = validate.run_validation(name, [], 1, Execution(jobs=1, progress=progress))
    if isinstance(found.spec, RunValidationSpec):
        assert {row.run for row in found.rows} == {*found.spec.fitted, *found.spec.predicted}
        assert len(found.verdicts) == len(found.spec.targets)
    else:
        assert {row.environment for row in found.rows} == {*found.spec.environments}
        assert {verdict.environment for verdict in found.verdicts} == {*found.spec.environments}


def once(plays, *rest):
    """Play each model once, for seconds: seven steps of a ramp at most."""
    most = "workloads.calls.steps.most"
    few = {name: with_values(shortened(p.model), {most: min(read(p.model, most), 7)}) for name, p in plays.items()}
    return played({name: Play(model, 1) for name, model in few.items()}, *rest)


def numbers_in(found):
    """Yield every number of nested figures."""
    for each in found.values() if isinstance(found, dict) else found:
        if isinstance(each, dict | list):
            yield from numbers_in(each)
        elif each is not None:
            yield each


@pytest.mark.parametrize("name", runner.shipped_records())
def test_a_record_plays_one_run_of_each_kind(name):
    record = runner.read(name).quick()
    first = {runs.name: (runs, case) for runs, case in reversed(record.tasks().values())}
    for kind, task in first.items():
        found = list(numbers_in(record.play(*task)))
        assert all(map(math.isfinite, found)), kind
        assert any(value > 0.0 for value in found), kind


@pytest.mark.parametrize("name", runner.read("xen-media").spec.axes["model"])
def test_the_media_record_plays_an_experiment_under_each_model(name):
    record = runner.read("xen-media").with_models(["all"]).with_budget({"replications": 1, "seconds": 0.1})
    found = record.play(*record.tasks()[f"turnkey2.D, {name}"])
    assert found["mean"]["delay_mean_ms"] > 0.0
