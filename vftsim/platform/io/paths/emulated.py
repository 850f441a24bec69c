"""Emulated NIC of an unmodified guest (HVM): a device model process answers every register access.

Way in: driver domain receive -> tap device queue -> device model, a process of the driver domain that
copies the packet into guest memory and injects an interrupt -> the guest's driver, whose register
accesses each leave the guest (VM exit) and are answered by the device model.  Way out: the same
accesses, then the device model writes the packet to the tap device and the driver domain transmits.
Costs: :mod:`._device_model`.
"""

from typing import ClassVar, Literal

from vftsim.kernel import Kind, Sim
from vftsim.platform.io.build import Io
from vftsim.platform.io.guest_end import stands_by_its_rings
from vftsim.platform.io.nic import nics
from vftsim.platform.io.packet import Port, arrive, carry_in, path, reserve, send
from vftsim.platform.io.parameters import IO_PATHS, Site
from vftsim.platform.io.paths._device_model import DeviceModelCosts, put_into_tap, reserve_in_tap, send_emulated
from vftsim.platform.io.stage import take_in

emulated = path.kind("emulated")
stands_by_its_rings(emulated)


@IO_PATHS.register
class Emulated(DeviceModelCosts):
    """Emulated NIC, device model in the driver domain."""

    part: ClassVar[Kind] = emulated
    has_driver_process: ClassVar[bool] = True

    products: ClassVar[tuple[str, ...]] = ("e1000", "qemu", "rtl8139")
    kind: Literal["emulated"] = "emulated"

    def connect(self, io: Io, site: Site) -> None:
        """Add the device model as a process of the driver domain."""
        self.connect_model(io, site, site.driver, 0)


@emulated.implements(arrive)
def arrive_emulated(sim: Sim, port: Port, packet: int) -> None:
    """To the ring of the driver domain's NIC."""
    take_in(sim, nics(sim)[port.nic], packet)


@emulated.implements(reserve)
def reserve_emulated(sim: Sim, port: Port, packet: int) -> int:
    """Keep a place in the tap queue."""
    return reserve_in_tap(sim, port, packet)


@emulated.implements(carry_in)
def carry_in_emulated(sim: Sim, port: Port, packet: int) -> None:
    """Into the tap queue."""
    put_into_tap(sim, port, packet)


@emulated.implements(send)
def send_by_emulated(sim: Sim, port: Port, packet: int) -> bool:
    """Into the emulated NIC."""
    return send_emulated(sim, port, packet)
