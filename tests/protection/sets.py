"""Sets of parameters with a steady state that can be worked out beforehand, and that steady state."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

US = 1_000
MS = 1_000_000
S = 1_000_000_000
_BITS_NS = 8_000_000_000


@dataclass(frozen=True)
class Steady:
    """Run time, pages, pause, transmission, period of an epoch in the steady state, and the round trip; ns."""

    run: int
    pages: float
    pause: int
    wire: int
    period: int
    round_trip: int

    @property
    def hidden(self) -> int:
        """Pause, transmission and acknowledgement: what an output waits after its epoch."""
        return self.pause + self.wire + self.round_trip


@dataclass(frozen=True)
class Setting:
    """Interval, fixed pause, pause a page, fixed bytes, page bytes, rate, round trip, working set, touch rate."""

    interval: int = 25 * MS
    fixed_pause: int = 500 * US
    page_pause: int = 2 * US
    fixed_bytes: int = 64 * 1024
    page_bytes: int = 4104
    rate: int = 1_000_000_000
    round_trip: int = 150 * US
    working_set: int = 2000
    touch_rate: float = 10_000.0
    rule: str = "suspend"
    disk_rate: int = 0

    def but(self, **fields: Any) -> Setting:
        return replace(self, **fields)

    def parameters(self, kind: str = "checkpoint", **more: Any) -> dict[str, Any]:
        """Return what a model file would say."""
        fields: dict[str, Any] = {
            "kind": kind,
            "interval": self.interval,
            "rule": self.rule,
            "suspend_request": 0,
            "pause": {"fixed": self.fixed_pause, "page": self.page_pause},
            "state": {"fixed": self.fixed_bytes, "page": self.page_bytes},
            "memory": {"working_set": self.working_set, "touch_rate": self.touch_rate},
            "channel": {"rate": self.rate, "latency": self.round_trip // 2, "ack": 0},
            "disk": {"write_rate": self.disk_rate},
            "reprotection": None,
            "failover": {"detection": {"timeout": S + 2 * self.interval}},
        }
        return {**fields, **more}

    def pages(self, run_ns: float) -> float:
        """Pages dirtied in a stretch of run time."""
        if not self.working_set:
            return 0.0
        return self.working_set * -math.expm1(-self.touch_rate * run_ns / S / self.working_set)

    def wire(self, run_ns: float) -> int:
        """Transmission of the state of an epoch; bytes are whole."""
        disk = round(self.disk_rate * run_ns / S)
        return (self.fixed_bytes + round(self.pages(run_ns) * self.page_bytes) + disk) * _BITS_NS // self.rate

    def period(self, pause: int, wire: int) -> int:
        """The period of epochs by the rule."""
        if self.rule == "resume":
            return pause + max(self.interval, wire + self.round_trip)
        if self.rule == "after_ack":
            return pause + wire + self.round_trip + max(0, self.interval - pause)
        return max(self.interval, pause + wire + self.round_trip)

    def steady(self) -> Steady:
        """The epoch that is followed by one like it."""
        run = self.interval
        for _ in range(500):
            pause = self.fixed_pause + round(self.page_pause * self.pages(run))
            wire = self.wire(run)
            run = self.period(pause, wire) - pause
        return Steady(run, self.pages(run), pause, wire, self.period(pause, wire), self.round_trip)


A = Setting()
B = A.but(touch_rate=40_000.0)
D = A.but(interval=200 * MS)
E = B.but(rate=10_000_000_000, round_trip=90 * US)
