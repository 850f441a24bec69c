"""One file a command.

Each module has a function of its name (up to an underscore, the command's), whose docstring says what the arguments
and options are (:func:`vftsim.cli.common.declared`).  A new command is a new file here.  Modules import at their top
only what ``--help`` needs.
"""
