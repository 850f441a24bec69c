"""After the fact: structures that the protocol did not choose, fitted to all inputs and scored on the predicted runs.

Not a prediction: it was run when the scores of the chosen structure were known.

    python experiments/linux-lab/after.py utilization
"""

from __future__ import annotations

import sys

from score import HEAD, by_environment, percentiles, played, told
from structures import STRUCTURES

from vftsim.calibrate.definition import CalibrationSpec, read_definition
from vftsim.calibrate.fit import fit, parameter_values
from vftsim.calibrate.runs import measured_runs, run_models
from vftsim.composition.keys import with_values
from vftsim.composition.model import ModelSpec
from vftsim.labs.place import dataset_path, place
from vftsim.report.markdown import markdown_table


def main() -> None:
    """Fit one structure and score it."""
    name = sys.argv[1]
    whole, tree = read_definition("linux-lab/base", CalibrationSpec)
    parameters = (*whole.parameters, *STRUCTURES[name])
    definition = whole.model_copy(update={"parameters": parameters, "replications": 1, "most_evaluations": 8})
    data = measured_runs(dataset_path(place(tree, "dataset")), whole.runs)
    found = fit(definition, run_models(tree, whole, whole.runs), data)
    values = [found.values[each.path] for each in parameters]
    print(
        f"{name}: mean square {2 * found.cost / len(found.residuals):.2f}; "
        + ", ".join(f"{path.rpartition('.')[2]} {value:.4g}" for path, value in found.values.items())
    )

    def with_fit(spec: ModelSpec) -> ModelSpec:
        script = parameter_values(spec, parameters, values)  # type: ignore[arg-type]
        return with_values(spec, script)

    rows = played({}, 5, with_fit)
    print(markdown_table(HEAD, [told(f"{name}, given prices", by_environment(percentiles(rows)))]))
    cpu = [(f"{row.environment}/{row.phase}", row.predicted - row.measured) for row in rows if row.quantity == "cpu"]
    print("CPU, points: " + ", ".join(f"{run} {error:+.1f}" for run, error in cpu), flush=True)


if __name__ == "__main__":
    main()
