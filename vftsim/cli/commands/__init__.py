"""One file a command that does more than its study; the others are the studies named here, as they are.

Each module has a function of its name (up to an underscore, the command's), whose docstring says what the arguments
and options are (:func:`vftsim.cli.common.as_command`), beside those of the study that it is made from
(:func:`vftsim.cli.from_study.made_from`).  A new command is a new file here.  Modules import at their top only what
``--help`` needs.
"""

from collections.abc import Callable, Mapping
from typing import Any

from vftsim.cli.common import ScaledStudy
from vftsim.interface import designs, studies

AS_THEY_ARE: Mapping[Callable[..., Any], Mapping[str, Any]] = {
    studies.capacity: {"kind": ScaledStudy, "prices": True},
    studies.failover: {"prices": True},
    designs.optimize: {},
    studies.pilot: {},
    designs.rare: {},
    designs.sensitivity: {},
}
"""With their common options, where those are others, and the defaults of the command line."""
