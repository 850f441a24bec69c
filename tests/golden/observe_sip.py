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
    protection.replay.busy_ns              the secondaries' execution of the log, since the start of the run
    protection.replay.end_ns, .lag_ns      of the last pair
    protection.throttle.share, .lowest_share      in percent
    protection.commit.issued               outputs of the last pair: sequence number of the last
    protection.commit.released, .waiting, .visible, .wait_ns   let go; still held; number of the last let go; time
                                           that the acknowledgements took, summed when they were planned

The log of a pair that is protected, or whose channel is broken, is written up to the end of the run first.
"""

from typing import Any

from vftsim.composition.model import ModelSpec
from vftsim.composition.record import RunRecord
from vftsim.composition.run import Run
from vftsim.composition.views import ramp_of
from vftsim.kernel import Engine
from vftsim.platform.cpu import build, notes
from vftsim.platform.cpu.records import BUSY, domains, hosts, pcpus, vcpus
from vftsim.platform.io.host_cards import cards
from vftsim.platform.io.link import links
from vftsim.platform.io.packet import drops
from vftsim.platform.io.paths.moderated import guest_nics
from vftsim.platform.protection._lockstep_records import locksteps
from vftsim.platform.protection.account import counters, timeline
from vftsim.platform.protection.channel import channels
from vftsim.platform.protection.guard import guards
from vftsim.platform.protection.lockstep import LockstepSpec, state_name
from vftsim.platform.protection.mechanism import bring_up_to_date
from vftsim.platform.protection.pair import pairs
from vftsim.platform.protection.passes import play
from vftsim.platform.protection.throttle import throttles
from vftsim.workloads.ims_bench.attempt import benches
from vftsim.workloads.ims_bench.metrics import PhaseRecord
from vftsim.workloads.ims_bench.workload import BenchDriver
from vftsim.workloads.ramp import ramp_end
from vftsim.workloads.sip.application import SipServerProgram
from vftsim.workloads.sip.messages import Message, Scenario
from vftsim.workloads.sip.records import sip_servers

from .compact import digest
from .observe import Values, histogram_values, list_values

_NOBODY = "-"


class ObservedRun(Run):
    """A run that keeps who was on each pCPU at the end of each instant."""

    def __init__(self, spec: ModelSpec, seed: int, replication: int, engine: str) -> None:
        self.last: dict[tuple[int, int], int] = {}
        super().__init__(spec, seed, replication, engine=engine, observed=True)
        driver, program = self.built.drivers["calls"], self.built.programs["sut.proxy"]
        assert isinstance(driver, BenchDriver)
        assert isinstance(program, SipServerProgram)
        self.bench, self.driver, self.server, self.program = driver.bench, driver, program.server, program
        self.guard = self.built.guards.get("sut", 0)
        self.port = self.built.ports["sut.proxy", "eth0"]

    def place(self, where: str, cause: str) -> int:
        return _count(self.engine, self.built.hosts["host"].io.drop_row(where, cause))

    def on_input(self) -> None:
        self.keep_notes()
        super().on_input()

    def keep_notes(self) -> None:
        count = self.engine.rows(notes.note_count)[1]
        rows = self.engine.rows(notes.notes)
        for number in range(1, int(count.written) + 1):
            note = rows[number]
            if note.event in (notes.DISPATCHED, notes.STOPPED):
                vcpu = int(note.vcpu) if note.event == notes.DISPATCHED else 0
                self.last[int(note.time_ns), int(note.pcpu)] = vcpu
        count.written = 0


KEPT_SINCE = ("invite200", "completed")
"""Delays and series that were not kept when the values were recorded."""


def _recorded(kept: dict[str, Any]) -> list[tuple[str, Any]]:
    return [(name, each) for name, each in kept.items() if name not in KEPT_SINCE]


def observe_sip(spec: ModelSpec, seed: int, replication: int, engine: str) -> tuple[Values, int]:
    """Run a lab; return the values and the number of events."""
    records: list[RunRecord] = []
    # A crash while the channel is lost is taken over from where that failed, which a first pass finds.
    played = play(
        lambda: ObservedRun(spec, seed, replication, engine),
        lambda run: run.engine,
        lambda run: records.append(run.run()),
    )
    run, phases = played.run, records[-1].played()
    if run.guard:
        run.engine.call(bring_up_to_date, run.guard)
    run.keep_notes()
    found = _machine(run)
    found["phases"] = " ".join(phase.name for phase in phases)
    for phase in phases:
        found |= _phase(phase)
    end = ramp_end(phases, ramp_of(spec).steps.stop_above_ihs)
    found |= {
        "ramp.stop_step": end.stop_step,
        "ramp.stop_saps": float(end.stop_saps).hex(),
        "ramp.effective_saps": float(end.effective_saps).hex(),
    }
    return found | _attempts(run) | _server(run) | _network(run) | _protection(run), run.engine.events


def _phase(phase: PhaseRecord) -> Values:
    head = f"phase.{phase.name}"
    found: Values = {f"{head}.requested_saps": float(phase.requested_saps).hex()}
    for field in ("index", "start_ns", "measure_from_ns", "end_ns", "judged_until_ns", "not_started", "dropped"):
        found[f"{head}.{field}"] = getattr(phase, field)
    for field in ("attempts", "inadequate", "judged_attempts", "judged_inadequate"):
        for scenario in Scenario:
            found[f"{head}.{field}.{scenario.label}"] = getattr(phase, field)[scenario]
    for name, histogram in _recorded(phase.delays):
        found |= histogram_values(f"{head}.delay.{name}", histogram)
    for name, values in _recorded(phase.series):
        found |= list_values(f"{head}.series.{name}", values)
    return found


def _machine(run: ObservedRun) -> Values:
    engine = run.engine
    host = engine.rows(hosts)[run.built.hosts["host"].row]
    engine.call(build.bring_up_to_date, int(host.row))
    found: Values = {"end_ns": engine.now_ns, "host.context_switches": int(host.context_switches)}
    names = {0: _NOBODY}
    for name, row in run.built.domains.items():
        domain = engine.rows(domains)[row]
        for n in range(domain.vcpus):
            names[int(domain.first_vcpu) + n] = f"{name}.{n}"
            vcpu = engine.rows(vcpus)[domain.first_vcpu + n]
            for field in ("run_ns", "wait_ns", "wakeups", "context_switches", "migrations"):
                found[f"vcpu.{name}.{n}.{field}"] = int(getattr(vcpu, field))
    for n in range(host.pcpus):
        found |= _pcpu(engine, n, int(host.first_pcpu) + n)
        lines = _switches(run, int(host.first_pcpu) + n, names)
        found[f"pcpu.{n}.switches.count"] = len(lines)
        found[f"pcpu.{n}.switches.sha256"] = digest(lines)
    counted = run.spec.hosts["host"].scheduler.counters(engine, run.built.hosts["host"].row)
    return found | {f"scheduler.{name}": count for name, count in counted.items() if count}


def _pcpu(engine: Engine, n: int, row: int) -> Values:
    pcpu, now_ns = engine.rows(pcpus)[row], engine.now_ns
    ahead_ns = max(int(engine.rows(vcpus)[pcpu.running].dispatched_ns) - now_ns, 0) if pcpu.running else 0
    return {
        f"pcpu.{n}.busy_ns": int(pcpu.busy_ns),
        f"pcpu.{n}.switching_ns": int(pcpu.switching_ns) - ahead_ns,
        f"pcpu.{n}.idle_ns": int(pcpu.idle_ns)
        + (0 if pcpu.idle_since_ns == BUSY else now_ns - int(pcpu.idle_since_ns)),
    }


def _switches(run: ObservedRun, row: int, names: dict[int, str]) -> list[str]:
    lines = []
    before = 0
    for (now_ns, pcpu), vcpu in sorted(run.last.items()):
        if pcpu == row and vcpu != before:
            before = vcpu
            lines.append(f"{now_ns} {names[vcpu]}")
    return lines


def _attempts(run: ObservedRun) -> Values:
    bench = run.engine.rows(benches)[run.bench]
    found: Values = {
        "attempts.begun": int(bench.begun),
        "attempts.under_way": run.driver.under_way,
        "attempts.inadequate_noted": int(bench.inadequate),
        "attempts.inadequate_noted_uac": int(bench.uac_inadequate),
    }
    for scenario in Scenario:
        label = scenario.label
        found[f"attempts.over.{label}"] = int(bench.ended[scenario])
        found[f"attempts.over_at_ns.{label}"] = int(bench.ends_ns[scenario])
        found[f"attempts.failed.{label}"] = int(bench.failed[scenario])
        found[f"user_agents.retransmissions.{label}"] = int(bench.repeated[scenario])
    for message in Message:
        for way, counts in (("to_server", bench.to_server), ("from_server", bench.from_server)):
            if counts[message]:
                found[f"message.{way}.{message.name}"] = int(counts[message])
    return found


def _server(run: ObservedRun) -> Values:
    server = run.engine.rows(sip_servers)[run.server]
    in_progress = run.program.in_flight()
    alive = not run.engine.rows(guards)[run.guard].dead
    return {
        "server.received": int(server.received),
        "server.handled": int(server.taken),
        "server.retransmissions": int(server.retransmissions),
        "server.transactions.created": int(server.created + server.created_before),
        "drop.socket buffer.full": _count(run.engine, int(server.buffer_full)),
        "server.in_progress": in_progress if alive else 0,
        "server.transactions.held": int(server.held) if alive else 0,
        "server.transactions.completed": int(server.waiting) if alive else 0,
        "server.locations.changed": int(server.changed_records) if alive else 0,
        "server.locations.to_write": int(server.records_to_write) if alive else 0,
        "server.boots": int(server.boots),
        "server.lost_in_crash": int(server.lost_in_crash),
    }


def _network(run: ObservedRun) -> Values:
    engine, lab = run.engine, run.built
    found: Values = {"drop.background.queue full": run.place("background traffic", "queue full")}
    for name, row in lab.hosts["host"].cards.items():
        card = engine.rows(cards)[row]
        for way, link in (("in", int(card.to_host)), ("out", int(card.from_host))):
            found |= _link(engine, name, way, link)
    nic = engine.rows(guest_nics)[run.port]
    return found | {
        "nic.sut.received": int(nic.received),
        "nic.sut.interrupts": int(nic.interrupts),
        "nic.sut.waiting": int(nic.ring.length) + int(nic.taken.length),
        "drop.nic ring.full": _count(engine, int(nic.ring_full)),
        "drop.nic.down": _count(engine, int(nic.down)),
    }


def _link(engine: Engine, card: str, way: str, row: int) -> Values:
    link: Any = engine.rows(links)[row]
    return {
        f"card.{card}.{way}.frames": int(link.sent),
        f"card.{card}.{way}.delivered": int(link.delivered),
        f"card.{card}.{way}.bytes": int(link.sent_bytes),
        f"drop.card {card} {way}.queue full": _count(engine, int(link.queue_full)),
    }


def _protection(run: ObservedRun) -> Values:
    engine, row = run.engine, run.guard
    if not row:
        return {}
    counted = counters(engine, row)
    # Counted since the cases were recorded; all that was counted then must be as it was.
    counted.pop("inputs_while_split", None)
    found: Values = {f"protection.count.{name}": count for name, count in counted.items()}
    found["protection.timeline"] = [part for instant in sorted(timeline(engine, row)) for part in instant]
    found["protection.stopped_ns"] = int(engine.rows(guards)[row].stopped_ns)
    return found | _pair(engine, row) if isinstance(run.built.protection_of("sut"), LockstepSpec) else found


def _pair(engine: Engine, row: int) -> Values:
    lockstep, throttle = engine.rows(locksteps)[row], engine.rows(throttles)[row]
    pair = engine.rows(pairs)[lockstep.pair]
    log, replay = pair.log, pair.secondary
    return {
        "protection.state": state_name(engine, row),
        "protection.log.bytes": int(engine.rows(channels)[row].sent_bytes),
        "protection.log.entries": int(log.entries),
        "protection.log.train_entries": int(log.train_entries),
        "protection.log.unsent_bytes": int(log.unsent_bytes),
        "protection.log.last_depart_ns": int(log.last_depart_ns),
        "protection.log.last_arrival_ns": int(log.last_arrival_ns),
        "protection.replay.busy_ns": int(lockstep.replayed_ns + replay.need_ns),
        "protection.replay.end_ns": int(replay.end_ns),
        "protection.replay.lag_ns": int(replay.lag_ns),
        "protection.throttle.share": float(throttle.share).hex(),
        "protection.throttle.lowest_share": float(throttle.lowest_share).hex(),
        "protection.commit.issued": int(pair.issued),
        "protection.commit.released": int(pair.released),
        "protection.commit.waiting": int(pair.waiting),
        "protection.commit.visible": int(pair.visible),
        "protection.commit.wait_ns": int(pair.wait_ns),
    }


def _count(engine: Engine, place: int) -> int:
    return int(engine.rows(drops)[place].count)
