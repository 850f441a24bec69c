"""No hypervisor: the operating system drives its NIC.

The interrupt goes to the first CPU (no interrupt balancing within milliseconds), whose softirq does all
receive work; applications run on every CPU.
Costs: about 5,000 cycles for a small packet in and out on Linux of the time; here 6 us at 1.6 GHz for
driver and stack together, both ways (prior).
"""

from typing import ClassVar, Literal

from pydantic import Field

from vftsim.net.iopath import IO_PATHS, IoPathSpec, Wiring
from vftsim.net.iopath_direct import OwnedNicPort
from vftsim.spec.units import DurationNs


@IO_PATHS.register
class NativeSpec(IoPathSpec):
    """Bare metal."""

    needs_driver_domain: ClassVar[bool] = False

    kind: Literal["native"] = "native"
    driver_receive_ns: DurationNs = Field(3_500, description="NIC driver and network stack, receive. Prior.")
    driver_transmit_ns: DurationNs = Field(2_500, description="Network stack and NIC driver, transmit. Prior.")

    def connect(self, wiring: Wiring) -> OwnedNicPort:
        """Build the driver."""
        return OwnedNicPort(wiring, self.event_ns, self.driver_receive_ns, self.driver_transmit_ns)
