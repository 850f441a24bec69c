"""Simulated years: the chain against closed forms, faults that meet each other, years beside the chain."""

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from vftsim.platform.protection.device_faults import NicLoss, StorageLoss
from vftsim.platform.protection.faults import ChannelLoss, GuestError, Pause, PrimaryCrash
from vftsim.platform.protection.when import Instant
from vftsim.report.blocks import in_words
from vftsim.report.terminal import as_text
from vftsim.study.designs.availability import (
    YEAR_S,
    Effect,
    HostFailures,
    Kind,
    restart_unavailability,
    shares_of,
    shares_of_pair,
)
from vftsim.study.designs.protections import ALL, kinds_named, under
from vftsim.study.designs.simulated_years import (
    TRAFFIC,
    Machine,
    Rate,
    YearTask,
    rates_of,
    simulate_year,
    simulated_years,
)
from vftsim.study.execution import Execution
from vftsim.study.runs.model import load_model

MODEL = Path(__file__).parents[2] / "experiments" / "years" / "mixed-faults.yaml"
DAY_S = 86_400.0
S = 1_000_000_000
START = Instant("run", 0)
RESTART_S = 77.0


# The chain


def test_with_hosts_alone_it_is_the_pair():
    for mtbf_s in (1e4, 1e5, 3e7):
        pair = shares_of_pair(mtbf_s, 3.0 + 1.0, 600.0, RESTART_S)
        kinds = [
            Kind("primary", 1 / mtbf_s, Effect(3.0, 600.0), Effect(0.0, dead=1.0)),
            Kind("backup", 1 / mtbf_s, Effect(1.0, 600.0), Effect(0.0)),
        ]
        found = shares_of(kinds, RESTART_S, 600.0)
        assert found.down == pytest.approx(pair.down, rel=1e-9)
        assert found.unprotected == pytest.approx(pair.unprotected, rel=1e-9)


def test_hosts_that_fail_together_are_the_pair_with_a_common_cause():
    """Of 5 % of the failures of either nothing is left that could take over."""
    apart, together = Effect(3.0, 600.0), Effect(0.0, dead=1.0)
    kinds = [
        Kind("primary", 0.95e-5, apart, Effect(0.0, dead=1.0)),
        Kind("backup", 0.95e-5, Effect(1.0, 600.0), Effect(0.0)),
        Kind("both", 0.05e-5, together, together),
    ]
    pair, found = shares_of_pair(1e5, 3.0 + 1.0, 600.0, RESTART_S, 0.05), shares_of(kinds, RESTART_S, 600.0)
    assert found.down == pytest.approx(pair.down, rel=1e-9)
    assert found.unprotected == pytest.approx(pair.unprotected, rel=1e-9)


def test_without_redundancy_every_kind_costs_its_outage():
    kinds = [Kind("a", 1e-4, Effect(10.0), Effect(10.0)), Kind("b", 2e-5, Effect(5.0, dead=0.5), Effect(5.0, dead=0.5))]
    asked = 1e-4 * 10.0 + 2e-5 * (0.5 * 5.0 + 0.5 * RESTART_S)
    assert shares_of(kinds, RESTART_S, 0.0).down == pytest.approx(asked / (1.0 + asked), rel=1e-9)


# Faults of a year, by hand


@dataclass(frozen=True)
class At(Rate):
    """A kind of fault that comes at given seconds."""

    times_s: tuple[float, ...] = ()

    def drawn_ns(self, streams, entity):
        """Return them."""
        return [round(time_s * S) for time_s in self.times_s]


def year(kind, *rates, overrides=()):
    machine = Machine(under(load_model(MODEL, [*overrides]), kind), "vm", 1, RESTART_S, rates)
    quiet_s = (0.6,) * TRAFFIC
    return simulate_year(YearTask(replace(machine, quiet_s=quiet_s), 0)), machine


def crash(*times_s):
    return At("primary host", PrimaryCrash(at=START), 1.0, times_s=times_s)


def test_a_crash_is_the_outage_of_a_failover_and_a_later_one_too():
    once, machine = year("lockstep", crash(1000.25))
    assert 1.0 < once.down_s < 4.0
    assert once.deaths == 0
    assert once.unprotected_s == pytest.approx(machine.reprotection_ns / S, abs=0.5)
    twice, _ = year("lockstep", crash(1000.25, 2000.25))
    assert twice.down_s == pytest.approx(2.0 * once.down_s, abs=0.7)


