"""A linked kernel's functions as LLVM IR, in one typed pass over their syntax trees.

The language is a small part of Python: numbers (``int`` of 64 bits, ``float``, ``bool``), rows (addresses of records),
arrays in records, pairs; ``if``, ``while``, ``for ... in range(...)``, ``break``, ``continue``, ``return``; calls of
functions by name; arithmetic, comparisons (in chains too), ``and``, ``or``, ``not``, ``a if b else c``; ``abs``,
``bool``, ``float``, ``int``, ``len``, ``max``, ``min``.  Anything else is refused by name.

A function is translated when it is first called with arguments of such types.  What Python means is kept, as
``docs/engines.md`` says with the exceptions; :mod:`tests.kernel.test_semantics` holds it against Python case by case.
"""

from vftsim.kernel.ir.program import Program
from vftsim.kernel.ir.types import UntranslatableError

__all__ = ["Program", "UntranslatableError"]
