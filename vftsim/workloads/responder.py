"""A program that answers requests: threads that each take a request, compute, and send the answer.

Requests wait in the socket in order of arrival.  A thread handles one request at a time; it sleeps in the send call
while the way out has no room.  The answer carries the request's number and stream back to its flow.

A machine that is booted again has lost the requests in its socket and in the threads' hands.

Left out: locks between threads, disk work (see the program ``batch``).
"""

from typing import ClassVar, Literal

from pydantic import Field

from vftsim.kernel import Engine, Fifo, Kind, Record, Sim, Table, part
from vftsim.kernel.inputs import Feeder
from vftsim.platform.cpu.jobs import submit
from vftsim.platform.cpu.records import domains, work_done
from vftsim.platform.io.marks import PROGRAM_DONE, PROGRAM_TAKEN
from vftsim.platform.io.packet import (
    Application,
    application,
    applications,
    drop,
    drops,
    go_on,
    lose_state,
    mark,
    packet_list,
    packets,
    ports,
    receive,
    set_overhead,
)
from vftsim.platform.io.ring import wait_for_slot
from vftsim.platform.protection.guard import put_out
from vftsim.sampling import Streams
from vftsim.spec.base import Spec
from vftsim.spec.units import ByteCount, DurationNs
from vftsim.workloads.burden import add_program, bear, burdened_ns
from vftsim.workloads.gamma_feed import duration_ns, gamma_feed

responder = application.kind("responder")


class ResponderSpec(Spec):
    """A server that computes and answers each request."""

    part: ClassVar[Kind] = responder

    kind: Literal["responder"] = "responder"
    threads: int = Field(1, ge=1, le=10_000, description="Requests in work at once. Default: netserver, one.")
    demand: DurationNs = Field(
        10_000, description="CPU time of a request, without the I/O path's. Assumption: a system call in and out."
    )
    demand_cv: float = Field(
        0.0, ge=0.0, le=5.0, description="Coefficient of variation of the demand (gamma); 0: always the same."
    )
    answer_size: ByteCount = Field(
        128,
        ge=64,
        le=1 << 20,
        description="Answer on the wire. Default: 1 byte (netperf TCP_RR), 52 TCP/IP with time stamp, 38 Ethernet "
        "with preamble and gap, rounded up.",
    )
    backlog: int = Field(
        1024, ge=1, le=1_000_000, description="Requests that wait in the socket; others are dropped. Assumption."
    )


class Responder(Record):
    """Threads of one program; ``active`` ones have a request, those whose work is under way are ``in_hand``.

    ``blocked`` ones sleep in the send call: what they hold is lost with the ring when the machine is booted again.
    """

    row: int
    program: int
    domain: int
    threads: int
    active: int
    blocked: int
    demand_ns: int
    demands: int
    answer_bytes: int
    most_waiting: int
    waiting: Fifo
    in_hand: Fifo
    answered: int
    socket_full: int
    lost_in_boot: int


responders = Table("responders", Responder, 1024)
ENTRIES = ()
ACTIONS = ()
TABLES = (responders,)


@responder.implements(receive)
def take_request(sim: Sim, program: Application, packet: int) -> None:
    """Give a request to an idle thread, or keep it for one."""
    own = responders(sim)[program.own]
    if own.active < own.threads:
        own.active += 1
        work_on(sim, own, packet)
    elif own.waiting.length < own.most_waiting:
        packet_list.push(sim, own.waiting, packet)
    else:
        drop(sim, packet, own.socket_full)


@part
def work_on(sim: Sim, own: Responder, packet: int) -> None:
    """Let a thread work on a request."""
    packet_list.push(sim, own.in_hand, packet)
    demand_ns = burdened_ns(sim, own.program, duration_ns(sim, own.demands, own.demand_ns), 1)
    demand_ns += ports(sim)[packets(sim)[packet].port].transmit_ns
    mark(sim, packet, PROGRAM_TAKEN, 0, sim.now_ns, demand_ns)
    submit(sim, domains(sim)[own.domain], demand_ns, on_answer, packet, own.row)


@work_done
def on_answer(sim: Sim, place: int, argument: int) -> None:
    """Send the answer, or sleep until there is room."""
    own = responders(sim)[argument]
    packet_list.remove(sim, own.in_hand, place)
    mark(sim, place, PROGRAM_DONE, 0, sim.now_ns, 0)
    packets(sim)[place].size_bytes = own.answer_bytes
    port = ports(sim)[packets(sim)[place].port]
    if put_out(sim, port, place):
        take_next(sim, own)
    else:
        own.blocked += 1
        wait_for_slot(sim, port, place, place)


@part
def take_next(sim: Sim, own: Responder) -> None:
    """Let a thread that has sent its answer take the next request, or sleep."""
    own.answered += 1
    packet = packet_list.pop(sim, own.waiting)
    if packet == 0:
        own.active -= 1
    else:
        work_on(sim, own, packet)


@responder.implements(go_on)
def send_again(sim: Sim, program: Application, packet: int) -> None:
    """Send the answer of a thread that slept, and let it go on."""
    own = responders(sim)[program.own]
    if put_out(sim, ports(sim)[packets(sim)[packet].port], packet):
        own.blocked -= 1
        take_next(sim, own)
    else:
        wait_for_slot(sim, ports(sim)[packets(sim)[packet].port], packet, packet)


@responder.implements(set_overhead)
def bear_overhead(sim: Sim, program: Application, output_ns: int, execution: float, exits: float) -> None:
    """Let requests that begin from now on cost what protection makes them cost."""
    bear(sim, program, output_ns, execution)


@responder.implements(lose_state)
def boot(sim: Sim, program: Application) -> None:
    """Lose all requests; the CPU work for them is gone already."""
    own = responders(sim)[program.own]
    while own.waiting.length > 0:
        drop(sim, packet_list.pop(sim, own.waiting), own.lost_in_boot)
    while own.in_hand.length > 0:
        drop(sim, packet_list.pop(sim, own.in_hand), own.lost_in_boot)
    own.blocked = 0
    own.active = 0
    bear(sim, program, 0, 1.0)


def add_responder(
    engine: Engine, feeder: Feeder, domain: int, spec: ResponderSpec, streams: Streams, number: int
) -> int:
    """Add a program to a domain; ``number`` says whose draws are its own.  Return its application row."""
    socket_full, _ = engine.add(drops)
    lost_in_boot, _ = engine.add(drops)
    row, own = engine.add(
        responders, domain=domain, threads=spec.threads, demand_ns=spec.demand, answer_bytes=spec.answer_size,
        demands=gamma_feed(feeder, streams, "responder.demand", number, spec.demand, spec.demand_cv),
        most_waiting=spec.backlog, socket_full=socket_full, lost_in_boot=lost_in_boot,
    )  # fmt: skip
    own.row = row
    own.program = add_program(engine, responder, row, domain)
    return int(own.program)


def responder_of(engine: Engine, program: int) -> Responder:
    """Return the record of an application row."""
    found: Responder = engine.rows(responders)[engine.rows(applications)[program].own]
    return found
