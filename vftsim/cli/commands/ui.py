"""``vftsim ui``: a page on this machine to ask models."""

from pathlib import Path

from vftsim.cli import options
from vftsim.errors import UsageError

_HIGHEST_PORT = 65_535


def ui(
    models: list[str] | None = None,
    output: Path = Path("vftsim-ui"),
    port: int = 8765,
    jobs: int | None = None,
    max_time: str = "1 h",
) -> None:
    """Show a page on this machine: knobs of a model, today's configuration beside variants, answers as charts.

    Each answer is made by the command that stands below it, and is kept. Nobody but this machine can reach the page.

    Parameters
    ----------
    models : [MODEL...]
        Model files of your own beside the shipped models; the first is shown first.
    output : --output, -o DIR
        Where studies are kept, and found again.
    port : --port
        On 127.0.0.1; 0: a free one.
    max_time : --max-time TIME
        End a study after this time; what has finished is kept.
    """
    from vftsim.cli.output import say
    from vftsim.spec import DURATION
    from vftsim.study.runs.workers import checked_jobs
    from vftsim.ui.serve import serve

    if not 0 <= port <= _HIGHEST_PORT:
        raise UsageError(f"--port: from 0 to {_HIGHEST_PORT}")
    options.parse_quantity("--max-time", max_time, DURATION)
    beside = ["--max-time", max_time, *(["-j", str(checked_jobs(jobs))] if jobs is not None else [])]
    serve(models or [], output, port, beside, notify=say)
