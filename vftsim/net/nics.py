"""Network cards of a host and the kinds of traffic they carry, apart or together.

Rule: every kind of traffic (virtual machines, management, migration, fault-tolerance logging, storage)
leaves through the card it is assigned to; kinds on one card share its rate and its transmit queue, in
order of arrival.  Background traffic of a kind comes in bursts at a constant period, as frames of full
size; the hypervisor's CPU work for it is given to a domain of its own (``background`` of a domain in the
model file), because only there can it compete with the guest.

Assumption: the record names the kinds of traffic but prints no rate for any of them; the rates in the
shipped models are typical values, marked as such.
"""

from vftsim.engine import Clock, EventKind
from vftsim.net.link import Link
from vftsim.platform.io.host_cards import KINDS, BackgroundTrafficSpec, NicSpec, NicsSpec, Traffic

__all__ = ["KINDS", "BackgroundTrafficSpec", "NicSpec", "Nics", "NicsSpec", "Traffic"]

_BITS_NS = 8_000_000_000


class Nics:
    """The links of a host, by kind of traffic."""

    def __init__(self, clock: Clock, spec: NicsSpec) -> None:
        self.clock = clock
        self.spec = spec
        self.inbound = {name: Link(clock, c.rate, c.latency, c.queue) for name, c in spec.cards.items()}
        self.outbound = {name: Link(clock, c.rate, c.latency, c.queue) for name, c in spec.cards.items()}
        self.background_dropped = 0

    def to_host(self, kind: str) -> Link:
        """The link on which a kind of traffic arrives."""
        return self.inbound[self.spec.card_of(kind)]

    def from_host(self, kind: str) -> Link:
        """The link on which a kind of traffic leaves."""
        return self.outbound[self.spec.card_of(kind)]

    def start(self) -> None:
        """Start the background traffic."""
        for number, (kind, source) in enumerate(sorted(self.spec.background.items())):
            self.clock.after(source.period, EventKind.DEVICE, 1 + number, self._burst, (number, kind, source))

    def _burst(self, source: tuple[int, str, BackgroundTrafficSpec]) -> None:
        number, kind, spec = source
        link = self.from_host(kind)
        if link.backlog_ns + spec.burst * _BITS_NS // link.rate_bits_per_s <= link.queue_ns:
            link.reserve(spec.burst)
        else:
            self.background_dropped += 1
        self.clock.after(spec.period, EventKind.DEVICE, 1 + number, self._burst, source)
