"""What a model file says about the web server and its client."""

from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from vftsim.kernel import Kind
from vftsim.platform.io.packet import application, workload
from vftsim.spec.base import Spec
from vftsim.spec.units import ByteCount, DurationNs, Percent, PeriodNs, PositiveDurationNs, RatePerSecond

prefork_web_server = application.kind("prefork_web_server")
httperf = workload.kind("httperf")

HEADER_BYTES = 90
"""Of a segment on the wire: 20 IP, 32 TCP with time stamp, 18 Ethernet, 20 preamble and gap."""
MSS = 1448
PIECE_BYTES = 65_536 // MSS * MSS
"""A reply leaves in pieces of this size: what the stack hands down at once."""


def wire_bytes(payload_bytes: int) -> int:
    """Return what a piece takes on the wire, in segments of full size."""
    return payload_bytes + HEADER_BYTES * max(1, -(-payload_bytes // MSS))


class SwapSpec(Spec):
    """Memory of the guest and its swap disk; what does not fit of a process is read in when it begins a request."""

    memory: ByteCount = Field(0, description="Of the guest; 0: there is always enough, nothing is swapped.")
    base: ByteCount = Field(128 * 1024**2, description="Kernel and everything else. Assumption.")
    process: ByteCount = Field(12 * 1024**2, gt=0, description="A server process with the script. Assumption.")
    read_rate: ByteCount = Field(
        30 * 1000**2, gt=0, description="Bytes a second that the swap disk reads. Assumption: one disk, some seeks."
    )


class PreforkWebServerSpec(Spec):
    """A web server with a process for each connection, and a script that computes."""

    part: ClassVar[Kind] = prefork_web_server

    kind: Literal["prefork_web_server"] = "prefork_web_server"
    start_servers: int = Field(5, ge=1, le=20_000, description="Processes at start. Default: Apache 2.2 prefork.")
    min_spare: int = Field(5, ge=1, le=20_000, description="Least idle processes. Default: Apache 2.2 prefork.")
    max_spare: int = Field(10, ge=1, le=20_000, description="Most idle processes. Default: Apache 2.2 prefork.")
    max_clients: int = Field(150, ge=1, le=20_000, description="Most processes. Default: Apache 2.2, Ubuntu's file.")
    maintenance: PeriodNs = Field(
        1_000_000_000, description="Period of the parent's count of idle processes. Default: Apache, 1 s."
    )
    accept_queue: int = Field(128, ge=0, le=65_535, description="Backlog of the socket. Default: Linux, somaxconn.")
    script: DurationNs = Field(
        100_000_000, description="CPU time of a request. Assumption: to be fitted to the site's script."
    )
    output_share: Percent = Field(
        25.0, ge=0.0, le=100.0, description="Part of it spent while the reply is put out. Assumption."
    )
    reply_size: ByteCount = Field(
        10_000, ge=1, le=2**30, description="Header, content and footer of a reply, without the packets' headers."
    )
    abort_when_closed: bool = Field(
        True, description="Output to a client that has gone ends the script (PHP: ignore_user_abort off, its default)."
    )
    swap: SwapSpec = Field(default_factory=SwapSpec, description="Swapping, off by default. Assumption as a whole.")

    @model_validator(mode="after")
    def _counts_fit(self) -> Self:
        if self.max_spare <= self.min_spare:
            raise ValueError("max_spare must be above min_spare (Apache raises it to min_spare + 1)")
        if self.start_servers > self.max_clients:
            raise ValueError("start_servers must not be above max_clients")
        return self


class HttperfSpec(Spec):
    """One httperf: connections at a rate, one call on each."""

    part: ClassVar[Kind] = httperf

    kind: Literal["httperf"] = "httperf"
    to: str = Field("server", description="Domain of the web server.")
    rate: RatePerSecond = Field(10.0, gt=0, description="Connections begun a second (--rate).")
    gap_cv: float = Field(
        0.0, ge=0.0, le=5.0, description="Variation of their gaps: 0 fixed (httperf's default), 1 exponential."
    )
    connections: int = Field(200, ge=1, le=10_000_000, description="Connections in all (--num-conns).")
    timeout: DurationNs = Field(
        0, description="Longest wait without progress in any stage (--timeout); 0: none, httperf's default."
    )
    request_size: ByteCount = Field(
        66, ge=16, le=1400, description="Bytes of a request. Default: the printed example of Timalsena 2013."
    )
    retry: PositiveDurationNs = Field(
        1_000_000_000, description="First wait of the client's TCP, then doubled. Default: RFC 6298, Linux 3.1."
    )
    linear_retries: int = Field(
        0,
        ge=0,
        le=100,
        description="Repetitions of a SYN after which the wait is still the first one. Default 0: Linux before 6.5; "
        "since then 4 (tcp_syn_linear_timeouts, Documentation/networking/ip-sysctl.rst).",
    )
    sample: PeriodNs = Field(5_000_000_000, description="Length of a reply-rate sample. Default: httperf, 5 s.")