@pytest.mark.parametrize("kind", ["ha_restart", "lockstep"])
def test_clients_that_never_ask_again_do_not_make_an_outage_none(kind):
    """It is as long as for requests at a rate, 20 a second, but for the wait for the next of them."""
    silent = "workloads.load={kind: request_response, to: vm, clients: 4, turn_around: 100 ms, retry: 0 ms}"
    machine = Machine(under(load_model(MODEL, [silent]), kind), "vm", 1, RESTART_S, (crash(1000.25),))
    found = simulate_year(YearTask(replace(machine, quiet_s=(0.6,) * TRAFFIC), 0))
    asked, _ = year(kind, crash(1000.25))
    assert found.deaths == 0
    assert found.down_s == pytest.approx(asked.down_s, abs=0.5)
    assert found.down_s > 1.0


@pytest.mark.parametrize("kind", ["lockstep", "checkpoint"])
def test_who_asks_seldom_beside_others_makes_no_outage_shorter(kind):
    """The outage is the time without a packet of anybody; one who asks each few seconds waits longest elsewhere."""
    seldom = "workloads.seldom={kind: open_requests, to: vm, rate: 0.2 /s}"
    beside, _ = year(kind, crash(1000.25), overrides=[seldom])
    alone, _ = year(kind, crash(1000.25))
    assert beside.down_s == pytest.approx(alone.down_s, abs=0.1)
    assert beside.down_s > 1.0


def test_a_year_may_have_no_fault():
    """Of hosts that fail once a year, one year in three has none of a machine without a backup."""
    found, _ = year("lockstep", crash())
    assert (found.down_s, found.unprotected_s, found.deaths) == (0.0, 0.0, 0)


@pytest.mark.parametrize("kind", ["none", "lockstep"])
def test_a_fault_is_watched_until_it_is_over(kind):
    """Nothing is heard for 5 minutes, longer than a restart or a copy takes."""
    stop = At("pause", Pause(at=START, duration="5 min"), 1.0, times_s=(1000.0,))
    cut = At("nic_loss", NicLoss(at=START, duration="5 min"), 1.0, times_s=(5000.0,))
    found, _ = year(kind, stop, cut)
    assert found.down_by == {"pause": pytest.approx(300.0, abs=0.5), "nic_loss": pytest.approx(300.0, abs=0.5)}


@pytest.mark.parametrize("lasts_min", [5, 50])
def test_a_takeover_in_a_loss_of_the_storage_waits_for_it(lasts_min):
    """Nobody misses the storage before: the host crashes 10 s before it is back, and 5 ms later the lock is taken."""
    loss = At("storage_loss", StorageLoss(at=START, duration=f"{lasts_min} min"), 1.0, times_s=(1000.0,))
    stop = At("pause", Pause(at=START, duration="1 s"), 1.0, times_s=(1005.0,))
    found, _ = year("lockstep", loss, stop, crash(990.0 + 60.0 * lasts_min))
    assert found.down_by["primary host"] == pytest.approx(10.0, abs=0.6)


@pytest.mark.parametrize("kind", ["none", "lockstep"])
def test_a_card_that_is_lost_for_good_is_brought_back_by_somebody(kind):
    """Nobody fails over for it; storage that no program reads from is missed by nobody."""
    cards = At("nic_loss", NicLoss(at=START), 1.0, times_s=(1000.0, 5000.0))
    disks = At("storage_loss", StorageLoss(at=START), 1.0, times_s=(9000.0,))
    found, _ = year(kind, cards, disks)
    assert (found.deaths, found.down_by) == (2, {"nic_loss": 2 * RESTART_S, "storage_loss": 0.0})


@pytest.mark.parametrize("kind", ["lockstep", "checkpoint"])
def test_hosts_may_be_patient(kind):
    """They wait for a minute and a half; then a copy restores redundancy as soon as ever."""
    timeouts = ["timeout"] if kind == "lockstep" else ["timeout", "backup_timeout"]
    detection = ", ".join(f"{each}: 90 s" for each in timeouts)
    patient = f"domains.vm.protection={{kind: {kind}, failover: {{detection: {{{detection}}}}}}}"
    found, machine = year(kind, crash(1000.25), overrides=[patient])
    assert found.down_s == pytest.approx(90.0, abs=1.5)
    assert found.unprotected_s == pytest.approx(machine.reprotection_ns / S, abs=0.5)


@pytest.mark.parametrize("kind", ["ha_restart", "lockstep"])
def test_an_outage_that_the_loads_own_gaps_hide_is_the_time_away(kind):
    """Whoever may wait for minutes anyway notices no takeover: that of 20 requests a second is longer by two gaps."""
    asked, machine = year(kind, crash(1000.25))
    hidden = simulate_year(YearTask(replace(machine, quiet_s=(1e6,) * TRAFFIC), 0))
    assert asked.down_s - 0.5 < hidden.down_s < asked.down_s
    assert hidden.down_s > 1.0


