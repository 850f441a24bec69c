"""The logging channel: log entries leave the primary in order, at the link's rate, and arrive in order.

Only instants are computed, no event is needed for an entry: with transmission time S, an entry
written at t leaves at d = max(t, d of the one before) + S and arrives one latency later.  A train of n
equal entries at t_1, t_1 + p, ..., t_n ends at max(d + n S, t_1 + n S, t_n + S): the maximum over the
entry from which the transmitter is never idle lies at an end of the train, because the entries are
evenly spaced.

Shared with the VM's own traffic, entries occupy the same transmitter as the outputs.  An entry that
finds that transmitter's queue full waits for the queue to drain (TCP), and the primary's log buffer grows.

Left out: loss and retransmission on the channel; TCP's window, which does not limit on a LAN whose
bandwidth-delay product (1 Gbit/s x 150 us = 19 kB) is below the buffers.
"""

from __future__ import annotations

from vftsim.net.link import Link

_BITS_NS = 8_000_000_000


class LoggingChannel:
    """One direction of the channel between primary and secondary.

    Parameters
    ----------
    rate_bits_per_s, latency_ns : int
    ack_bytes : int
        Size of an acknowledgement on the way back.
    shared : Link, optional
        The transmitter to share; its rate then replaces ``rate_bits_per_s``.
    """

    def __init__(self, rate_bits_per_s: int, latency_ns: int, ack_bytes: int, shared: Link | None = None) -> None:
        self.rate_bits_per_s = shared.rate_bits_per_s if shared is not None else rate_bits_per_s
        self.latency_ns = latency_ns
        self.shared = shared
        self.free_ns = 0
        self.sent_bytes = 0
        self.ack_ns = latency_ns + self.transmission_ns(ack_bytes)

    def transmission_ns(self, size_bytes: int) -> int:
        """Return the time an entry needs on the wire."""
        return size_bytes * _BITS_NS // self.rate_bits_per_s

    def backlog_bytes(self, now_ns: int) -> int:
        """Return what waits in the primary's log buffer, the entry in transmission included."""
        return max(0, self.free_ns - now_ns) * self.rate_bits_per_s // _BITS_NS

    def push(self, now_ns: int, size_bytes: int) -> int:
        """Write an entry; return when its last bit leaves the primary."""
        self.sent_bytes += size_bytes
        if self.shared is not None:
            return self._push_shared(now_ns, size_bytes)
        free_ns = self.free_ns
        free_ns = (free_ns if free_ns > now_ns else now_ns) + size_bytes * _BITS_NS // self.rate_bits_per_s
        self.free_ns = free_ns
        return free_ns

    def push_train(self, first_ns: int, last_ns: int, count: int, size_bytes: int, now_ns: int) -> int:
        """Write ``count`` evenly spaced entries of the past; return when the last one leaves."""
        if self.shared is not None:
            return self.push(now_ns, count * size_bytes)
        self.sent_bytes += count * size_bytes
        one_ns = size_bytes * _BITS_NS // self.rate_bits_per_s
        free_ns = last_ns + one_ns
        if self.free_ns > first_ns or count > 1:
            free_ns = max(max(self.free_ns, first_ns) + count * one_ns, free_ns)
        self.free_ns = free_ns
        return free_ns

    def hold_until(self, time_ns: int) -> None:
        """Take nothing more before ``time_ns``: the receiver's buffer is full."""
        self.free_ns = max(self.free_ns, time_ns)

    def _push_shared(self, now_ns: int, size_bytes: int) -> int:
        assert self.shared is not None
        if self.free_ns <= now_ns + self.shared.queue_ns:
            arrival_ns = self.shared.occupy(size_bytes)
            if arrival_ns >= 0:
                self.free_ns = max(self.free_ns, arrival_ns - self.shared.latency_ns)
                return self.free_ns
        self.free_ns = max(self.free_ns, now_ns + self.shared.queue_ns) + self.transmission_ns(size_bytes)
        return self.free_ns
