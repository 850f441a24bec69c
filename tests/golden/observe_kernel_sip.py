"""The same values as :mod:`.observe_sip`, from a run on the kernel."""

from typing import Any

from vftsim.kernel import Engine
from vftsim.platform.cpu import notes
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
from vftsim.platform.protection.throttle import throttles
from vftsim.sip.messages import Message, Scenario
from vftsim.sip.ramp_end import ramp_end
from vftsim.sip.run import SipLabRun
from vftsim.sip.system import SipLabSpec
from vftsim.workloads.ims_bench.attempt import benches
from vftsim.workloads.sip.records import sip_servers

from .compact import digest
from .observe import Values
from .observe_sip import _phase

_NOBODY = "-"


class ObservedRun(SipLabRun):
    """A run that keeps who was on each pCPU at the end of each instant."""

    def __init__(self, spec: SipLabSpec, seed: int, replication: int, engine: str) -> None:
        self.last: dict[tuple[int, int], int] = {}
        super().__init__(spec, seed, replication, engine=engine, observed=True)

    def on_input(self) -> None:
        self.keep_notes()
        super().on_input()

    def keep_notes(self) -> None:
        count = self.engine.rows(notes.note_count)[1]
        rows = self.engine.rows(notes.notes)
        for number in range(1, int(count.written) + 1):
            note = rows[number]
            if note.what in (notes.DISPATCHED, notes.STOPPED):
                vcpu = int(note.vcpu) if note.what == notes.DISPATCHED else 0
                self.last[int(note.time_ns), int(note.pcpu)] = vcpu
        count.written = 0


def observe_kernel_sip(spec: SipLabSpec, seed: int, replication: int, engine: str) -> tuple[Values, int]:
    """Run a lab; return the values and the number of events."""
    run = ObservedRun(spec, seed, replication, engine)
    phases = run.run()
    if run.lab.guard:
        run.engine.call(bring_up_to_date, run.lab.guard)
    run.keep_notes()
    found = _machine(run)
    found["phases"] = " ".join(phase.name for phase in phases)
    for phase in phases:
        found |= _phase(phase)
    end = ramp_end(phases, spec.workload.steps.stop_above_ihs)
    found |= {
        "ramp.stop_step": end.stop_step,
        "ramp.stop_saps": float(end.stop_saps).hex(),
        "ramp.effective_saps": float(end.effective_saps).hex(),
    }
    return found | _attempts(run) | _server(run) | _network(run) | _protection(run), run.engine.events


def _machine(run: ObservedRun) -> Values:
    engine = run.engine
    host = engine.rows(hosts)[run.lab.host]
    run.server_busy_ns()
    found: Values = {"end_ns": engine.now_ns, "host.context_switches": int(host.context_switches)}
    names = {0: _NOBODY}
    for name, row in run.lab.domains.items():
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
    counted = run.lab.scheduler.counters(engine, run.lab.host)
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
    bench = run.engine.rows(benches)[run.lab.bench]
    found: Values = {
        "attempts.begun": int(bench.begun),
        "attempts.under_way": run.manager.under_way,
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
    server = run.engine.rows(sip_servers)[run.lab.server]
    in_progress = int(server.buffer.length) + run.spec.server.processes - int(server.idle.length)
    alive = not run.engine.rows(guards)[run.lab.guard].dead
    return {
        "server.received": int(server.received),
        "server.handled": int(server.taken),
        "server.retransmissions": int(server.retransmissions),
        "server.transactions.created": int(server.created + server.created_before),
        "drop.socket buffer.full": run.dropped("socket buffer"),
        "server.in_progress": in_progress if alive else 0,
        "server.transactions.held": int(server.held) if alive else 0,
        "server.transactions.completed": int(server.waiting) if alive else 0,
        "server.locations.changed": int(server.changed_records) if alive else 0,
        "server.locations.to_write": int(server.records_to_write) if alive else 0,
        "server.boots": int(server.boots),
        "server.lost_in_crash": int(server.lost_in_crash),
    }


def _network(run: ObservedRun) -> Values:
    engine, lab = run.engine, run.lab
    found: Values = {"drop.background.queue full": _count(engine, lab.cards.bursts_lost)}
    for name, row in lab.cards.rows.items():
        card = engine.rows(cards)[row]
        for way, link in (("in", int(card.to_host)), ("out", int(card.from_host))):
            found |= _link(engine, name, way, link)
    nic = engine.rows(guest_nics)[lab.port]
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
    engine, row = run.engine, run.lab.guard
    if not row:
        return {}
    found: Values = {f"protection.count.{name}": count for name, count in counters(engine, row).items()}
    found["protection.timeline"] = [part for instant in sorted(timeline(engine, row)) for part in instant]
    found["protection.stopped_ns"] = int(engine.rows(guards)[row].stopped_ns)
    return found | _pair(engine, row) if isinstance(run.lab.protection, LockstepSpec) else found


def _pair(engine: Engine, row: int) -> Values:
    own, throttle = engine.rows(locksteps)[row], engine.rows(throttles)[row]
    pair = engine.rows(pairs)[own.pair]
    log, replay = pair.log, pair.secondary
    return {
        "protection.state": state_name(engine, row),
        "protection.log.bytes": int(engine.rows(channels)[row].sent_bytes),
        "protection.log.entries": int(log.entries),
        "protection.log.train_entries": int(log.train_entries),
        "protection.log.unsent_bytes": int(log.unsent_bytes),
        "protection.log.last_depart_ns": int(log.last_depart_ns),
        "protection.log.last_arrival_ns": int(log.last_arrival_ns),
        "protection.replay.busy_ns": int(own.replayed_ns + replay.busy_ns),
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
