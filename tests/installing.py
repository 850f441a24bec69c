"""What a part of a model is installed with, outside of a model."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from vftsim.kernel import Engine
from vftsim.kernel.inputs import Feeder
from vftsim.platform.cpu.guest_schedulers.round_robin import RoundRobinGuest
from vftsim.platform.io.packet import drops
from vftsim.sampling import Streams
from vftsim.workloads.parts import ApplicationSpec, InstallContext, Target


@dataclass
class Installing:
    """An engine in which parts are installed; without ``drop_row`` each place of drops has a row of its own."""

    engine: Engine
    feeder: Feeder
    streams: Streams
    drop_row: Callable[[str, str], int] | None = None

    def _new_drop_row(self, place: str, cause: str) -> int:
        return self.engine.new(drops)

    def context(self, domain: int, warmup_ns: int = 0, **disks: int) -> InstallContext:
        return InstallContext(
            self.engine,
            domain,
            "guest.program",
            0,
            1.0,
            RoundRobinGuest(),
            self.streams,
            self.feeder,
            self.drop_row or self._new_drop_row,
            lambda load: False,
            disks,
            {},
            (warmup_ns, 1 << 62),
        )

    def target(self, port: int, number: int = 0, warmup_ns: int = 0, rate_bits_per_s: int = 10**9) -> Target:
        unused: Any = None
        return Target(
            self.engine,
            self.feeder,
            "clients",
            number,
            port,
            unused,
            ApplicationSpec(kind="none"),
            0,
            0,
            rate_bits_per_s,
            0,
            (),
            0,
            (warmup_ns, 1 << 62),
            1 << 62,
            True,
            self.streams,
            unused,
            {},
            unused,
            unused,
        )
