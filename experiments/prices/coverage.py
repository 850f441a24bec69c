"""How often bands hold the figures of laboratories whose prices are drawn: ``python experiments/prices/coverage.py``.

A laboratory is a job under a mechanism whose prices are drawn evenly from their ranges (in the logarithm where they are
above 0); it is simulated, and its figures are held against the bands of the job at the prices in use, as
``vftsim compare --protection`` makes them.  1000 laboratories of each of three mechanisms take half a minute, and tell
a share of 95 % to 0.7 points (standard error).  Prints the percentage of laboratories inside, by mechanism and figure,
as JSON.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from vftsim.composition.run import run_model
from vftsim.composition.views import with_domain
from vftsim.platform.protection.checkpoint import CheckpointSpec
from vftsim.platform.protection.hypervisor_epoch import HypervisorEpochSpec
from vftsim.platform.protection.lockstep import LockstepSpec
from vftsim.platform.protection.mechanism import ProtectionSpec
from vftsim.platform.protection.prices import at_prices
from vftsim.sampling import Streams
from vftsim.study.designs.price_bands import band_of, effects_of, variants
from vftsim.study.figures.summary import Summary
from vftsim.study.runs.model import Model, load_model

JOB = """\
hosts: {host: {pcpus: 1, scheduler: {kind: esxi}}}
domains:
  vm:
    applications: {db: {kind: batch, processes: 4, demand: 1 ms, disk_operations: 1, disk_wait: 1 ms, pages: 2}}
measure: {warm_up: 200 ms, duration: 2 s}
"""
PAUSING_JOB = JOB.replace("disk_operations: 1, disk_wait: 1 ms", "think: 1 ms")
"""For epochs of instructions: where disk operations end goes in steps of an epoch, which no band of a line follows."""
FIGURES = {
    "rate": "domains.vm.applications.db.rate",
    "duration": "domains.vm.applications.db.duration.mean",
    "cpu": "domains.vm.cpu",
    "stopped": "domains.vm.protection.stopped",
    "channel": "domains.vm.protection.channel",
}
MECHANISMS = (CheckpointSpec(interval="50 ms"), HypervisorEpochSpec(), LockstepSpec())  # type: ignore[arg-type]
LABORATORIES = 1000
SEED = 20261123
"""Of the laboratories.  It was set down before any of them was drawn; how prices are put together was chosen with 7."""


def coverage(protection: ProtectionSpec, laboratories: int = LABORATORIES) -> dict[str, float]:
    """Return the percentage of laboratories whose figures lie in the bands; of figures that a price moves."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "job.yaml"
        is_in_epochs = isinstance(protection, HypervisorEpochSpec)
        path.write_text(PAUSING_JOB if is_in_epochs else JOB, encoding="utf-8")
        job = load_model(path)

    def under(mechanism: ProtectionSpec) -> Model:
        return replace(job, spec=with_domain(job.spec, "vm", protection=mechanism))

    model = under(protection)
    base = figures_of(model)
    played = [(each, figures_of(each.model)) for each in variants(model, "vm") if not each.is_of_failure]
    bands = {}
    for name, at in FIGURES.items():
        if band := band_of(effects_of([(end, figure(at)) for end, figure in played], base(at))):
            bands[name] = band
    streams, prices = Streams(SEED, 0), [each for each in protection.prices() if not each.is_of_failure]
    inside = dict.fromkeys(bands, 0)
    for lab in range(laboratories):
        drawn = {}
        for number, each in enumerate(prices):
            place, price = float(streams.uniforms("lab", number, start=lab, count=1)[0]), each.price
            is_scaled = price.low > 0.0
            drawn[each.key] = price.low * (price.high / price.low) ** place if is_scaled else place * price.high
        figure = figures_of(under(at_prices(protection, drawn)))
        for name, band in bands.items():
            moved = figure(FIGURES[name]) - base(FIGURES[name])
            inside[name] += band.below - 1e-9 <= moved <= band.above + 1e-9
    return {name: 100.0 * count / laboratories for name, count in inside.items()}


def figures_of(model: Model) -> Callable[[str], float]:
    """Return what gives the figures of one run by their address; nan where there is none."""
    summary = Summary([(0, run_model(model.spec, 1, 0))])

    def figure(name: str) -> float:
        found = summary.estimate(name)
        return math.nan if found is None else found.mean

    return figure


if __name__ == "__main__":
    print(json.dumps({each.kind: coverage(each) for each in MECHANISMS}))  # type: ignore[attr-defined]
