"""Failovers: when hosts crash, what an outage consists of, and the deterministic parts of each mechanism."""

import math
from dataclasses import replace
from functools import cache

import pytest
from tiny import TINY

from vftsim.composition.views import with_domain
from vftsim.errors import ModelFileError, UsageError
from vftsim.platform.protection.mechanism import protections
from vftsim.report.terminal import as_text
from vftsim.study.designs import crash, failover
from vftsim.study.designs.crash import PARTS, CrashTask, Gap, parts_of, planned_reprotection_ns, simulate_crash, without
from vftsim.study.designs.failover import Crashes, crash_instants, failover_study
from vftsim.study.designs.protections import of_domain, under
from vftsim.study.execution import Execution
from vftsim.study.runs.model import load_model

S, MS = 1_000_000_000, 1_000_000
SOON = 3 * S
P = "domains.vm.protection"
RECOVERING = ("checkpoint", "coarse_lockstep", "event_sync", "ha_restart", "hypervisor_epoch", "lockstep")
FATAL = ("micro_checkpoint", "none")


@pytest.fixture(scope="module")
def study(tiny):
    """Return the failovers of the tiny model under a mechanism; each is simulated once."""
    return cache(lambda kind: failover_study(under(tiny, kind), Crashes(2, after_ns=SOON), Execution(1, 1)))


def task_at(model, crash_ns, after_ns=SOON):
    spec, begins_ns, _ = failover.at_rest(model, None, crash_ns + after_ns)
    return CrashTask(spec, "sut", 1, 0, begins_ns + crash_ns, begins_ns, begins_ns + crash_ns + after_ns)


# When hosts crash


