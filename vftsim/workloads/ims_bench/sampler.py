"""The per-second series of a run: what the manager and the server's monitor write down once a second.

The seconds of a phase are counted from the end of its transient, whatever the length of the phases
before it, and are half open: an event at the instant between two of them belongs to the later one.  So
the 870 s that a step of the lab measures give 870 samples.  A rest shorter than a period has no sample;
datagrams dropped in it still count in the phase.

The run writes totals into a log; the driver empties it and turns differences into rates.
"""

from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from vftsim.kernel import Engine, EventKind, Record, Sim, Table, at, entry, timer
from vftsim.kernel.columns import arrays_of
from vftsim.kernel.record import fields
from vftsim.platform.cpu.host import sync_running
from vftsim.platform.cpu.records import domains, hosts, run_ns
from vftsim.platform.io.packet import drops
from vftsim.platform.protection.guard import guards
from vftsim.platform.protection.mechanism import lag
from vftsim.spec.units import S
from vftsim.workloads.ims_bench.attempt import SCENARIOS, benches, phases
from vftsim.workloads.ims_bench.metrics import PhaseRecord
from vftsim.workloads.parts import Target
from vftsim.workloads.sip.messages import Scenario
from vftsim.workloads.sip.records import sip_servers

_BEFORE_ARRIVALS = 0
MOST_SAMPLES = 1 << 10
MOST_DROP_ROWS = 64


class Sampler(Record):
    """Who is sampled how often: user agents, the server with its domain and guard, where datagrams are lost.

    ``written`` is the last row of the log in use; ``planned`` the token of the next sample.
    """

    bench: int
    domain: int
    server: int
    guard: int
    period_ns: int
    phase: int
    planned: int
    written: int
    places: int
    drop_row: Annotated[list[int], MOST_DROP_ROWS]


class Sample(Record):
    """Totals at an instant; ``is_measured``: a period that counts ends here, else one begins."""

    phase: int
    is_measured: bool
    begun: int
    completed: int
    uac_begun: int
    inadequate: int
    uac_inadequate: int
    repeated: Annotated[list[int], SCENARIOS]
    busy_ns: int
    dropped: int
    held: int
    lag_ns: int


samplers = Table("samplers", Sampler, 2)
samples = Table("samples", Sample, MOST_SAMPLES, is_fixed=True)
_TOTALS = tuple(name for name in fields(Sample) if name not in {"phase", "is_measured"})


@entry
def begin_sampling(sim: Sim, phase: int, transient_ns: int) -> None:
    """Begin the samples of a phase that begins now."""
    sampler = samplers(sim)[1]
    sampler.phase = phase
    sampler.planned = 0
    write_sample(sim, sampler, False)
    rest_ns = transient_ns % sampler.period_ns
    plan_sample(sim, sampler, rest_ns if rest_ns > 0 else sampler.period_ns)


@entry
def end_sampling(sim: Sim) -> int:
    """Plan no more samples; return how many datagrams have been lost up to now."""
    sampler = samplers(sim)[1]
    sampler.planned = 0
    return dropped(sim, sampler)


def plan_sample(sim: Sim, sampler: Sampler, delay_ns: int) -> None:
    """Plan the next sample, before the arrivals of its instant."""
    sampler.planned = at(sim, sim.now_ns + delay_ns, EventKind.ARRIVAL, _BEFORE_ARRIVALS, on_sample, 1)


@timer(samplers, "planned")
def on_sample(sim: Sim, sampler: Sampler) -> None:
    """A period of the series is over."""
    begun_ns = sim.now_ns - sampler.period_ns
    write_sample(sim, sampler, begun_ns >= phases(sim)[sampler.phase].measure_from_ns)
    plan_sample(sim, sampler, sampler.period_ns)


