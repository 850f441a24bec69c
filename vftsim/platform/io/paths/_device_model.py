"""The device model of an emulated NIC, wherever it runs: spec of its costs, records, functions.

Cost of an access: exit, switch to the device model's domain, emulation, switch back.  Here the guest
pays the exit and the device model's domain the emulation, as named costs; the guest's wait for the answer is
approximated by charging the exit's round trip to the guest's work.
Assumption: ``accesses_receive`` and ``accesses_transmit`` register accesses a packet; no published
number was found (several exits a packet is general knowledge), so they are parameters without calibration.
"""

from typing import ClassVar

from pydantic import Field

from vftsim.kernel import BESIDE, Kind, Record, Sim, Table
from vftsim.platform.io.build import Io, Site
from vftsim.platform.io.driver_domain import TASKS, arrive_at_driver, back_ends
from vftsim.platform.io.guest_driver import guest_driver
from vftsim.platform.io.guest_end import is_gone, send_by_ring, stands_by_its_rings
from vftsim.platform.io.packet import REFUSED, Port, arrive, carry_in, drop, packets, ports, reserve, send
from vftsim.platform.io.parameters import RingPathSpec
from vftsim.platform.io.ring import keep_slot, rings
from vftsim.platform.io.stage import Stage, deliver, push, put, task
from vftsim.spec.units import DurationNs

injecting = task.kind("device model receive")
fetching = task.kind("device model transmit")


def has_device_model(kind: Kind) -> None:
    """Let packets of a path of this kind go by the tap device and the rings of an emulated NIC."""
    stands_by_its_rings(kind)
    kind.implements(arrive)(arrive_at_driver)
    kind.implements(reserve)(reserve_in_tap)
    kind.implements(carry_in)(put_into_tap)
    kind.implements(send)(send_by_ring)


class DeviceModelCosts(RingPathSpec):
    """Costs of an emulated NIC, wherever its device model runs."""

    events_a_packet: ClassVar[float] = 17.0
    events_a_packet_moderated: ClassVar[float | None] = 4.0
    saves_ring: ClassVar[bool] = True
    tasks: ClassVar[tuple[Kind, ...]] = (guest_driver, injecting, fetching, *TASKS)

    exit_cost: DurationNs = Field(
        4_000, description="One register access as the guest sees it: exit, answer, entry. Assumption."
    )
    accesses_receive: int = Field(2, ge=0, le=100, description="Register accesses a received packet. Assumption.")
    accesses_transmit: int = Field(2, ge=0, le=100, description="Register accesses a sent packet. Assumption.")
    emulation_cost: DurationNs = Field(6_000, description="Device model's work for one register access. Assumption.")
    copy_cost: DurationNs = Field(4_000, description="Device model: read or write the tap device, copy. Assumption.")
    driver_receive_cost: DurationNs = Field(4_000, description="Guest: driver and network stack. Prior: native.")
    driver_transmit_cost: DurationNs = Field(3_000, description="Guest: network stack and driver. Prior: native.")
    tap_packets: int = Field(500, ge=1, le=100_000, description="Queue of the tap device. Default: Linux tun.")
    ring_packets: int = Field(64, ge=1, le=4096, description="Receive ring of the emulated NIC. Assumption.")

    def connect_model(self, io: Io, site: Site, model: int, extra_ns: int) -> None:
        """Add tap device, device model (in the domain ``model``) and emulated NIC.

        ``extra_ns`` is what a packet costs the driver domain beyond bridge and driver, each way.
        """
        name = site.name
        tap = io.add_ring(name, "tap queue", self.tap_packets)
        guest_ring = io.add_ring(name, "emulated receive ring", self.ring_packets)
        send_ring = io.add_ring(name, "emulated transmit ring", self.ring_packets)
        tap_out = io.add_ring(name, "tap transmit queue", self.tap_packets)
        io.add_guest_driver(
            site,
            "guest driver",
            ring=guest_ring,
            event_ns=self.event_cost,
            packet_ns=self.driver_receive_cost + self.accesses_receive * self.exit_cost,
        )
        io.add_stage(
            name,
            "device model receive",
            injecting,
            model,
            ring=tap,
            event_ns=self.event_cost,
            packet_ns=self.copy_cost + self.accesses_receive * self.emulation_cost,
        )
        io.add_stage(
            name,
            "device model transmit",
            fetching,
            model,
            ring=send_ring,
            event_ns=self.event_cost,
            packet_ns=self.copy_cost + self.accesses_transmit * self.emulation_cost,
        )
        io.serve(site.transmit, tap_out)
        for row in site.ports:
            port, device_model = io.engine.rows(ports)[row], io.engine.rows(device_models)[row]
            port.transmit_ns = self.driver_transmit_cost + self.accesses_transmit * self.exit_cost
            port.send_ring = send_ring
            port.exits_in, port.exits_out = self.accesses_receive, self.accesses_transmit
            device_model.tap, device_model.guest_ring, device_model.tap_out = tap, guest_ring, tap_out
            device_model.extra_ns = extra_ns
            io.engine.rows(back_ends)[row].transmit_ns = extra_ns


class DeviceModel(Record):
    """The queues of a port, way in first, and what the driver domain pays for a packet that comes in."""

    tap: int
    guest_ring: int
    tap_out: int
    extra_ns: int


device_models = Table("device_models", DeviceModel, beside=ports)


def reserve_in_tap(sim: Sim, port: Port, packet: int, device_model: DeviceModel = BESIDE) -> int:
    """Keep a place in the tap queue, or drop the packet."""
    if is_gone(sim, packet):
        return REFUSED
    ring = rings(sim)[device_model.tap]
    if keep_slot(ring):
        return device_model.extra_ns
    drop(sim, packet, ring.drop_row)
    return REFUSED


def put_into_tap(sim: Sim, port: Port, packet: int) -> None:
    put(sim, rings(sim)[device_models(sim)[port.row].tap], packet)


@injecting.implements(deliver)
def inject(sim: Sim, stage: Stage, packet: int) -> None:
    """Copy into guest memory and inject an interrupt; a guest without a free buffer loses the packet."""
    if not is_gone(sim, packet):
        push_or_drop(sim, device_models(sim)[packets(sim)[packet].port].guest_ring, packet)


@fetching.implements(deliver)
def fetch(sim: Sim, stage: Stage, packet: int) -> None:
    """Write to the tap device."""
    push_or_drop(sim, device_models(sim)[packets(sim)[packet].port].tap_out, packet)


def push_or_drop(sim: Sim, row: int, packet: int) -> None:
    """Put a packet into a ring, or drop it there."""
    ring = rings(sim)[row]
    if not push(sim, ring, packet):
        drop(sim, packet, ring.drop_row)
