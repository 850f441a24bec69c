"""The one kernel of all parts that machine_park.py builds from, with the clients of pools."""

from functools import cache

from vftsim.kernel import Linked, Record, Sim, Table, event, link
from vftsim.kernel.agenda import agenda_due
from vftsim.platform.cpu import build as cpu
from vftsim.platform.cpu.background import begin_load
from vftsim.platform.cpu.parameters import schedulers
from vftsim.platform.cpu.scheduler import scheduler
from vftsim.platform.delays import delays
from vftsim.platform.io import build as io
from vftsim.platform.io import packet
from vftsim.platform.io.driver_domain import TASKS
from vftsim.platform.io.guest_driver import guest_driver
from vftsim.platform.io.host_cards import on_burst, send_to_host
from vftsim.platform.io.nic import new_packet
from vftsim.platform.io.packet import Flow, application, delivered, lost, packets, path, workload
from vftsim.platform.io.parameters import io_paths
from vftsim.platform.io.paths import moderated
from vftsim.platform.io.paths._device_model import fetching, injecting
from vftsim.platform.io.stage import task
from vftsim.platform.protection import build as protect
from vftsim.platform.protection.faults import FAULTS, fault
from vftsim.platform.protection.guard import protection
from vftsim.platform.protection.mechanism import protections
from vftsim.workloads.ims_bench.agents import ims_bench, start_attempt
from vftsim.workloads.ims_bench.attempt import attempts, benches
from vftsim.workloads.pool import MediaRelaySpec, SignalingServerSpec, pools
from vftsim.workloads.sip.server import sip_server, start_server

POOLS = {"media_relay": MediaRelaySpec, "signaling_server": SignalingServerSpec}
APPLICATIONS = ("sip_server", *POOLS)
PATHS = ("native", "direct", "paravirtual", "emulated", "stub_domain", "moderated")
PROTECTIONS = ("none", "ha_restart", "lockstep")
SCHEDULERS = ("native", "credit", "cfs", "esxi")


class Moment(Record):
    time_ns: int
    number: int


class Tally(Record):
    sent: int
    delivered: int
    lost: int
    copied: int
    discarded: int


seen = Table("seen", Moment, 1 << 16)
tally = Table("tally", Tally, 2, is_fixed=True)
visitors = workload.kind("visitors of a park")


@event
def on_visit(sim: Sim, place: int) -> None:
    """A client of a pool sends a packet of that number."""
    tally(sim)[1].sent += 1
    send_to_host(sim, new_packet(sim, 1, place, sim.now_ns))


@event
def on_attempt(sim: Sim, place: int) -> None:
    """A client of a SIP server begins an attempt."""
    benches(sim)[1].begun += 1
    start_attempt(sim, benches(sim)[1], place)


@visitors.implements(delivered)
def hear(sim: Sim, flow: Flow, number: int) -> None:
    row = seen.new(sim)
    seen(sim)[row].time_ns = sim.now_ns
    seen(sim)[row].number = packets(sim)[number].stream
    tally(sim)[1].delivered += 1
    packets.free(sim, number)


@visitors.implements(lost)
def lose(sim: Sim, flow: Flow, number: int) -> None:
    tally(sim)[1].lost += 1


@visitors.implements(packet.copied)
def note_copy(sim: Sim, flow: Flow, number: int) -> None:
    tally(sim)[1].copied += 1


@visitors.implements(packet.discarded)
def note_discarded(sim: Sim, flow: Flow, number: int) -> None:
    tally(sim)[1].discarded += 1


@cache
def linked() -> Linked:
    """One kernel with every part."""
    kinds = {
        scheduler: [schedulers()[kind].part for kind in SCHEDULERS],
        path: [*(io_paths()[kind].part for kind in PATHS[:-1]), moderated.moderated],
        task: [guest_driver, injecting, fetching, *TASKS],
        application: [sip_server, *(spec.part for spec in POOLS.values())],
        workload: [ims_bench, visitors],
        protection: [protections()[kind].part for kind in (*PROTECTIONS, "checkpoint")],
        fault: [spec.part for spec in FAULTS.values()],
    }
    return link(
        [*cpu.ENTRIES, *io.ENTRIES, *protect.ENTRIES, start_server, begin_load],
        kinds,
        [on_visit, on_attempt, on_burst, *protect.ACTIONS],
        [*cpu.TABLES, *io.TABLES, *protect.TABLES, agenda_due, pools, moderated.guest_nics, tally, delays, attempts],
    )
