"""``vftsim sweep``: a model over a grid of values and schedulers."""

from pathlib import Path

from vftsim.cli.common import ModelStudy
from vftsim.cli.from_study import StudyCall, made_from
from vftsim.interface import studies


@made_from(studies.sweep)
def sweep(call: StudyCall, shard: str | None = None, *, common: ModelStudy) -> None:
    """Simulate a grid of settings under the same traffic; killed or interrupted, the same command goes on."""
    share = common.share(shard)
    model, scheduler, protection = (call.arguments.get(name) for name in ("model", "scheduler", "protection"))
    about = [text for text in (Path(model).stem if model else None, scheduler, protection) if text]
    folder = common.output or Path("-".join(["sweep", *(about if scheduler or protection else [*about, "default"])]))
    plan = call.plan(directory=folder)
    common.show_all(plan, common.conduct(plan, shard=share))
