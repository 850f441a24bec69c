"""Programs and workloads of a model that are a row in an engine, and how to begin and read them."""

from __future__ import annotations

from collections.abc import Callable

from vftsim.kernel import Engine
from vftsim.outcome import Outcome
from vftsim.workloads.offer import Offer
from vftsim.workloads.parts import Driver, InstallContext, Program, Target


class RowProgram(Program):
    """An application that is a row.

    Parameters
    ----------
    row : int
        Row of the application.
    begin : callable, optional
        Lets it begin.
    measured : callable, optional
        Returns what it has measured by itself.
    """

    def __init__(
        self,
        context: InstallContext,
        row: int,
        begin: Callable[[], object] | None = None,
        measured: Callable[[], Outcome] | None = None,
    ) -> None:
        self.engine: Engine = context.engine
        self.name = context.name
        self.row = row
        self._begin = begin
        self._measured = measured

    def start(self) -> None:
        """Begin."""
        if self._begin is not None:
            self._begin()

    def outcome(self) -> Outcome | None:
        """Return what it has measured by itself."""
        return None if self._measured is None else self._measured()


class RowDriver(Driver):
    """A workload that is a row.

    Parameters
    ----------
    flow : int
        Row of its flow.
    begin : callable
        Lets it begin.
    measured : callable
        Returns what it has measured.
    offered : callable, optional
        Returns what it was asked to send and what it sent.
    """

    def __init__(
        self,
        target: Target,
        flow: int,
        begin: Callable[[], object],
        measured: Callable[[], Outcome],
        offered: Callable[[], Offer | None] | None = None,
    ) -> None:
        self.engine = target.engine
        self.flow = flow
        self._begin = begin
        self._measured = measured
        self._offered = offered

    def begin(self) -> None:
        """Begin."""
        self._begin()

    def outcome(self) -> Outcome:
        """Return what it has measured."""
        return self._measured()

    def offer(self) -> Offer | None:
        """Return what it was asked to send and what it sent."""
        return None if self._offered is None else self._offered()
