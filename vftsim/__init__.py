"""vftsim: discrete-event simulation of virtualized, fault-tolerant systems, with error bars.

The Python interface mirrors the command line: a function for each command, of the same name::

    import vftsim

    model = vftsim.load("lab-virtual", ["workloads.calls.steps.initial=80 /s"])
    vftsim.run(model, replications=10).to_pandas()
    print(vftsim.run(model, quick=True))
    vftsim.capacity("lab-virtual", quick=True).to_pandas()
    vftsim.compare(["lab-native", "lab-virtual"], quick=True).to_pandas()
    vftsim.sweep("xen-media", ["weight=256,1024"], quick=True).results
    vftsim.failover("lab-virtual", protection="lockstep", quick=True).report("failover.html")
    vftsim.open("result").plot()

All of a study's parameters are described where its function is; those that all have are: ``seed``; ``jobs``,
worker processes (None: all cores), without influence on results; ``quick``, a shorter measured time for a first look;
``overrides``, changes of the model as after ``--set``; ``directory``, where finished runs and the answer are kept,
from which the same call goes on; ``force``, start over there; ``progress``, say on standard error how far it is, in a
notebook too.

``print`` of a result shows the tables of the command, ``report`` makes a page of it, ``plot`` draws one of its charts.

Importing the package imports nothing else; each function imports what it needs when it is called.
"""

from vftsim._version import __version__
from vftsim.interface.designs import optimize, rare, sensitivity, study
from vftsim.interface.labs import calibrate, predict, record, validate
from vftsim.interface.models import explain, load, models, schema, trace
from vftsim.interface.results import check, export, merge, open, replay, report, studies
from vftsim.interface.studies import (
    availability,
    capacity,
    compare,
    decide,
    failover,
    pilot,
    run,
    simulated_years,
    sweep,
)

__all__ = [
    "__version__",
    "availability",
    "calibrate",
    "capacity",
    "check",
    "compare",
    "decide",
    "explain",
    "export",
    "failover",
    "load",
    "merge",
    "models",
    "open",
    "optimize",
    "pilot",
    "predict",
    "rare",
    "record",
    "replay",
    "report",
    "run",
    "schema",
    "sensitivity",
    "simulated_years",
    "studies",
    "study",
    "sweep",
    "trace",
    "validate",
]
