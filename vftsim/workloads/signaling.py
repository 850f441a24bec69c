"""A call server: a pool of threads that compute and answer each packet."""

from typing import Any, ClassVar, Literal

from pydantic import Field

from vftsim.kernel import Kind, Table
from vftsim.platform.io.packet import application
from vftsim.spec.units import DurationNs
from vftsim.workloads.parts import APPLICATIONS
from vftsim.workloads.pool import PoolSpec, is_pool, pools

signaling_server = application.kind("signaling_server")
is_pool(signaling_server)


@APPLICATIONS.register
class SignalingServerSpec(PoolSpec):
    """A call server: computes and answers each packet."""

    part: ClassVar[Kind] = signaling_server
    speaks: ClassVar[str] = "calls"
    tables: ClassVar[tuple[Table[Any], ...]] = (pools,)

    kind: Literal["signaling_server"] = "signaling_server"
    threads: int = Field(4, ge=1, le=1000, description="Threads. Assumption.")
    packet_cost: DurationNs = Field(
        100_000, description="Computation a packet. Assumption: 'some basic computation' (Patnaik 2009, 4)."
    )
    receive_buffer_bytes: int = Field(110_592, ge=1, description="Socket receive buffer. Default: Linux 2.6.18.")
    packet_charge_bytes: int = Field(496, ge=1, description="What a packet takes of it.")
