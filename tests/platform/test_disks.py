"""Disks: queues against theory, schedules worked out by hand, what a stop and a crash do."""

from functools import cache
from math import exp, sqrt
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter

from tests.installing import Installing
from vftsim.composition.model import ModelSpec
from vftsim.composition.run import run_model
from vftsim.kernel import EventKind, Linked, Record, Sim, Table, event, link
from vftsim.kernel.choose import make_engine
from vftsim.kernel.inputs import Feeder, feeds
from vftsim.platform.cpu import build as cpu
from vftsim.platform.cpu.parameters import DomainScheduling
from vftsim.platform.cpu.records import vcpus
from vftsim.platform.cpu.scheduler import scheduler
from vftsim.platform.cpu.schedulers.native import Native, native
from vftsim.platform.io import disk as disks
from vftsim.platform.io.disk import DiskUse, add_disk, disk, transfer_done
from vftsim.platform.io.disks.array import ArrayDiskSpec, array
from vftsim.platform.io.disks.local import LocalDiskSpec, local, local_disks
from vftsim.platform.io.packet import Application, application, applications, path, workload
from vftsim.platform.protection import build as protect
from vftsim.platform.protection._lockstep_costs import recordings
from vftsim.platform.protection.channel import channels
from vftsim.platform.protection.faults import FAULTS, fault
from vftsim.platform.protection.guard import protection
from vftsim.platform.protection.mechanism import protections
from vftsim.sampling import Streams
from vftsim.workloads.disk_bound import DiskBoundSpec

US, MS, S = 1_000, 1_000_000, 1_000_000_000
READ, WRITE, FLUSH = 1, 2, 3

asker = application.kind("asker of a disk")


class Answer(Record):
    time_ns: int
    tag: int


answers = Table("disk_answers", Answer, 1 << 18)