def test_one_crash_in_each_equal_part_of_the_stretch():
    instants = crash_instants(7, 40, 4 * S)
    assert [instant // (S // 10) for instant in instants] == list(range(40))


def test_other_seeds_crash_at_other_instants():
    assert set(crash_instants(1, 10, S)).isdisjoint(crash_instants(2, 10, S))


# What an outage consists of


@pytest.mark.thorough
@pytest.mark.parametrize("kind", RECOVERING)
def test_the_parts_add_up_to_the_outage(study, kind):
    for each in study(kind).failovers:
        parts_ns = [round(getattr(each, part) * 1e9) for part in PARTS]
        assert min(parts_ns) >= 0
        assert sum(parts_ns) == round(each.outage_s * 1e9)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", RECOVERING)
def test_the_parts_are_those_of_the_timeline(study, kind):
    """Between crash and announcement the outage is divided where the mechanism says that things happened."""
    for each in study(kind).failovers:
        at = {what: time_s for time_s, what in each.timeline if time_s >= 0}
        live_s = at.get("secondary live", at.get("booted"))
        assert each.detection_s == pytest.approx(at["failure declared"], abs=1e-9)
        assert each.takeover_s == pytest.approx(live_s - at["failure declared"], abs=1e-9)
        assert each.announcement_s <= at.get("reachable", live_s) - live_s + 1e-9


@pytest.mark.parametrize("kind", FATAL)
def test_what_does_not_come_back(study, kind):
    found = study(kind)
    assert not found.recovered
    for each in found.failovers:
        assert math.isinf(each.outage_s)
        assert all(math.isnan(getattr(each, part)) for part in PARTS)
        assert sum(each.failed.values()) > 0
    assert found.mean("outage_s") is None
    # No number of a run that ends says how much is lost.
    counts = [name for name in found.figures() if name.startswith("failed_")]
    assert all(found.mean(name) is None for name in counts)
    assert all(found.share(name).mean == 1.0 for name in counts)
    assert as_text(found.blocks(), 100).count("all from then on") >= len(counts) > 0


def test_a_packet_on_its_way_shortens_the_detection():
    assert parts_of(Gap(12, 50), [10, 30, 40, 45]) == [0.0, 18e-9, 10e-9, 5e-9, 5e-9]


def test_a_packet_before_the_announcement_shortens_that():
    assert parts_of(Gap(2, 42), [10, 30, 40, 45]) == [8e-9, 20e-9, 10e-9, 2e-9, 0.0]


def test_a_failure_declared_before_the_crash_takes_no_time():
    assert parts_of(Gap(2, 42), [10, 8, 40, 40]) == [8e-9, 0.0, 30e-9, 0.0, 2e-9]


def test_only_the_gap_of_the_takeover_counts():
    window, live_ns = (100, 1000), 300
    assert without(Gap(90, 310), window, live_ns) is None
    assert without(Gap(400, 900), window, live_ns) == (100, 401)
    assert without(Gap(20, 101), window, live_ns) == (102, 1000)


@pytest.mark.thorough
def test_a_longer_stop_after_the_failover_is_not_the_outage(tmp_path):
    """Re-protection stops the guest for 5 s here, longer than the failover takes."""
    found = []
    for name, reprotection in (("never", "null"), ("soon", "{delay: 1 s, memory: 64 MiB, resume: 5 s}")):
        path = tmp_path / f"{name}.yaml"
        protection = f"    protection: {{kind: lockstep, reprotection: {reprotection}}}\n"
        path.write_text(TINY.replace("  sut:\n", "  sut:\n" + protection))
        found.append(simulate_crash(task_at(load_model(path), 400 * MS, 12 * S)))
    never, soon = found
    assert soon.outage_s == never.outage_s < 4.0
    assert math.isnan(never.unprotected_s)
    live_s = next(time_s for time_s, what in soon.timeline if what == "secondary live")
    protected_s = [time_s for time_s, what in soon.timeline if what == "protected"][-1]
    assert soon.unprotected_s == protected_s
    assert protected_s - live_s == pytest.approx(planned_reprotection_ns(load_model(path).spec, "sut") / S, abs=1e-9)


# Deterministic parts


@pytest.mark.parametrize("crash_ns", [0, 1, 400 * MS, 999_999_999])
def test_a_restart_is_timeout_less_phase_of_the_heartbeat_and_boot(tiny, crash_ns):
    task = task_at(under(tiny, "ha_restart"), crash_ns, 80 * S)
    found = simulate_crash(task)
    since_beat_s = task.crash_ns % S / S
    assert found.detection_s == pytest.approx(15.0 - since_beat_s, abs=1e-9)
    away_s = found.outage_s - found.before_crash_s - found.first_packet_s
    assert away_s == pytest.approx(15.0 - since_beat_s + 2.0 + 60.0, abs=2e-9)


def test_lockstep_notices_between_timeout_less_interval_and_timeout(study):
    for each in study("lockstep").failovers:
        assert 2.0 < each.detection_s <= 3.0
        assert each.takeover_s == pytest.approx(0.105, abs=1e-9)  # lock 5 ms, go-live 100 ms; nothing left to replay


@pytest.mark.thorough
def test_a_checkpoint_rolls_back_as_the_closed_form_says(tmp_path):
    """No page is dirtied: p 0.5 ms, x = 64 KiB at 1 Gbit/s, P 200 ms; back by p + x + l to P more than that."""
    path = tmp_path / "still.yaml"
    protection = "    protection: {kind: checkpoint, memory: {touch_rate: 0 /s}, suspend_request: 0 ms}\n"
    path.write_text(TINY.replace("  sut:\n", "  sut:\n" + protection))
    found = failover_study(load_model(path), Crashes(10, after_ns=SOON), Execution(3, 1))
    least_s = 0.5e-3 + 65_536 * 8e-9 + 74.5e-6
    back_s = found.figures()["rollback_s"]
    assert all(least_s <= value <= least_s + 0.2 for value in back_s)
    # Each stratum is half a period long: the mean of ten has at most the standard error of ten uniform instants.
    assert sum(back_s) / 10 == pytest.approx(0.1 + least_s, abs=3 * 0.2 / math.sqrt(12 * 10))


# The study


@pytest.mark.thorough
def test_the_number_of_workers_does_not_matter(tiny):
    alone, together = (
        failover_study(under(tiny, "lockstep"), Crashes(2, after_ns=SOON), Execution(5, jobs)) for jobs in (1, 2)
    )
    assert alone.failovers == together.failovers


class Counting:
    """A progress display that counts."""

    def __init__(self):
        self.units, self.done = 0, 0

    def total(self, units):
        self.units += units

    def advance(self, text=""):
        self.done += 1

    def say(self, text):
        pass


@pytest.mark.thorough
@pytest.mark.parametrize("jobs", [1, 2])
def test_progress_is_shown_with_any_number_of_workers(tiny, jobs):
    progress = Counting()
    failover_study(under(tiny, "none"), Crashes(2, after_ns=S), Execution(1, jobs, progress))
    assert (progress.units, progress.done) == (2, 2)


def test_mistakes_are_named(tiny):
    with pytest.raises(UsageError, match="--over"):
        failover_study(tiny, Crashes(2, span_ns=0), Execution(1, 1))
    with pytest.raises(UsageError, match="--after"):
        failover_study(tiny, Crashes(2, after_ns=0), Execution(1, 1))
    with pytest.raises(UsageError, match="--load: above 0"):
        failover_study(tiny, Crashes(2, load=0.0), Execution(1, 1))
    with pytest.raises(UsageError, match="--domain: domain 'sud'"):
        failover_study(tiny, Crashes(2, domain="sud"), Execution(1, 1))
    media = load_model("xen-media")
    for refused in (lambda: Crashes(1, domain="dom0").domain_of(media), lambda: of_domain(media, "dom0")):
        with pytest.raises(UsageError, match="--domain: 'dom0' is a driver domain, which every host has"):
            refused()
    with pytest.raises(UsageError, match="has no benchmark"):
        failover_study(load_model("xen-media-turnkey"), Crashes(2, load=5.0, domain="media"), Execution(1, 1))


@pytest.mark.thorough
@pytest.mark.parametrize("kind", [*RECOVERING, *FATAL])
def test_every_mechanism_is_printed(study, kind, capsys):
    print(as_text(study(kind).blocks(), 1000))
    shown = capsys.readouterr().out
    assert f"Mechanism: {kind}" in shown
    assert "primary crash" in shown
    assert ("never" in shown) == (kind == "ha_restart"), "that is protected again"
    assert ("no packet came out any more" in shown) == ("The parts" not in shown) == (kind in FATAL)
    assert ("'shipped: true' sends them away" in shown) == (kind == "micro_checkpoint")
    assert "nan" not in shown
    assert "inf" not in shown


@pytest.mark.parametrize(("rate", "stop"), [("10 Mbit/s", "3436 s"), ("1 Gbit/s", None)])
def test_a_copy_that_does_not_converge_is_an_outage_of_its_own(rate, stop, tiny):
    """4 GiB at 10 Mbit/s, dirtied at 80: the last round is all memory again, 2^35 bit and 0.1 s to resume."""
    spec = with_domain(
        tiny.spec, "sut", protection=protections()["lockstep"].model_validate({"channel": {"rate": rate}})
    )
    shown = as_text(failover_study(replace(tiny, spec=spec), Crashes(1, after_ns=SOON), Execution(1, 1)).blocks(), 1000)
    assert (f"stops the guest for {stop} at its end" in shown) == (stop is not None)
    assert ("reprotection" in shown) == (stop is not None)
    slow = replace(tiny, spec=spec)
    assert (Crashes(1).copy_of(slow) is not None) == (stop is not None)
    assert Crashes(1, of_copy=False).copy_of(slow) is None, "prices at their ends need none"


@pytest.mark.parametrize(("shipped", "is_copied"), [(True, True), (False, False)])
def test_a_mechanism_without_a_backup_makes_no_copy(shipped, is_copied, tiny):
    """Micro-checkpoints that stay on their host have nothing to be copied to; a year has the stop of all others."""
    kept = protections()["micro_checkpoint"].model_validate({"shipped": shipped, "channel": {"rate": "10 Mbit/s"}})
    model = replace(tiny, spec=with_domain(tiny.spec, "sut", protection=kept))
    assert (crash.planned_stop_s(model.spec, "sut") > 0.0) == is_copied
    assert (Crashes(1, of_backup=True).copy_of(model) is not None) == is_copied


def test_there_are_no_other_mechanisms():
    assert {*RECOVERING, *FATAL} == set(protections())


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["checkpoint", "coarse_lockstep", "event_sync", "micro_checkpoint", "none"])
def test_a_media_host_fails_over(kind, capsys):
    sets = ["workloads.media.streams=5", "workloads.signaling.calls_per_s=1"]
    found = failover_study(
        under(load_model("xen-media-turnkey", sets), kind), Crashes(2, after_ns=3 * S), Execution(1, 1)
    )
    print(as_text(found.blocks(), 1000))
    assert "packets lost: media" in capsys.readouterr().out
    assert len(found.recovered) == (0 if kind in FATAL else 2)
    for each in found.recovered:
        # What is lost of five streams of 50 packets a second is what would have come meanwhile.
        assert each.lost["media"] == pytest.approx(250 * each.outage_s, abs=10)