def test_a_load_with_longer_gaps_than_outages_is_told():
    """One request in 30 s: hosts that fail 36 times a year cost the pair what takeovers take, 2 to 4 s each."""
    load = "workloads={load: {kind: open_requests, to: vm, rate: 2 /min, gap_cv: 0}}"
    seldom = load_model(MODEL, [load, "faults=[]"])
    found = simulated_years(seldom, ("lockstep",), HostFailures(10 * DAY_S), 2, 2, Execution(1, 1))
    (pair,) = found.years.values()
    assert 36.5 * 2.0 < pair.chain_down_s < 36.5 * 4.0
    shown = " ".join(as_text(found.blocks(), 200).split())
    assert "lockstep: the load leaves up to 30 s between packets without faults" in shown
    assert pair.of_rare_load
    assert not replace(pair, quiet_s=0.0).of_rare_load, "nobody asks a job"
    often = replace(pair, kinds=tuple(replace(k, protected=replace(k.protected, unnoticed=0)) for k in pair.kinds))
    assert not often.of_rare_load


def test_the_stop_of_a_copy_counts_once():
    """2 MB over 1 Mbit/s that are dirtied faster: 16 s and 0.1 s to resume, beside the outage of the failover."""
    slow = ["domains.vm.protection.channel.rate=1 Mbit/s", "domains.vm.protection.memory.touch_rate=0 /s"]
    copied = ["domains.vm.protection.reprotection={memory: 2 MB, delay: 1 s}", "domains.vm.protection.state.fixed=0 B"]
    found, _ = year(
        "checkpoint", crash(1000.25), overrides=[*slow, *copied, "domains.vm.applications.srv.pages_per_request=0"]
    )
    assert 17.0 < found.down_s < 18.0


def test_a_second_host_before_redundancy_is_back_has_to_be_brought_back():
    found, machine = year("lockstep", crash(1000.25, 1040.25))
    once, _ = year("lockstep", crash(1000.25))
    assert found.deaths == 1
    assert found.down_s == pytest.approx(once.down_s + RESTART_S, abs=0.5)
    # Nothing strikes a machine that is down, and until redundancy is back the next one is its end again.
    down, _ = year("lockstep", crash(1000.25, 1040.25, 1041.0))
    assert (down.deaths, down.down_s) == (1, found.down_s)
    up_s = 1040.25 + RESTART_S
    again, _ = year("lockstep", crash(1000.25, 1040.25, up_s + 10.0))
    assert again.deaths == 2
    late, _ = year("lockstep", crash(1000.25, 1040.25, up_s + machine.reprotection_ns / S + 1.0))
    assert late.deaths == 1


def test_a_host_that_has_failed_does_not_fail_again_during_the_failover():
    found, _ = year("lockstep", crash(1000.25, 1001.25))
    once, _ = year("lockstep", crash(1000.25))
    assert (found.deaths, found.down_s) == (0, pytest.approx(once.down_s, abs=0.3))


def test_an_outage_that_goes_over_into_another_is_not_counted_twice():
    """The operator stops the guest for 10 s, and its host crashes 4 s later: its copy elsewhere runs at once."""
    stop = At("pause", Pause(at=START, duration="10 s"), 1.0, times_s=(996.25,))
    found, _ = year("lockstep", stop, crash(1000.25))
    once, _ = year("lockstep", crash(1000.25))
    assert found.down_s == pytest.approx(4.0 + once.down_s, abs=0.7)
    assert found.down_by["pause"] == 0.0


def test_what_a_fault_does_depends_on_the_mechanism():
    error = At("guest_error", GuestError(at=START), 1.0, times_s=(1000.0,))
    assert year("lockstep", error)[0].deaths == 1
    survived, _ = year("micro_checkpoint", error)
    assert survived.deaths == 0
    assert survived.down_s < 1.0
    # Two live copies: somebody has to make one of them, and redundancy comes after that.
    cut = At("channel_loss", ChannelLoss(at=START, duration="5 s"), 1.0, times_s=(1000.0,))
    split, machine = year("checkpoint", cut)
    assert split.unprotected_s == pytest.approx(RESTART_S + machine.reprotection_ns / S)


# Years