@event
def on_ask(sim: Sim, place: int) -> None:
    """Ask for what the place says, 10 times a tag and what; what is done at once is noted at once."""
    disk = disks.disks(sim)[1]
    is_done = False
    if place % 10 == READ:
        disks.read(sim, disk, 1, place // 10, 0)
    elif place % 10 == WRITE:
        is_done = disks.write(sim, disk, 1, place // 10, 1000)
    else:
        is_done = disks.flush(sim, disk, 1, place // 10)
    if is_done:
        row = answers.new(sim)
        answers(sim)[row].time_ns = sim.now_ns
        answers(sim)[row].tag = place // 10


@asker.implements(transfer_done)
def note_answer(sim: Sim, program: Application, tag: int) -> None:
    row = answers.new(sim)
    answers(sim)[row].time_ns = sim.now_ns
    answers(sim)[row].tag = tag


@cache
def linked() -> Linked:
    kinds = {
        scheduler: [native],
        path: [],
        workload: [],
        application: [asker, DiskBoundSpec.part],
        disk: [local, array],
        protection: [spec.part for spec in protections().values()],
        fault: [spec.part for spec in FAULTS.values()],
    }
    return link(
        [*cpu.ENTRIES, *protect.ENTRIES, *DiskBoundSpec.entries],
        kinds,
        [*protect.ACTIONS, on_ask],
        [*cpu.TABLES, *protect.TABLES, feeds, answers],
    )


class DiskLab:
    """A guest with one vCPU and a disk; a disk works 4 ms on a request, and its interrupts cost nothing."""

    def __init__(self, engine: str = "simpy", **disk_values: Any) -> None:
        self.engine = make_engine(linked(), engine, self.fill)
        self.feeder = Feeder(self.engine)
        self.host = cpu.add_host(self.engine, 1, Native())
        self.domain = cpu.add_domain(self.engine, self.host, DomainScheduling(), 1)
        values = {"service": 4 * MS, "interrupt": 0, **disk_values}
        is_array = "disks" in values
        spec: Any = ArrayDiskSpec(**values) if is_array else LocalDiskSpec(**{"rate": 8 * 10**13, **values})
        self.disk = add_disk(self.engine, self.domain, spec, self.feeder, Streams(5, 0))
        self.own = self.engine.rows(local_disks)[self.disk]
        self.spec = spec
        cpu.start(self.engine, self.host, Native())

    def fill(self) -> None:
        self.feeder.fill()

    def asking(self, *asked: tuple[int, int]) -> "DiskLab":
        """Ask for (time, what) with tags from 1 on."""
        row, program = self.engine.add(applications, program=self.engine.number(asker), domain=self.domain)
        program.row = row
        for tag, (time_ns, what) in enumerate(asked, 1):
            self.engine.at(time_ns, EventKind.ARRIVAL, tag, self.engine.number(on_ask), 10 * tag + what)
        return self

    def computing(self, **values: Any) -> "DiskLab":
        site = Installing(self.engine, self.feeder, Streams(5, 0))
        program = DiskBoundSpec(**{"size": 0, **values}).install(site.context(self.domain, disk=self.disk))
        self.program = program.record
        program.start()
        return self

    def guarded(self, parameters: dict[str, Any], *faults: dict[str, Any]) -> "DiskLab":
        spec: Any = protections()[parameters["kind"]].model_validate(parameters)
        programs = [int(self.program.program)] if hasattr(self, "program") else []
        guard = protect.add_guard(self.engine, spec, self.domain, [], programs, disks=[self.disk])
        self.guard = guard
        blows = [TypeAdapter(FAULTS[f["kind"]]).validate_python(dict(f)) for f in faults]
        protect.start(self.engine, guard, spec, dict(enumerate(blows)), lambda instant: instant.offset_ns)
        return self

    def run(self, until_ns: int) -> "DiskLab":
        self.engine.run(until_ns)
        cpu.check_conservation(self.engine, self.host)
        return self

    def use(self, since: DiskUse | None = None, seconds: float = 1.0) -> DiskUse:
        """What the disk did, from the start or since an earlier reading."""
        now = self.spec.measured(self.engine, self.disk)
        return now.since(since or now.since(now, 0.0), seconds)

    def answered(self) -> list[tuple[float, int]]:
        rows = [self.engine.rows(answers)[row] for row in range(1, self.engine.used(answers) + 1)]
        return [(int(row.time_ns) / MS, int(row.tag)) for row in rows]


@pytest.mark.thorough
def test_waiting_at_a_disk_is_that_of_an_m_d_1_queue():
    """Mean wait = load x service / 2 (1 - load) (Pollaczek-Khinchine); the error from 40 batches of 250."""
    for load in (0.3, 0.7):
        gaps = np.random.default_rng(11).exponential(4 * MS / load, 10_000)
        times = np.cumsum(gaps).astype(np.int64).tolist()
        lab = DiskLab().asking(*((time_ns, READ) for time_ns in times)).run(times[-1] + S)
        done = {tag: time_ms for time_ms, tag in lab.answered()}
        waits_ms = np.array([done[tag] - time_ns / MS - 4.0 for tag, time_ns in enumerate(times, 1)])
        means = waits_ms.reshape(40, 250).mean(axis=1)
        error = means.std(ddof=1) / sqrt(40)
        assert waits_ms.mean() == pytest.approx(load * 4.0 / 2 / (1 - load), abs=4 * error)
        assert 0 < error < 1
        use = lab.use()
        assert (use.served, use.busy_ns) == (10_000, 10_000 * 4 * MS)
        assert use.response_time == pytest.approx(waits_ms.mean() + 4.0)


def test_one_process_takes_computation_and_service_in_turn():
    """1 ms of computation, 4 ms of disk, 0.5 ms of interrupt: 18 cycles of 5.5 ms, and 0.9 ms of the next."""
    lab = DiskLab(interrupt=500 * US).computing(processes=1, cv=0, reads=100).run(99 * MS + 900 * US)
    assert lab.program.transfers == 18
    assert lab.engine.rows(vcpus)[1].run_ns == 18 * 1500 * US + 900 * US


def test_several_processes_keep_the_disk_busy():
    """Computation is hidden behind the disk: after the first ms it never rests."""
    lab = DiskLab().computing(processes=3, cv=0, reads=50).run(2001 * MS + 1)
    assert lab.program.transfers == 500
    assert lab.own.reads + lab.own.writes == 500


def test_as_many_processes_as_there_may_be_begin_at_one_instant_and_again_after_a_boot():
    """Each draws its computation when the machine begins; the disk never rests from then on, whoever computes."""
    job = {"kind": "disk_bound", "processes": 1000, "compute": "1 us", "size": "0 B"}
    restart = {"detection": {"timeout": "1 s"}, "placement": "100 ms", "boot_time": "100 ms"}
    model = {
        "domains": {
            "a": {
                "disks": {"data": {"kind": "local", "service": "4 ms", "interrupt": "1 us"}},
                "applications": {"job": job},
                "protection": {"kind": "ha_restart", "failover": restart},
            }
        },
        "faults": [{"kind": "primary_crash", "at": "1 s"}],
        "measure": {"warm_up": "0 s", "duration": "3 s"},
    }
    outcomes = run_model(ModelSpec.model_validate(model), 1, 0).whole.outcomes
    # Silent for 1 s, placed and booted in 200 ms: it works for 1.8 s of the three.
    assert outcomes["domains.a.protection"].stopped_ns == 1_200 * MS
    assert outcomes["domains.a.applications.job"].transfers == pytest.approx(1_800 / 4, abs=3)


def test_two_processes_share_cpu_and_disk_as_theory_has_it():
    """Exponential computation of 3 ms, 4 ms of disk: an M/D/1 queue with room for two.

    A departure finds the other request waiting unless none came in its service, exp(-4/3); then the next comes after
    3 ms: one transfer takes 4 + 3 exp(-4/3) ms.
    """
    lab = DiskLab().computing(processes=2, compute=3 * MS, cv=1, reads=100)
    counts = []
    for second in range(1, 50):
        before = int(lab.program.transfers)
        lab.run(second * S)
        counts.append(int(lab.program.transfers) - before)
    mean, error = np.mean(counts), np.std(counts, ddof=1) / 7
    assert mean == pytest.approx(1000 / (4 + 3 * exp(-4 / 3)), abs=4 * error)
    assert error < 2


def test_requests_are_served_in_order_and_as_long_as_they_are():
    """1000 bytes at 8 Mbit/s take 1 ms more."""
    lab = DiskLab(rate=8_000_000).asking((0, READ), (0, WRITE), (MS, READ), (20 * MS, WRITE)).run(S)
    assert lab.answered() == [(4.0, 1), (9.0, 2), (13.0, 3), (25.0, 4)]


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
def test_a_transfer_may_be_of_any_size(engine):
    """2 GiB at as many bytes a second: a cycle of 1 ms of computation, 4 ms and 1 s of disk."""
    lab = DiskLab(engine, rate=8 << 31).computing(processes=1, cv=0, reads=100, size=2 << 30).run(10_051 * MS)
    assert lab.program.transfers == 10


def test_a_flush_waits_for_all_that_was_asked_before():
    lab = DiskLab().asking((0, FLUSH), (MS, WRITE), (2 * MS, WRITE), (3 * MS, FLUSH), (3 * MS, READ)).run(S)
    assert lab.answered() == [(0.0, 1), (5.0, 2), (9.0, 3), (9.0, 4), (13.0, 5)]


def test_buffered_writes_are_done_at_once_and_written_later():
    """Two writes at 1 and 2 ms go to the disk at 11 ms; a read at 12 ms waits for the first, nobody for the second."""
    lab = DiskLab(writes="buffered", flush_period=10 * MS).asking((MS, WRITE), (2 * MS, WRITE), (12 * MS, READ))
    lab.run(11 * MS)
    assert (lab.answered(), lab.own.writes, lab.own.dirty_bytes) == ([(1.0, 1), (2.0, 2)], 0, 2000)
    lab.run(S)
    assert lab.answered()[2:] == [(19.0, 3)]
    assert (lab.own.writes, lab.own.dirty_bytes, lab.use().busy_ns) == (2, 0, 12 * MS)


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
def test_what_a_page_cache_has_is_told_in_time_of_the_disk(engine):
    """Five writes of 4 ms and, at 1 MB/s, 1 ms each; at 10 ms they go to the disk, which has 18 ms to go at 17 ms."""
    lab = DiskLab(engine, writes="buffered", flush_period=10 * MS, rate=8_000_000).asking(*[(0, WRITE)] * 5)
    lab.run(9 * MS)
    assert lab.use().unwritten == pytest.approx(0.025)
    lab.run(17 * MS)
    # What is in service counts with its bytes until it is over.
    assert lab.use().unwritten == pytest.approx(3 * 0.005 + 0.001)
    assert lab.run(S).use().unwritten == 0


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
def test_reads_and_what_is_written_back_share_the_disk(engine):
    """100 writes from 10 ms on, and 60 reads at 12: 25 of these in 100 ms from 14 on, 10 writes, 25 reads, 10 writes.

    A flush at 310 ms waits for the ten reads that are left, and for all writes: by then the last read is done.
    """
    writes, reads = [(0, WRITE)] * 100, [(12 * MS, READ)] * 60
    lab = DiskLab(engine, writes="buffered", flush_period=10 * MS).asking(*writes, *reads, (310 * MS, FLUSH)).run(S)
    expected = [start + 4 * n for start, count in ((14, 25), (154, 25), (294, 10)) for n in range(1, count + 1)]
    answered = [time_ms for time_ms, tag in lab.answered() if 100 < tag <= 160]
    assert answered == expected
    assert lab.answered()[-1] == (10 + 160 * 4, 161)


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
def test_the_domain_has_work_at_the_end_of_a_buffered_write(engine):
    lab = DiskLab(engine, writes="buffered", interrupt=5 * US).asking((0, WRITE), (0, WRITE), (MS, WRITE)).run(6 * S)
    assert lab.engine.rows(vcpus)[1].run_ns == 3 * 5 * US


def test_a_flush_writes_what_is_buffered():
    lab = DiskLab(writes="buffered").asking((0, WRITE), (0, WRITE), (MS, FLUSH), (2 * MS, WRITE), (20 * MS, READ))
    lab.run(5 * S)
    assert lab.answered() == [(0.0, 1), (0.0, 2), (2.0, 4), (9.0, 3), (24.0, 5)]
    assert lab.own.writes == 2
    lab.run(6 * S)
    assert lab.own.writes == 3


def test_a_writer_beyond_the_limit_of_dirty_data_waits():
    """There is room for two writes of 1000 bytes; the third waits for the disk, and so does the fourth."""
    lab = DiskLab(writes="buffered", dirty_limit=2500, flush_period=20 * MS)
    lab.asking(*((number * MS, WRITE) for number in range(4)), (40 * MS, WRITE)).run(S)
    assert lab.answered() == [(0.0, 1), (1.0, 2), (6.0, 3), (10.0, 4), (40.0, 5)]


def test_a_process_waits_for_its_flushes():
    """Buffered writes after 1 ms each; after two of them a flush of 8 ms: 2 transfers every 10 ms."""
    lab = DiskLab(writes="buffered").computing(processes=1, cv=0, reads=0, flush_every=2).run(100 * MS + 1)
    assert (lab.program.transfers, lab.own.writes) == (20, 20)


def test_a_guest_that_stands_still_hears_of_its_transfer_when_it_runs_again():
    """A read from 1 to 5 ms; a pause from 2 to 12 ms: computation goes on at 12 and ends at 13."""
    pause = {"kind": "pause", "at": "2 ms", "duration": "10 ms"}
    lab = DiskLab().computing(processes=1, cv=0, reads=100).guarded({"kind": "none"}, pause)
    assert lab.run(11 * MS).program.transfers == 0
    assert lab.own.reads == 1
    assert lab.run(16 * MS).program.transfers == 1
    assert lab.run(17 * MS + 1).program.transfers == 2


def test_protection_makes_computation_dearer():
    """2 ms instead of 1 ms, and 4 ms of disk."""
    lockstep = {"kind": "lockstep", "log": {"timer_rate": 0}, "cost": {"execution": 2.0}}
    lab = DiskLab().computing(processes=1, cv=0, reads=100).guarded(lockstep).run(61 * MS)
    # The first computation began before protection did.
    assert lab.program.transfers == 10


def test_lockstep_logs_what_is_read_and_prices_each_operation():
    """100 reads of 4 KiB: 4096 + 32 bytes each on the log, 30 us + 4 x 2 us of the guest's CPU time."""
    prices = {"form": "counted", "disk_operation": 30_000, "kibibyte": 2_000, "batch": 0, "context_switch": 0}
    logged = {}
    for disk_reads in (True, False):
        log = {"timer_rate": 0, "transport_overhead": 1.0, "disk_reads": disk_reads}
        parameters = {"kind": "lockstep", "log": log, "cost": prices}
        lab = DiskLab().computing(processes=1, cv=0, reads=100, size=4096).guarded(parameters)
        lab.run(1000 * MS)
        recording = lab.engine.rows(recordings)[lab.guard]
        done = int(lab.engine.rows(local_disks)[lab.disk].reads)
        assert recording.disk_operations == done > 20
        logged[disk_reads] = int(lab.engine.rows(channels)[lab.guard].sent_bytes) / done
        price_ns = 30_000 + (8_000 if disk_reads else 0)
        plain = DiskLab().computing(processes=1, cv=0, reads=100, size=4096).run(1000 * MS)
        computed = int(plain.engine.rows(local_disks)[plain.disk].reads)
        spent_ns, plain_ns = (int(each.engine.rows(vcpus)[1].run_ns) for each in (lab, plain))
        assert spent_ns / done - plain_ns / computed == pytest.approx(price_ns, rel=0.05)
    assert logged == {True: 4096 + 32, False: 32}


HA = {
    "kind": "ha_restart",
    "failover": {
        "detection": {"heartbeat_interval": 5 * MS, "timeout": 10 * MS},
        "placement": 0,
        "boot_time": 10 * MS,
    },
}


def test_a_crash_loses_what_is_not_on_the_disk():
    """One buffered write a ms; a crash at 7.5 ms loses seven; booted at 25 ms, the eighth write comes at 26 ms."""
    crash = {"kind": "primary_crash", "at": "7.5 ms"}
    lab = DiskLab(writes="buffered").computing(processes=1, cv=0, reads=0).guarded(HA, crash).run(26 * MS + 1)
    assert (lab.program.transfers, lab.own.lost_writes, lab.own.dirty_bytes) == (8, 7, 0)


def test_transfers_of_a_machine_that_was_lost_reach_nobody():
    """Three processes read from 1 ms on, a crash at 6 ms: one has read, one is being served, one waits."""
    crash = {"kind": "primary_crash", "at": "6 ms"}
    lab = DiskLab().computing(processes=3, cv=0, reads=100).guarded(HA, crash).run(24 * MS)
    assert lab.program.transfers == 1
    lab.run(30 * MS + 1)
    # Booted at 25 ms; 26 ms: the first asks again, and reads until 30.
    assert lab.program.transfers == 2
    assert lab.run(225 * MS).program.transfers == 50


@pytest.mark.slow
def test_both_engines_agree():
    found = []
    for engine in ("simpy", "compiled"):
        crash = {"kind": "primary_crash", "at": "307 ms"}
        lab = DiskLab(engine, writes="buffered", flush_period=30 * MS, interrupt=5 * US)
        lab.computing(processes=5, flush_every=3).guarded(HA, crash).run(3 * S)
        names = ("reads", "writes", "lost_writes", "dirty_bytes")
        counts = (int(getattr(lab.own, name)) for name in names)
        found.append([lab.engine.events, int(lab.program.transfers), lab.use().to_dict(), *counts])
    assert found[0] == found[1]


ALWAYS_ON = {"kind": "none"}


def test_a_disk_out_of_reach_serves_nothing_and_a_request_whose_answer_is_lost_again():
    """From 6 to 20 ms: the first of three is done by then, the second is begun anew when the disk is back."""
    loss = {"kind": "storage_loss", "at": "6 ms", "duration": "14 ms"}
    lab = DiskLab().asking((0, READ), (0, READ), (0, READ), (10 * MS, READ))
    lab.guarded(ALWAYS_ON, loss).run(100 * MS)
    assert lab.answered() == [(4.0, 1), (24.0, 2), (28.0, 3), (32.0, 4)]
    assert int(lab.own.reads) == 4


def test_buffered_writes_are_done_without_the_disk_and_a_flush_waits_for_it():
    loss = {"kind": "storage_loss", "at": "2 ms", "duration": "18 ms"}
    lab = DiskLab(writes="buffered").asking((3 * MS, WRITE), (4 * MS, FLUSH)).guarded(ALWAYS_ON, loss).run(100 * MS)
    assert lab.answered() == [(3.0, 1), (24.0, 2)]


@pytest.mark.parametrize(
    ("hits", "expected"),
    [
        (0.0, [(4.0, 1), (4.0, 2), (24.0, 3), (24.0, 4), (28.0, 5)]),
        (100.0, [(0.5, 1), (0.5, 2), (0.5, 3), (0.5, 4), (24.0, 5)]),
    ],
)
def test_an_array_out_of_reach(hits, expected):
    """Two disks; the third and fourth are under way at 6 ms, the fifth comes at 10 (to no cache)."""
    loss = {"kind": "storage_loss", "at": "6 ms", "duration": "14 ms"}
    lab = DiskLab(disks=2, hits=hits).asking((0, READ), (0, READ), (0, READ), (0, READ), (10 * MS, READ))
    lab.guarded(ALWAYS_ON, loss).run(100 * MS)
    assert [time_ms for time_ms, _ in lab.answered()] == [time_ms for time_ms, _ in expected]
    assert sorted(tag for _, tag in lab.answered()) == [1, 2, 3, 4, 5]


def test_figures_of_a_disk_by_hand():
    """Reads at 0, 0 and 20 ms of 4 ms each: 4, 8 and 4 ms; a second reading in the midst of the third sees half."""
    lab = DiskLab().asking((0, READ), (0, READ), (20 * MS, READ)).run(22 * MS)
    first = lab.use(seconds=0.022)
    assert (first.served, first.busy_ns, first.present_ns) == (2, 10 * MS, (4 + 8 + 2) * MS)
    assert first.use == pytest.approx(100 * 10 / 22)
    assert first.queue == pytest.approx(14 / 22)
    assert (first.iops, first.response_time) == (pytest.approx(2 / 0.022), pytest.approx(6.0))
    second = lab.run(30 * MS).use(first, 0.008)
    assert (second.served, second.busy_ns, second.response_time) == (1, 2 * MS, pytest.approx(4.0))


def test_a_flush_and_the_page_cache_are_no_requests_of_a_disk():
    """Two buffered writes at 0 and a flush at 10 ms: 8 ms of work, (4 + 8) ms at the disk, nobody waits for a write."""
    lab = DiskLab(writes="buffered").asking((0, WRITE), (0, WRITE), (10 * MS, FLUSH)).run(S)
    use = lab.use()
    assert (use.served, use.awaited, use.busy_ns, use.present_ns) == (2, 0, 8 * MS, 12 * MS)


def test_what_a_boot_forgets_is_at_the_disk_no_longer():
    """Four reads from 1 to 4 ms, of 10 ms each; a crash at 6, booted at 25: the third goes on, the fourth is lost."""
    crash = {"kind": "primary_crash", "at": "6 ms"}
    lab = DiskLab(service=10 * MS).computing(processes=4, cv=0, reads=100).guarded(HA, crash).run(26 * MS)
    use = lab.use()
    assert (use.served, use.busy_ns) == (2, 25 * MS)
    assert use.present_ns == ((11 - 1) + (21 - 2) + (26 - 3) + (25 - 4)) * MS


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
def test_figures_of_an_array_by_hand(engine):
    """Two disks, hits of 0.5 ms: of eight at once three take a disk, 4 ms; the third waits 4 ms."""
    lab = DiskLab(engine, disks=2, hits=42.5, hit_time=500 * US).asking(*((0, READ) for _ in range(8))).run(20 * MS)
    use = lab.use(seconds=0.02)
    assert int((Streams(5, 0).uniforms("array.hit", 1, count=8) < 0.425).sum()) == 5
    assert (use.served, use.hits, use.busy_ns) == (8, 5, 12 * MS)
    assert use.present_ns == use.response_ns == (5 * 0.5 + 4 + 4 + 8) * MS
    assert use.use == pytest.approx(100 * 12 / (2 * 20))
    assert use.cache_hits == pytest.approx(62.5)


@pytest.mark.parametrize("memory", [{}, {"per_request": 3}], ids=["by programs", "by packet"])
@pytest.mark.parametrize(("reads", "size", "pages"), [(100, 8192, 2), (100, 5000, 2), (0, 8192, 0)])
def test_what_is_read_dirties_pages_of_memory(reads, size, pages, memory):
    """A state has the pages that were read since the last one, each of 4 KiB or a part of that."""
    program = {"kind": "disk_bound", "processes": 1, "cv": 0.0, "reads": reads, "size": size}
    protection = {"kind": "checkpoint", "interval": "25 ms", "memory": {"touch_rate": "0 /s", **memory}}
    vm = {"disks": {"d": {"kind": "local"}}, "applications": {"p": program}, "protection": protection}
    spec = {"hosts": {"host": {}}, "domains": {"vm": vm}, "measure": {"warm_up": "1 s", "duration": "10 s"}}
    found = run_model(ModelSpec.model_validate(spec), 1, 0).whole.outcomes
    # Up to the last state: what was read since is in none.
    read = found["domains.vm.applications.p"].transfers
    assert found["domains.vm.protection"].dirty_pages == pytest.approx(pages * read, abs=2 * 6)
    assert read > 1900


@pytest.mark.parametrize("memory", [{}, {"per_request": 3}], ids=["by programs", "by packet"])
def test_transactions_dirty_their_pages_whatever_a_packet_dirties(memory):
    """50 for each 10 ms of a job: no packet enters, so a number of pages a packet says nothing of them."""
    program = {"kind": "batch", "demand": "10 ms", "pages": 50}
    protection = {"kind": "checkpoint", "interval": "25 ms", "memory": {"touch_rate": "0 /s", **memory}}
    vm = {"applications": {"p": program}, "protection": protection}
    spec = {"hosts": {"host": {}}, "domains": {"vm": vm}, "measure": {"warm_up": "1 s", "duration": "10 s"}}
    found = run_model(ModelSpec.model_validate(spec), 1, 0).whole.outcomes
    done = found["domains.vm.applications.p"].transactions
    assert found["domains.vm.protection"].dirty_pages == pytest.approx(50 * done, abs=3 * 50)
    assert done > 900


@pytest.mark.parametrize("form", ["counted", "factors"])
@pytest.mark.parametrize(("is_logged", "data_bytes"), [(True, 8192), (False, 0)])
def test_what_is_read_goes_over_the_log_however_recording_is_priced(form, is_logged, data_bytes):
    """Each end has 32 bytes, with the data of a read, and TCP's 6.2 %; no timer is logged, and a read costs 18 us."""
    program = {"kind": "disk_bound", "processes": 1, "cv": 0.0, "reads": 100, "size": 8192}
    log = {"timer_rate": "0 /s", "disk_reads": is_logged}
    protection = {"kind": "lockstep", "log": log, "cost": {"form": form, "batch": "0 s"}}
    protection["failover"] = {"detection": {"heartbeat_interval": "100 ms", "timeout": "1 s"}}
    vm = {"disks": {"d": {"kind": "local"}}, "applications": {"p": program}, "protection": protection}
    spec = {"hosts": {"host": {}}, "domains": {"vm": vm}, "measure": {"warm_up": "1 s", "duration": "10 s"}}
    found = run_model(ModelSpec.model_validate(spec), 1, 0).whole.outcomes
    reads = found["domains.vm.applications.p"].transfers
    each_bytes = round((32 + data_bytes) * 1.062)
    assert found["domains.vm.protection"].channel_bytes == pytest.approx(each_bytes * reads, abs=2 * each_bytes)
    # Computing, the interrupt, and logging: an entry or an operation of 10 us, 1 us a KiB.
    logging_us = 18 if is_logged else 10 if form == "counted" else 0
    assert found["domains.vm"].cpu == pytest.approx(reads * (1000 + 5 + logging_us) / 1e5, rel=0.002)
