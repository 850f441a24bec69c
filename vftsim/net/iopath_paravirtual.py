"""Split driver: back-end in the driver domain, front-end in the guest, shared rings between them.

Way in: the back-end reserves a slot of the guest's receive ring (none free: the packet is dropped in
the driver domain), copies the packet and sends an event if the front-end asked for one; the
front-end's interrupt work runs on the guest's first vCPU, where its event channel is bound, and
hands packets to the network stack.  Way out: the sender pays the front-end's transmit work, puts the
packet into the transmit ring, and sleeps if that is full.

Ring size: 256 slots each way (``xen/include/public/io/netif.h``, one page a direction).
Left out: transmit completion events (the front-end reclaims finished slots when it next runs),
and scatter/gather and offloads, which packets of 172 bytes do not use.
"""

from typing import Literal

from pydantic import Field

from vftsim.net.iopath import IO_PATHS, IoPathSpec, Stage, Wiring
from vftsim.net.rings import Packet, Ring
from vftsim.spec.units import DurationNs


@IO_PATHS.register
class ParavirtualSpec(IoPathSpec):
    """Xen's split driver."""

    kind: Literal["paravirtual"] = "paravirtual"
    ring_packets: int = Field(256, ge=1, le=4096, description="Slots each way. Default: Xen netif.h, one page.")
    backend_receive_ns: DurationNs = Field(
        20_000, description="Driver domain: grant, copy, notify; on top of driver and bridge. Calibrated."
    )
    backend_transmit_ns: DurationNs = Field(
        20_000, description="Driver domain: map or copy, respond. Calibrated (tied to receive)."
    )
    frontend_receive_ns: DurationNs = Field(
        3_000, description="Guest: front-end and network stack, receive. Assumption: 4,800 cycles at 1.6 GHz."
    )
    frontend_transmit_ns: DurationNs = Field(
        2_000,
        description="Guest: network stack and front-end, transmit. Assumption: 3,200 cycles at 1.6 GHz.",
    )

    def connect(self, wiring: Wiring) -> "ParavirtualPort":
        """Build rings and front-end."""
        return ParavirtualPort(self, wiring)


class ParavirtualPort:
    """Front-end and rings of one guest."""

    def __init__(self, spec: ParavirtualSpec, wiring: Wiring) -> None:
        self.transmit_ns = spec.frontend_transmit_ns
        self.backend_transmit_ns = spec.backend_transmit_ns
        self._backend_receive_ns = spec.backend_receive_ns
        self._drops = wiring.drops
        self.receive_ring = Ring("receive ring", spec.ring_packets)
        self.transmit_ring = Ring("transmit ring", spec.ring_packets)
        self.send_ring = self.transmit_ring
        guest = wiring.guest
        self.frontend = Stage(
            "front-end",
            guest,
            guest.vcpus[0],
            self.receive_ring,
            wiring.up,
            event_ns=spec.event_ns,
            packet_ns=spec.frontend_receive_ns,
        )
        wiring.driver.serve(self)

    def start(self) -> None:
        """Ask for the first event."""
        self.frontend.start()

    def admit(self, packet: Packet) -> int:
        """Reserve a receive slot or drop."""
        if self.receive_ring.reserve():
            return self._backend_receive_ns
        self._drops.drop(packet, "receive ring", "no slot")
        return -1

    def receive(self, packet: Packet) -> None:
        """Fill the slot: the back-end has done its work."""
        self.receive_ring.put(packet)

    def send(self, packet: Packet) -> bool:
        """Into the transmit ring; False if it is full."""
        return self.transmit_ring.push(packet)

    def in_flight(self) -> int:
        """Packets in the rings and in the front-end's hands."""
        return len(self.receive_ring) + self.frontend.held + len(self.transmit_ring)

    def rings(self) -> list[Ring]:
        """Both rings."""
        return [self.receive_ring, self.transmit_ring]

    def stages(self) -> list[Stage]:
        """Stages of the guest's side."""
        return [self.frontend]
