"""Emulated NIC of an unmodified guest (HVM): a device model process answers every register access.

Way in: driver domain receive -> tap device queue -> device model, a process of the driver domain that
copies the packet into guest memory and injects an interrupt -> the guest's driver, whose register
accesses each leave the guest (VM exit) and are answered by the device model.  Way out: the same
accesses, then the device model writes the packet to the tap device and the driver domain transmits.
Costs: :mod:`._device_model`.
"""

from typing import ClassVar, Literal

from vftsim.platform.io.build import Io, Site
from vftsim.platform.io.packet import path
from vftsim.platform.io.parameters import IO_PATHS
from vftsim.platform.io.paths._device_model import DeviceModelCosts, has_device_model

emulated = path.kind("emulated")
has_device_model(emulated)


@IO_PATHS.register
class Emulated(DeviceModelCosts):
    """Emulated NIC, device model in the driver domain."""

    has_driver_process: ClassVar[bool] = True

    products: ClassVar[tuple[str, ...]] = ("e1000", "qemu", "rtl8139")
    kind: Literal["emulated"] = "emulated"

    def connect(self, io: Io, site: Site) -> None:
        """Add the device model as a process of the driver domain."""
        self.connect_model(io, site, site.driver, 0)
