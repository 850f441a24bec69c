"""Emulated NIC of an unmodified guest (HVM): a device model process answers every register access.

Way in: driver domain receive -> tap device queue -> device model, a process of the driver domain that
copies the packet into guest memory and injects an interrupt -> the guest's driver, whose register
accesses each leave the guest (VM exit) and are answered by the device model.  Way out: the same
accesses, then the device model writes the packet to the tap device and the driver domain transmits.

Cost of an access: exit, switch to the device model's domain, emulation, switch back.  Here the guest
pays the exit and the driver domain the emulation, as named costs; the guest's wait for the answer is
approximated by charging the exit's round trip to the guest's own work.
Assumption: ``accesses_receive`` and ``accesses_transmit`` register accesses a packet; no published
number was found (several exits a packet is general knowledge), so they are parameters without calibration.
"""

from typing import Literal

from pydantic import Field

from vftsim.cpu import Guest
from vftsim.net.iopath import IO_PATHS, IoPathSpec, Stage, Wiring
from vftsim.net.rings import Packet, Ring
from vftsim.spec.units import DurationNs


class _DeviceModelCosts(IoPathSpec):
    """Costs of an emulated NIC, wherever its device model runs."""

    exit_ns: DurationNs = Field(
        4_000, description="One register access as the guest sees it: exit, answer, entry. Assumption."
    )
    accesses_receive: int = Field(2, ge=0, le=100, description="Register accesses a received packet. Assumption.")
    accesses_transmit: int = Field(2, ge=0, le=100, description="Register accesses a sent packet. Assumption.")
    emulation_ns: DurationNs = Field(6_000, description="Device model's work for one register access. Assumption.")
    copy_ns: DurationNs = Field(4_000, description="Device model: read or write the tap device, copy. Assumption.")
    driver_receive_ns: DurationNs = Field(4_000, description="Guest: driver and network stack. Prior: native.")
    driver_transmit_ns: DurationNs = Field(3_000, description="Guest: network stack and driver. Prior: native.")
    tap_packets: int = Field(500, ge=1, le=100_000, description="Queue of the tap device. Default: Linux tun.")
    ring_packets: int = Field(64, ge=1, le=4096, description="Receive ring of the emulated NIC. Assumption.")


@IO_PATHS.register
class EmulatedSpec(_DeviceModelCosts):
    """Emulated NIC, device model in the driver domain."""

    kind: Literal["emulated"] = "emulated"

    def connect(self, wiring: Wiring) -> "EmulatedPort":
        """Build the device model as a process of the driver domain."""
        return EmulatedPort(self, wiring, wiring.driver.guest, extra_ns=0)


class EmulatedPort:
    """Tap device, device model and emulated NIC of one guest."""

    def __init__(self, spec: _DeviceModelCosts, wiring: Wiring, model: Guest, extra_ns: int) -> None:
        self.transmit_ns = spec.driver_transmit_ns + spec.accesses_transmit * spec.exit_ns
        self.backend_transmit_ns = extra_ns
        self._extra_ns = extra_ns
        self._drops = wiring.drops
        self._guest_ring = Ring("emulated receive ring", spec.ring_packets)
        self.send_ring = Ring("emulated transmit ring", spec.ring_packets)
        self.tap = Ring("tap queue", spec.tap_packets)
        self.transmit_ring = Ring("tap transmit queue", spec.tap_packets)
        guest = wiring.guest
        self.driver = Stage(
            "guest driver", guest, guest.vcpus[0], self._guest_ring, wiring.up, event_ns=spec.event_ns,
            packet_ns=spec.driver_receive_ns + spec.accesses_receive * spec.exit_ns,
        )  # fmt: skip
        self.model_in = Stage(
            "device model receive", model, None, self.tap, self._inject, event_ns=spec.event_ns,
            packet_ns=spec.copy_ns + spec.accesses_receive * spec.emulation_ns,
        )  # fmt: skip
        self.model_out = Stage(
            "device model transmit", model, None, self.send_ring, self._leave, event_ns=spec.event_ns,
            packet_ns=spec.copy_ns + spec.accesses_transmit * spec.emulation_ns,
        )  # fmt: skip
        wiring.driver.serve(self)

    def start(self) -> None:
        """Ask for the first events."""
        for stage in (self.driver, self.model_in, self.model_out):
            stage.start()

    def admit(self, packet: Packet) -> int:
        """Reserve a place in the tap queue, or drop."""
        if self.tap.reserve():
            return self._extra_ns
        self._drops.drop(packet, "tap queue", "full")
        return -1

    def receive(self, packet: Packet) -> None:
        """Into the tap queue."""
        self.tap.put(packet)

    def _inject(self, packet: Packet) -> None:
        if not self._guest_ring.push(packet):
            self._drops.drop(packet, "emulated receive ring", "full")

    def _leave(self, packet: Packet) -> None:
        if not self.transmit_ring.push(packet):
            self._drops.drop(packet, "tap transmit queue", "full")

    def send(self, packet: Packet) -> bool:
        """Into the emulated NIC; False if its ring is full."""
        return self.send_ring.push(packet)

    def in_flight(self) -> int:
        """Packets in all queues and in the hands of driver and device model."""
        held = self.driver.held + self.model_in.held + self.model_out.held
        return held + sum(len(ring) for ring in self.rings())

    def rings(self) -> list[Ring]:
        """Queues of the path, way in first."""
        return [self.tap, self._guest_ring, self.send_ring, self.transmit_ring]

    def stages(self) -> list[Stage]:
        """Stages of the guest's side."""
        return [self.driver, self.model_in, self.model_out]
