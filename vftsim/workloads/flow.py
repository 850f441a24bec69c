"""Traffic drawn beforehand, as a workload of a model: its flow, its account, its packets.

Its packets reach the host's network interface at their own instants, or, where they share a modelled link with others,
queue for that link first.
"""

from __future__ import annotations

from typing import Any

from vftsim.kernel import Kind
from vftsim.platform.delays import histogram
from vftsim.platform.io.packet import flows
from vftsim.spec.units import format_rate
from vftsim.workloads import account
from vftsim.workloads.account import accounts, add_account, mean_jitter_ns
from vftsim.workloads.arrivals import Source
from vftsim.workloads.flow_result import FlowResult
from vftsim.workloads.offer import Offer
from vftsim.workloads.parts import Driver, Target

ENTRIES = account.ENTRIES
TABLES = account.TABLES


class FlowDriver(Driver):
    """A flow with an account.

    Parameters
    ----------
    kind : Kind
        Kind of the workload.
    size_bytes : int
        Of a packet on the wire.
    streams : int
        Streams of the flow.
    late_ns : int
        Delay above which a packet counts as late.
    interval_ns : int
        Time between packets of a stream; 0: it has none.
    is_voice : bool
        Whether its packets carry speech.
    asked_bits_per_s : float
        On the wire, on average; 0: not known.
    waits_for_line : bool
        Its source sends no faster than the line carries; else packets beyond that reach the host all the same.
    """

    def __init__(
        self,
        target: Target,
        kind: Kind,
        *,
        size_bytes: int,
        streams: int,
        late_ns: int,
        interval_ns: int = 0,
        is_voice: bool = False,
        asked_bits_per_s: float = 0.0,
        waits_for_line: bool = False,
    ) -> None:
        engine = self.engine = target.engine
        self._is_voice = is_voice
        self._asked_bits_per_s = asked_bits_per_s
        self._line_bits_per_s = target.rate_bits_per_s
        # A modelled link drops what it cannot carry: that was offered, and is counted as lost.
        self._exceeds_line = not (waits_for_line or target.is_linked)
        self._is_bounded = waits_for_line or not target.is_linked
        begin_ns, end_ns = target.window_ns
        self._seconds = (end_ns - begin_ns) / 1e9
        self.flow, flow = engine.add(flows, workload=engine.number(kind), port=target.port, size_bytes=size_bytes)
        flow.row = self.flow
        wire_ns = 0 if target.is_linked else 2 * target.latency_ns
        self.account = add_account(
            engine, streams, warmup_ns=begin_ns, wire_ns=wire_ns, late_ns=late_ns, interval_ns=interval_ns
        )
        flow.own = self.account

    def sends(self, source: Source) -> None:
        """Say what it sends."""
        self.sources = (source,)

    def wire_ns(self) -> int:
        """Return what its packets spend on a network that is not modelled."""
        return int(self.engine.rows(accounts)[self.account].wire_ns)

    def delivered(self) -> int:
        """Packets that came back, from the start."""
        return int(self.engine.rows(accounts)[self.account].all_delivered)

    def outcome(self) -> FlowResult:
        """Return what its clients saw."""
        account: Any = self.engine.rows(accounts)[self.account]
        return FlowResult.of_row(
            account,
            delay=histogram(self.engine, int(account.delays)),
            jitter_ns=mean_jitter_ns(self.engine, self.account),
            playout_ns=int(account.late_ns),
            is_voice=self._is_voice,
            seconds=self._seconds,
        )

    def offer(self) -> Offer | None:
        """Return what it was asked to send on the wire, and what of that the line carries."""
        if not self._asked_bits_per_s:
            return None
        asked, line = self._asked_bits_per_s, float(self._line_bits_per_s)
        limit = f"the line of {format_rate(self._line_bits_per_s)} is full (networks)"
        if self._exceeds_line:
            limit += ", and the run let all of it through"
        return Offer(asked * 1e-6, (min(asked, line) if self._is_bounded else asked) * 1e-6, "Mbit/s", limit)
