"""Call signalling from outside.

Calls arrive as a Poisson process; of about ten packets a call half are received and answered,
three fifths of them at set-up and the rest at tear-down one hold time later.  A tenth of the calls go
through the media server, which is how stream count and call rate hang together.  Calls that are up at the start
come to their end as others do.  With a load profile set-ups follow it, and tear-downs as it was one hold time before.

Left out: losses and queues of the network (the lab's clients shared a fast LAN with the server), but for those of a
line that does not carry what is sent.
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from vftsim.platform.io.packet import delivered, lost, workload
from vftsim.sampling import Streams, poisson_gaps_ns
from vftsim.spec.units import MS, PositiveDurationNs
from vftsim.workloads.account import add_streams, count_delivered, count_lost
from vftsim.workloads.flow import FlowDriver, FlowResult
from vftsim.workloads.gaps import LoadProfileSpec
from vftsim.workloads.parts import WORKLOADS, RunProfile, Target, WorkloadSpec

calls = workload.kind("calls")
calls.implements(delivered)(count_delivered)
calls.implements(lost)(count_lost)

MESSAGE_BYTES = 700
"""A signalling message on the wire. Assumption: about the mean of the messages of a call by SIP, headers included."""

_CALLS = 1024
_SETUP, _TEARDOWN = 0, 1


class CallSource:
    """The packets of all calls in order of arrival, but for what arrives after ``end_ns``.

    ``flow`` is the row of their flow, ``number`` that of the workload among those of its kind.
    """

    def __init__(self, spec: "CallsSpec", streams: Streams, flow: int, end_ns: int, number: int = 0) -> None:
        self.flow = flow
        self._end_ns = end_ns
        setup = max(1, round(spec.received_packets * 0.6))
        shares = ((_SETUP, setup), (_TEARDOWN, spec.received_packets - setup))
        self._requests = [
            _Requests(spec, streams, 2 * number + phase, packets, end_ns, 0 if phase == _SETUP else -spec.hold)
            for phase, packets in shares
            if packets and spec.calls_per_s > 0.0
        ]
        self._horizon_ns = 0

    def more(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return times in ns and stream numbers of the next packets; empty at the end."""
        times_ns = np.empty(0, np.int64)
        while not times_ns.size and self._requests and self._horizon_ns <= self._end_ns:
            horizon_ns = min(request.horizon_ns for request in self._requests)
            times_ns = np.sort(np.concatenate([request.until(horizon_ns) for request in self._requests]))
            self._horizon_ns = horizon_ns + 1
        times_ns = times_ns[: np.searchsorted(times_ns, self._end_ns, side="right")]
        return times_ns, np.zeros(times_ns.size, np.int64)


class _Requests:
    """Set-ups or tear-downs: Poisson at the call rate, each a few packets in a row.

    When a run begins the load profile is at ``begin_ns``.
    """

    def __init__(
        self, spec: "CallsSpec", streams: Streams, entity: int, packets: int, end_ns: int, begin_ns: int
    ) -> None:
        self._spec = spec
        self._streams = streams
        self._entity = entity
        self._offsets_ns = np.arange(packets, dtype=np.int64) * spec.packet_gap
        self._end_ns = end_ns
        self._begin_ns = begin_ns
        self._load_ns = spec.load_ns(begin_ns)
        self._longest_ns = int(spec.load_ns(begin_ns + end_ns) - self._load_ns) + 1
        self._drawn = 0
        self._last_ns = 0
        self._waiting_ns = np.empty(0, np.int64)

    @property
    def horizon_ns(self) -> int:
        """Up to when the packets are known: the last call drawn."""
        return self._last_ns

    def until(self, horizon_ns: int) -> NDArray[np.int64]:
        """Return the packets up to a time that is known, and draw more calls if it was the last one."""
        self._waiting_ns.sort()
        count = int(np.searchsorted(self._waiting_ns, horizon_ns, side="right"))
        taken, self._waiting_ns = self._waiting_ns[:count], self._waiting_ns[count:]
        if self._last_ns <= horizon_ns:
            self._draw()
        return taken

    def _draw(self) -> None:
        uniforms = self._streams.uniforms("signaling.gap", self._entity, start=self._drawn, count=_CALLS)
        # Gaps beyond the end are all alike; cut, their sum stays within 64 bits.
        times_ns = self._times_ns(np.minimum(poisson_gaps_ns(uniforms, self._spec.calls_per_s), self._longest_ns))
        self._drawn += _CALLS
        self._last_ns = int(times_ns[-1])
        packets_ns = (times_ns[:, None] + self._offsets_ns).ravel()
        self._waiting_ns = np.concatenate([self._waiting_ns, packets_ns[packets_ns <= self._end_ns]])

    def _times_ns(self, gaps_ns: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the instants of the next calls."""
        if not self._spec.load_profile:
            return self._last_ns + np.cumsum(gaps_ns)
        loads_ns = self._load_ns + np.cumsum(gaps_ns.astype(np.float64))
        self._load_ns = float(loads_ns[-1])
        return np.minimum(self._spec.all_due_ns(loads_ns) - self._begin_ns, self._end_ns + 1).astype(np.int64)


@WORKLOADS.register
class CallsSpec(LoadProfileSpec, WorkloadSpec):
    """Calls from outside."""

    load_key = "calls_per_s"
    objectives = ("loss <= 0.1",)
    speaks = "calls"
    packet_drawing_ns = 100.0
    """Many at once."""
    entries = (add_streams,)
    outcomes = (FlowResult,)

    kind: Literal["calls"] = "calls"
    to: str = Field("signaling", description="Application that answers: `domain.application`, or its domain.")
    calls_per_s: float = Field(60.0, ge=0.0, le=1e6, description="Call rate. Default: Patnaik 2009, 6.4.")
    received_packets: int = Field(5, ge=1, le=1000, description="Packets received a call; each is answered.")
    packet_gap: PositiveDurationNs = Field(
        20 * MS, description="Between packets of one set-up or tear-down. Assumption."
    )
    hold: PositiveDurationNs = Field(60_000 * MS, description="Call hold time.")

    @property
    def wire_bits_per_s(self) -> float:
        """Of what the server receives."""
        return self.calls_per_s * self.mean_share * self.received_packets * 8 * MESSAGE_BYTES

    def packets(self, profile: RunProfile) -> float:
        """So many a call, those of calls that were up at the start too."""
        return self.calls_per_s * self.load_ns(profile.length_ns) / 1e9 * self.received_packets

    def in_flight(self, profile: RunProfile) -> float:
        """Packets drawn ahead of calls that are up."""
        return self.packets(profile) / 20

    def install(self, target: Target) -> FlowDriver:
        """Add the calls."""
        driver = FlowDriver(target, self, size_bytes=MESSAGE_BYTES, streams=1, late_ns=self.hold)
        driver.sends(CallSource(self, target.streams, driver.flow, target.end_ns, target.number))
        return driver
