"""The SIP server as an application of a domain."""

from typing import Any, ClassVar, Literal

from vftsim.errors import ConservationError
from vftsim.kernel import Kind
from vftsim.kernel.declare import Table
from vftsim.platform.io.packet import applications, drops, ports
from vftsim.workloads.dirty_pages import DirtyPagesFields, pages_per_request
from vftsim.workloads.parts import APPLICATIONS, ApplicationSpec, InstallContext, Program
from vftsim.workloads.sip.messages import install_messages
from vftsim.workloads.sip.parameters import SipServerSpec
from vftsim.workloads.sip.records import sip_rules, sip_servers
from vftsim.workloads.sip.server import add_server, sip_server, start_server

TOUCHES_AN_ATTEMPT = 8.5
"""Messages received and sent for an attempt of the lab's mix: half calls of 13, half others of 4."""
_OF_ALL_WORK = 1.56
"""CPU time of an attempt over that of its messages, in the shipped models: so that ramps end where theirs do."""


@APPLICATIONS.register
class SipServerApplication(SipServerSpec, DirtyPagesFields, ApplicationSpec):
    """A stateful SIP proxy and registrar."""

    part: ClassVar[Kind] = sip_server
    products: ClassVar[tuple[str, ...]] = ("opensips", "kamailio")
    speaks: ClassVar[str] = "sip"
    entries: ClassVar[tuple[Any, ...]] = (start_server,)
    tables: ClassVar[tuple[Table[Any], ...]] = ()

    kind: Literal["sip_server"] = "sip_server"
    pages_per_request: float = pages_per_request(3.0, "its buffer, and 8 KiB of transaction")

    def most_per_s(self, inflation: float, exits: float) -> float:
        """What a CPU has time for; timers, lookups and what grows with load take nearly as much as the messages."""
        touch_ns = self.touch_cost * inflation + self.relay_cost * exits
        return 1e9 / (TOUCHES_AN_ATTEMPT * touch_ns * _OF_ALL_WORK)

    def install(self, context: InstallContext) -> "SipServerProgram":
        """Add the server."""
        return SipServerProgram(self, context)


class SipServerProgram(Program):
    """A SIP server in a running model.

    Attributes
    ----------
    server : int
        Its row.
    """

    def __init__(self, spec: SipServerSpec, context: InstallContext) -> None:
        self.engine = context.engine
        self.name = context.name
        self._processes = spec.processes
        install_messages(self.engine)
        self.row, program = self.engine.add(applications)
        program.row = self.row
        self.server = add_server(
            self.engine, context.domain, self.row, spec, context.cpu_inflation, guest=context.guest_scheduler
        )
        self.record.buffer_full = context.place(f"{context.name} socket buffer", "full")

    @property
    def record(self) -> Any:
        """The server's record."""
        return self.engine.rows(sip_servers)[self.server]

    def connected(self, port: int) -> None:
        """A worker pays the path's transmit work for each datagram."""
        self.engine.rows(sip_rules)[self.server].packet_cost_ns = self.engine.rows(ports)[port].transmit_ns

    def start(self) -> None:
        """Let the processes wait for datagrams and the timers run."""
        self.engine.call(start_server, self.server)

    def in_flight(self) -> int:
        """Datagrams in the socket's buffer and in the hands of processes."""
        server = self.record
        return int(server.buffer.length) + self._processes - int(server.idle.length)

    def check(self) -> None:
        """Raise unless what came to the socket is done, dropped, lost in a crash or in progress."""
        server, in_progress = self.record, self.in_flight()
        dropped = self.engine.rows(drops)[server.buffer_full].count
        if server.received != server.taken + dropped + in_progress + server.lost_in_crash or server.held < 0:
            raise ConservationError(
                f"of {server.received} datagrams at the socket of {self.name} {server.taken} are done, {dropped} were "
                f"dropped, {server.lost_in_crash} were lost in a crash and {in_progress} are in progress"
            )
