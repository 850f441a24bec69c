"""A SIP lab under protection, with short names for what tests look at."""

from typing import Any

from vftsim.platform.io.link import links
from vftsim.platform.io.packet import drops
from vftsim.platform.io.paths.moderated import guest_nics
from vftsim.platform.protection import account
from vftsim.platform.protection.guard import guards
from vftsim.platform.protection.lockstep import state_name
from vftsim.sip.lab import SipLab
from vftsim.workloads.sip.records import sip_servers


class GuardedLab(SipLab):
    """A run and what became of its protected machine."""

    @property
    def timeline(self) -> list[tuple[int, str]]:
        return account.timeline(self.engine, self.built.guard)

    @property
    def counters(self) -> dict[str, int]:
        return account.counters(self.engine, self.built.guard)

    @property
    def summary(self) -> dict[str, int | float]:
        assert self.built.protection is not None
        return self.built.protection.summary(self.engine, self.built.guard)

    @property
    def state(self) -> str:
        return state_name(self.engine, self.built.guard)

    @property
    def machine(self) -> Any:
        return self.engine.rows(guards)[self.built.guard]

    @property
    def server(self) -> Any:
        return self.engine.rows(sip_servers)[self.built.server]

    @property
    def sent(self) -> int:
        return int(self.engine.rows(links)[self.built.to_agents].sent)

    @property
    def received(self) -> int:
        return int(self._nic.received)

    @property
    def waiting(self) -> int:
        return int(self._nic.ring.length + self._nic.taken.length)

    @property
    def ring_dropped(self) -> int:
        return int(self.engine.rows(drops)[self._nic.ring_full].count)

    @property
    def lost_while_down(self) -> int:
        return int(self.engine.rows(drops)[self._nic.down].count)

    @property
    def _nic(self) -> Any:
        return self.engine.rows(guest_nics)[self.built.port]
