"""Exceptions of vftsim.

::

    VftsimError
    |-- ModelFileError      a model, study or dataset file is wrong (file, line, key, cause, remedy)
    |-- UsageError          a command or call asks for something that does not exist or cannot be
    |-- WorkerLostError     a worker process was killed by somebody else
    |-- RunFailure          a run needs more of something than a simulation can hold; names what, and the remedy
    |-- StorageError        a result cannot be written any more; what had finished is kept
    |-- PrecisionNotReached a statistical procedure ended before its target; carries the estimate
    `-- ConservationError   the simulator broke one of its own invariants: a bug, not a user's mistake

All take positional arguments only, so that they survive pickling between worker processes and
SimPy's re-raise of failures (``type(exc)(*exc.args)``).  A simulated fault (a host crash, a lost
packet) is data of the model and never one of these.
"""

from __future__ import annotations


class VftsimError(Exception):
    """Root of everything vftsim raises on purpose."""


class UsageError(VftsimError, ValueError):
    """The user asked for something that does not exist or is impossible; the message says what would be right."""


class WorkerLostError(VftsimError, RuntimeError):
    """A worker process was killed by somebody else (the system, for want of memory): results are missing."""


class RunFailure(VftsimError, RuntimeError):  # noqa: N818 - names what happened to a run, as ConservationError does
    """A run cannot go on: a table of the kernel is full, or a part met a state it cannot handle."""


class StorageError(VftsimError, RuntimeError):
    """A result cannot be written any more (disk full, directory gone); the replications that had finished are kept."""


class ModelFileError(VftsimError, ValueError):
    """A file the user handed over is wrong.

    The message says cause and remedy, in one or two sentences; the file is as the user named it, and empty when the
    mistake came from the command line.  The line counts from 1, and is 0 when unknown; the dotted key is empty when the
    file as a whole is meant.
    """

    def __init__(self, message: str, file: str = "", line: int = 0, key: str = "") -> None:
        super().__init__(message, file, line, key)
        self.message = message
        self.file = file
        self.line = line
        self.key = key

    def __str__(self) -> str:
        where = self.file
        if self.line:
            where += f":{self.line}"
        if self.key:
            where += f": {self.key}" if where else self.key
        return f"{where}: {self.message}" if where else self.message


class PrecisionNotReached(VftsimError, RuntimeError):  # noqa: N818 - names a shortfall, not a fault
    """A sequential procedure used up its budget; ``estimate`` is what it had by then."""

    def __init__(self, message: str, estimate: object = None) -> None:
        super().__init__(message, estimate)
        self.message = message
        self.estimate = estimate

    def __str__(self) -> str:
        return self.message


class ConservationError(VftsimError, AssertionError):
    """An invariant of the simulation failed (sent = delivered + dropped + in flight, ...): a bug in vftsim."""
