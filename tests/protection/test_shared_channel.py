"""A channel on a network of the model: states and log entries share the host's link with everything else on it."""

from typing import Any

import pytest

from vftsim.composition.model import ModelSpec
from vftsim.composition.run import Run, run_model
from vftsim.platform.io.host_cards import cards
from vftsim.platform.io.link import links
from vftsim.platform.io.packet import drops
from vftsim.platform.protection.channel import channels
from vftsim.platform.protection.checkpoint import checkpoints
from vftsim.study.runs.model import load_model

MODEL = """
format: 2
name: shared
networks:
  lan: {rate: 100 Mbit/s, latency: 50 us}
hosts: {host: {pcpus: 1}}
domains:
  vm:
    interfaces: {eth0: {path: {kind: native}}}
    applications: {srv: {kind: service, demand: 10 us, answer_size: 1000 B, pages_per_request: 0}}
    protection: {kind: none}
workloads: {load: {kind: request_response, to: vm, clients: 2, turn_around: 20 ms, retry: 10 s}}
measure: {warm_up: 0 ms, duration: 1 s}
"""
FEW = "memory: {working_set: 10, touch_rate: 200 /s}"
KINDS = {
    "lockstep": "{kind: lockstep, CHANNEL}",
    "checkpoint": f"{{kind: checkpoint, interval: 25 ms, {FEW}, CHANNEL}}",
    "micro_checkpoint": f"{{kind: micro_checkpoint, interval: 25 ms, shipped: true, {FEW}, CHANNEL}}",
    "event_sync": f"{{kind: event_sync, {FEW}, CHANNEL}}",
    "hypervisor_epoch": "{kind: hypervisor_epoch, epoch_instructions: 200000, CHANNEL}",
    "coarse_lockstep": f"{{kind: coarse_lockstep, divergence_rate: 20 /s, {FEW}, CHANNEL}}",
}
FULL = "networks.lan.background={bulk: {burst: 22500 B, period: 2 ms}}"
"""90 of 100 Mbit/s."""


BURST_BYTES, PERIOD_MS, ANSWER_BYTES = 22_500, 2, 1000


def shared(path: Any, kind: str, *changes: str) -> ModelSpec:
    path = path / "shared.yaml"
    path.write_text(MODEL, encoding="utf-8")
    channel = KINDS[kind].replace("CHANNEL", "channel: {network: lan}")
    return load_model(str(path), [f"domains.vm.protection={channel}", *changes]).spec


def played(path: Any, kind: str, *changes: str, engine: str = "auto") -> tuple[Run, dict[str, Any]]:
    run = Run(shared(path, kind, *changes), 1, 0, engine=engine)
    return run, dict(run.run().whole.outcomes)


def hold_ms(outcomes: dict[str, Any]) -> float:
    found = outcomes["domains.vm.protection"]
    return float(found.held_ns / found.released / 1e6)


def sent(run: Run) -> tuple[int, int]:
    """Bytes that the host's link has carried, and those of the mechanism among them."""
    card = run.engine.rows(cards)[run.built.hosts["host"].cards["lan"]]
    channel = run.engine.rows(channels)[run.built.guards["vm"]]
    assert channel.shared == card.from_host
    return int(run.engine.rows(links)[int(card.from_host)].sent_bytes), int(channel.sent_bytes)


@pytest.mark.parametrize("kind", KINDS)
def test_the_guest_waits_longer_where_other_traffic_fills_the_link_and_no_byte_is_lost(
    kind: str, tmp_path: Any
) -> None:
    """Of 100 Mbit/s 90 are taken.  Outputs wait; under comparison of outputs it is the guest that stands still."""
    (_, alone), (run, full) = played(tmp_path, kind), played(tmp_path, kind, FULL)
    if kind == "coarse_lockstep":
        before, after = (each["domains.vm.protection"].stopped_ns for each in (alone, full))
    else:
        before, after = hold_ms(alone), hold_ms(full)
    assert after > 1.2 * before
    lost = run.built.hosts["host"].io.drop_rows["background traffic", "queue full"]
    bursts = (1000 - 1) // PERIOD_MS - int(run.engine.rows(drops)[lost].count)
    carried, state_bytes = sent(run)
    answers, rest = divmod(carried - state_bytes - BURST_BYTES * bursts, ANSWER_BYTES)
    assert rest == 0
    assert 0 <= answers - full["workloads.load"].answered <= 2
    assert state_bytes >= 0.99 * full["domains.vm.protection"].channel_bytes > 0


