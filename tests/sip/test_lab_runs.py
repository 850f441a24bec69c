"""Whole runs of a small lab: reproducible, comparable, monotone, and free of lost datagrams or CPU time."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from bench import MS, US, S
from hypothesis import given, settings
from hypothesis import strategies as st
from read_lab import attempts_begun, busy_ns, check_pools, manager, run_on, server
from small_lab import fingerprint, run, small_lab

from vftsim.workloads.ims_bench.metrics import DELAYS, PER_SECOND
from vftsim.workloads.ims_bench.parameters import Mix, PreRegistrationSpec, StirSpec
from vftsim.workloads.ramp import RampEnd, ramp_end
from vftsim.workloads.sip.messages import Scenario


def test_same_seed_same_records_to_the_last_bit() -> None:
    spec = small_lab()
    assert fingerprint(run(spec)[1]) == fingerprint(run(spec)[1])


@pytest.mark.thorough
def test_a_fresh_process_with_other_hash_seeds_gives_the_same_records() -> None:
    here = Path(__file__).parent
    code = "from small_lab import *; print(fingerprint(run(small_lab())[1]))"
    path = os.pathsep.join([str(here), str(here.parents[1])])
    found = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    assert found == fingerprint(run(small_lab())[1])


def test_another_replication_or_seed_differs() -> None:
    spec = small_lab()
    assert len({fingerprint(run(spec, seed, replication)[1]) for seed, replication in ((7, 0), (7, 1), (8, 0))}) == 3


def test_a_run_measures_every_delay_and_every_series() -> None:
    _, phases = run(small_lab())
    assert [p.name for p in phases] == ["pre_registration", "step_1", "step_2"]
    for phase in phases[1:]:
        assert all(phase.delays[name].count > 0 for name in DELAYS)
        assert {len(phase.series[name]) for name in PER_SECOND if name != "lag_ms"} == {8}
        assert not phase.series["lag_ms"]  # belongs to a protected server
        assert phase.ihs_percent() == 0.0
        assert 0 < min(phase.series["cpu_percent"]) <= max(phase.series["cpu_percent"]) <= 100.0


@pytest.mark.parametrize(
    ("pre_s", "transient_ms", "measured_ms", "samples"),
    [
        (2.0, 4_000, 8_000, 8),
        (2.3, 4_000, 8_000, 8),
        (2.0, 3_700, 8_000, 8),
        (2.0, 0, 6_000, 6),
        (2.0, 4_000, 7_900, 7),
    ],
)
def test_a_phase_of_t_seconds_has_t_samples_which_hold_all_that_happened_in_it(
    pre_s: float, transient_ms: int, measured_ms: int, samples: int
) -> None:
    """Whatever the lengths before it: with no transient beginning, or no phase ending, at a whole second of the run."""
    steps = {"transient": transient_ms * MS, "duration": (transient_ms + measured_ms) * MS}
    pre = PreRegistrationSpec(rate=50.0, duration=int(pre_s * S), transient=1 * S)
    lab, phases = run(small_lab(steps=steps, workload={"pre_registration": pre}))
    assert len(phases[0].series["load"]) == 1
    assert phases[0].series["load"] == [50.0]
    for phase in phases[1:]:
        load = phase.series["load"]
        assert len(load) == len(phase.series["cpu_percent"]) == samples
        if samples * 1_000 == measured_ms:
            assert sum(load) == sum(phase.attempts)
        else:
            assert sum(load) <= sum(phase.attempts)
    assert sum(phases[-1].series["cpu_percent"]) / 100.0 * S <= busy_ns(lab)


def test_a_ramp_with_nothing_answered_stops_though_its_steps_are_shorter_than_the_timers() -> None:
    """A caller gives up after 32 s; a step of 12 s in which the server takes 30 s a message must not pass."""
    _, phases = run(small_lab(server={"touch_cost": 30 * S, "register_touch_cost": 30 * S}))
    assert [phase.name for phase in phases] == ["pre_registration", "step_1"]
    assert ramp_end(phases, 10.0) == RampEnd(1, 40.0, 0.0)


def test_cpu_time_is_touches_times_cost_when_nothing_is_repeated() -> None:
    """Constant demands, no growth: 4, 13 and 4 touches of 0.5 ms, once the last call has ended."""
    lab, _ = run(small_lab(server={"demand_cv": 0.0}))
    run_on(lab, 60 * S)
    assert manager(lab).under_way == 0
    assert lab.built.drop_counts() == {}
    # The server receives two messages of an attempt, six of a call; an INVITE has one touch more than the others.
    calls, rest = divmod(server(lab).received - 2 * attempts_begun(lab), 4)
    assert rest == 0
    assert busy_ns(lab) == (2 * server(lab).received + calls) * 500 * US


def test_calls_only_use_thirteen_touches_each() -> None:
    calls = Mix(ims_rereg=0.0, ims_reg=0.0, ims_uac=100.0, ims_dereg=0.0, ims_msgc=0.0)
    lab, _ = run(
        small_lab(
            server={"demand_cv": 0.0},
            workload={
                "mix": calls,
                "pre_registration": PreRegistrationSpec(duration=0),
                "stir": StirSpec(duration=0),
            },
        )
    )
    run_on(lab, 60 * S)
    assert busy_ns(lab) == attempts_begun(lab) * 13 * 500 * US


@pytest.mark.thorough
def test_less_work_lowers_every_mean_delay_under_common_random_numbers() -> None:
    """5 % less work at 60 % load, the same five replications each."""
    for replication in range(5):
        _, slow = run(small_lab(server={"touch_cost": 1_400 * US}), replication=replication)
        _, fast = run(small_lab(server={"touch_cost": 1_330 * US}), replication=replication)
        for before, after in zip(slow[1:], fast[1:], strict=True):
            assert after.attempts == before.attempts
            for name in ("SES1", "SES2", "REL1", "PMM1", "REG1"):
                assert after.delays[name].mean < before.delays[name].mean, (replication, before.name, name)


@pytest.mark.thorough
def test_virtualization_costs_what_it_adds_to_the_work() -> None:
    """CPU time used: factor 1.5 on everything, nothing else."""
    native, _ = run(small_lab(server={"demand_cv": 0.0}))
    virtual, _ = run(small_lab(server={"demand_cv": 0.0}, cpu_inflation=1.5))
    for lab in (native, virtual):
        run_on(lab, 60 * S)
    assert busy_ns(virtual) == 1.5 * busy_ns(native)


def test_memory_falls_with_attempts_and_with_transactions_held() -> None:
    lab, phases = run(small_lab(server={"memory_per_attempt": 1_000, "memory_per_transaction": 0}))
    series = phases[-1].series["memory_mb"]
    assert all(later <= earlier for earlier, later in itertools.pairwise(series))
    start_mb = lab.spec.domains["sut"].memory_available / 1e6
    assert start_mb - series[-1] == pytest.approx(attempts_begun(lab) / 1e3, abs=0.1)


@pytest.mark.thorough
@settings(max_examples=12, deadline=None)
@given(
    st.fixed_dictionaries(
        {
            "processes": st.integers(1, 20),
            "socket_buffer": st.integers(1, 200),
            "memory_per_datagram": st.just(1),
            "touch_cost": st.integers(100 * US, 3 * MS),
            "demand_cv": st.sampled_from([0.0, 0.5, 1.0, 2.0]),
            "work_after_send": st.sampled_from([0.0, 0.4]),
            "growth_per_transaction": st.sampled_from([0.0, 0.002]),
            "housekeeping_cost": st.integers(0, 60 * MS),
            "removal_cost": st.integers(0, 1 * MS),
        }
    ),
    st.integers(10, 150),
    st.integers(0, 20 * US),
    st.integers(0, 10**6),
)
def test_nothing_is_lost_or_made_up_in_any_small_lab(
    server: dict[str, Any], saps: int, packet_ns: int, seed: int
) -> None:
    """Every datagram, every CPU nanosecond, every attempt and every subscriber is accounted for."""
    path = {"packet_cost": packet_ns, "interrupt_cost": packet_ns}
    spec = small_lab(
        server,
        {"initial": float(saps), "duration": 4 * S, "transient": 1 * S, "most": 1},
        {"stir": StirSpec(duration=0)},
        path,
    )
    lab, phases = run(spec, seed)
    for phase in phases:
        for scenario in Scenario:
            assert 0 <= phase.inadequate[scenario] <= phase.attempts[scenario]
    if not manager(lab).under_way:
        check_pools(lab)
    lab.check_conservation()
    assert busy_ns(lab) <= lab.now_ns
