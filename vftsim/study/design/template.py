"""A study file to begin with, made for a model: its load over three levels, its leading figures."""

from __future__ import annotations

from vftsim.composition.model import ModelSpec
from vftsim.errors import UsageError
from vftsim.study.figures.catalogue import catalogue
from vftsim.study.knob import Knob, knob_of
from vftsim.study.model import load_model

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

responses:                  # figures, named as for vftsim compare --figure
{responses}

replications: 5             # or instead: precision: {{percent: 5 %, most: 100}}
seed: 1
"""


def template(name: str) -> str:
    """Return a study file for a model, complete and ready to run.

    Raises
    ------
    UsageError
        No workload of the model declares what its load is.
    """
    model = load_model(name)
    knob = knob_of(model.spec, _load_key(model.spec))
    values = [_text(knob, share) for share in (0.5, 1.0, 1.5)]
    leading = list(dict.fromkeys(a.text for a in catalogue(model.spec) if a.entry.leads and "*" not in a.text))[:_FEW]
    return _TEXT.format(
        label=model.name,
        name=name,
        key=knob.key,
        values=", ".join(values),
        low=values[0],
        high=values[-1],
        responses="\n".join(f"  - {text}" for text in leading),
    )


def _load_key(spec: ModelSpec) -> str:
    for name, workload in spec.workloads.items():
        if workload.first_load_key:
            return f"workloads.{name}.{workload.first_load_key}"
    raise UsageError("--gen-config: no workload of this model declares its load; write the factors yourself")


def _text(knob: Knob, share: float) -> str:
    return str(knob.written(knob.value * share))