def test_a_log_that_waits_for_a_full_line_takes_its_turn_on_it(tmp_path: Any) -> None:
    """Of 96 Mbit/s received 106 are log, beside 25 of background: the line carries 100, and the guest has to wait."""
    run, found = played(
        tmp_path,
        "lockstep",
        "workloads.load={kind: open_requests, to: vm, rate: 12000 /s, gap_cv: 0, request_size: 1000 B}",
        "domains.vm.applications.srv.answer_size=64 B",
        "networks.lan.background={bulk: {burst: 3125 B, period: 1 ms}}",
    )
    lost = run.built.hosts["host"].io.drop_rows["background traffic", "queue full"]
    carried, log_bytes = sent(run)
    assert carried >= log_bytes + 3125 * (999 - int(run.engine.rows(drops)[lost].count))
    in_queue_and_log = 1024 * (256 + 512)
    assert 12_500_000 < carried <= 12_500_000 + in_queue_and_log
    assert found["domains.vm.protection"].stopped_ns > 0


@pytest.mark.parametrize("burst_bytes", [3125, 6250])
def test_states_without_end_take_what_the_background_leaves(burst_bytes: int, tmp_path: Any) -> None:
    """25 or 50 of 100 Mbit/s, in bursts each ms; the queue of 256 KiB has room for a piece and what comes meanwhile."""
    run, found = played(
        tmp_path,
        "checkpoint",
        f"networks.lan.background={{bulk: {{burst: {burst_bytes} B, period: 1 ms}}}}",
        "domains.vm.protection.memory={working_set: 4000, touch_rate: 1000000 /s}",
        "domains.vm.applications.srv.pages_per_request=2000",
        "workloads.load.turn_around=1 ms",
        "measure.warm_up=200 ms",
    )
    lost = run.built.hosts["host"].io.drop_rows["background traffic", "queue full"]
    assert int(run.engine.rows(drops)[lost].count) == 0
    left_bytes = 100e6 / 8 - 1000 * burst_bytes
    assert found["domains.vm.protection"].channel_bytes == pytest.approx(left_bytes, rel=0.02)


@pytest.mark.parametrize("kind", KINDS)
def test_an_idle_link_is_as_quick_as_a_channel_of_its_rate_and_latency(kind: str, tmp_path: Any) -> None:
    """Outputs wait as long; where entries or copies of inputs meet the answers themselves, up to one answer longer."""
    path = tmp_path / "own.yaml"
    path.write_text(MODEL, encoding="utf-8")
    channel = KINDS[kind].replace("CHANNEL", "channel: {rate: 100 Mbit/s, latency: 50 us}")
    dedicated = run_model(load_model(str(path), [f"domains.vm.protection={channel}"]).spec, 1, 0)
    own_ms = hold_ms(dict(dedicated.whole.outcomes))
    _, idle = played(tmp_path, kind)
    longer_ms = ANSWER_BYTES * 8 / 100_000 if kind in ("lockstep", "coarse_lockstep") else 1e-9
    # Above half a round trip: under hypervisor_epoch about every second output finds everything acknowledged.
    assert own_ms > 0.05
    assert own_ms - 1e-9 <= hold_ms(idle) <= own_ms + longer_ms


