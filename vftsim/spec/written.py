"""Numbers as a model file writes them.

Python code may hand a part ``tick=30_000_000`` and mean nanoseconds; a file may not, because its
reader cannot see the unit.  The reader of model files therefore hands over every number as one of
the two marker classes below: the quantity types of :mod:`vftsim.spec.units` refuse them, and every
other field takes them as the plain number they are (pydantic stores an exact ``int`` or ``float``).
"""


class WrittenInt(int):
    """A whole number without a unit, read from a model file or the command line."""


class WrittenFloat(float):
    """A number with a decimal point or exponent and without a unit, read from a model file."""
