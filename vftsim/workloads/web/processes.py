"""The record of a prefork web server, and its processes as its guest's scheduler knows them.

Rule: a process serves one connection at a time and keeps its turn on the CPU while it goes on: output that fits into
the socket's buffer does not make it sleep, and neither does the next connection where one waits (Linux,
``tcp_sendmsg``, ``inet_csk_accept``).  What that is worth depends on the guest's scheduler; ``round_robin`` knows no
processes, each piece of work queues there anew.
"""

from vftsim.kernel import Chain, Engine, Fifo, Record, Sim, Table, part
from vftsim.platform.cpu.guest_parameters import GuestSchedulerSpec
from vftsim.platform.cpu.processes import add_process


class PreforkServer(Record):
    """One server: ``total`` processes, ``busy`` ones of them have a connection of ``in_work``.

    ``resting`` are all places for processes but those of the busy ones.
    """

    row: int
    program: int
    domain: int
    boots: int
    start_servers: int
    min_spare: int
    max_spare: int
    max_clients: int
    maintenance_ns: int
    phase_ns: int
    backlog: int
    before_ns: int
    piece_ns: int
    pieces: int
    piece_bytes: int
    last_bytes: int
    aborts: bool
    memory_bytes: int
    base_bytes: int
    process_bytes: int
    read_bytes_per_s: int
    disk_free_ns: int
    total: int
    busy: int
    most_total: int
    spawn: int
    accept: Fifo
    in_work: Fifo
    resting: Fifo
    first_place: int
    maintenance: int
    scripts: int
    aborted: int
    swapped_ns: int
    accept_full: int


prefork_servers = Table("prefork_servers", PreforkServer, 256)


class WebProcess(Record):
    """A place for a process of a server: ``process`` is the guest's."""

    link: int
    process: int


web_processes = Table("web_processes", WebProcess, 1 << 18, "lower max_clients")
process_list = Chain(web_processes, "link")


@part
def take_process(sim: Sim, resting: Fifo) -> int:
    """Return the place of the process that has rested for the shortest time."""
    return process_list.pop(sim, resting)


@part
def rest(sim: Sim, resting: Fifo, process_row: int) -> None:
    """Let a process rest: it is the first to be taken again."""
    process_list.push_front(sim, resting, process_row)


def add_places(engine: Engine, domain: int, count: int, guest: GuestSchedulerSpec) -> range:
    """Add so many processes to a domain; return the rows of their places."""
    rows = [engine.add(web_processes, process=add_process(engine, domain, guest))[0] for _ in range(count)]
    return range(rows[0], rows[-1] + 1)
