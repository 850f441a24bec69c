"""The test systems: user agents that play the benchmark's scenarios against the server.

Callers retransmit by SIPp's rules (see :mod:`vftsim.sip.retransmission`), callees repeat a 200 to an
INVITE until its ACK arrives (RFC 3261, 13.3.1.4) and answer a repeated request with its last reply.
A delay above its threshold, or a message never answered, makes the attempt inadequately handled.
"""

from __future__ import annotations

from collections.abc import Callable

from vftsim.engine import Clock, EventKind
from vftsim.sip.attempt import Attempt, mark
from vftsim.sip.messages import Message, Scenario
from vftsim.sip.metrics import Counters
from vftsim.sip.parameters import ImsBenchSpec
from vftsim.sip.retransmission import Retransmitter

_CALLER_180, _CALLEE_200, _CALLEE_ACK = 0, 1, 2
_FIRST_REQUEST = (Message.REGISTER, Message.REGISTER, Message.INVITE, Message.REGISTER, Message.MESSAGE)
_DELAY_OF = {
    Message.REGISTER: "REG1", Message.REGISTER_CREDENTIALS: "REG2", Message.INVITE: "SES1", Message.BYE: "REL1",
    Message.MESSAGE: "PMM1",
}  # fmt: skip


class TestSystems:
    """All user agents of the benchmark.

    Parameters
    ----------
    clock : Clock
    spec : ImsBenchSpec
    send : callable
        ``send(message, attempt)`` puts a datagram on its way to the server.
    ended : callable
        ``ended(attempt)``: the attempt is over, its subscribers are free again.
    """

    __test__ = False  # not a test class, whatever its name

    def __init__(
        self,
        clock: Clock,
        spec: ImsBenchSpec,
        send: Callable[[int, Attempt], None],
        ended: Callable[[Attempt], None],
    ) -> None:
        self.clock = clock
        self.spec = spec
        self.send = send
        self.ended = ended
        self.counters = Counters()
        limits = spec.thresholds
        self._limit = {
            "SES1": limits.session_setup, "SES2": limits.session_setup, "REL1": limits.release,
            "PMM1": limits.message, "REG1": limits.registration, "REG2": limits.registration,
            "REG4": limits.reregistration,
        }  # fmt: skip
        self._on_message = {
            Message.UNAUTHORIZED: self._challenged,
            Message.OK_REGISTER: self._registered,
            Message.TRYING: self._provisional,
            Message.INVITE: self._callee_invite,
            Message.RINGING: self._caller_ringing,
            Message.OK_INVITE: self._caller_answered,
            Message.ACK: self._callee_ack,
            Message.BYE: self._callee_bye,
            Message.OK_BYE: self._caller_released,
            Message.MESSAGE: self._callee_message,
            Message.OK_MESSAGE: self._message_done,
            Message.REQUEST_TIMEOUT: self._timed_out,
        }

    def start(self, attempt: Attempt) -> None:
        """Begin an attempt."""
        self.counters.attempts += 1
        if attempt.scenario is Scenario.IMS_UAC:
            self.counters.uac_attempts += 1
        self._request(_FIRST_REQUEST[attempt.scenario], attempt)

    def receive(self, datagram: tuple[int, Attempt]) -> None:
        """A datagram from the server has arrived."""
        message, attempt = datagram
        self._on_message[Message(message)](attempt)

    def overdue(self, attempt: Attempt) -> bool:
        """Whether the caller has waited for an answer for longer than the threshold of the delay it makes."""
        client = attempt.client
        if client is None:
            return False
        return self.clock.now_ns - attempt.sent_ns > self._limit[_DELAY_OF[client.argument[0]]]

    # Requests of the caller

    def _request(self, message: int, attempt: Attempt) -> None:
        spec = self.spec
        attempt.sent_ns = self.clock.now_ns
        invite = message == Message.INVITE
        attempt.client = Retransmitter(
            self.clock, attempt.index, spec.t1, 0 if invite else spec.t2,
            spec.invite_retransmissions if invite else spec.request_retransmissions,
            self._repeat_request, self._fail, (message, attempt),
        )  # fmt: skip
        self.send(message, attempt)

    def _repeat_request(self, datagram: tuple[int, Attempt]) -> None:
        message, attempt = datagram
        self.counters.retransmissions[attempt.scenario] += 1
        self.send(message, attempt)

    def _answered(self, attempt: Attempt) -> None:
        if attempt.client is not None:
            attempt.client.stop()
            attempt.client = None

    def _fail(self, datagram: tuple[int, Attempt]) -> None:
        attempt = datagram[1]
        attempt.client = None
        self._inadequate(attempt)
        self._end(attempt)

    def _timed_out(self, attempt: Attempt) -> None:
        """The server answers 408: nobody has answered the request it forwarded."""
        if not attempt.ended:
            self._answered(attempt)
            self._fail((Message.REQUEST_TIMEOUT, attempt))

    def _inadequate(self, attempt: Attempt) -> None:
        if attempt.failed:
            return
        attempt.failed = True
        counters = self.counters
        counters.ihs_all += 1
        if attempt.scenario is Scenario.IMS_UAC:
            counters.ihs_uac += 1
        if attempt.counted and attempt.phase is not None:
            attempt.phase.note_inadequate(attempt.scenario, attempt.start_ns)

    def _measure(self, name: str, attempt: Attempt, delay_ns: int) -> None:
        if attempt.counted and attempt.phase is not None:
            attempt.phase.delays[name].add(delay_ns)
            if name == "REG1" and attempt.scenario is not Scenario.IMS_REREG:
                attempt.phase.delays[f"REG1/{attempt.scenario.label}"].add(delay_ns)
        if delay_ns > self._limit[name]:
            self._inadequate(attempt)

    def _end(self, attempt: Attempt) -> None:
        if not attempt.ended:
            attempt.ended = True
            self.ended(attempt)

    # Registration

    def _challenged(self, attempt: Attempt) -> None:
        if not mark(attempt, Message.UNAUTHORIZED) or attempt.ended:
            return
        self._answered(attempt)
        self._measure("REG1", attempt, self.clock.now_ns - attempt.sent_ns)
        self._request(Message.REGISTER_CREDENTIALS, attempt)

    def _registered(self, attempt: Attempt) -> None:
        if not mark(attempt, Message.OK_REGISTER) or attempt.ended:
            return
        self._answered(attempt)
        now_ns = self.clock.now_ns
        if attempt.scenario is Scenario.IMS_REREG:
            self._measure("REG4", attempt, now_ns - attempt.start_ns)
        self._measure("REG2", attempt, now_ns - attempt.sent_ns)
        self._end(attempt)

    # Call

    def _provisional(self, attempt: Attempt) -> None:
        if not attempt.seen & (1 << Message.OK_INVITE):
            self._answered(attempt)

    def _caller_ringing(self, attempt: Attempt) -> None:
        self._provisional(attempt)
        if mark(attempt, Message.RINGING):
            attempt.dialog[_CALLER_180] = self.clock.now_ns

    def _callee_invite(self, attempt: Attempt) -> None:
        if mark(attempt, Message.INVITE):
            self._measure("SES2", attempt, self.clock.now_ns - attempt.start_ns)
            self.send(Message.RINGING, attempt)
            self.clock.after(attempt.ring_ns, EventKind.TIMER, attempt.index, self._callee_answers, attempt)
        elif attempt.dialog[_CALLEE_200]:
            self.send(Message.OK_INVITE, attempt)
        else:
            self.send(Message.RINGING, attempt)

    def _callee_answers(self, attempt: Attempt) -> None:
        spec = self.spec
        attempt.dialog[_CALLEE_200] = self.clock.now_ns
        attempt.uas = Retransmitter(
            self.clock, attempt.index, spec.t1, spec.t2, spec.request_retransmissions,
            self._repeat_answer, self._callee_gives_up, attempt,
        )  # fmt: skip
        self.send(Message.OK_INVITE, attempt)

    def _repeat_answer(self, attempt: Attempt) -> None:
        self.counters.retransmissions[attempt.scenario] += 1
        self.send(Message.OK_INVITE, attempt)

    def _callee_gives_up(self, attempt: Attempt) -> None:
        attempt.uas = None
        self._fail((Message.OK_INVITE, attempt))

    def _caller_answered(self, attempt: Attempt) -> None:
        self._answered_call(attempt)
        self.send(Message.ACK, attempt)

    def _answered_call(self, attempt: Attempt) -> None:
        if not mark(attempt, Message.OK_INVITE):
            return
        self._answered(attempt)
        if not attempt.dialog[_CALLER_180]:
            attempt.dialog[_CALLER_180] = attempt.dialog[_CALLEE_200] - attempt.ring_ns

    def _callee_ack(self, attempt: Attempt) -> None:
        if attempt.uas is not None:
            attempt.uas.stop()
            attempt.uas = None
        if not mark(attempt, Message.ACK) or attempt.ended:
            return
        dialog = attempt.dialog
        setup_ns = dialog[_CALLER_180] - attempt.start_ns + self.clock.now_ns - dialog[_CALLEE_200]
        self._measure("SES1", attempt, setup_ns)
        self.clock.after(attempt.hold_ns, EventKind.TIMER, attempt.index, self._hang_up, attempt)

    def _hang_up(self, attempt: Attempt) -> None:
        if not attempt.ended:
            self._request(Message.BYE, attempt)

    def _callee_bye(self, attempt: Attempt) -> None:
        self.send(Message.OK_BYE, attempt)

    def _caller_released(self, attempt: Attempt) -> None:
        if not mark(attempt, Message.OK_BYE) or attempt.ended:
            return
        self._answered(attempt)
        self._measure("REL1", attempt, self.clock.now_ns - attempt.sent_ns)
        self._end(attempt)

    # Page message

    def _callee_message(self, attempt: Attempt) -> None:
        self.send(Message.OK_MESSAGE, attempt)

    def _message_done(self, attempt: Attempt) -> None:
        if not mark(attempt, Message.OK_MESSAGE) or attempt.ended:
            return
        self._answered(attempt)
        self._measure("PMM1", attempt, self.clock.now_ns - attempt.sent_ns)
        self._end(attempt)
