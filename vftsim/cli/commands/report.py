"""``vftsim report``: a page about a result, or about several beside each other."""

from pathlib import Path

from vftsim.cli import options


def report(directories: list[Path], output: Path, force: bool = False) -> None:
    """Write a page about a result that can be sent to somebody; of several, one beside the other.

    It holds the answer with its interval, what lies outside the calibration, charts, tables, and all that it takes to
    get the result again. Nothing is simulated.

    Parameters
    ----------
    directories : DIR...
        Results made with -o or --keep; the first leads.
    output : --output, -o FILE
        The page: one file that needs nothing else (.html).
    """
    import vftsim

    options.check_report(output, force)
    options.write_report(output, vftsim.report(directories))
