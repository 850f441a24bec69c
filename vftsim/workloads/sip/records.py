"""The records of a SIP server: its rules, its processes, its transactions.

What the server has in memory stands here alone and never in what the user agents know.
"""

from typing import Annotated

from vftsim.kernel import Chain, Fifo, Record, Row, Table
from vftsim.workloads.common import ProgramRow
from vftsim.workloads.sip.messages import RECEIVED, streams
from vftsim.workloads.sip.retransmission import Repetition

BUSY = -1


class SipRules(Record):
    """The parameters of a server; see :class:`~vftsim.workloads.sip.application.SipServerSpec`."""

    processes: int
    socket_buffer_messages: int
    touch_cost_ns: int
    register_touch_cost_ns: int
    database_cost_ns: int
    work_after_send: float
    growth_per_transaction: float
    growth_per_active_worker: float
    growth_per_attempt: float
    growth_with_utilization: float
    utilization_time_ns: int
    repeated_invite: float
    repeated_request: float
    repeated_ok: float
    repeated_reply: float
    own_repeat: float
    nonces_good_once: bool
    timer_period_ns: int
    removal_cost_ns: int
    housekeeping_cost_ns: int
    location_flush_period_ns: int
    location_write_cost_ns: int
    flush_in_timer_process: bool
    timers_wait_for_flush: bool
    flush_database_share: float
    stall_period_ns: int
    stall_duration_ns: int
    t1_ns: int
    t2_ns: int
    reply_timeout_ns: int
    ringing_timeout_ns: int
    cpu_inflation: float
    relay_cost_ns: int
    packet_cost_ns: int
    wait_periods: int
    growth_up_to: float
    challenges: bool
    wakeup_cost_ns: int
    wakeup_idle_ns: int
    script_ns: Annotated[list[int], RECEIVED]


class SipServer(ProgramRow):
    """The server process group of one domain.

    ``buffer`` is the socket's, ``idle`` the processes without work, ``ringing`` the INVITEs that were answered
    provisionally, in order of the instant they are given up.  ``held`` transactions are in memory, ``waiting`` of
    them completed.  ``timer_process`` and ``flush_database`` are processes of its operating system.
    ``is_flushing``: the timer process writes location records; ``late`` transactions and ``late_ticks`` wait for
    it.  ``boots`` counts how often the server began with empty memory; ``created`` transactions are those since,
    ``created_before`` those until then.  ``buffer_full`` is the row of ``drops`` of datagrams that
    met a full socket buffer.  ``speaker`` is the worker that is sending at present, 0: the timer process.
    ``cost_ns`` is the mean work of each received message, ``plain_ns`` that without the routing script.
    ``at_rest_ns`` is since when all workers wait, :data:`BUSY` while one does not.
    """

    boots: int
    timer_process: int
    flush_database: int
    first_worker: int
    first_expiry: int
    inflation: float
    send_cost_ns: int
    touch_ns: float
    cost_ns: Annotated[list[float], RECEIVED]
    plain_ns: Annotated[list[float], RECEIVED]
    at_rest_ns: int
    buffer: Fifo
    idle: Fifo
    ringing: Fifo
    stalled: bool
    is_flushing: bool
    late: Fifo
    late_ticks: int
    utilization: float
    looked_ns: int
    ran_before_ns: int
    held: int
    waiting: int
    created: int
    created_before: int
    slot: int
    changed_records: int
    records_to_write: int
    housekeeping: int
    flush: int
    stall: int
    end_of_stall: int
    buffer_full: int
    speaker: int
    received: int
    taken: int
    lost_in_crash: int
    retransmissions: int


class Worker(Row):
    """A process of a server and what it has in hand: a packet, its transaction, and the work that is left.

    While ``unsent`` datagrams of its own wait for room on their way out, it sleeps.
    ``process`` is itself in its operating system, ``database`` the one that serves its queries.
    """

    link: int
    server: int
    process: int
    database: int
    packet: int
    transaction: int
    is_again: bool
    left_ns: int
    after_ns: int
    unsent: int


class Transaction(Row):
    """One request under way at a server.

    ``replied`` is the last reply sent upstream, -1 for none.  ``forward`` repeats the forwarded copy while it
    awaits its reply.  ``uses`` counts timers and work that refer to it; ``is_current``: it is the one that the
    stream's messages meet.
    """

    after: int
    later: int
    server: int
    boot: int
    flow: int
    port: int
    stream: int
    message: int
    replied: int
    is_final: bool
    is_current: bool
    uses: int
    rings_until_ns: int
    forward: Repetition


class Request(Record):
    """A stream's transaction in progress at its server.

    It belongs to the stream ``number`` and to the server as it was after ``boot`` boots: another's is none.
    ``nonce_used``: credentials with the stream's nonce have been accepted.
    """

    number: int
    boot: int
    transaction: int
    nonce_used: bool


class Expiry(Record):
    """How many transactions a run of the timer process removes."""

    count: int


sip_servers = Table("sip_servers", SipServer, 64)
sip_rules = Table("sip_rules", SipRules, beside=sip_servers)
workers = Table("sip_workers", Worker, 1 << 16, "give the servers fewer processes")
transactions = Table("sip_transactions", Transaction, 1 << 20, "lower the load, or let the server give up earlier")
requests = Table("sip_requests", Request, beside=streams)
expiries = Table("sip_expiries", Expiry, 1 << 20, "make transaction_wait shorter or timer_period longer")
worker_list = Chain(workers, "link")
ringing_list = Chain(transactions, "after")
late_list = Chain(transactions, "later")
