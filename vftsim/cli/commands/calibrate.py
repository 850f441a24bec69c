"""``vftsim calibrate``: fit the free parameters of a model to measured data."""

from pathlib import Path

from vftsim.cli.common import Work
from vftsim.cli.from_study import StudyCall, made_from
from vftsim.interface import labs


@made_from(labs.calibrate, Work, before={"output": "at"})
def calibrate(call: StudyCall, output: Path | None = None, *, common: Work) -> None:
    """Fit a model to data: parameters with intervals, residuals, and what the data do not identify.

    Parameters
    ----------
    output : --output, -o FILE
        Write the fitted parameters here (JSON).
    """
    from vftsim.calibrate import fitted
    from vftsim.cli.files import check_target, write_whole

    if output is not None:
        check_target(output, common.force)
    done = common.conduct(call.plan())
    if output is not None:
        write_whole(output, lambda path: fitted.write(path, done.record))
    common.show(done)