def test_the_same_instants_are_simulated_under_every_mechanism(study):
    assert len({tuple(each.crash_s for each in study(kind).failovers) for kind in (*RECOVERING, *FATAL)}) == 1
    assert crash.PARTS == PARTS


CLOSED_LOOP = """\
networks: {lan: {}}
hosts: {host: {pcpus: 1}}
domains:
  vm:
    interfaces: {eth0: {path: {kind: native}}}
    applications: {srv: {kind: service, demand: 100 us}}
    protection: {kind: checkpoint}
workloads: {load: {kind: request_response, to: vm, clients: 4, turn_around: 20 ms, retry: 200 ms}}
measure: {warm_up: 200 ms, duration: 3 s}
"""


def test_less_fails_where_the_guest_does_more_without_its_protection(tmp_path):
    """Clients in a closed loop get an answer an epoch of 200 ms, and one each 20 ms after the takeover."""
    path = tmp_path / "loop.yaml"
    path.write_text(CLOSED_LOOP)
    found = failover_study(load_model(path), Crashes(2, after_ns=3 * S), Execution(1, 1))
    for each in found.failovers:
        alone_s = 1.0 + 3.0 - each.crash_s - each.back_s
        most = alone_s * 4 / 0.02 - (alone_s + each.back_s) * 4 / 0.2
        # Clients begin when they ask again: within two of their 200 ms.
        assert most - 0.4 * 4 / 0.02 < -each.failed["load"] < most
    text = " ".join(as_text(found.blocks(), 100).split())
    assert "the guest goes on without protection after a takeover" in text


