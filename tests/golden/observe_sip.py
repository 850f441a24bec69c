"""What is recorded of a run of the SIP lab.

Beside the families of :mod:`.observe`; ``<scenario>`` is ims_rereg, ims_reg, ims_uac, ims_dereg or ims_msgc.
User agents are callers and callees alike.

When the run ends: after the last step the simulation goes on to the next multiple of 60 s from time 0, and then
second by second until no attempt is under way, 120 s at most.  The server's vCPUs are charged at every sample of
the series (once a ``sample_period``), which matters to a scheduler that rounds when it charges.

Phases (``pre_registration``, ``step_1``, ...; attempts count where they began, the transient excluded)::

    phases                                 their names in order
    phase.<name>.index, .requested_saps, .start_ns, .measure_from_ns, .end_ns
    phase.<name>.attempts.<scenario>       begun
    phase.<name>.inadequate.<scenario>     of those, inadequately handled, whenever that came out
    phase.<name>.judged_until_ns, .judged_attempts.<scenario>, .judged_inadequate.<scenario>
                                           what the rule to stop looks at
    phase.<name>.not_started               attempts for which no subscriber was free
    phase.<name>.dropped                   datagrams lost anywhere, while the phase lasted
    phase.<name>.delay.<D>                 distributions; SES1 SES2 REL1 PMM1 REG1 REG2 REG4 REG1/ims_reg
                                           REG1/ims_dereg
    phase.<name>.series.<S>                lists, one number a sample: load cpu_percent memory_mb ihs_all ihs_uac
                                           retransmissions_all retransmissions_uac retransmissions_reg lag_ms
    ramp.stop_step, ramp.stop_saps, ramp.effective_saps    under the model's own limit

Attempts from the start of the run to its end, counted or not, stir included::

    attempts.begun                         all
    attempts.under_way                     not over at the end
    attempts.over.<scenario>, attempts.over_at_ns.<scenario>      how many are over, and the sum of the instants
    attempts.failed.<scenario>             of those, how many failed (a delay over its limit, given up, 408)
    attempts.inadequate_noted, attempts.inadequate_noted_uac      failures as the user agents noted them
    user_agents.retransmissions.<scenario> messages that callers and callees repeated

Messages, retransmissions included; ``<message>`` is REGISTER, INVITE, OK_BYE, ...::

    message.to_server.<message>            sent by user agents
    message.from_server.<message>          that reached user agents
    server.received                        datagrams at the socket
    server.handled                         a worker is done with them
    server.in_progress                     in the socket buffer or a worker's hands
    server.retransmissions                 forwarded requests that the server repeated
    server.transactions.created, .held, .completed       held: in memory; completed: those of them with a final reply
    server.locations.changed, .to_write    records changed since the last flush began; of that flush not yet written
    server.boots                           1 without a restart
    server.lost_in_crash                   datagrams in progress when a machine was lost that booted again

Sums over all servers there were; one whose machine is lost counts as it was at that instant, and does not count in
``in_progress``, ``held``, ``completed`` and ``locations`` any more.

Network and card::

    card.<card>.<in|out>.frames, .delivered, .bytes     offered, arrived, carried (background bursts in bytes only)
    drop.card <card> <in|out>.queue full   frames lost at a transmitter
    drop.background.queue full             background bursts lost
    nic.sut.received, .interrupts          packets that reached the server's card; interrupts raised
    nic.sut.waiting                        packets in its ring or in interrupt work
    drop.nic ring.full, drop.nic.down      lost there: no descriptor; disconnected, or with a machine or its log
    drop.socket buffer.full

Protection, where there is any or a fault::

    protection.count.<name>                failovers, outputs_issued_again, restarts, log_buffer_full, ...
    protection.timeline                    [instant, what, ...] in the order of instant and text
    protection.stopped_ns                  time the guest stood still, stops that are over
    protection.state                       of a lockstep pair at the end: protected, unprotected, ...
    protection.log.bytes                   sent over the channel, since the start of the run
    protection.log.entries, .train_entries, .unsent_bytes      of the last pair: packets, outputs; timer and disk
                                           entries; what a broken channel holds back
    protection.log.last_depart_ns, .last_arrival_ns
    protection.replay.busy_ns              the secondaries' execution, since the start of the run
    protection.replay.end_ns, .lag_ns      of the last pair
    protection.throttle.share, .lowest_share      in percent
    protection.commit.issued               outputs of the last pair: sequence number of the last
    protection.commit.released, .waiting, .visible, .wait_ns   let go; still held; number of the last let go; time
                                           that the acknowledgements took, summed when they were planned

The log of a pair that is protected, or whose channel is broken, is written up to the end of the run first.
"""

