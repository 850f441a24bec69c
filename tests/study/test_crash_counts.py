"""What a crash is said to have cost, in models whose answer can be counted by hand."""

import pytest

import vftsim
from vftsim.composition.without_effect import remarks
from vftsim.study.designs.failover import Crashes, crashes_of_each, failover_study
from vftsim.study.designs.protections import under
from vftsim.study.execution import Execution

MODEL = """\
networks: {lan: {}}
domains:
  vm:
    interfaces: {eth0: {path: {kind: direct}}}
    applications: {s: {kind: service, demand: 10 us}}
    protection: {kind: checkpoint, interval: 25 ms}
workloads: {load: {kind: open_requests, to: vm, rate: 200 /s}}
measure: {warm_up: 200 ms, duration: 20 s}
"""
JOB = """\
domains:
  vm:
    applications: {job: {kind: batch, demand: 10 ms}}
    protection: {kind: checkpoint, interval: 25 ms}
"""


@pytest.fixture
def model(tmp_path):
    def load(text, *changes):
        path = tmp_path / "model.yaml"
        path.write_text(text)
        return vftsim.load(path, changes)

    return load


def crashed(model):
    return failover_study(model, Crashes(3), Execution(1, 1))


def test_no_request_fails_in_an_outage_shorter_than_its_patience(model):
    """A second and a tenth away, 7 s of patience; what waits in the guest at the end is no failure below 0."""
    found = crashed(model(MODEL)).figures()
    assert found["failed_load"] == [0.0, 0.0, 0.0]
    assert all(150 < repeated < 300 for repeated in found["retransmissions"]), "200 /s for about 1.1 s, once each"


@pytest.mark.parametrize("is_shipped", [True, False])
def test_a_year_has_a_backup_where_states_are_shipped_to_one(model, is_shipped):
    """Two hosts that fail once in 1e6 s, unprotected for the failover and for the re-protection after either."""
    micro = model(MODEL, f"domains.vm.protection={{kind: micro_checkpoint, shipped: {str(is_shipped).lower()}}}")
    (year,) = vftsim.availability(micro, 1e6, "micro_checkpoint", 2).rows
    share = year["unprotected_h_per_year"] / (24 * 365.25)
    assert share == pytest.approx(2e-6 * year["reprotection_s"] if is_shipped else 1.0, rel=1e-3)


def test_datagrams_of_all_clients_are_lost_while_nobody_receives(model):
    """Two clients with 100 a second each, for the outage."""
    stream = "{kind: bulk_udp, to: vm.sink, duration: 30 s, clients: 2, rate: 1 Mbit/s, payload: 1250}"
    with_udp = ["domains.vm.applications.sink={kind: udp_sink}", f"workloads.stream={stream}"]
    found = crashed(model(MODEL, "workloads.load.to=vm.s", *with_udp)).figures()
    for lost, outage_s in zip(found["lost_stream"], found["outage_s"], strict=True):
        assert 1.0 < outage_s < 1.2
        assert lost == pytest.approx(200 * outage_s, abs=15)


def test_the_first_copy_is_made_before_the_crash(model):
    plain, copied = (crashed(model(MODEL, *each)) for each in ([], ["domains.vm.protection.initial_copy=true"]))
    assert len(copied.recovered) == 3
    assert copied.figures()["outage_s"] == plain.figures()["outage_s"]


def test_a_job_without_clients_comes_back(model):
    found = crashed(model(JOB))
    assert len(found.recovered) == 3
    assert all(1.0 < outage < 1.2 for outage in found.figures()["outage_s"]), "its timeout is a second"
    assert not any(each.is_unasked for each in found.failovers)


OTHER = ["domains.other={applications: {w: {kind: batch, demand: 1 ms}}}", "hosts.host.pcpus=2"]


