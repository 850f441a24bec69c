"""The guest owns its NIC: VMM bypass, PCI passthrough, SR-IOV.

No driver domain on the data path.  The guest pays the NIC driver itself; the interrupt still enters
the hypervisor, which sends it on as an event (before posted interrupts), and so costs more than on
bare metal.  Consequence left to other parts: without a software interposer the output of such a
guest cannot be held back or logged by a protection mechanism.
"""

from typing import ClassVar, Literal

from pydantic import Field

from vftsim.net.iopath import IO_PATHS, IoPathSpec, Stage, Wiring
from vftsim.net.rings import Packet, Ring
from vftsim.spec.units import DurationNs


@IO_PATHS.register
class DirectSpec(IoPathSpec):
    """Direct I/O: the guest drives its own NIC."""

    needs_driver_domain: ClassVar[bool] = False

    kind: Literal["direct"] = "direct"
    interrupt_exit_ns: DurationNs = Field(
        1_500,
        description="Hypervisor's part in an interrupt, once a batch. Assumption: 2,400 cycles at 1.6 GHz.",
    )
    driver_receive_ns: DurationNs = Field(
        4_000, description="Guest: NIC driver and network stack, receive. Prior: native Linux."
    )
    driver_transmit_ns: DurationNs = Field(
        3_000, description="Guest: network stack and NIC driver, transmit. Prior: native Linux."
    )

    def connect(self, wiring: Wiring) -> "OwnedNicPort":
        """Build the guest's driver."""
        return OwnedNicPort(
            wiring, self.event_ns + self.interrupt_exit_ns, self.driver_receive_ns, self.driver_transmit_ns
        )


class OwnedNicPort:
    """A network driver on a NIC that no other domain touches."""

    def __init__(self, wiring: Wiring, event_ns: int, receive_ns: int, transmit_ns: int) -> None:
        self.transmit_ns = transmit_ns
        self.transmit_ring = Ring("transmit ring", wiring.nic.capacity)  # never fills: the wire is faster
        self.send_ring = self.transmit_ring
        self.backend_transmit_ns = 0
        self._out = wiring.out
        guest = wiring.guest
        self.driver = Stage(
            "guest driver",
            guest,
            guest.vcpus[0],
            wiring.nic,
            wiring.up,
            event_ns=event_ns,
            packet_ns=receive_ns,
        )

    def start(self) -> None:
        """Ask for the first interrupt."""
        self.driver.start()

    def admit(self, packet: Packet) -> int:
        """No driver domain ever asks."""
        raise AssertionError("a packet for a guest with its own NIC reached a driver domain")

    def receive(self, packet: Packet) -> None:
        """No driver domain ever calls."""
        raise AssertionError("a packet for a guest with its own NIC reached a driver domain")

    def send(self, packet: Packet) -> bool:
        """Straight to the wire."""
        self._out(packet)
        return True

    def in_flight(self) -> int:
        """Packets in the driver's hands."""
        return self.driver.held

    def rings(self) -> list[Ring]:
        """None are shared."""
        return []

    def stages(self) -> list[Stage]:
        """Stages of the guest's side."""
        return [self.driver]
