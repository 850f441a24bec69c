"""A host that fails takes all its guests with it; each comes back by its own mechanism, whatever the others took."""

import itertools
import re
from pathlib import Path

import pytest

from tests.composition.composed import checked
from vftsim.composition.model import ModelSpec
from vftsim.composition.record import RunRecord
from vftsim.composition.run import Run, run_model
from vftsim.composition.views import struck_by
from vftsim.composition.without_effect import lost_beside, remarks
from vftsim.platform.protection import passes
from vftsim.platform.protection.faults import PrimaryCrash
from vftsim.platform.protection.when import Instant
from vftsim.study.designs.crash import fair_share, planned_reprotection_ns
from vftsim.study.runs.model import load_model

MODEL = """\
format: 2
networks: {lan: {latency: 50 us}, other: {latency: 50 us}, states: {latency: 50 us}}
hosts: {host: {pcpus: 1, scheduler: {kind: credit}}}
domains:
  a:
    interfaces: {eth0: {network: lan, path: {kind: native}}}
    applications: {srv: {kind: service, demand: 1 ms, answer_size: 1000 B}}
    protection: {kind: none}
  b:
    interfaces: {eth0: {network: other, path: {kind: native}}}
    applications: {srv: {kind: service, demand: 1 ms, answer_size: 1000 B}}
    protection: {kind: none}
workloads:
  to_a: {kind: request_response, to: a, clients: 20, turn_around: 5 ms, retry: 1 s}
  to_b: {kind: request_response, to: b, clients: 20, turn_around: 5 ms, retry: 1 s}
measure: {warm_up: 0 ms, duration: 3 s}
"""
KINDS = {
    "checkpoint": "{kind: checkpoint, interval: 25 ms, channel: {network: states}}",
    "micro_checkpoint": "{kind: micro_checkpoint, shipped: true, channel: {network: states}}",
    "event_sync": "{kind: event_sync, channel: {network: states}}",
    "lockstep": "{kind: lockstep, channel: {network: states}}",
    "ha_restart": "{kind: ha_restart}",
}
LIVE, ON_ALONE = "secondary live", "primary goes on alone"
ROLLED_BACK = ("checkpoint", "micro_checkpoint", "event_sync")


def crashing(path: Path, of_a: str, of_b: str, *changes: str, at_ms: float = 511.1) -> ModelSpec:
    file = path / "host.yaml"
    file.write_text(MODEL, encoding="utf-8")
    crash = f"faults=[{{kind: primary_crash, at: {at_ms} ms, domain: a}}]"
    kinds = [f"domains.a.protection={KINDS[of_a]}", f"domains.b.protection={KINDS[of_b]}"]
    return load_model(str(file), [*kinds, crash, *changes]).spec


def back(record: RunRecord) -> list[bool]:
    return [any(what == LIVE for _, what in record.timelines[name]) for name in ("a", "b")]


@pytest.mark.parametrize(("of_a", "of_b"), list(itertools.permutations(ROLLED_BACK, 2)))
def test_guests_that_share_a_processor_and_a_channel_come_back_from_any_instant(of_a, of_b, tmp_path):
    """While one stands still at its end the other has more of both, which can keep the first one's state back.

    A state that was received in one pass is then not in the next: at 511.1 ms beside synchronization at events.
    """
    for number in range(12):
        record = run_model(crashing(tmp_path, of_a, of_b, at_ms=500 + 3.7 * number), 1, number)
        assert back(record) == [True, True]
        for name in ("a", "b"):
            assert record.whole.outcomes[f"domains.{name}.protection"].breaches == 0


@pytest.mark.parametrize("of_b", ["checkpoint", "lockstep"])
def test_both_engines_agree(of_b, tmp_path):
    compiled, simpy = (
        run_model(crashing(tmp_path, "event_sync", of_b, "measure.duration=4 s"), 1, 3, engine=each)
        for each in ("compiled", "simpy")
    )
    assert compiled.to_dict() == simpy.to_dict()
    assert back(compiled) == [True, True]


def test_what_protects_one_guest_does_nothing_for_the_other(tmp_path):
    """Without protection, or with a restart that takes longer than the run, the other one is gone."""
    record = run_model(crashing(tmp_path, "checkpoint", "ha_restart", "measure.duration=6 s"), 1, 0)
    assert back(record) == [True, False]
    lost = [record.whole.outcomes[f"workloads.to_{name}"].answered for name in ("a", "b")]
    assert lost[0] > 1.5 * lost[1] > 0


def test_a_guest_that_fails_alone_leaves_the_others_running(tmp_path):
    alone = "faults=[{kind: primary_crash, at: 500 ms, domain: a, alone: true}]"
    record = run_model(crashing(tmp_path, "checkpoint", "checkpoint", alone), 1, 0)
    assert back(record) == [True, False]
    assert record.timelines["b"][-1][1] == record.timelines["b"][0][1], "it was protected once, and nothing else"


