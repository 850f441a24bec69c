"""What disks say of runs: that they do not keep up with what is written, which a page cache hides."""

from collections.abc import Iterable

from vftsim.composition.model import ModelSpec
from vftsim.composition.record import RunRecord


def hidden_writes(spec: ModelSpec, records: Iterable[tuple[int, RunRecord]]) -> list[str]:
    """Return for each disk, of copies for the first, what its figures say of it in a run that has something to say."""
    told: dict[str, str] = {}
    for _, record in records:
        uses = record.last_measured.outcomes
        for name, domain in spec.expanded().items():
            for key, disk in domain.disks.items():
                entry = f"domains.{spec.entry_of(name)}.disks.{key}"
                if entry not in told and (text := disk.remark(uses[f"domains.{name}.disks.{key}"])):
                    told[entry] = f"{entry} {text}"
    return list(told.values())
