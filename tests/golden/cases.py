"""The golden cases: a shipped model, assignments as after ``--set``, seed and replication.

The cases are short, the settings far from each other: every scheduler, I/O path, protection and fault, drops at
every place, overload and collapse.  :data:`CASES` has all of them by name, :data:`FAST` those of the normal test
run.
"""

from dataclasses import dataclass
from zlib import crc32

from .cases_media import MEDIA
from .cases_sip import PROTECTED, SIP


@dataclass(frozen=True)
class Case:
    """One run."""

    model: str
    assignments: tuple[str, ...]
    seed: int
    replication: int


def _case(name: str, model: str, assignments: tuple[str, ...]) -> Case:
    # Seeds and replications differ, so that no rule of the random streams is met only once.
    number = crc32(name.encode())
    return Case(model, assignments, seed=1 + number % 7, replication=number % 3)


CASES = {name: _case(name, *entry) for table in (SIP, PROTECTED, MEDIA) for name, entry in table.items()}
FAST = (
    "native-ramp",
    "virtual-shared-core-credit-4.3",
    "shared-nic-bursts",
    "ft-crash-reprotected",
    "ha-restart",
    "media-two-core",
    "media-cfs",
    "media-stub-domain",
)
