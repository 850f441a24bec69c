"""``vftsim sweep``: a model over a grid of values and schedulers."""

from pathlib import Path

from vftsim.cli import options
from vftsim.cli.common import ModelStudy
from vftsim.cli.from_study import StudyCall, made_from
from vftsim.cli.output import interrupted
from vftsim.errors import UsageError
from vftsim.interface import studies


@made_from(studies.sweep)
def sweep(call: StudyCall, duration: str | None = None, shard: str | None = None, *, common: ModelStudy) -> None:
    """Simulate a grid of settings under the same traffic; killed or interrupted, the same command goes on.

    Parameters
    ----------
    duration : --duration TIME
        Measured time of a steady state: short for --set measure.duration=TIME.
    """
    share = common.share(shard)
    model, scheduler, protection = (call.arguments.get(name) for name in ("model", "scheduler", "protection"))
    instead = {}
    if duration is not None:
        if common.quick:
            raise UsageError("--quick and --duration both set the measured time: choose one")
        from vftsim.study.designs.sweep import with_duration

        axes = call.arguments.get("grid", ())
        instead["overrides"] = with_duration(model, axes, tuple(common.set_ or ()), _duration_ns(duration))
    about = [text for text in (Path(model).stem if model else None, scheduler, protection) if text]
    folder = common.output or Path("-".join(["sweep", *(about if scheduler or protection else [*about, "default"])]))
    plan = call.plan(directory=folder, **instead)
    result = common.conduct(plan, shard=share)
    common.show_all(plan, result)
    if result.interrupted:
        raise interrupted(
            f"{result.finished} of {result.wanted} replications are kept in '{folder}'; the same command continues"
        )


def _duration_ns(text: str) -> int:
    from vftsim.composition.model import LONGEST_NS, SHORTEST_NS
    from vftsim.spec import DURATION

    value = int(options.parse_quantity("--duration", text, DURATION, "s"))
    if not SHORTEST_NS <= value <= LONGEST_NS:
        shortest, longest = DURATION.format(SHORTEST_NS), DURATION.format(LONGEST_NS)
        raise UsageError(f"--duration: from {shortest}, five packets of a stream, to {longest}")
    return value
