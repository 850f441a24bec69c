"""A call server: a pool of threads that compute and answer each packet."""

from typing import Any, ClassVar, Literal

from pydantic import Field

from vftsim.kernel import Kind, Sim, Table
from vftsim.platform.io.packet import Application, application, go_on, receive
from vftsim.spec.units import DurationNs
from vftsim.workloads.parts import APPLICATIONS
from vftsim.workloads.pool import PoolSpec, pools, take_in, wake_sender

signaling_server = application.kind("signaling_server")


@APPLICATIONS.register
class SignalingServerSpec(PoolSpec):
    """A call server: computes and answers each packet."""

    part: ClassVar[Kind] = signaling_server
    speaks: ClassVar[str] = "calls"
    tables: ClassVar[tuple[Table[Any], ...]] = (pools,)

    kind: Literal["signaling_server"] = "signaling_server"
    threads: int = Field(4, ge=1, le=1000, description="Threads. Assumption.")
    packet_ns: DurationNs = Field(
        100_000, description="Computation a packet. Assumption: 'some basic computation' (Patnaik 2009, 4)."
    )
    receive_buffer_bytes: int = Field(110_592, ge=1, description="Socket receive buffer. Default: Linux 2.6.18.")
    packet_charge_bytes: int = Field(496, ge=1, description="What a packet takes of it.")


@signaling_server.implements(receive)
def receive_request(sim: Sim, program: Application, packet: int) -> None:
    """Into the socket."""
    take_in(sim, pools(sim)[program.own], packet)


@signaling_server.implements(go_on)
def go_on_answering(sim: Sim, program: Application, packet: int) -> None:
    """Wake the thread that waits with this packet."""
    wake_sender(sim, pools(sim)[program.own], packet)
