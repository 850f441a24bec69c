"""No hypervisor: the operating system drives its NIC.

The interrupt goes to the first CPU (no interrupt balancing within milliseconds), whose softirq does all
receive work; applications run on every CPU.
Costs: about 5,000 cycles for a small packet in and out on Linux of the time; here 6 us at 1.6 GHz for
driver and stack together, both ways (prior).
"""

from typing import ClassVar, Literal

from pydantic import Field

from vftsim.kernel import Kind
from vftsim.platform.io.build import Io, Site
from vftsim.platform.io.guest_driver import guest_driver
from vftsim.platform.io.guest_end import stands_by_its_rings
from vftsim.platform.io.packet import arrive, path, send
from vftsim.platform.io.parameters import IO_PATHS, RingPathSpec
from vftsim.platform.io.paths.direct import arrive_direct, drive_own_nic, send_direct
from vftsim.spec.units import DurationNs

native = path.kind("native")
stands_by_its_rings(native)
native.implements(arrive)(arrive_direct)
native.implements(send)(send_direct)


@IO_PATHS.register
class Native(RingPathSpec):
    """Bare metal."""

    events_a_packet: ClassVar[float] = 3.0
    tasks: ClassVar[tuple[Kind, ...]] = (guest_driver,)
    needs_driver_domain: ClassVar[bool] = False

    products: ClassVar[tuple[str, ...]] = ("bare_metal",)
    kind: Literal["native"] = "native"
    driver_receive_cost: DurationNs = Field(3_500, description="NIC driver and network stack, receive. Prior.")
    driver_transmit_cost: DurationNs = Field(2_500, description="Network stack and NIC driver, transmit. Prior.")

    def connect(self, io: Io, site: Site) -> None:
        drive_own_nic(io, site, self.event_cost, self.driver_receive_cost, self.driver_transmit_cost)
