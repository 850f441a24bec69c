"""Emulated NIC whose device model runs in a small domain of its own (Xen stub domain).

The device model gets a vCPU and priority of its own (weight: the guest's) instead of competing as a
process of the driver domain; in exchange each packet also crosses the split driver between the driver
domain and the stub domain.  Costs of emulation as for ``emulated``; those of the split driver as for
``paravirtual``.
Left out: the stub domain's shared rings of 256 slots (the tap queue stands for them).
"""

from typing import ClassVar, Literal

from pydantic import Field

from vftsim.platform.io.build import Io, Site
from vftsim.platform.io.packet import path
from vftsim.platform.io.parameters import IO_PATHS
from vftsim.platform.io.paths._device_model import DeviceModelCosts, has_device_model
from vftsim.spec.units import DurationNs

stub_domain = path.kind("stub_domain")
has_device_model(stub_domain)


@IO_PATHS.register
class StubDomain(DeviceModelCosts):
    """Emulated NIC, device model in a stub domain."""

    needs_stub_domain: ClassVar[bool] = True

    products: ClassVar[tuple[str, ...]] = ("stubdom",)
    kind: Literal["stub_domain"] = "stub_domain"
    tap_packets: int = Field(256, ge=1, le=100_000, description="Slots between driver and stub domain.")
    backend_cost: DurationNs = Field(
        20_000, description="Driver domain: split driver to the stub domain, each way. As for paravirtual."
    )

    def connect(self, io: Io, site: Site) -> None:
        """Add the device model in its own domain."""
        if site.stub == 0:
            raise ValueError("a stub domain path needs a stub domain")
        self.connect_model(io, site, site.stub, self.backend_cost)
