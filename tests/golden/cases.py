"""The golden cases by name; each stored entry holds the whole model that it ran, seed and replication.

The cases are short, the settings far from each other: every scheduler, I/O path, protection and fault, drops at
every place, overload and collapse.  :data:`FAST` are those of the normal test run.
"""

from pathlib import Path

from .compact import read

GOLDEN = Path(__file__).with_name("golden.json.gz")
STORED = read(GOLDEN)

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
