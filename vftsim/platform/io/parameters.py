"""What a model file says about I/O paths: which one each domain has (:mod:`vftsim.platform.io.paths`)."""

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from vftsim.kernel import Engine, Kind
from vftsim.platform.io.build import Io, Site
from vftsim.platform.io.packet import path
from vftsim.spec.base import Spec
from vftsim.spec.registry import PartRegistry, discover
from vftsim.spec.units import DurationNs


class IoPathSpec(Spec):
    """Base of the I/O paths; costs are CPU time for each packet unless said otherwise."""

    part: ClassVar[Kind]
    tasks: ClassVar[tuple[Kind, ...]]
    needs_driver_domain: ClassVar[bool] = True
    needs_stub_domain: ClassVar[bool] = False
    events_a_packet: ClassVar[float] = 10.0
    """Events of a packet there and of its answer back while CPUs keep up: for an estimate, measured."""
    events_a_packet_moderated: ClassVar[float | None] = None
    """Those where the host's card hands packets over in batches, if that changes them."""
    has_driver_process: ClassVar[bool] = False
    """Whether a process of the driver domain has a part in it: a device model."""
    has_host_ring: ClassVar[bool] = True
    """Whether packets enter by the receive ring of a network interface of the host."""
    saves_ring: ClassVar[bool] = False
    """Whether what stands in the guest's receive ring when its state is taken is there when the state is restored.

    A card that is emulated is saved with its guest, its descriptors and buffers are guest memory.  Xen's front end
    makes its ring anew when it connects to another back end (Linux ``xen-netfront.c``, ``xennet_connect``); a real card
    stays behind.
    """

    def taken_in(self, engine: Engine, port: int) -> int | None:
        """Return how many packets a port's card has taken in from the link; None where it is not the guest's own."""
        return None

    @property
    def packet_work_ns(self) -> int:
        """About the CPU time of a packet there and back, for an estimate; 0 where it hangs on how packets come."""
        return 0

    def without_effect(self, is_guarded: bool) -> Mapping[str, str]:
        """Return why parameters have no effect with the others' values, by key."""
        return {}

    def connect(self, io: Io, site: Site) -> None:
        """Add the path's rings and stages and write its parameters into the ports' records."""
        raise TypeError(f"{type(self).__name__} must say how to connect itself")


class RingPathSpec(IoPathSpec):
    """Base of the paths by which packets enter a guest through a ring and an event."""

    event_cost: DurationNs = Field(
        1_500,
        description="Upcall of the guest for an interrupt or event. Assumption: 2,400 cycles at 1.6 GHz.",
    )

    @property
    def packet_work_ns(self) -> int:
        """About the CPU time of a packet there and back, for an estimate: all costs of the path."""
        return sum(value for name, value in self if name.endswith("_cost"))


IO_PATHS: PartRegistry[IoPathSpec] = PartRegistry("I/O path", IoPathSpec, path.kinds)


def io_paths() -> PartRegistry[IoPathSpec]:
    """Return the registry with every path of :mod:`vftsim.platform.io.paths` in it."""
    discover("vftsim.platform.io.paths")
    return IO_PATHS