FAULTS = [
    "faults=[{kind: channel_loss, at: 211 ms, duration: 30 ms}, {kind: nic_loss, at: 431 ms, duration: 20 ms},"
    " {kind: primary_crash, at: 703 ms}]",
    "domains.vm.protection.failover={detection: {timeout: 200 ms}, go_live: 20 ms}",
    "domains.vm.protection.reprotection=null",
    "workloads.load.retry=50 ms",
    "measure.duration=1.5 s",
]


@pytest.mark.parametrize(
    "kind", [each if "checkpoint" in each else pytest.param(each, marks=pytest.mark.thorough) for each in KINDS]
)
def test_the_promise_holds_where_the_shared_link_is_lost_on_a_states_way(kind: str, tmp_path: Any) -> None:
    """The channel fails, then the card with all that it carries, then the host; the backup goes on."""
    beats = [] if "checkpoint" in kind else ["domains.vm.protection.failover.detection.heartbeat_interval=50 ms"]
    record = run_model(shared(tmp_path, kind, FULL, *FAULTS, *beats), 1, 0)
    found = record.whole.outcomes["domains.vm.protection"]
    assert found.judged >= 10
    assert found.breaches == 0
    live_ns = next(time_ns for time_ns, what in record.timelines["vm"] if what == "secondary live")
    assert 703_000_000 + 100_000_000 < live_ns < 1_100_000_000
    assert record.whole.outcomes["workloads.load"].answered > found.judged


def test_guests_do_not_take_their_states_in_step(tmp_path: Any) -> None:
    """Every 25.1 ms each, with the request; the instants of 39 others are those of uniform phases."""
    others = ["domains.vm.count=40", "hosts.host.pcpus=40", "domains.vm.interfaces.eth0.path={kind: moderated}"]
    channel = "domains.vm.protection.channel={rate: 1 Gbit/s}"
    run = Run(shared(tmp_path, "checkpoint", *others, channel, "measure.duration=310 ms"), 1, 0)
    run.run()
    rows = run.engine.rows(checkpoints)
    first, *phases_ns = [int(rows[guard].suspended_ns) % 25_100_000 for guard in run.built.guards.values()]
    assert first == 0
    assert len(set(phases_ns)) == 39
    error_ns = 25e6 / (12 * 39) ** 0.5
    assert abs(sum(phases_ns) / 39 - 12.6e6) < 3.5 * error_ns


@pytest.mark.parametrize("gbit", [1, 3, 10])
def test_many_states_fill_a_link_that_has_a_short_queue(gbit: int, tmp_path: Any) -> None:
    """At 3 and 10 Gbit/s a byte takes no whole number of ns: a frame's end and the room for it were rounded apart.

    Then a state that waited for room looked for it at one instant for ever.
    """
    spec = shared(
        tmp_path,
        "checkpoint",
        f"networks.lan={{rate: {gbit} Gbit/s, latency: 50 us, queue: 4 KiB}}",
        f"domains.vm.count={4 * gbit}",
        f"hosts.host.pcpus={4 * gbit}",
        "domains.vm.interfaces.eth0.path={kind: moderated}",
        "domains.vm.applications.srv.pages_per_request=997",
        "domains.vm.protection.memory.working_set=10000",
        "measure.duration=300 ms",
    )
    run = Run(spec, 1, 0)
    run.run()
    link = run.engine.rows(links)[int(run.engine.rows(cards)[run.built.hosts["host"].cards["lan"]].from_host)]
    by_states = sum(int(run.engine.rows(channels)[guard].sent_bytes) for guard in run.built.guards.values())
    # The first states are taken within 25 ms; what is in the queue at the end is sent, too.
    assert 0.275 * 0.95 < link.sent_bytes / (gbit * 1e9 / 8) < 0.3 + 1e-3
    assert 0.999 * link.sent_bytes < by_states <= link.sent_bytes


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KINDS)
def test_both_engines_share_alike(kind: str, tmp_path: Any) -> None:
    found = [played(tmp_path, kind, FULL, engine=engine) for engine in ("simpy", "compiled")]
    assert sent(found[0][0]) == sent(found[1][0])
    assert found[0][1] == found[1][1]
