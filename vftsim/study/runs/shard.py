"""Parts of a study for batch systems without a scheduler of ours: each computes its share into its own directory.

Which share a task belongs to follows from its place in the whole study, whatever is done already: shards of one
command share nothing and miss nothing, and each goes on where it was ended.
"""

from dataclasses import dataclass
from typing import Self

from vftsim.errors import UsageError

MOST_SHARDS = 100_000


@dataclass(frozen=True, slots=True)
class Shard:
    """Share ``number``, from 1, of ``of``."""

    number: int = 1
    of: int = 1

    @classmethod
    def parse(cls, text: str | None) -> Self:
        """Return the shard that ``i/n`` names, the whole study for None; refuse anything else."""
        if text is None:
            return cls()
        number, slash, of = text.partition("/")
        if not (slash and number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of) <= MOST_SHARDS):
            raise UsageError(f"--shard: '{text}' is not i/n with i from 1 to n, e.g. 1/4, 2/4, 3/4 and 4/4")
        return cls(int(number), int(of))

    def has(self, place: int) -> bool:
        """Whether the task at a place of the whole study is one of this share."""
        return place % self.of == self.number - 1

    def refuse_idle(self, interrupted: bool) -> None:
        """Refuse a share that has no task at all, if that is why nothing was done."""
        if self.of > 1 and not interrupted:
            raise UsageError(f"--shard: share {self} has nothing to do; there are fewer runs than shares")

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


WHOLE = Shard()
