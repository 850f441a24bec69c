"""A year with each mechanism: the Markov model in closed form, and what enters it."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from vftsim.composition.model import ModelSpec
from vftsim.errors import UsageError
from vftsim.files import to_json
from vftsim.platform.protection.faults import BackupCrash
from vftsim.platform.protection.when import Instant
from vftsim.report.terminal import as_text
from vftsim.study.designs.availability import (
    YEAR_S,
    HostFailures,
    availability_study,
    restart_unavailability,
    shares_of_pair,
)
from vftsim.study.designs.failover import Crashes, crashes_of_each
from vftsim.study.designs.simulated_years import Machine, simulated_years
from vftsim.study.execution import Execution
from vftsim.study.runs.model import Model, load_model

pytestmark = pytest.mark.thorough

MIXED = Path(__file__).parents[2] / "experiments" / "years" / "mixed-faults.yaml"
_S = 1_000_000_000


def balance(mtbf_s, failover_s, wait_s, reprotection_s, restart_s, common=0.0):
    """Solve the chain: protected, failing over, waiting for the backup, unprotected, down."""
    rate = 1.0 / mtbf_s
    rates = np.zeros((5, 5))
    rates[0, 1] = rates[0, 2] = (1.0 - common) * rate
    rates[0, 4], rates[3, 4] = common * rate, rate
    rates[1, 3], rates[2, 3], rates[3, 0], rates[4, 3] = (
        1.0 / time_s for time_s in (failover_s, wait_s, reprotection_s, restart_s)
    )
    generator = rates - np.diag(rates.sum(axis=1))
    return np.linalg.lstsq(np.vstack([generator.T, np.ones(5)]), np.array([0, 0, 0, 0, 0, 1.0]), rcond=None)[0]


@pytest.mark.parametrize(("failover_s", "unavailability"), [(3.0, 9.5219e-8), (1.2, 3.8143e-8)])
def test_a_pair_with_hosts_that_fail_once_a_year(failover_s, unavailability):
    pair = shares_of_pair(365 * 86_400.0, failover_s, 600.0, 77.0)
    assert pair.down == pytest.approx(unavailability, rel=2e-5)


def test_a_pair_by_the_year():
    pair = shares_of_pair(365 * 86_400.0, 3.0, 600.0, 77.0)
    assert pair.down * 365 * 86_400 == pytest.approx(3.003, abs=5e-4)
    assert pair.unprotected * 365 * 24 == pytest.approx(0.333, abs=5e-4)


def test_one_failure_in_twenty_that_takes_both_hosts_is_more_than_all_failovers():
    """0.95 x 3 s + 0.05 x 77 s + 1.95 x 600 s x 77 s / year: 6.7 s a year, by hand."""
    pair = shares_of_pair(365 * 86_400.0, 3.0, 600.0, 77.0, 0.05)
    assert pair.down * 365 * 86_400 == pytest.approx(2.85 + 3.85 + 1.95 * 600 * 77 / (365 * 86_400), abs=5e-4)


def test_a_restart():
    assert restart_unavailability(365 * 86_400.0, 77.0) == pytest.approx(2.4416e-6, rel=2e-5)


@pytest.mark.parametrize(
    "times",
    [
        (1e4, 3.0, 1.0, 600.0, 77.0),
        (100.0, 50.0, 20.0, 30.0, 20.0),
        (1e7, 1.0, 2.0, 1e6, 1e3),
        (1e4, 3.0, 1.0, 600.0, 77.0, 0.1),
        (100.0, 50.0, 20.0, 30.0, 20.0, 0.5),
    ],
)
def test_the_closed_form_is_the_balance_of_the_chain(times):
    _, failing_over, waiting, unprotected, down = balance(*times)
    mtbf_s, failover_s, wait_s, *others = times
    pair = shares_of_pair(mtbf_s, failover_s + wait_s, *others)
    assert pair.down == pytest.approx(failing_over + waiting + down, rel=1e-9)
    assert pair.unprotected == pytest.approx(unprotected, rel=1e-9)


def test_limits():
    assert shares_of_pair(1e6, 3.0, 0.0, 77.0).down == pytest.approx(3.0 / (1e6 + 3.0))
    assert shares_of_pair(1e6, 0.0, 0.0, 77.0).down == 0.0
    never = shares_of_pair(1e6, 3.0, math.inf, 77.0)
    assert never.down == pytest.approx(restart_unavailability(1e6, 77.0), rel=1e-12)
    assert never.unprotected == 1.0 - never.down
    assert shares_of_pair(1e6, 3.0, 1e15, 77.0).down == pytest.approx(never.down, rel=1e-6)


def test_everything_that_takes_longer_costs_availability():
    base = [1e6, 3.0, 600.0, 77.0]
    for position in (1, 2, 3):
        longer = [*base]
        longer[position] *= 2
        assert shares_of_pair(*longer).down > shares_of_pair(*base).down


@pytest.fixture(scope="module")
def year(tiny):
    return availability_study(
        tiny,
        ["none", "ha_restart", "lockstep"],
        HostFailures(YEAR_S, 90.0),
        Crashes(2, after_ns=5 * _S),
        Execution(1, 1),
    )


def test_the_simulated_failovers_enter(year):
    machines = {row["mechanism"]: row for row in year.rows}
    lockstep = machines["lockstep"]
    # lock, go-live and at most the heartbeat's timeout; delay and copy of 4 GiB
    assert 2.1 < lockstep["outage_s"] < 3.5
    assert 2.0 < lockstep["backup_outage_s"] < 3.3
    assert 77.0 < lockstep["reprotection_s"] < 79.0
    # resume, and the last round: 50 pages at most at 800 Mbit/s; a copy after a failure of either host
    assert lockstep["copy_stop_s"] == pytest.approx(0.1 + 50 * 4096 * 8 / 8e8, abs=0.0021)
    outages_s = lockstep["outage_s"] + lockstep["backup_outage_s"] + 2 * lockstep["copy_stop_s"]
    pair = shares_of_pair(YEAR_S, outages_s, lockstep["reprotection_s"], 90.0)
    assert lockstep["unavailability"] == pair.down
    assert lockstep["downtime_s_per_year"] == pytest.approx(outages_s, rel=1e-3)


def test_what_does_not_come_back_is_restarted(year):
    machines = {row["mechanism"]: row for row in year.rows}
    assert machines["none"]["outage_s"] == 90.0
    assert machines["none"]["failed_per_year"] == pytest.approx(10 * 90.0 * YEAR_S / (YEAR_S + 90.0))
    assert 76.0 < machines["ha_restart"]["outage_s"] < 77.5
    assert math.isinf(machines["ha_restart"]["reprotection_s"])


def test_it_prints_and_is_json(year, capsys):
    print(as_text(year.blocks(), 1000))
    shown = capsys.readouterr().out
    assert "fails once in 365.2 days" in shown
    assert "never" in shown
    assert shown.count("Costs of ") == 2, "of restart and of lockstep"
    assert "Costs of lockstep (sut): prices of counted events; assumed" in shown
    found = json.loads(to_json(year.for_machines()))
    assert [row["mechanism"] for row in found["availability"]] == ["none", "ha_restart", "lockstep"]


def of_backup(kind, workload, **settings):
    """Return how long answers of a light service waited for each of two failures of the backup's host, in s."""
    data = silent().spec.model_dump(mode="json")
    data["workloads"] = {"load": {"kind": "open_requests", "to": "vm", "gap_cv": 0} | workload}
    data["domains"]["vm"]["protection"] = {"kind": kind} | settings
    model = Model("open", ModelSpec.model_validate(data))
    (study,) = crashes_of_each([model], Crashes(2, after_ns=10 * _S, of_backup=True), Execution(1, 1))
    return [each.of_backup.outage_s for each in study.failovers]


