"""The golden cases: a shipped model, assignments as after ``--set``, seed and replication.

The cases are short, the settings far from each other: every scheduler, I/O path, protection and fault, drops at
every place, overload and collapse.  :data:`CASES` has all of them by name, :data:`FAST` those of the normal test
run.
"""

from dataclasses import dataclass

from .cases_media import MEDIA
from .cases_sip import PROTECTED, SIP


@dataclass(frozen=True)
class Case:
    """One run."""

    model: str
    assignments: tuple[str, ...]
    seed: int
    replication: int


def _cases() -> dict[str, Case]:
    cases = {}
    for table in (SIP, PROTECTED, MEDIA):
        for number, (name, (model, assignments)) in enumerate(table.items()):
            # Seeds and replications differ, so that no rule of the random streams is met only once.
            cases[name] = Case(model, assignments, seed=1 + number % 7, replication=number % 3)
    return cases


CASES = _cases()
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
