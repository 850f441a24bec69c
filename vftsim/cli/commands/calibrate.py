"""``vftsim calibrate``: fit the free parameters of a model to measured data."""

from pathlib import Path

from vftsim.cli.common import Work
from vftsim.cli.from_study import StudyCall, made_from
from vftsim.interface import labs


@made_from(labs.calibrate, Work, before={"output": "keep"})
def calibrate(
    call: StudyCall,
    output: Path | None = None,
    at: str | None = None,
    profile: bool = False,
    coverage: int = 0,
    *,
    common: Work,
) -> None:
    """Fit a model to data: parameters with intervals, residuals, and what the data do not identify.

    Parameters
    ----------
    output : --output, -o FILE
        Write the fitted parameters here (JSON).
    at : --at FIT
        Stay at the values of an earlier fit (sip-lab/ft, or a file); no search.
    profile : --profile
        Hold each parameter at places over its box, the others free.
    coverage : --coverage N
        Refit N simulated laboratories, and count how often intervals hold the truth.
    """
    from vftsim.calibrate import fitted
    from vftsim.cli.files import check_target, write_whole

    if output is not None:
        check_target(output, common.force)
    done = common.conduct(call.plan(), at=at, profile=profile, laboratories=coverage)
    if output is not None:
        write_whole(output, lambda path: fitted.write(path, done.record))
    common.show(done)