@pytest.mark.parametrize("timeout_s", [1, 3])
def test_answers_wait_until_the_backup_is_missed(timeout_s):
    """Checkpoints wait so long for an acknowledgement, from the end of an epoch of 40 ms on."""
    found = of_backup(
        "checkpoint", {"rate": "100 /s"}, failover={"detection": {"backup_timeout": f"{timeout_s} s", "timeout": "9 s"}}
    )
    assert found == pytest.approx([timeout_s] * 2, abs=0.2)


def test_what_nobody_asks_for_meanwhile_does_not_wait():
    """A request in 100 s has no answer that could wait, and its silence is no outage."""
    assert of_backup("lockstep", {"rate": "0.01 /s"}) == [0.0, 0.0]


@pytest.mark.parametrize(("kind", "least_s", "most_s"), [("event_sync", 0.9, 1.01), ("checkpoint", 0.0, 0.0)])
def test_work_that_nobody_sees_stands_still_until_the_backup_is_missed(kind, least_s, most_s):
    """A job that asks a disk each 5 ms waits from there to 1 s after the last of the heartbeats each 100 ms."""
    job = {"kind": "batch", "demand": "1 ms", "disk_operations": 1, "disk_wait": "4 ms"}
    guest = {"applications": {"job": job}, "protection": {"kind": kind}}
    model = Model("job", ModelSpec.model_validate({"domains": {"vm": guest}}))
    (study,) = crashes_of_each([model], Crashes(3, after_ns=3 * _S, of_backup=True), Execution(1, 1))
    found = [each.of_backup.outage_s for each in study.failovers]
    assert all(least_s <= outage_s <= most_s for outage_s in found)
    machine = Machine(model, "vm", 1, 77.0)
    episode = machine.episode([(_S // 3, BackupCrash(at=Instant("run", 0)))], 0)
    assert least_s <= episode.gap_s <= most_s


@pytest.mark.parametrize("kind", ["lockstep", pytest.param("checkpoint", marks=pytest.mark.slow)])
def test_a_year_is_the_chain_of_single_faults_measured_apart(kind):
    """Effects of both hosts' failures in episodes of years, from packet to packet at instants of their own."""
    model = load_model(MIXED, ["faults=[]", "workloads.load.gap_cv=0"])
    (year,) = availability_study(model, [kind], HostFailures(864_000.0), Crashes(4), Execution(1, 1)).rows
    chain = simulated_years(model, [kind], HostFailures(864_000.0), 2, 4, Execution(1, 1)).years[kind]
    assert year["downtime_s_per_year"] == pytest.approx(chain.chain_down_s, rel=0.05)
    assert year["unprotected_h_per_year"] == pytest.approx(chain.chain_unprotected_s / 3600.0, rel=0.01)


def silent(retry="0 ms"):
    """Clients that never ask again once an answer is lost."""
    return Model(
        "silent",
        ModelSpec.model_validate(
            {
                "format": 2,
                "name": "silent",
                "networks": {"lan": {"rate": "1 Gbit/s", "latency": "0 us"}},
                "hosts": {"host": {"pcpus": 1}},
                "measure": {"warm_up": "1 s", "duration": "1 s"},
                "domains": {
                    "vm": {
                        "interfaces": {"eth0": {"path": {"kind": "native"}}},
                        "applications": {"srv": {"kind": "service", "demand": "10 us", "pages_per_request": 0}},
                    }
                },
                "workloads": {
                    "load": {
                        "kind": "request_response",
                        "to": "vm",
                        "clients": 4,
                        "turn_around": "100 ms",
                        "turn_around_cv": 1.0,
                        "retry": retry,
                    }
                },
            }
        ),
    )


def test_clients_that_never_ask_again_are_not_an_outage_without_end(capsys):
    """The secondary is live after some 3 s, and nobody asks it: that is no restart of 77 s."""
    found = availability_study(
        silent(), ["none", "lockstep"], HostFailures(360_000.0), Crashes(2, after_ns=5 * _S), Execution(1, 1)
    )
    none, lockstep = found.rows
    assert (none["outage_s"], none["not_asked_again"]) == (77.0, 0)
    assert 2.1 < lockstep["outage_s"] < 3.5
    assert lockstep["not_asked_again"] == lockstep["crashes"] == 2
    assert math.isfinite(lockstep["reprotection_s"])
    assert lockstep["downtime_s_per_year"] < none["downtime_s_per_year"] / 10
    print(as_text(found.blocks(), 1000))
    assert "lockstep: after 2 of 2 crashes the guest was back and no client asked again" in capsys.readouterr().out


def test_a_year_loses_all_that_comes_at_a_rate_until_somebody_restarts():
    """20 requests a second for 77 s after each tenth of a year; how late they are answered does not matter."""
    data = silent().spec.model_dump(mode="json")
    data["workloads"] = {"load": {"kind": "open_requests", "to": "vm", "rate": "20 /s", "gap_cv": 0}}
    # Three of them, each with clients of its own.
    data["domains"]["vm"] |= {"count": 3, "interfaces": {"eth0": {"path": {"kind": "moderated"}}}}
    data["hosts"]["host"]["pcpus"] = 3
    spec = ModelSpec.model_validate(data)
    crashes = Crashes(2, after_ns=5 * _S)
    found = availability_study(Model("open", spec), ["none"], HostFailures(YEAR_S / 10), crashes, Execution(1, 1))
    assert found.rows[0]["failed_per_year"] == pytest.approx(YEAR_S / (YEAR_S / 10 + 77.0) * 77.0 * 20)
    often = availability_study(Model("open", spec), ["none", "lockstep"], HostFailures(10.0), crashes, Execution(1, 1))
    none, pair = ({**row, "served": 20 * YEAR_S - row["failed_per_year"]} for row in often.rows)
    # Whatever comes while it is not down is answered.
    assert none["served"] == pytest.approx(20 * YEAR_S * (1.0 - none["unavailability"]))
    assert 0.0 < none["served"] < pair["served"] < 20 * YEAR_S


def test_a_year_loses_the_connections_that_come_until_somebody_restarts():
    """20 a second for 77 s, a failure a year."""
    data = silent().spec.model_dump(mode="json")
    data["domains"]["vm"]["applications"]["srv"] = {"kind": "prefork_web_server", "script": "1 ms"}
    data["workloads"] = {"web": {"kind": "httperf", "to": "vm", "rate": "20 /s", "connections": 1000, "timeout": "1 s"}}
    model = Model("web", ModelSpec.model_validate(data))
    found = availability_study(model, ["none"], HostFailures(YEAR_S), Crashes(2, after_ns=5 * _S), Execution(1, 1))
    assert found.rows[0]["failed_per_year"] == pytest.approx(77.0 * 20, rel=1e-4)


@pytest.mark.parametrize(("after_s", "memory"), [(8, "4 GiB"), (12, "1 MiB")])
@pytest.mark.parametrize(("stop", "failed"), [("5 s", 49), ("800 ms", 7)])
def test_what_fails_in_a_copy_is_counted_once(after_s, memory, stop, failed, capsys):
    """A stop of 5 s fails 49 at 10 requests a second, each of which waits for 0.1 s; there are two copies in a year.

    Of 1 MiB it is over in the run, 4 GiB are copied for longer.  The crashes themselves fail what they did.
    """
    data = silent().spec.model_dump(mode="json")
    load = {"kind": "open_requests", "to": "vm", "rate": "10 /s", "gap_cv": 0, "timeout": "100 ms", "retries": 0}
    data["workloads"] = {"load": load}
    data["domains"]["vm"] |= {"interfaces": {"eth0": {"path": {"kind": "moderated"}}}}
    years = []
    for resume in ("0 s", stop):
        copy = {"resume": resume, "memory": memory, "delay": "100 ms"}
        data["domains"]["vm"]["protection"] = {"kind": "lockstep", "reprotection": copy}
        crashes = Crashes(2, after_ns=after_s * _S)
        model = Model("copied", ModelSpec.model_validate(data))
        years.append(availability_study(model, ["lockstep"], HostFailures(YEAR_S), crashes, Execution(1, 1)))
    short, long = (year.rows[0]["failed_per_year"] for year in years)
    assert long - short == pytest.approx(2 * failed, abs=2.5)
    print(as_text(years[1].blocks(), 1000))
    assert (f"what fails in it ({failed} of load)" in capsys.readouterr().out) == (stop == "5 s")


def test_a_run_that_ends_before_the_takeover_is_refused():
    with pytest.raises(UsageError, match="lockstep: a run ended before the guest was back"):
        availability_study(
            silent("200 ms"),
            ["none", "lockstep"],
            HostFailures(360_000.0),
            Crashes(2, after_ns=2 * _S),
            Execution(1, 1),
        )


def test_fewer_failed_attempts_are_no_number_of_a_year():
    """A guest that protection slows down does more without, so the difference falls as long as it is looked at."""
    model = load_model("two-tier")
    short, long = (
        availability_study(
            model, ["checkpoint"], HostFailures(7_776_000.0), Crashes(1, after_ns=s * _S), Execution(1, 1)
        )
        for s in (20, 30)
    )
    assert long.rows[0]["failed_per_year"] < short.rows[0]["failed_per_year"] < 0.0
    text = as_text(short.blocks(), 1000)
    (year,) = (line for line in text.splitlines() if line.startswith("checkpoint") and "fewer than without" in line)
    assert "-" not in year
    assert "falls with how long runs go on (--after)" in text


@pytest.mark.parametrize(("mtbf_s", "said"), [(0.5, "500 ms"), (8 * 3600.0, "28800 s"), (YEAR_S, "365.2 days")])
def test_how_often_hosts_fail_reads_without_a_power_of_ten(mtbf_s, said):
    assert str(HostFailures(mtbf_s)).startswith(f"each host fails once in {said} on average")


def test_mistakes_are_named(tiny):
    with pytest.raises(UsageError, match="--common-cause: from 0 to below 100 %, got 100 %"):
        HostFailures(1.0, common_percent=100.0)
    for times in ({"mtbf_s": 0.0}, {"mtbf_s": math.inf}, {"mtbf_s": 1.0, "restart_s": -1.0}):
        with pytest.raises(UsageError, match="--mtbf"):
            HostFailures(**times)
