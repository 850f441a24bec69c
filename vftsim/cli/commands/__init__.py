"""One file a command.

Each module has a function ``register(app)`` that adds its command to a :class:`typer.Typer`.  A new
command is a new file here.  Modules import at their top only what ``--help`` needs.
"""
