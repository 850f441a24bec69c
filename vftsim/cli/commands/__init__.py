"""One file a command that does more than its study; the others are the studies named here, as they are.

Each module has a function of its name (up to an underscore, the command's), whose docstring says what the arguments
and options are (:func:`vftsim.cli.common.as_command`), beside those of the study that it is made from
(:func:`vftsim.cli.from_study.made_from`).  A new command is a new file here.  Modules import at their top only what
``--help`` needs.
"""

from vftsim.interface import designs, studies

STUDIES = (designs.optimize, studies.pilot, designs.rare, designs.sensitivity)