def write_sample(sim: Sim, sampler: Sampler, is_measured: bool) -> None:
    """Write the totals down; the vCPUs are charged first, which matters to a scheduler that rounds when it charges."""
    bench, domain = benches(sim)[sampler.bench], domains(sim)[sampler.domain]
    sync_running(sim, hosts(sim)[domain.host])
    sampler.written += 1
    sample = samples(sim)[sampler.written]
    sample.phase = sampler.phase
    sample.is_measured = is_measured
    sample.busy_ns = run_ns(sim, domain)
    sample.begun = bench.begun
    sample.completed = bench.completed
    sample.uac_begun = bench.uac_begun
    sample.inadequate = bench.inadequate
    sample.uac_inadequate = bench.uac_inadequate
    for scenario in range(SCENARIOS):
        sample.repeated[scenario] = bench.repeated[scenario]
    sample.held = sip_servers(sim)[sampler.server].held
    sample.dropped = dropped(sim, sampler)
    if is_measured and sampler.guard != 0:
        sample.lag_ns = lag(sim, guards(sim)[sampler.guard])
    if sampler.written > MOST_SAMPLES * 3 // 4:
        sim.wants_input = True


def dropped(sim: Sim, sampler: Sampler) -> int:
    """Return how many datagrams have been lost up to now, wherever the sampler looks."""
    total = 0
    for number in range(sampler.places):
        total += drops(sim)[sampler.drop_row[number]].count
    return total


class Series:
    """Turns the log of samples into the series of phases.

    ``memory`` is in bytes: available before the run, taken by each attempt for good, and by each transaction held.
    ``has_lag``: there is a secondary whose lag is sampled.
    """

    def __init__(self, engine: Engine, memory: tuple[int, int, int], *, has_lag: bool) -> None:
        self.engine = engine
        self.memory = memory
        self.has_lag = has_lag
        self.period_ns = int(engine.rows(samplers)[1].period_ns)
        self.records: dict[int, PhaseRecord] = {}
        self._last: dict[str, NDArray[Any]] = {}

    def drain(self) -> None:
        sampler = self.engine.rows(samplers)[1]
        count = int(sampler.written)
        if count == 0:
            return
        *totals, ended, is_measured = arrays_of(self.engine, samples, [*_TOTALS, "phase", "is_measured"], 1, 1 + count)
        now = dict(zip(_TOTALS, totals, strict=True))
        then = {name: np.concatenate([self._last.get(name, values[:1]), values[:-1]]) for name, values in now.items()}
        for phase in sorted({*ended[is_measured].tolist()}):
            chosen = is_measured & (ended == phase)
            self._append(
                self.records[phase],
                {name: values[chosen] for name, values in now.items()},
                {name: values[chosen] for name, values in then.items()},
            )
        self._last = {name: values[-1:] for name, values in now.items()}
        sampler.written = 0

    def end(self, phase: int) -> None:
        """End a phase now; datagrams lost since its last sample count in it too."""
        dropped_now = self.engine.call(end_sampling)
        self.drain()
        self.records[phase].dropped += dropped_now - int(self._last["dropped"][0])

    def _append(self, record: PhaseRecord, now: dict[str, NDArray[Any]], then: dict[str, NDArray[Any]]) -> None:
        """Add periods that end with these totals and began with those."""
        seconds = self.period_ns / S
        passed = {name: values - then[name] for name, values in now.items()}
        begun, again = passed["begun"], passed["repeated"]
        available, for_attempt, for_transaction = self.memory
        readings = {
            "load": begun / seconds,
            "completed": passed["completed"] / seconds,
            "cpu_percent": 100.0 * passed["busy_ns"] / self.period_ns,
            "memory_mb": (available - now["begun"] * for_attempt - now["held"] * for_transaction) / 1e6,
            "ihs_all": 100.0 * passed["inadequate"] / np.maximum(begun, 1),
            "ihs_uac": 100.0 * passed["uac_inadequate"] / np.maximum(passed["uac_begun"], 1),
            "retransmissions_all": again.sum(axis=1) / seconds,
            "retransmissions_uac": again[:, Scenario.IMS_UAC] / seconds,
            "retransmissions_reg": again[:, Scenario.IMS_REG] / seconds,
        }
        if self.has_lag:
            readings["lag_ms"] = now["lag_ns"] / 1e6
        for name, values in readings.items():
            record.series[name].extend(values.tolist())
        record.dropped += int(passed["dropped"].sum())


def add_sampler(target: Target, bench: int, server: int, period_ns: int) -> None:
    """Make the run's sampler, of a benchmark and the server that it is directed at."""
    _, sampler = target.engine.add(
        samplers, bench=bench, server=server, domain=target.domain, guard=target.guard, period_ns=period_ns
    )
    sampler.places = len(target.drop_rows)
    for number, row in enumerate(target.drop_rows.values()):
        sampler.drop_row[number] = row
