"""A SIP lab under protection, with short names for what tests look at."""

from collections.abc import Sequence
from typing import Any

from vftsim.composition.model import ModelSpec
from vftsim.composition.run import Run
from vftsim.platform.io.host_cards import cards
from vftsim.platform.io.link import links
from vftsim.platform.io.packet import drops
from vftsim.platform.io.paths.moderated import guest_nics
from vftsim.platform.protection import account
from vftsim.platform.protection.guard import guards
from vftsim.platform.protection.lockstep import state_name
from vftsim.platform.protection.mechanism import ProtectionSpec
from vftsim.testing.plant import in_seconds
from vftsim.workloads.ims_bench.metrics import PhaseRecord
from vftsim.workloads.sip.records import sip_servers


def guarded_spec(
    protection: dict[str, Any],
    faults: Sequence[dict[str, Any]],
    workload: dict[str, Any],
    server: dict[str, Any],
    path: dict[str, Any] | None = None,
    **domain: Any,
) -> ModelSpec:
    """A SIP server in one protected domain on bare metal, under the benchmark."""
    sut = {
        "interfaces": {"eth0": {"path": {"kind": "moderated", **(path or {})}}},
        "applications": {"proxy": {"kind": "sip_server", **server}},
        "protection": protection,
        **domain,
    }
    calls = {"kind": "ims_bench", "to": "sut.proxy", **workload}
    return ModelSpec.model_validate(
        {"name": "t", "domains": {"sut": sut}, "workloads": {"calls": calls}, "faults": faults}
    )


class GuardedLab(Run):
    """A run and what became of its protected machine."""

    def play(self) -> Sequence[PhaseRecord]:
        """Run; return the measured phases."""
        return self.run().played()

    @property
    def guard(self) -> int:
        return self.built.guards["sut"]

    @property
    def protection(self) -> ProtectionSpec:
        return self.built.protection_of("sut")

    @property
    def under_way(self) -> int:
        return self.built.drivers["calls"].under_way

    @property
    def timeline(self) -> list[tuple[int, str]]:
        return account.timeline(self.engine, self.guard)

    @property
    def counters(self) -> dict[str, int]:
        return account.counters(self.engine, self.guard)

    @property
    def summary(self) -> dict[str, int | float]:
        return in_seconds(self.protection.measured(self.engine, self.guard))

    @property
    def state(self) -> str:
        return state_name(self.engine, self.guard)

    @property
    def machine(self) -> Any:
        return self.engine.rows(guards)[self.guard]

    @property
    def server(self) -> Any:
        return self.engine.rows(sip_servers)[1]

    @property
    def sent(self) -> int:
        card = self.engine.rows(cards)[self.built.hosts["host"].cards["lan"]]
        return int(self.engine.rows(links)[card.from_host].sent)

    @property
    def received(self) -> int:
        return int(self._nic.received)

    @property
    def waiting(self) -> int:
        return int(self._nic.ring.length + self._nic.taken.length)

    @property
    def buffer_dropped(self) -> int:
        return int(self.engine.rows(drops)[self.server.buffer_full].count)

    @property
    def ring_dropped(self) -> int:
        return int(self.engine.rows(drops)[self._nic.ring_full].count)

    @property
    def lost_while_down(self) -> int:
        return int(self.engine.rows(drops)[self._nic.down].count)

    @property
    def _nic(self) -> Any:
        return self.engine.rows(guest_nics)[self.built.ports["sut.proxy", "eth0"]]
