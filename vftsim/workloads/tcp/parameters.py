"""What a model file says about bulk TCP."""

from typing import ClassVar, Literal

from pydantic import Field

from vftsim.kernel import Kind
from vftsim.platform.io.packet import application, workload
from vftsim.spec.base import Spec
from vftsim.spec.units import ByteCount, DurationNs, PeriodNs, PositiveDurationNs
from vftsim.workloads.stations import StationsSpec

bulk_tcp = workload.kind("bulk_tcp")
tcp_sink = application.kind("tcp_sink")
tcp_source = application.kind("tcp_source")

HEADER_BYTES = 90
"""Of a segment on the wire: 20 IP, 32 TCP with time stamp, 14 + 4 Ethernet, 20 preamble and gap."""


class BulkTcpSpec(Spec):
    """Clients that send to the server, or receive from it, as fast as TCP lets them."""

    part: ClassVar[Kind] = bulk_tcp
    header_bytes: ClassVar[int] = HEADER_BYTES

    kind: Literal["bulk_tcp"] = "bulk_tcp"
    to: str = Field("server", description="Domain at the other end.")
    direction: Literal["upload", "download"] = Field("upload", description="Who sends. Default: iperf, the client.")
    clients: int = Field(1, ge=1, le=1000, description="Connections, each on a machine of its own.")
    duration: PositiveDurationNs = Field(10_000_000_000, description="How long they send. Default: iperf, 10 s.")
    interval: PeriodNs = Field(1_000_000_000, description="Length of the intervals that are reported.")
    spread: DurationNs = Field(1_000_000, description="Clients begin at random within this time. Assumption.")
    window: ByteCount = Field(
        128 * 1024,
        ge=2_000,
        le=5_900_000,
        description="Receive window. Assumption: what Linux tunes itself to in a LAN.",
    )
    mss: int = Field(1448, ge=536, le=8948, description="Payload of a segment. Default: 1500 less 52 TCP/IP headers.")
    initial_window: int = Field(10, ge=1, le=64, description="Segments sent at first. Default: RFC 6928, Linux 2.6.39.")
    delayed_ack: DurationNs = Field(
        40_000_000, description="Longest wait of an acknowledgement (RFC 1122, 4.2.3.2); 0: none. Default: Linux."
    )
    min_rto: PositiveDurationNs = Field(200_000_000, description="Least retransmission time-out. Default: Linux.")
    first_rto: PositiveDurationNs = Field(1_000_000_000, description="Before a round trip is known. Default: RFC 6298.")
    reaction: DurationNs = Field(
        25_000,
        description="A client reacts to an acknowledgement after a random time, uniform up to this; 0: at once. "
        "Assumption: two segments' time. Perfect timing locks clients out at a full queue (traffic phase effects, "
        "Floyd and Jacobson 1992).",
    )
    segmentation_offload: bool = Field(
        False, description="Stacks handle up to 64 KiB as one packet (TSO at the sender, LRO or GRO at the receiver)."
    )
    network: StationsSpec = Field(default_factory=StationsSpec, description="How the clients hang on the network.")

    @property
    def most_segments(self) -> int:
        """Segments that are handled as one packet."""
        return 65_536 // self.mss if self.segmentation_offload else 1


class _TcpEndSpec(Spec):
    """A process for each connection, at the server's end."""

    segment_cost: DurationNs = Field(
        2_000, description="CPU time of a packet of data, beside the path's: TCP and the system call. Assumption."
    )
    copy_cost: DurationNs = Field(250, description="CPU time to copy 1 KiB. Assumption: 4 GB/s.")
    ack_cost: DurationNs = Field(1_000, description="CPU time of an acknowledgement, made or taken in. Assumption.")


class TcpSinkSpec(_TcpEndSpec):
    """Takes in what the clients send: ``iperf -s``."""

    part: ClassVar[Kind] = tcp_sink

    kind: Literal["tcp_sink"] = "tcp_sink"


class TcpSourceSpec(_TcpEndSpec):
    """Sends to every client that asks: ``iperf -s`` for ``iperf -c --reverse``."""

    part: ClassVar[Kind] = tcp_source

    kind: Literal["tcp_source"] = "tcp_source"