def test_guests_of_a_host_meet_the_same_drawn_instants(tmp_path):
    """A host that fails again and again fails for all that are on it at once."""
    again = (
        "faults=[{kind: pause, at: 10 ms, duration: 1 ms, domain: b}, "
        "{kind: primary_crash, at: 100 ms, domain: a, repeat: {mean: 1 s, most: 1}}]"
    )
    record = run_model(crashing(tmp_path, "lockstep", "lockstep", again, "measure.duration=20 s"), 1, 0)
    crashes = [[at_ns for at_ns, what in record.timelines[name] if what == "primary crash"] for name in ("a", "b")]
    assert crashes[0] == crashes[1] != []


def test_a_state_counts_on_the_channel_as_it_leaves(tmp_path):
    """Three states of 8 MB in 30 s: a channel of 1 Mbit/s carries no more than that, and is never at rest."""
    narrow = "{kind: checkpoint, channel: {rate: 1 Mbit/s}, failover: {detection: {timeout: 300 s}}}"
    few = [f"workloads.{name}.clients=2" for name in ("to_a", "to_b")]
    changes = [f"domains.a.protection={narrow}", "faults=[]", "measure.duration=30 s", *few]
    for engine in ("compiled", "simpy"):
        record = run_model(crashing(tmp_path, "checkpoint", "ha_restart", *changes), 1, 0, engine=engine)
        found = record.whole.outcomes["domains.a.protection"]
        assert 0.98e6 < found.channel_bytes * 8 / found.seconds <= 1e6


def test_what_every_host_has_and_clients_in_a_domain_outlive_a_crash(tmp_path):
    """Work of the hypervisor is there on the second host, too; who drives the server sees what becomes of it."""
    spec = load_model("lab-single-host", ["domains.sut.protection={kind: lockstep}"]).spec
    crash = PrimaryCrash(at=Instant("run", 0), domain="sut")
    assert struck_by(spec, crash) == ["sut", "manager", "management"]
    assert lost_beside(spec, "sut").startswith("a crash of the host of sut ends manager, management, too")
    kept = crashing(tmp_path, "checkpoint", "checkpoint", "domains.b.on_every_host=true")
    assert back(run_model(kept, 1, 0)) == [True, False]


@pytest.mark.parametrize(("warm_up_s", "percent"), [(0, 95.0), (5, 100.0), (75, 50.0)])
def test_a_dead_guest_stands_still_while_it_is_dead(warm_up_s, percent, tmp_path):
    """Crash at 0.5 s; the last heartbeat at 0 s, 15 s of silence, 2 s of placement and 60 s of boot: back at 77 s."""
    changes = (f"measure.warm_up={warm_up_s} s", f"measure.duration={10 if warm_up_s == 0 else 4} s")
    spec = crashing(tmp_path, "ha_restart", "ha_restart", *changes, at_ms=500)
    stopped = run_model(spec, 1, 0).whole.outcomes["domains.a.protection"].stopped
    assert stopped == pytest.approx(percent, abs=0.1)


def test_what_all_guests_of_a_host_had_saved_is_found_in_one_pass(tmp_path):
    """They all ran until their host failed: a pass for each, one after the other, took minutes for 200 of them."""
    three = ("domains.b.count=3", "domains.b.interfaces.eth0.path={kind: moderated}", "hosts.host.pcpus=4")
    spec = crashing(tmp_path, "checkpoint", "checkpoint", *three)
    runs = []
    played = passes.play(lambda: Run(spec, 1, 0), lambda run: run.engine, lambda run: (runs.append(run), run.run()))
    assert len(runs) == 2
    assert len({cut.guard for cut in played.cuts}) == len(played.cuts) == 4
    assert {cut.crash_ns for cut in played.cuts} == {511_100_000}
    assert all(0 < cut.rollback_ns < 50_000_000 for cut in played.cuts)


@pytest.mark.parametrize("engine", ["compiled", "simpy"])
def test_a_guest_whose_neighbour_ended_long_before_is_found_with_another_number_of_states(engine: str):
    """The first of b's states is still on its way after 0.8 s, so it ends at 0, and a has the processor for itself."""
    behind = {"interfaces": {"eth0": {"network": "wan", "path": {"kind": "paravirtual"}}}}
    asked = {"kind": "open_requests", "to": "a", "request_size": 20_000, "rate": "20 /s"}
    program = {"kind": "service", "demand": "5 ms"}
    slow = {"kind": "checkpoint", "channel": {"rate": "10 Mbit/s"}}
    data = {
        "hosts": {"host": {"scheduler": {"kind": "credit2"}}},
        "networks": {"wan": {"latency": "40 ms"}, "lan": {}},
        "domains": {
            "dom0": {"driver": {}},
            "a": behind
            | {"applications": {"s": program | {"answer_size": 700_000}}, "protection": {"kind": "event_sync"}},
            "b": {
                "interfaces": {"eth0": {"network": "lan", "path": {"kind": "moderated"}}},
                "applications": {"s": program},
                "protection": slow,
            },
        },
        "faults": [{"kind": "primary_crash", "at": "839287 us", "domain": "a"}],
        "workloads": {"to_a": asked, "to_b": {"kind": "request_response", "to": "b", "clients": 30}},
        "measure": {"warm_up": 0, "duration": "2500 ms"},
    }
    record = run_model(checked(data), 1, 0, engine)
    assert back(record) == [True, True]
    assert record.whole.outcomes["domains.b.protection"].counted["rollback_ns"] == 839_287_000


