"""Stopping the server of a SIP lab from outside."""

from __future__ import annotations

from typing import Any

from vftsim.engine import EventKind
from vftsim.sip.lab import SipLab

_ENTITY = 2  # after the manager and the sampler at the same instant


def pause_at(lab: SipLab, time_ns: int, length_ns: int) -> None:
    """Plan that the server's guest stands still from ``time_ns`` for ``length_ns``."""

    def stop(_: Any) -> None:
        lab.guest.freeze()

    def go_on(_: Any) -> None:
        lab.guest.thaw()

    lab.clock.at(time_ns, EventKind.CONTROL, _ENTITY, stop)
    lab.clock.at(time_ns + length_ns, EventKind.CONTROL, _ENTITY, go_on)
