"""A study file as an experiment, and one to begin with."""

from vftsim.errors import UsageError
from vftsim.stats import StoppingRule
from vftsim.study.designs.experiment import Experiment
from vftsim.study.designs.knob import knob_of, load_keys, written
from vftsim.study.designs.points import Points
from vftsim.study.designs.study_spec import Grid, StudySpec
from vftsim.study.figures.catalogue import catalogue
from vftsim.study.runs.model import load_model


def experiment_of(spec: StudySpec, points: Points) -> Experiment:
    """Return what a study asks of its points."""
    return Experiment(
        "study",
        points,
        f"{spec.name}: {' '.join(spec.description.split())}".rstrip(": "),
        spec.figures,
        "figures",
        spec.replications,
        spec.model_dump(mode="json"),
        spec.confidence / 100.0,
        is_grid=isinstance(spec.design, Grid),
        rule=_rule(spec),
    )


def _rule(spec: StudySpec) -> StoppingRule | None:
    if spec.precision is None:
        return None
    return StoppingRule(
        spec.precision.of or spec.figures,
        relative_half_width=spec.precision.percent / 100.0,
        confidence=spec.confidence / 100.0,
        budget=spec.precision.most,
    )


_FEW = 3
_TEXT = """\
# yaml-language-server: $schema=study.schema.json
# vftsim study FILE --dry-run lists the runs; vftsim study FILE makes them; the same command goes on.
name: my-study
description: What does {label} do under more and less load?

models: [{name}]            # files relative to this one, or shipped names; several are compared
# set: ["measure.duration=1 s"]    # holds at every point

factors:                    # what is varied: a list of values, or a range
  {key}: [{values}]
#  some-name: {{key: {key}, low: {low}, high: {high}, scale: log, levels: 5}}
#  scheduler: [credit, credit2]
#  protection: [none, lockstep]

design: {{kind: grid}}        # or paired, list, latin_hypercube and sobol (points: 64; for ranges)

figures:                    # named as for vftsim compare --figure
{figures}

replications: 5             # or instead: precision: {{percent: 5 %, most: 100}}
seed: 1
"""


def template(name: str) -> str:
    """Return a study file for a model, complete and ready to run; refuse a model that declares no load."""
    model = load_model(name)
    keys = load_keys(model.spec)
    if not keys:
        raise UsageError("--gen-config: no workload of this model declares its load; write the factors yourself")
    knob = knob_of(model.spec, keys[0])
    values = [str(written(knob.value * share, knob.unit, knob.is_whole)) for share in (0.5, 1.0, 1.5)]
    leading = list(dict.fromkeys(a.text for a in catalogue(model.spec) if a.leads and "*" not in a.text))[:_FEW]
    return _TEXT.format(
        label=model.name,
        name=name,
        key=knob.key,
        values=", ".join(values),
        low=values[0],
        high=values[-1],
        figures="\n".join(f"  - {text}" for text in leading),
    )
