"""Choose the structure of the Linux lab's work on its inputs alone, as its protocol says: one rate of `base` left out.

Prints the root mean square of the scaled residuals at the rates left out, for each structure.

    python experiments/linux-lab/structures.py
"""

from __future__ import annotations

import math

import numpy as np

from vftsim.calibrate.definition import CalibrationSpec, FreeParameter, read_definition
from vftsim.calibrate.figures import as_run, observe
from vftsim.calibrate.fit import at_measured_traffic, chosen, parameter_values, residual, search_for
from vftsim.calibrate.validation import measured_runs, run_models
from vftsim.composition.keys import with_values
from vftsim.labs.named_files import dataset_path

PROXY = "domains.sut.applications.proxy"
RATES = ("r50", "r250", "r425")
STRUCTURES: dict[str, tuple[FreeParameter, ...]] = {
    "constant": (),
    "wake-up": (
        FreeParameter(path=f"{PROXY}.wakeup_cost", low="0 ms", high="1 ms", start="0.2 ms", meaning="cost"),
        FreeParameter(path=f"{PROXY}.wakeup_idle", low="0 ms", high="10 ms", start="1 ms", meaning="idle time"),
    ),
    "utilization": (
        FreeParameter(path=f"{PROXY}.growth_with_utilization", low=-0.9, high=0.0, start=-0.5, meaning="growth"),
        FreeParameter(path=f"{PROXY}.growth_up_to", low=20.0, high=100.0, start=60.0, meaning="limit"),
    ),
}


def main() -> None:
    """Fit every structure with every rate left out, and score it there."""
    whole, tree = read_definition("linux-lab/base", CalibrationSpec)
    common = tuple(
        each
        for each in whole.parameters
        if not {"growth", "wakeup", "register"} & set(each.path.split(".")[-1].split("_"))
    )
    data = measured_runs(dataset_path(tree.at("dataset")), whole.runs)
    models = run_models(tree, whole, whole.runs)
    for name, added in STRUCTURES.items():
        squares: list[float] = []
        for rate in RATES:
            label = f"base/{rate}"
            kept = tuple(each for each in whole.in_sample if each not in (label, "register/r600"))
            definition = whole.model_copy(
                update={
                    "parameters": (*common, *added),
                    "in_sample": kept,
                    "most_evaluations": 6,
                    "replications": 1,
                }
            )
            found = search_for(definition, {each: models[each] for each in kept}, data).fit
            left_out = whole.model_copy(update={"in_sample": (label,), "parameters": definition.parameters})
            values = np.array([found.values[each.path] for each in definition.parameters])
            spec = with_values(models[label], parameter_values(models[label], definition.parameters, values))
            there = [0.0] * len(chosen(left_out, data))
            for replication in range(whole.replications):
                seen = at_measured_traffic(as_run(observe(spec, whole.seed, replication), label), data)
                for n, key in enumerate(chosen(left_out, data)):
                    there[n] += residual(whole, key[1], seen[key], data[key]) / whole.replications
            squares += [each**2 for each in there]
            told = ", ".join(f"{path.rpartition('.')[2]} {value:.4g}" for path, value in found.values.items())
            print(
                f"{name}, without {rate}: in sample {2 * found.cost / len(found.residuals):.2f}, left out "
                f"{sum(each**2 for each in there) / len(there):.2f} (mean squares); {told}",
                flush=True,
            )
        print(f"{name}: root mean square {math.sqrt(sum(squares) / len(squares)):.2f}", flush=True)


if __name__ == "__main__":
    main()
