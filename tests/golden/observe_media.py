"""What is recorded of a run of the media host.

Beside the families of :mod:`.observe`; flows are ``media`` and ``signaling``.  Every running vCPU is charged at
the end of the warm-up, which matters to a scheduler that rounds when it charges.  A stub domain of the domain D
is called ``D-stub``.

::

    flow.<flow>.delivered, .dropped, .late, .loss_events      packets that reached the host after the warm-up
    flow.<flow>.all_delivered, .all_dropped                   all packets
    flow.<flow>.delay                      distribution, there and back, after the warm-up
    flow.<flow>.jitter.mean                mean over streams with a packet, ns
    flow.<flow>.jitter                     list: RFC 3550 jitter of each stream in ns
    drop.<place>.<cause>                   from the start; only what happened
    nic.<nic>.admitted, .interrupts        packets that came; interrupts raised
    in_flight                              packets in the host at the end: nic, rings, hands of stages and threads
    ring.<name>.occupied                   slots taken at the end: "eth0 receive ring", "media socket buffer", ...
    stage.<domain>.<stage>.batches         batches that a stage began; stages of the driver domain by NIC
    application.<domain>.<program>.blocked threads asleep in the send call at the end
    application.<domain>.<program>.active  threads with a packet at the end
    application.<domain>.<program>.bursts  of a CPU-bound program
    warm_up.vcpu.<domain>.<n>.run_ns, warm_up.pcpu.<n>.busy_ns     at the end of the warm-up
    warm_up.host.context_switches
"""

from collections.abc import Iterator, Sequence
from typing import Any

from vftsim.composition.model import ModelSpec
from vftsim.composition.run import Run
from vftsim.platform.cpu.notes import DISPATCHED, STOPPED, note_count, notes
from vftsim.platform.cpu.records import BUSY, hosts, pcpus, vcpus
from vftsim.platform.delays import histogram
from vftsim.platform.io.nic import nics
from vftsim.platform.io.stage import stages
from vftsim.workloads.account import stream_ends
from vftsim.workloads.pool import PoolProgram

from .compact import digest
from .observe import Values, histogram_values, list_values

_ENTITY = 1
HOST = "host"
_NOBODY = "-"