def test_a_fault_strikes_the_domain_that_it_names():
    """A pause of a guest beside the machine is no fault of the machine, a crash of their host is."""
    beside = "domains.beside={applications: {w: {kind: batch, demand: 1 ms}}}"
    often = "at: 1 s, domain: beside, repeat: {mean: 10 d}"
    kinds = ("{kind: pause, duration: 5 s, %s}", "{kind: primary_crash, alone: true, %s}", "{kind: primary_crash, %s}")
    model = load_model(MODEL, [beside, "hosts.host.pcpus=2", f"faults=[{', '.join(kinds) % (often, often, often)}]"])
    assert [each.name for each in rates_of(model, HostFailures(DAY_S))] == [
        "primary host",
        "backup host",
        "primary_crash (2)",
    ]
    found = simulated_years(model, ("none",), HostFailures(100 * DAY_S), 2, 1, Execution(1, 1))
    assert "a crash of the host of vm ends beside, too" in " ".join(as_text(found.blocks(), 200).split())


@pytest.mark.parametrize("kind", ["lockstep", "checkpoint"])
def test_a_pair_that_is_never_restored_is_a_machine_that_is_restarted(kind):
    """Of both hosts' failures one is the first; from then on each failure of the host costs a restart, for ever."""
    never = load_model(MODEL, [f"domains.vm.protection={{kind: {kind}, reprotection: null}}", "faults=[]"])
    found = simulated_years(never, (kind,), HostFailures(10 * DAY_S), 2, 2, Execution(1, 1)).years[kind]
    alone_s = restart_unavailability(10 * DAY_S, RESTART_S) * YEAR_S
    assert found.chain_down_s == pytest.approx(alone_s, rel=1e-9)
    assert found.down_s.mean == pytest.approx(alone_s, rel=0.01)
    assert found.unprotected_s.mean == pytest.approx(YEAR_S - alone_s, rel=1e-4)
    assert found.chain_unprotected_s == pytest.approx(YEAR_S - alone_s, rel=1e-9)


@pytest.mark.thorough
def test_two_years_beside_the_chain_and_in_words():
    found = simulated_years(load_model(MODEL), ("none", "event_sync"), HostFailures(60 * DAY_S), 2, 4, Execution(1, 1))
    for each in found.years.values():
        assert each.down_s.mean == pytest.approx(each.chain_down_s, rel=0.02)
        for year in each.years:
            assert sum(year.down_by.values()) == pytest.approx(year.down_s)
    none, pair = found.years["none"], found.years["event_sync"]
    # The same faults strike every mechanism.
    assert [each.drawn["primary host"] for each in none.years] == [each.drawn["primary host"] for each in pair.years]
    assert none.down_s.mean > pair.down_s.mean
    for each in found.years.values():
        assert sum(each.down_by_s.values()) == pytest.approx(each.down_s.mean), "parts add up to the whole"
    # Without a backup it is unprotected whenever it is up.
    assert none.unprotected_s.mean + sum(drawn_year.down_s for drawn_year in none.years) / 2 == pytest.approx(YEAR_S)
    assert none.chain_unprotected_s + none.chain_down_s == pytest.approx(YEAR_S)
    assert pair.unprotected_s.mean < 0.01 * YEAR_S
    assert (pair.chain.kind, pair.chain.n) == ("range", 4), "four crashes have no interval"
    text = as_text(found.blocks(), 100)
    assert max(map(len, text.splitlines())) <= 100
    assert f"down in a year? least with event_sync: {in_words(pair.down_s, 's')}" in " ".join(text.split())
    row = found.for_machines()["years"][1]
    assert (row["mechanism"], row["agrees"]) == ("event_sync", pair.agrees)


@pytest.mark.thorough
def test_failures_of_both_hosts_cost_a_restart_by_hand():
    """At 50 % half of the failures of a host take the backup with it, one in 100 days: 3.65 a year of 77 s each."""
    failures = HostFailures(50 * DAY_S, RESTART_S, common_percent=50.0)
    found = simulated_years(load_model(MODEL), ("none", "event_sync"), failures, 4, 4, Execution(1, 1)).years
    pair = found["event_sync"]
    assert pair.down_by_s["both hosts"] == pytest.approx(3.6525 * RESTART_S, rel=0.01)
    assert pair.down_s.mean == pytest.approx(pair.chain_down_s, rel=0.02)
    alone = simulated_years(load_model(MODEL), ("none",), HostFailures(50 * DAY_S), 2, 4, Execution(1, 1))
    assert found["none"].chain_down_s == pytest.approx(alone.years["none"].chain_down_s, rel=0.02), (
        "who has no backup loses nothing"
    )


@pytest.mark.slow
def test_ten_years_of_every_mechanism_agree_with_its_chain():
    found = simulated_years(load_model(MODEL), kinds_named(ALL), HostFailures(10 * DAY_S), 10, 10, Execution(1, 2))
    beyond = [kind for kind, each in found.years.items() if not each.agrees]
    # Intervals of 95 % each.
    assert len(beyond) <= 1
    for each in found.years.values():
        assert each.down_s.mean == pytest.approx(each.chain_down_s, rel=0.1)
