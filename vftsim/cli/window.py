"""The window of one run that ``vftsim trace``, ``explain`` and ``replay`` look into, as common options."""

# ruff: noqa: PLC0415 - imports wait until they are needed: --help stays fast

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vftsim.cli import options
from vftsim.errors import UsageError

if TYPE_CHECKING:
    from vftsim.composition.model import ModelSpec
    from vftsim.study.model import Model
    from vftsim.tracing.trace import Trace

_LONGEST_NS = 10_000_000_000


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
        """Choose the engine."""
        options.use_engine(self.engine, strict=self.strict)

    def loaded(self, name: str) -> Model:
        """Return the model with its changes."""
        return options.prepared(name, self.set_)

    def recorded(self, spec: ModelSpec) -> Trace:
        """Run a checked model up to the end of the window and return what was recorded in it."""
        from vftsim.spec import DURATION
        from vftsim.tracing.trace import run_traced, usual_window_ns

        asked_start_ns, asked_length_ns = (
            None if text is None else int(options.parse_quantity(option, text, DURATION))
            for option, text in (("--start", self.start), ("--length", self.length))
        )
        if asked_length_ns is not None and not 0 < asked_length_ns <= _LONGEST_NS:
            raise UsageError("--length: above 0 and at most 10 s")
        start_ns, length_ns = usual_window_ns(spec, asked_start_ns, asked_length_ns)
        end_ns = spec.longest_ns
        if start_ns + length_ns > end_ns:
            raise UsageError(
                f"--start, --length: the run ends after {end_ns / 1e9:g} s, before the window does; "
                "--set measure.duration=... makes it longer"
            )
        from vftsim.study.replicate import check_study

        check_study(1, self.seed, 1)
        if self.replication < 0:
            raise UsageError("--replication: 0 or above")
        return run_traced(spec, self.seed, self.replication, start_ns, length_ns)[1]
