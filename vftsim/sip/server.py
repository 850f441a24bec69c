"""A stateful SIP proxy and registrar (OpenSIPS/Kamailio class) over UDP.

Worker processes share one UDP socket and one CPU: a worker takes a datagram, works on it until the
outputs leave, then does the rest (bookkeeping of the transaction) before it takes the next.  The
socket's receive buffer is bounded in kernel memory; a datagram that does not fit is dropped there.

CPU work of a received message = touches x ``touch_cost`` x drawn relative demand
x (1 + ``growth_per_transaction`` x transactions that wait for their removal
+ ``growth_per_attempt`` x transactions created + ``growth_per_active_worker`` x other workers at work, for
relayed messages: contention for the transaction table).
All three growths are assumptions: the measured CPU per attempt rises with load in every environment, and so
do the transactions in memory (longer hash chains, a more fragmented shared-memory heap), the number served so
far and the workers at work.  Zero turns them off; the lab's models use the first alone.  Completed transactions
only, because with those under way included the work would grow in a collapse, and the measured collapse is less
deep than that.

Credentials are looked up in the database by the worker that has the second REGISTER (OpenSIPS ``auth_db``, a
synchronous query): after the work for the message received it asks and sleeps; the database, on the same CPU,
queues for it with ``database_cost``, and so does the worker again when it has the answer.

Location records are written back (OpenSIPS ``usrloc``, ``db_mode`` 2, the lab's setting): a registration
changes memory only, and a timer process writes all changed records to the database every
``location_flush_period`` (``timer_interval``, 60 s by default), one query after the other.  It waits for the
database after each query and the database for the next, so each record (``location_write_cost``) is a job of its
own, and one in the background: on Linux 2.6.18 processes that compute without a pause run after those that sleep much,
as the workers do.  The same cost for all records is an assumption; the lab's CPU series of the
registration phase shows such flushes (8.5 points from second to second, one second at 86 %).  Zero turns it off.

Stalls: every ``stall_period`` no worker takes a message for ``stall_duration``, as when all of them wait for one lock
of the database; messages already in hand are finished.  They use no CPU, the flush of location records does.
An assumption for what-ifs: the lab shows none, so the default is none.

Left out: TCP, forking, DNS, failure replies other than 408 (503, redirection); the CPU time of transaction
timers apart from the sends they cause.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from vftsim.cpu import Guest, Work
from vftsim.engine import Clock, EventKind
from vftsim.protection.machine import NO_OVERHEAD, Overhead
from vftsim.sip.attempt import Attempt
from vftsim.sip.messages import DEMAND_SLOT, RECEIVED, TOUCHES, Message
from vftsim.sip.parameters import SipServerSpec, VirtualizationSpec
from vftsim.sip.retransmission import NO_LIMIT, Retransmitter
from vftsim.sip.transactions import Transaction, TransactionTable

_REGISTRATIONS = (Message.REGISTER, Message.REGISTER_CREDENTIALS)
_REQUESTS = (Message.INVITE, Message.BYE, Message.MESSAGE)
_SENDS = tuple(touches - 1 for touches in TOUCHES)

Datagram = tuple[int, Attempt]
Job = tuple[int, Attempt, Transaction | None, bool, int]


class SipServer:
    """The server process group of one guest.

    Parameters
    ----------
    clock : Clock
    guest : Guest
        Runs the CPU work.
    spec : SipServerSpec
    send : callable
        ``send(message, attempt)`` puts a datagram on its way to the test systems.
    virtual : VirtualizationSpec
        What the hypervisor adds to the CPU work.
    """

    def __init__(
        self,
        clock: Clock,
        guest: Guest,
        spec: SipServerSpec,
        send: Callable[[int, Attempt], None],
        virtual: VirtualizationSpec,
    ) -> None:
        self.clock = clock
        self.guest = guest
        self.spec = spec
        self.send = send
        self._virtual = virtual
        self.table = TransactionTable(max(1, spec.transaction_wait // spec.timer_period))
        self.received = 0
        self.dropped = 0
        self.taken = 0
        self.retransmissions_sent = 0
        self._buffer: deque[Datagram] = deque()
        self._ringing: deque[tuple[int, Transaction]] = deque()
        self._capacity = spec.socket_buffer_messages
        self._idle_workers = spec.processes
        self._changed_records = 0
        self._records_to_write = 0
        self._stalled = False
        self.set_overhead(NO_OVERHEAD)

    def set_overhead(self, overhead: Overhead) -> None:
        """Let work that begins from now on cost what protection makes it cost."""
        virtual = self._virtual
        self._inflation = virtual.cpu_inflation * overhead.execution
        self._send_cost_ns = virtual.packet_cost + overhead.output_ns
        relay_ns = virtual.relay_cost * overhead.exits
        self._cost_ns = tuple(self._message_cost_ns(Message(m), relay_ns) for m in range(RECEIVED))

    def _message_cost_ns(self, message: Message, relay_ns: float) -> float:
        """Mean CPU work of a received message when no transaction is held."""
        spec, touches = self.spec, TOUCHES[message]
        if message in _REGISTRATIONS:
            return self._inflation * touches * spec.register_touch_cost
        return touches * (self._inflation * spec.touch_cost + relay_ns)

    def start(self) -> None:
        """Start the periodic timer processes."""
        self.clock.after(self.spec.timer_period, EventKind.TIMER, 0, self._housekeeping)
        if self.spec.location_write_cost:
            self.clock.after(self.spec.location_flush_period, EventKind.TIMER, 1, self._flush_locations)
        if self.spec.stall_duration:
            self.clock.after(self.spec.stall_period, EventKind.TIMER, 2, self._stall)

    @property
    def in_progress(self) -> int:
        """Datagrams in the socket buffer or in a worker's hands."""
        return len(self._buffer) + self.spec.processes - self._idle_workers

    def receive(self, datagram: Datagram) -> None:
        """A datagram has reached the socket."""
        self.received += 1
        if self._idle_workers and not self._stalled:
            self._idle_workers -= 1
            self._work_on(datagram)
        elif len(self._buffer) < self._capacity:
            self._buffer.append(datagram)
        else:
            self.dropped += 1

    def _work_on(self, datagram: Datagram) -> None:
        message, attempt = datagram
        transaction, again = self._match(message, attempt)
        spec = self.spec
        demand = self._cost_ns[message] * attempt.demands[DEMAND_SLOT[message]]
        demand *= self._growth(message)
        if again:
            demand *= spec.retransmission_cost
        after_ns = int(demand * spec.work_after_send)
        before_ns = int(demand) - after_ns + _SENDS[message] * self._send_cost_ns
        job = (message, attempt, transaction, again, after_ns)
        if message == Message.REGISTER_CREDENTIALS and spec.database_cost:
            until_query_ns = min(before_ns, int(demand) // TOUCHES[message])
            self.guest.submit(Work(until_query_ns, self._query, (job, before_ns - until_query_ns)))
        else:
            self.guest.submit(Work(before_ns, self._answer, job))

    def _query(self, waiting: tuple[Job, int]) -> None:
        """The worker asks the database for the credentials and sleeps; the database waits for the CPU."""
        self.guest.submit(Work(max(1, int(self._inflation * self.spec.database_cost)), self._result, waiting))

    def _result(self, waiting: tuple[Job, int]) -> None:
        """The database has answered; the worker waits for the CPU again."""
        job, left_ns = waiting
        self.guest.submit(Work(left_ns, self._answer, job))

    def _growth(self, message: int) -> float:
        """Return the factor by which work has grown with what the server holds, has served and does besides."""
        spec, table = self.spec, self.table
        growth = 1.0 + spec.growth_per_transaction * table.waiting + spec.growth_per_attempt * table.created
        if spec.growth_per_active_worker and message not in _REGISTRATIONS:
            growth += spec.growth_per_active_worker * (spec.processes - self._idle_workers - 1)
        return growth

    def _match(self, message: int, attempt: Attempt) -> tuple[Transaction | None, bool]:
        """Find or create the transaction of a message; true when it is a retransmission."""
        if message in _REGISTRATIONS:
            return None, False
        transaction = attempt.request
        if message in _REQUESTS:
            if transaction is not None and transaction.message == message:
                return transaction, True
            transaction = Transaction(attempt, message)
            attempt.request = transaction
            self.table.create()
            return transaction, False
        again = transaction is not None and transaction.final and message != Message.ACK
        return transaction, again

    def _answer(self, job: Job) -> None:
        """The part of the work before the outputs is done: send them."""
        message, attempt, transaction, again, after_ns = job
        if message == Message.REGISTER:
            self.send(Message.UNAUTHORIZED, attempt)
        elif message == Message.REGISTER_CREDENTIALS:
            self._changed_records += 1
            self.send(Message.OK_REGISTER, attempt)
        elif message == Message.ACK:
            self.send(Message.ACK, attempt)
        elif transaction is not None:
            if message in _REQUESTS:
                self._request(message, attempt, transaction, again)
            else:
                self._reply(message, attempt, transaction, again)
        if after_ns > 0:
            self.guest.submit_next(Work(after_ns, self._release_worker, None))
        else:
            self._release_worker(None)

    def _request(self, message: int, attempt: Attempt, transaction: Transaction, again: bool) -> None:
        if again:
            if transaction.replied >= 0:
                self.send(transaction.replied, attempt)
            return
        if message == Message.INVITE:
            transaction.replied = Message.TRYING
            self.send(Message.TRYING, attempt)
        self.send(message, attempt)
        spec = self.spec
        invite = message == Message.INVITE
        transaction.forward = Retransmitter(
            self.clock, attempt.index, spec.t1, 0 if invite else spec.t2, NO_LIMIT,
            self._repeat_forward, self._give_up, transaction, spec.reply_timeout,
        )  # fmt: skip

    def _reply(self, message: int, attempt: Attempt, transaction: Transaction, again: bool) -> None:
        if transaction.forward is not None:
            transaction.forward.stop()
            transaction.forward = None
        if message == Message.RINGING:
            if not transaction.final:
                if transaction.replied != message:
                    self._ringing.append((self.clock.now_ns + self.spec.ringing_timeout, transaction))
                transaction.replied = message
                self.send(message, attempt)
            return
        if again and message != Message.OK_INVITE:
            return
        if not transaction.final:
            transaction.final = True
            transaction.replied = message
            self.table.complete()
        self.send(message, attempt)

    def _repeat_forward(self, transaction: Transaction) -> None:
        """The server repeats a forwarded request that nobody has answered."""
        self.retransmissions_sent += 1
        cost_ns = int(self._touch_ns() * self.spec.retransmission_cost)
        self.guest.submit(Work(cost_ns + self._send_cost_ns, self._resend, transaction))

    def _resend(self, transaction: Transaction) -> None:
        if transaction.forward is not None:
            self.send(transaction.message, transaction.attempt)

    def _give_up(self, transaction: Transaction) -> None:
        """Nobody has answered in time: the caller gets 408, at the price of one message sent."""
        transaction.forward = None
        if not transaction.final:
            transaction.final = True
            transaction.replied = Message.REQUEST_TIMEOUT
            self.table.complete()
            self.guest.submit(Work(int(self._touch_ns()) + self._send_cost_ns, self._time_out, transaction))

    def _time_out(self, transaction: Transaction) -> None:
        self.send(Message.REQUEST_TIMEOUT, transaction.attempt)

    def _touch_ns(self) -> float:
        """Mean CPU work of a message of a forwarded transaction received or sent, when no transaction is held."""
        return self._cost_ns[Message.ACK] / TOUCHES[Message.ACK]

    def _release_worker(self, _: Any) -> None:
        self.taken += 1
        if self._buffer and not self._stalled:
            self._work_on(self._buffer.popleft())
        else:
            self._idle_workers += 1

    def _housekeeping(self, _: Any) -> None:
        """The timer process removes expired transactions; it holds the CPU like any other process."""
        spec, table = self.spec, self.table
        while self._ringing and self._ringing[0][0] <= self.clock.now_ns:
            self._give_up(self._ringing.popleft()[1])
        expired = table.tick()
        cost_ns = int(self._inflation * (spec.removal_cost * expired + spec.housekeeping_cost * (expired > 0)))
        if cost_ns > 0:
            self.guest.submit(Work(cost_ns, _nothing))
        self.clock.after(spec.timer_period, EventKind.TIMER, 0, self._housekeeping)

    def _flush_locations(self, _: Any) -> None:
        """The location timer begins to write all records changed since its last run."""
        idle = self._records_to_write == 0
        self._records_to_write += self._changed_records
        self._changed_records = 0
        if idle and self._records_to_write:
            self._write_record()
        self.clock.after(self.spec.location_flush_period, EventKind.TIMER, 1, self._flush_locations)

    def _write_record(self) -> None:
        cost_ns = int(self._inflation * self.spec.location_write_cost)
        self.guest.submit_background(Work(max(1, cost_ns), self._record_written))

    def _record_written(self, _: Any) -> None:
        self._records_to_write -= 1
        if self._records_to_write:
            self._write_record()

    def _stall(self, _: Any) -> None:
        """No worker takes a message until the stall is over."""
        self._stalled = True
        self.clock.after(self.spec.stall_duration, EventKind.TIMER, 2, self._go_on)
        self.clock.after(self.spec.stall_period, EventKind.TIMER, 2, self._stall)

    def _go_on(self, _: Any) -> None:
        self._stalled = False
        while self._buffer and self._idle_workers:
            self._idle_workers -= 1
            self._work_on(self._buffer.popleft())


def _nothing(_: Any) -> None:
    """Work without an effect outside."""
