"""The window of one run that ``vftsim trace``, ``explain`` and ``replay`` look into, as common options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vftsim.cli import options
from vftsim.errors import UsageError

if TYPE_CHECKING:
    from vftsim.composition.model import ModelSpec
    from vftsim.study.runs.model import Model
    from vftsim.tracing.trace import Trace


@dataclass(kw_only=True)
class Window:
    """Where to look: in which run of a model, from when, for how long."""

    start: str | None = None
    length: str | None = None
    set_: list[str] | None = None
    seed: int = options.DEFAULT_SEED
    replication: int = 0
    engine: options.EngineName = options.EngineName.auto
    strict: bool = False

    def begin(self) -> None:
        options.use_engine(self.engine, strict=self.strict)

    def loaded(self, name: str) -> Model:
        from vftsim.study.runs.model import load_model

        return load_model(name, self.set_ or ())

    def recorded(self, spec: ModelSpec) -> Trace:
        """Run a checked model up to the end of the window and return what was recorded; say what is remarkable."""
        from vftsim.composition.without_effect import remarks
        from vftsim.spec import DURATION
        from vftsim.study.execution import Execution
        from vftsim.tracing.trace import window_traced

        Execution(self.seed, 1).check()
        if self.replication < 0:
            raise UsageError("--replication: 0 or above")
        start_ns, length_ns = (
            None if text is None else int(options.parse_quantity(option, text, DURATION))
            for option, text in (("--start", self.start), ("--length", self.length))
        )
        traced = window_traced(spec, self.seed, self.replication, start_ns, length_ns)
        options.say_remarks(remarks(spec))
        return traced
