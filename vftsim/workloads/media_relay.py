"""A media relay: a pool of threads that take a packet, compute, and send it on."""

from typing import Any, ClassVar, Literal

from pydantic import Field

from vftsim.kernel import Kind, Table
from vftsim.platform.io.packet import application
from vftsim.spec.units import DurationNs
from vftsim.workloads.dirty_pages import pages_per_request
from vftsim.workloads.parts import APPLICATIONS
from vftsim.workloads.pool import PoolSpec, is_pool, pools

media_relay = application.kind("media_relay")
is_pool(media_relay)


@APPLICATIONS.register
class MediaRelaySpec(PoolSpec):
    """A pool of threads that take a packet, compute, and send it on."""

    part: ClassVar[Kind] = media_relay
    speaks: ClassVar[str] = "rtp"
    tables: ClassVar[tuple[Table[Any], ...]] = (pools,)

    kind: Literal["media_relay"] = "media_relay"
    threads: int = Field(8, ge=1, le=1000, description="Threads of the pool. Assumption: any number above the vCPUs.")
    packet_cost: DurationNs = Field(
        18_000, description="Thread: receive call, computation, send call, a packet. Calibrated."
    )
    receive_buffer_bytes: int = Field(
        110_592,
        ge=1,
        description="Socket receive buffer. Default: Linux 2.6.18 net.core.rmem_default, 32-bit.",
    )
    packet_charge_bytes: int = Field(
        496,
        ge=1,
        description="What a packet takes of it: 320 bytes of data and 176 of sk_buff (2.6.18).",
    )
    pages_per_request: float = pages_per_request(1.0, "its buffer, from which it is sent on")