def test_a_crash_of_a_host_ends_every_guest_on_it(model):
    """A job beside it ends its 1,000 pieces a second up to the crash at 5 s; one on another host goes on."""
    crash = "faults=[{kind: primary_crash, at: 5 s, domain: vm}]"
    apart = ["hosts.away={pcpus: 1}", "domains.vm.host=host", "domains.other.host=away"]

    def ended(*changes):
        (record,) = [each for _, each in vftsim.run(model(MODEL, *OTHER, *changes, crash), 1).records]
        return record.whole.outcomes["domains.other.applications.w"].ended

    assert ended() == pytest.approx(5000, abs=10)
    assert ended(*apart) > 1.9 * ended()


def test_a_crash_that_ends_others_on_the_host_for_good_says_so(model):
    """Copies that stay on the host end with it; a fault that strikes twice says it once."""
    kinds = ("checkpoint", "ha_restart", "micro_checkpoint")
    others = [[], OTHER, *([*OTHER, f"domains.other.protection={{kind: {kind}}}"] for kind in kinds)]
    texts = ["\n".join(str(block) for block in crashed(model(MODEL, *each)).blocks()) for each in others]
    says = ["ends other, too, which nothing protects" in text for text in texts]
    assert says == [False, True, False, False, True]
    crash = "{kind: primary_crash, at: 5 s, domain: vm}"
    assert len(remarks(model(MODEL, *OTHER, f"faults=[{crash}, {crash}]").spec)) == 1


def test_outputs_wait_under_lockstep_for_what_really_comes(model):
    """Half a second without the channel at 20 s: of 100 outputs a second about 50 wait a quarter of it on average."""
    still = ["domains.vm.protection={kind: lockstep}", "workloads.load.rate=100 /s", "workloads.load.gap_cv=0"]
    lost = [*still, "faults=[{kind: channel_loss, at: 5 s, duration: 500 ms}]"]
    quiet, held = (
        vftsim.run(model(MODEL, *each), 1).records[0][1].whole.outcomes["domains.vm.protection"]
        for each in (still, lost)
    )
    quiet_ms, held_ms = (each.held_ns / each.released / 1e6 for each in (quiet, held))
    assert quiet_ms < 0.2
    assert held_ms == pytest.approx(quiet_ms + 50 * 250 / 2000, rel=0.1)
    assert held.longest_held_ns == pytest.approx(500e6, rel=0.05)


def test_a_crash_strikes_the_domain_whose_mechanism_is_chosen(model):
    """Without protection, too: it struck the next that is protected, or the one that has traffic."""
    two = model(MODEL, *OTHER, "domains.other.protection={kind: lockstep}")
    (none,) = vftsim.availability(two, 1e6, "none", 2).rows
    assert (none["came_back"], none["crashes"]) == (0, 2)
    of_back_end = vftsim.load("two-tier", ["domains.database.protection={kind: checkpoint}"])
    for unprotected in (under(two, "none"), under(of_back_end, "none")):
        (study,) = crashes_of_each([unprotected], Crashes(1, after_ns=10**9), Execution(1, 1))
        assert (study.mechanism, study.recovered) == ("none", ())
    assert study.struck == "database"


def test_what_clients_of_other_guests_lose_is_no_cost_of_the_failover(model):
    """A stream to an unprotected guest of the host loses 100 datagrams a second to the end of the run."""
    beside = [
        "hosts.host.pcpus=2",
        "domains.other={interfaces: {eth0: {path: {kind: moderated}}}, applications: {sink: {kind: udp_sink}}}",
        "domains.vm.interfaces.eth0.path={kind: moderated}",
        "workloads.stream={kind: bulk_udp, to: other, duration: 60 s, rate: 1 Mbit/s, payload: 1250}",
    ]
    found = crashed(model(MODEL, *beside))
    assert "lost_stream" not in found.figures()
    for crash in found.failovers:
        assert sum(crash.lost.values()) == crash.retransmissions == pytest.approx(200 * crash.outage_s, abs=30)