def cut(guard: int, crash: int, ends: int, point: int = 1) -> passes.FoundCut:
    return passes.FoundCut(guard, crash, False, point, 0, crash - ends, 0, 0, 0, 0)


@pytest.mark.parametrize(
    ("cuts", "found", "next_cuts"),
    [
        ([cut(1, 100, 90)], [cut(2, 200, 150)], [cut(1, 100, 90), cut(2, 200, 150)]),
        # Guest 2 turns out to have ended before guest 1 did: all of guest 1 is found anew without it.
        ([cut(1, 100, 90)], [cut(1, 200, 150), cut(2, 200, 80)], [cut(2, 200, 80)]),
        # With another number of states at the same instant, and earlier.
        ([cut(1, 100, 90, 7), cut(2, 100, 10)], [cut(1, 100, 90, 6)], [cut(2, 100, 10), cut(1, 100, 90, 6)]),
        ([cut(1, 100, 90), cut(2, 100, 95)], [cut(1, 100, 80)], [cut(1, 100, 80)]),
    ],
)
def test_lives_that_end_early_are_settled_first(cuts, found, next_cuts):
    standing, new, is_all = passes._settled(cuts, found)
    assert [*standing, *new] == next_cuts
    assert is_all is (next_cuts[: len(cuts)] == cuts)


@pytest.mark.parametrize(("alone", "struck"), [("false", ["a", "b"]), ("true", ["a"])])
def test_the_host_of_backups_takes_them_all_with_it(alone: str, struck: list[str], tmp_path: Path) -> None:
    """Each guest goes on alone when it notices; nobody is lost, and where nobody has a backup nothing happens."""
    crash = f"faults=[{{kind: backup_crash, at: 500 ms, domain: a, alone: {alone}}}]"
    record = run_model(crashing(tmp_path, "checkpoint", "lockstep", crash, "measure.duration=4 s"), 1, 0)
    on_alone = {name for name, seen in record.timelines.items() if any(what == ON_ALONE for _, what in seen)}
    assert sorted(on_alone) == struck
    bare = crashing(tmp_path, "checkpoint", "ha_restart", crash)
    assert struck_by(bare, bare.faults[0]) == ["a"]
    assert not remarks(bare)


@pytest.mark.parametrize(("guests", "line_mbit"), [(1, 1000), (1, 100), (2, 1000), (4, 1000), (4, 10_000)])
def test_guests_that_are_copied_over_one_network_share_it(guests: int, line_mbit: int, tmp_path: Path) -> None:
    """Memory V dirtied at D is copied at R in V / (R - D); each has an equal part of the line, at most its own rate.

    The rest that is sent while the guest stands still, and what is left of rounds, are less than a 50th.
    """
    path = tmp_path / "guests.yaml"
    copy = "{delay: 200 ms, memory: 16 MiB, dirty_rate: 40 Mbit/s, resume: 30 ms, stop_below: 40 KiB}"
    protection = f"{{kind: checkpoint, interval: 25 ms, channel: {{network: states}}, reprotection: {copy}}}"
    text = re.sub(r"  b:.*?(?=workloads:)", "", MODEL, flags=re.DOTALL).replace("  to_b: {", "# ")
    text = text.replace("path: {kind: native}", "path: {kind: moderated}").replace("pcpus: 1", "pcpus: 4")
    text = text.replace("  a:\n", f"  a:\n    count: {guests}\n").replace("{kind: none}", protection)
    path.write_text(text.replace("states: {", f"states: {{rate: {line_mbit} Mbit/s, "), encoding="utf-8")
    struck = "a" if guests == 1 else "a-1"
    crash = f"faults=[{{kind: primary_crash, at: 300 ms, domain: {struck}}}]"
    spec = load_model(str(path), [crash, "measure.duration=4 s"]).spec
    record = run_model(spec, 1, 0)
    waits_s = []
    for timeline in record.timelines.values():
        live_ns, protected_ns = (max(at_ns for at_ns, what in timeline if what == each) for each in (LIVE, "protected"))
        waits_s.append((protected_ns - live_ns) / 1e9)
    rate_mbit = min(800, line_mbit / guests)
    closed_s = 0.2 + 16 * 1024**2 * 8 / 1e6 / (rate_mbit - 40) + 0.03
    assert len(waits_s) == guests
    assert waits_s == pytest.approx([closed_s] * guests, rel=0.02)
    assert planned_reprotection_ns(spec, struck) / 1e9 == pytest.approx(closed_s, rel=0.02)


@pytest.mark.parametrize(
    ("asked", "others", "line", "share"),
    [
        (800, [], 1000, 800),
        (800, [800, 800, 800], 1000, 250),
        (100, [800, 800], 1000, 100),
        (800, [100, 800], 900, 400),
    ],
)
def test_a_line_is_shared_evenly_but_nobody_has_more_than_it_asks_for(asked, others, line, share):
    assert fair_share(asked, others, line) == share
