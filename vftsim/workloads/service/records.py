"""Records of services: what each is doing, what it asks of others, and the calls under way."""

from vftsim.kernel import Chain, Fifo, Record, Row, Table
from vftsim.platform.io.packet import application, packets, workload
from vftsim.workloads.common import ProgramRow, routes
from vftsim.workloads.windows import Window

service = application.kind("service")
service_call = workload.kind("service_call")
"""Packets between services: to their flow the path from one to the other is what a workload's client is."""


class Service(ProgramRow):
    """A service.

    ``active`` threads have a request: ``in_hand``, or they are ``blocked`` in the send call with the answer, which is
    lost with the ring when the machine is booted again.  Requests that ``came`` are ``answered``, ``refused`` by a full
    socket, ``lost`` with the machine's memory, waiting or with a thread.
    A request makes ``reads`` reads, and another one by chance, as a plan is done; writes likewise.  Of what came after
    ``warmup_ns`` are ``requests``
    (answered well), ``failed``, ``transfers``, and the rows of delays ``response`` and ``wait``; ``busy_ns`` is the
    time of threads that had a request, of those that have left.
    """

    flow: int
    disk: int
    threads: int
    active: int
    blocked: int
    demand_ns: int
    demands: int
    answer_size_bytes: int
    backlog: int
    waiting: Fifo
    in_hand: Fifo
    idle: Fifo
    reads: int
    read_chance: int
    read_choices: int
    writes: int
    write_chance: int
    write_choices: int
    transfer_size_bytes: int
    first_plan: int
    came: int
    answered: int
    refused: int
    lost: int
    socket_full: int
    lost_in_boot: int
    warmup_ns: int
    requests: int
    failed: int
    busy_ns: int
    transfers: int
    response: int
    wait: int


class Plan(Row):
    """Calls that a service makes for a request; ``next_plan`` follows them.

    ``chance`` and ``hit`` are out of :data:`~vftsim.workloads.common.LEVELS`, ``choices`` and ``lookups`` the
    feeds to compare with (0: always or never).  ``filled`` of the ``cache_entries`` are there.  ``turn`` is whose
    turn it is.  Calls that were ``opened`` and not ``closed`` are under way.  Counts are of what came after the
    warm-up: calls ``made`` (first tries), cache ``hits``, ``repeated`` tries, and calls that ``failed``.
    """

    service: int
    next_plan: int
    is_parallel: bool
    count: int
    chance: int
    choices: int
    hit: int
    lookups: int
    cache_entries: int
    filled: int
    cost_ns: int
    size_bytes: int
    timeout_ns: int
    retries: int
    max_fails: int
    fail_timeout_ns: int
    first_route: int
    routes: int
    turn: int
    opened: int
    closed: int
    made: int
    hits: int
    repeated: int
    failed: int


class Peer(Record):
    """What an asker knows of a copy that it asks by a route.

    ``fails`` are the calls to it that have timed out since one that tried it anew was answered, the last of them at
    ``failed_ns``.  It was ``checked_ns`` when that was, or when a call tried it anew.  What they may send each other at
    once over the connections that are kept: ``requests``, ``answers``.
    """

    fails: int
    failed_ns: int
    checked_ns: int
    requests: Window
    answers: Window


class Visit(Record):
    """A request at a service: how far it is.

    ``left`` calls of ``plan`` are still to be made, and then those of ``next_plan``; ``planned`` ones wait for the CPU
    time of making them, ``asked`` ones for their answers.
    """

    came_ns: int
    begin_ns: int
    reads_left: int
    writes_left: int
    plan: int
    next_plan: int
    left: int
    planned: Fifo
    asked: Fifo
    has_failed: bool


class Call(Row):
    """A call under way, of the request ``parent`` in the asker's hand; ``uses`` is its serial number.

    ``tries`` have been made; without an answer the next follows after ``wait_ns``.
    """

    link: int
    uses: int
    is_open: bool
    plan: int
    route: int
    parent: int
    tries: int
    wait_ns: int
    timer: int


services = Table("services", Service, 4096)
plans = Table("service_plans", Plan, 1 << 16)
peers = Table("service_peers", Peer, beside=routes)
visits = Table("service_visits", Visit, beside=packets)
calls = Table("service_calls", Call, 1 << 20, "lower the load or the number of threads")
call_list = Chain(calls, "link")