@pytest.mark.parametrize(("after_ns", "cut_short"), [(50 * MS, 2), (2 * S, 2), (12 * S, 0)])
def test_a_run_that_ends_during_a_takeover_says_so(tmp_path, after_ns, cut_short):
    """A checkpoint's silence of 3 s is not over after 50 ms or 2 s.

    Clients, who wait twice as long each time, ask again after 6 s.
    """
    path = tmp_path / "loop.yaml"
    path.write_text(
        CLOSED_LOOP.replace("{kind: checkpoint}", "{kind: checkpoint, failover: {detection: {timeout: 3 s}}}")
    )
    found = failover_study(load_model(path), Crashes(2, after_ns=after_ns, span_ns=100 * MS), Execution(1, 1))
    assert (len(found.recovered), sum(each.is_cut_short for each in found.failovers)) == (2 - cut_short, cut_short)
    assert all(time_s < 0.2 + after_ns / S for each in found.failovers for time_s, _ in each.timeline)
    text = " ".join(as_text(found.blocks(), 1000).split())
    assert ("After 2 of them the run ended while a takeover was under way" in text) is (cut_short == 2)


def test_a_takeover_before_the_crash_is_said(tmp_path):
    """A silence of 60.1 ms: an acknowledgement's 20 ms there and back, 40 ms, and a request of 0.1 ms."""
    path = tmp_path / "loop.yaml"
    after_ack = "kind: checkpoint, interval: 40 ms, rule: after_ack, channel: {network: san}"
    text = CLOSED_LOOP.replace("{kind: checkpoint}", f"{{{after_ack}, failover: {{detection: {{timeout: 65 ms}}}}}}")
    path.write_text(text.replace("networks: {lan: {}}", "networks: {lan: {}, san: {latency: 10 ms}}"))
    model = load_model(path, ["domains.vm.interfaces.eth0.network=lan"])
    found = failover_study(model, Crashes(2, after_ns=S), Execution(1, 1))
    assert found.of_crashes == []
    first, second = found.failovers
    early = replace(first, timeline=[(-0.5, crash.DECLARED), *first.timeline])
    (told,) = replace(found, failovers=(early, second)).of_crashes
    assert told.startswith("Before 1 of 2 crashes nothing had failed, and a side took the other for gone")
    for channel in ("{latency: 10 ms}", "{network: san}"):
        with pytest.raises(ModelFileError, match=r"must be above the 60\.1 ms for which the backup hears nothing"):
            load_model(path, [f"{P}.channel={channel}", f"{P}.failover.detection.timeout=60 ms"])


TWO_TIERS = """\
networks: {lan: {}}
hosts: {front: {}, back: {}}
domains:
  server:
    host: front
    interfaces: {eth0: {path: {kind: native}}}
    applications:
      pages: {kind: service, threads: 64, calls: [{to: database, cache_hit: 50 %, timeout: 100 ms, retries: 0}]}
  database:
    host: back
    interfaces: {eth0: {path: {kind: native}}}
    applications: {rows: {kind: service}}
    protection:
      kind: ha_restart
      failover: {detection: {timeout: 1 s, heartbeat_interval: 100 ms}, placement: 0 s, boot_time: 1 s}
workloads: {pages: {kind: open_requests, to: server, rate: 100 /s}}
measure: {warm_up: 200 ms, duration: 3 s}
"""


@pytest.mark.parametrize(("hits", "is_in_part"), [("50 %", True), ("0 %", False)])
def test_a_service_that_answers_in_part_meanwhile_says_so(tmp_path, hits, is_in_part):
    """Half of the requests have what they need in a cache while the database is away for 2 s."""
    path = tmp_path / "tiers.yaml"
    path.write_text(TWO_TIERS.replace("50 %", hits))
    found = failover_study(load_model(path), Crashes(2, after_ns=3 * S, domain="database"), Execution(1, 1))
    assert all(each.back_s == pytest.approx(1.95, abs=0.06) for each in found.failovers)
    assert all((each.outage_s < 0.3) is is_in_part for each in found.failovers)
    text = " ".join(as_text(found.blocks(), 1000).split())
    assert ("After 2 of 2 crashes packets came out while database was away, for 1.9" in text) is is_in_part
