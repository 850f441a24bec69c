"""Overload: retransmissions make it worse than the load says, and at a lower load it ends by itself."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest
from bench import MS, US, Bench, S, plain_server

from vftsim.sampling import Streams
from vftsim.workloads.ims_bench.arrivals import PhaseDraws
from vftsim.workloads.ims_bench.workload import ImsBenchSpec
from vftsim.workloads.sip.messages import Scenario

_MEAN_WORK_NS = 8.5 * 1_000 * US
"""Work of a mean attempt of the mix at 1 ms a touch: half are calls (13 touches), half have 4."""


def _draws(of: PhaseDraws) -> Iterator[tuple[float, int, int, int, list[float]]]:
    for number in count():
        chunk = of.chunk(number)
        yield from zip(
            *(chunk[name].tolist() for name in ("gap", "scenario", "ring_ns", "hold_ns", "demands")), strict=True
        )


def _loaded(plan: list[tuple[int, float]]) -> Bench:
    """Poisson attempts of the mix: for each (seconds, offered load as a share of the CPU) in turn."""
    workload = ImsBenchSpec(to="server", ring_time=500 * MS, hold_time=1 * S)
    bench = Bench(plain_server(touch_cost=1 * MS, register_touch_cost=1 * MS), workload)
    draws = _draws(PhaseDraws(Streams(3, 0), 2, workload.mix.shares(), 500 * MS, 1 * S, 1.0))
    start_ns, index = 0, 0
    for seconds, load in plan:
        due_ns, end_ns = float(start_ns), start_ns + seconds * S
        for gap, scenario, ring_ns, hold_ns, demands in draws:
            due_ns += gap * _MEAN_WORK_NS / load
            if due_ns >= end_ns:
                break
            index += 1
            bench.plan(index, Scenario(scenario), demands, ring_ns, hold_ns, int(due_ns))
        start_ns = end_ns
    return bench


def _retransmissions(bench: Bench, until_s: int) -> int:
    """User agents' retransmissions from the last call of this function until ``until_s``."""
    before = sum(bench.agents.repeated)
    bench.run(until_s * 1e6)
    return sum(bench.agents.repeated) - before


def test_below_capacity_nothing_is_repeated_and_nothing_fails() -> None:
    bench = _loaded([(15, 0.6)])
    assert _retransmissions(bench, 45) == 0
    assert sum(bench.record.inadequate) == 0
    assert bench.server.dropped == 0


@pytest.mark.thorough
@pytest.mark.parametrize(("over_s", "half_s"), [(8, 30), pytest.param(20, 60, marks=pytest.mark.slow)])
def test_overload_collapses_and_recovers_by_itself_at_half_load(over_s: int, half_s: int) -> None:
    """1.3 times the capacity, then half of it.

    The CPU is busy all of the overload, a queue of more than T1 makes senders repeat, the socket drops;
    half load drains it: 20 s later no more retransmissions.
    """
    bench = _loaded([(over_s, 1.3), (half_s, 0.5)])
    early = _retransmissions(bench, over_s)
    assert early / over_s > 20
    assert bench.server.dropped > 0
    assert bench.busy_ns() > 0.97 * over_s * S
    failed = sum(bench.record.inadequate)
    bench.run((over_s + 20) * 1e6)
    assert _retransmissions(bench, over_s + half_s) == 0
    assert bench.busy_ns() < 0.97 * (over_s + half_s) * S
    assert failed > 0


@pytest.mark.thorough
def test_a_short_stop_at_high_load_keeps_the_server_saturated_and_at_low_load_does_not() -> None:
    """Metastability: the same stop of 3 s at 93 % and at 60 % load; retransmissions 12 to 20 s after it."""
    found = {}
    for load in (0.93, 0.6):
        bench = _loaded([(40, load)])
        bench.run(15e6)
        bench.freeze()
        bench.run(18e6)
        bench.thaw()
        bench.run(30e6)
        found[load] = _retransmissions(bench, 38)
    assert found[0.6] == 0
    assert found[0.93] > 8 * 20


def test_repeated_messages_are_what_sustains_it() -> None:
    """A mean attempt sends the server four messages; in a collapse it receives a fifth more at least."""
    bench = _loaded([(10, 1.3)])
    bench.run()
    server = bench.server
    assert server.received > 1.2 * 4 * bench.agents.begun
    assert server.in_progress == 0
    assert server.received == server.taken + server.dropped