from collections import Counter
from typing import Any

from vftsim.net.link import Link
from vftsim.protection.lockstep_pair import ReplicatedPair
from vftsim.sip.attempt import Attempt
from vftsim.sip.lab import SipLab
from vftsim.sip.messages import Message, Scenario
from vftsim.sip.metrics import Counters, PhaseRecord
from vftsim.sip.ramp_end import ramp_end
from vftsim.sip.server import SipServer
from vftsim.sip.system import SipLabSpec

from .observe import Values, histogram_values, list_values, machine_values, watch


class _KeptCounters(Counters):
    """Per-second counters that remember what they held when they were cleared."""

    __slots__ = ("kept",)

    def __init__(self) -> None:
        self.kept: Counter[str] = Counter()
        super().__init__()

    def clear(self) -> None:
        if hasattr(self, "retransmissions"):
            self.kept["noted"] += self.ihs_all
            self.kept["noted uac"] += self.ihs_uac
            for scenario in Scenario:
                self.kept[f"again {scenario.label}"] += self.retransmissions[scenario]
        super().clear()


class _SipWatch:
    """Listens to a lab while it runs, by wrapping what its parts call; changes nothing."""

    def __init__(self, lab: SipLab) -> None:
        self.lab = lab
        self.messages: Counter[str] = Counter()
        self.over: Counter[str] = Counter()
        self.lost_servers: list[Values] = []
        self.counters = lab.agents.counters = lab._sampler.counters = _KeptCounters()
        self._send, self._receive, self._ended = lab.agents.send, lab.agents.receive, lab.agents.ended
        agents: Any = lab.agents
        agents.send, agents.receive, agents.ended = self.send, self.receive, self.ended
        if lab._machine is not None:
            machine: Any = lab._machine
            self._kill = machine.kill
            machine.kill = self.kill

    def send(self, message: int, attempt: Attempt) -> None:
        self.messages[f"to_server.{Message(message).name}"] += 1
        self._send(message, attempt)

    def receive(self, datagram: tuple[int, Attempt]) -> None:
        self.messages[f"from_server.{Message(datagram[0]).name}"] += 1
        self._receive(datagram)

    def ended(self, attempt: Attempt) -> None:
        label = attempt.scenario.label
        self.over[f"over.{label}"] += 1
        self.over[f"over_at_ns.{label}"] += self.lab.clock.now_ns
        self.over[f"failed.{label}"] += attempt.failed
        self._ended(attempt)

    def kill(self) -> None:
        assert self.lab._machine is not None
        if not self.lab._machine.dead:
            self.lost_servers.append(_lasting(self.lab.server))
        self._kill()


def observe_sip(spec: SipLabSpec, seed: int, replication: int) -> tuple[Values, int]:
    """Run a lab; return the values and the number of events."""
    lab = SipLab(spec, seed, replication)
    watching = watch(
        lab.host, {"sut": lab.guest.vcpus, **{name: guest.vcpus for name, guest in lab.neighbours.items()}}
    )
    listener = _SipWatch(lab)
    phases = lab.run()
    listener.counters.clear()
    if isinstance(lab.mechanism, ReplicatedPair):
        lab.mechanism._sync()
    found = machine_values(lab.host, watching)
    found["phases"] = " ".join(phase.name for phase in phases)
    for phase in phases:
        found |= _phase(phase)
    end = ramp_end(phases, spec.workload.steps.stop_above_ihs)
    found |= {
        "ramp.stop_step": end.stop_step,
        "ramp.stop_saps": float(end.stop_saps).hex(),
        "ramp.effective_saps": float(end.effective_saps).hex(),
    }
    return found | _attempts(listener) | _server(listener) | _network(lab) | _protection(lab), lab.clock.events


def _phase(phase: PhaseRecord) -> Values:
    head = f"phase.{phase.name}"
    found: Values = {f"{head}.requested_saps": float(phase.requested_saps).hex()}
    for field in ("index", "start_ns", "measure_from_ns", "end_ns", "judged_until_ns", "not_started", "dropped"):
        found[f"{head}.{field}"] = getattr(phase, field)
    for field in ("attempts", "inadequate", "judged_attempts", "judged_inadequate"):
        for scenario in Scenario:
            found[f"{head}.{field}.{scenario.label}"] = getattr(phase, field)[scenario]
    for name, histogram in phase.delays.items():
        found |= histogram_values(f"{head}.delay.{name}", histogram)
    for name, values in phase.series.items():
        found |= list_values(f"{head}.series.{name}", values)
    return found


