"""Emulated NIC whose device model runs in a small domain of its own (Xen stub domain).

The device model gets a vCPU and priority of its own (weight: the guest's) instead of competing as a
process of the driver domain; in exchange each packet also crosses the split driver between the driver
domain and the stub domain.  Costs of emulation as for ``emulated``; those of the split driver as for
``paravirtual``.
Left out: the stub domain's shared rings of 256 slots (the tap queue stands for them).
"""

from typing import ClassVar, Literal

from pydantic import Field

from vftsim.net.iopath import IO_PATHS, Wiring
from vftsim.net.iopath_emulated import EmulatedPort, _DeviceModelCosts
from vftsim.spec.units import DurationNs


@IO_PATHS.register
class StubDomainSpec(_DeviceModelCosts):
    """Emulated NIC, device model in a stub domain."""

    needs_stub_domain: ClassVar[bool] = True

    kind: Literal["stub_domain"] = "stub_domain"
    tap_packets: int = Field(256, ge=1, le=100_000, description="Slots between driver and stub domain.")
    backend_ns: DurationNs = Field(
        20_000, description="Driver domain: split driver to the stub domain, each way. As for paravirtual."
    )

    def connect(self, wiring: Wiring) -> EmulatedPort:
        """Build the device model in its own domain."""
        if wiring.stub is None:
            raise ValueError("a stub domain path needs a stub domain")
        return EmulatedPort(self, wiring, wiring.stub, extra_ns=self.backend_ns)