class Watch:
    """Who is on each pCPU at the end of each instant."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.first_pcpu = run.built.pcpu_rows(HOST).start
        self.names = {row: f"{name}.{number}" for name, number, row in run.built.vcpu_rows()}
        self.last: list[dict[int, str]] = [{} for _ in run.built.pcpu_rows(HOST)]

    def read(self) -> None:
        count = self.run.engine.rows(note_count)[1]
        rows = self.run.engine.rows(notes)
        for number in range(1, int(count.written) + 1):
            note = rows[number]
            if note.event in (DISPATCHED, STOPPED):
                who = self.names[int(note.vcpu)] if note.event == DISPATCHED else _NOBODY
                self.last[int(note.pcpu) - self.first_pcpu][int(note.time_ns)] = who
        count.written = 0

    def values(self) -> Iterator[tuple[str, Any]]:
        for pcpu, last in enumerate(self.last):
            lines = list(_changes(list(last.items())))
            yield f"pcpu.{pcpu}.switches.count", len(lines)
            yield f"pcpu.{pcpu}.switches.sha256", digest(lines)


def _changes(last: Sequence[tuple[int, str]]) -> Iterator[str]:
    before = _NOBODY
    for time_ns, who in last:
        if who != before:
            yield f"{time_ns} {who}"
            before = who


def observe_media(spec: ModelSpec, seed: int, replication: int, engine: str) -> tuple[Values, int]:
    """Run a host; return the values and the number of events."""
    run = Run(spec, seed, replication, engine=engine, observed=True)
    watching = Watch(run)
    run.listeners.append(watching)
    found: Values = {}
    run.pauses.add(spec.measure.warm_up, _ENTITY, lambda: found.update(_at_warm_up_end(run)))
    record = run.run()
    found |= dict(_machine(run)) | dict(watching.values())
    for name in run.built.drivers:
        found |= _flow(run, name)
    for (place, cause), count in record.drops.items():
        found[f"drop.{place}.{cause}"] = count
    found["in_flight"] = record.in_flight
    return found | dict(_parts(run)), run.engine.events


def _machine(run: Run) -> Iterator[tuple[str, Any]]:
    rows, now_ns = run.engine.rows, run.engine.now_ns
    yield "end_ns", now_ns
    yield "host.context_switches", int(rows(hosts)[run.built.hosts[HOST].row].context_switches)
    for name, number, row in run.built.vcpu_rows():
        for field in ("run_ns", "wait_ns", "wakeups", "context_switches", "migrations"):
            yield f"vcpu.{name}.{number}.{field}", int(getattr(rows(vcpus)[row], field))
    for number, row in enumerate(run.built.pcpu_rows(HOST)):
        pcpu: Any = rows(pcpus)[row]
        ahead_ns = max(int(rows(vcpus)[pcpu.running].dispatched_ns) - now_ns, 0) if pcpu.running else 0
        yield f"pcpu.{number}.busy_ns", int(pcpu.busy_ns)
        yield f"pcpu.{number}.switching_ns", int(pcpu.switching_ns) - ahead_ns
        since_ns = now_ns if pcpu.idle_since_ns == BUSY else int(pcpu.idle_since_ns)
        yield f"pcpu.{number}.idle_ns", int(pcpu.idle_ns) + now_ns - since_ns
    for name, count in run.spec.hosts[HOST].scheduler.counters(run.engine, run.built.hosts[HOST].row).items():
        if count:
            yield f"scheduler.{name}", count


def _at_warm_up_end(run: Run) -> Values:
    run.built.settle()
    rows = run.engine.rows
    found: Values = {
        f"warm_up.vcpu.{name}.{number}.run_ns": int(rows(vcpus)[row].run_ns)
        for name, number, row in run.built.vcpu_rows()
    }
    found |= {
        f"warm_up.pcpu.{n}.busy_ns": int(rows(pcpus)[row].busy_ns) for n, row in enumerate(run.built.pcpu_rows(HOST))
    }
    return found | {"warm_up.host.context_switches": int(rows(hosts)[run.built.hosts[HOST].row].context_switches)}


def _flow(run: Run, name: str) -> Values:
    head, flow = f"flow.{name}", run.built.drivers[name].record
    fields = ("delivered", "dropped", "late", "loss_events", "all_delivered", "all_dropped")
    found: Values = {f"{head}.{field}": int(getattr(flow, field)) for field in fields}
    first = int(flow.first_stream)
    ends: list[Any] = list(run.engine.rows(stream_ends)[first : first + int(flow.streams)])
    jitter = [float(end.jitter_ns) for end in ends if end.received]
    # By the rule of the recording: a stream with one packet counts as one without jitter.
    found[f"{head}.jitter.mean"] = (sum(jitter) / len(jitter) if jitter else 0.0).hex()
    found |= list_values(f"{head}.jitter", [float(end.jitter_ns) for end in ends])
    return found | histogram_values(f"{head}.delay", histogram(run.engine, int(flow.delays)))


def _parts(run: Run) -> Iterator[tuple[str, Any]]:
    rows = run.engine.rows
    for name, row in run.built.hosts[HOST].io.nics.items():
        yield f"nic.{name}.admitted", int(rows(nics)[row].admitted)
        yield f"nic.{name}.interrupts", int(rows(nics)[row].interrupts)
    for name, occupied in run.built.occupancies():
        yield f"ring.{name}.occupied", occupied
    names = {row: name for name, row in run.built.hosts[HOST].io.nics.items()}
    for stage in run.built.hosts[HOST].io.stages:
        stage_row: Any = rows(stages)[stage.row]
        name = f"{stage.owner}.{stage.name}"
        if not stage.owner:
            name = f"driver.receive {names[int(stage_row.nic)]}" if stage_row.nic else "driver.transmit"
        yield f"stage.{name}.batches", int(stage_row.batches)
    for name, program in run.built.programs.items():
        if isinstance(program, PoolProgram):
            yield f"application.{name}.blocked", int(program.record.blocked)
            yield f"application.{name}.active", int(program.record.active)
        elif hasattr(getattr(program, "record", None), "begun"):
            yield f"application.{name}.bursts", int(program.record.begun)