def _attempts(listener: _SipWatch) -> Values:
    manager, kept = listener.lab.manager, listener.counters.kept
    found: Values = {
        "attempts.begun": manager.attempts_begun,
        "attempts.under_way": manager.under_way,
        "attempts.inadequate_noted": kept["noted"],
        "attempts.inadequate_noted_uac": kept["noted uac"],
    }
    for scenario in Scenario:
        label = scenario.label
        for field in ("over", "over_at_ns", "failed"):
            found[f"attempts.{field}.{label}"] = listener.over[f"{field}.{label}"]
        found[f"user_agents.retransmissions.{label}"] = kept[f"again {label}"]
    return found | {f"message.{name}": count for name, count in listener.messages.items()}


def _lasting(server: SipServer) -> Values:
    return {
        "server.received": server.received,
        "server.handled": server.taken,
        "server.retransmissions": server.retransmissions_sent,
        "server.transactions.created": server.table.created,
        "drop.socket buffer.full": server.dropped,
    }


def _server(listener: _SipWatch) -> Values:
    lab = listener.lab
    servers = list(listener.lost_servers)
    server, alive = lab.server, lab._machine is None or not lab._machine.dead
    if alive:
        servers.append(_lasting(server))
    found = {key: sum(each[key] for each in servers) for key in _lasting(server)}
    return found | {
        "server.in_progress": server.in_progress if alive else 0,
        "server.transactions.held": server.table.held if alive else 0,
        "server.transactions.completed": server.table.waiting if alive else 0,
        "server.locations.changed": server._changed_records if alive else 0,
        "server.locations.to_write": server._records_to_write if alive else 0,
        "server.boots": len(lab._lost_servers) + 1,
        "server.lost_in_crash": lab.lost_in_crash,
    }


def _network(lab: SipLab) -> Values:
    found: Values = {"drop.background.queue full": lab.nics.background_dropped}
    for way, links in (("in", lab.nics.inbound), ("out", lab.nics.outbound)):
        for card, link in links.items():
            found |= _link(card, way, link)
    nic = lab.nic
    return found | {
        "nic.sut.received": nic.received,
        "nic.sut.interrupts": nic.interrupts,
        "nic.sut.waiting": nic.waiting,
        "drop.nic ring.full": nic.dropped,
        "drop.nic.down": nic.lost_while_down,
    }


def _link(card: str, way: str, link: Link) -> Values:
    return {
        f"card.{card}.{way}.frames": link.sent,
        f"card.{card}.{way}.delivered": link.delivered,
        f"card.{card}.{way}.bytes": link.sent_bytes,
        f"drop.card {card} {way}.queue full": link.dropped,
    }


def _protection(lab: SipLab) -> Values:
    mechanism, machine = lab.mechanism, lab._machine
    if mechanism is None or machine is None:
        return {}
    found: Values = {f"protection.count.{name}": count for name, count in mechanism.counters.items()}
    found["protection.timeline"] = [part for instant in sorted(mechanism.timeline) for part in instant]
    found["protection.stopped_ns"] = machine.stopped_ns
    if isinstance(mechanism, ReplicatedPair):
        found |= _pair(mechanism)
    return found


def _pair(pair: ReplicatedPair) -> Values:
    log, replay, commit, throttle = pair.log, pair.replay, pair.commit, pair.throttle
    return {
        "protection.state": pair.state.name.lower(),
        "protection.log.bytes": pair.channel.sent_bytes,
        "protection.log.entries": log.entries,
        "protection.log.train_entries": log.train_entries,
        "protection.log.unsent_bytes": log.unsent_bytes,
        "protection.log.last_depart_ns": log.last_depart_ns,
        "protection.log.last_arrival_ns": log.last_arrival_ns,
        "protection.replay.busy_ns": pair._replayed_ns + replay.busy_ns,
        "protection.replay.end_ns": replay.end_ns,
        "protection.replay.lag_ns": replay.lag_ns,
        "protection.throttle.share": float(throttle.share_percent).hex(),
        "protection.throttle.lowest_share": float(throttle.lowest_share_percent).hex(),
        "protection.commit.issued": pair._sequence,
        "protection.commit.released": commit.released,
        "protection.commit.waiting": commit.waiting,
        "protection.commit.visible": commit.visible,
        "protection.commit.wait_ns": commit.wait_ns,
    }
