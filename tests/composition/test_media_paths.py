"""The I/O paths against sums by hand and queueing formulas."""

import math

import pytest

from tests.composition.free_path import FREE
from vftsim.composition.keys import with_values
from vftsim.composition.views import streams_of
from vftsim.sampling import Streams
from vftsim.stats.intervals import ratio_of_sums, t_interval
from vftsim.workloads.rtp import RtpSource, senders
from vftsim.workloads.voice_quality import e_model

from .media_systems import MS, S, host, run

WIRE = 20_000


def lone_delay(system, dur_ns=100 * MS):
    result = run(system, 1, 0, dur_ns)
    delays = result.whole.outcomes["workloads.media"].delay
    assert delays.min == delays.max, "an undisturbed packet takes the same time again and again"
    return delays.min


def test_paravirtual_is_the_sum_of_its_costs():
    """Back-end 2000+2000+20000, front-end 1500+3000, thread 10000+2000, back-end 2000+1000+20000."""
    expected = WIRE + 24_000 + 4_500 + 12_000 + 23_000
    assert lone_delay(host({"kind": "paravirtual"})) == expected


@pytest.mark.parametrize("vcpus", [1, 2])
@pytest.mark.parametrize(
    ("path", "guest_scheduler"),
    [("paravirtual", "round_robin"), ("paravirtual", "cfs"), ("emulated", "cfs")],
)
def test_jobs_of_the_driver_domain_wait_for_packets_and_not_the_other_way_round(vcpus, path, guest_scheduler):
    """Linux does softirqs before processes, and one that slept before a job: a packet takes as long as without jobs."""
    jobs = {"job": {"kind": "batch", "processes": vcpus, "demand": "50 ms"}}
    driver = {"vcpus": vcpus, "guest_scheduler": {"kind": guest_scheduler}, "driver": {}}
    alone, beside = (
        host({"kind": path}, domains={"dom0": driver | programs}) for programs in ({}, {"applications": jobs})
    )
    assert lone_delay(beside, S) == lone_delay(alone, S)
    found = run(beside, 1, 0, S).whole.outcomes["domains.dom0"]
    assert found.cpu == pytest.approx(100 * vcpus)


def test_states_of_another_guest_wait_for_packets_in_the_driver_domain():
    """A guest of 1,000 pages a state, 6.2 ms of the driver domain's CPU, does not hold up its neighbour's packets."""
    job = {"applications": {"job": {"kind": "batch", "demand": "10 ms", "pages": 200}}}
    checkpoints = {"protection": {"kind": "checkpoint", "interval": "50 ms", "memory": {"working_set": 0}}}
    driver = {"driver": {}}
    alone, beside = (
        host({"kind": "paravirtual"}, domains={"dom0": driver, "other": job | protection})
        for protection in ({}, checkpoints)
    )
    assert lone_delay(beside, S) == lone_delay(alone, S)
    assert run(beside, 1, 0, S).whole.outcomes["domains.dom0"].cpu > 10


def test_packets_of_a_driver_domain_with_programs_are_spread_over_its_vcpus():
    """47 us of 10,000 packets a second are 47 % of a CPU; beside a job on each of two vCPUs they cost both alike."""
    jobs = {"job": {"kind": "batch", "processes": 2, "demand": "50 ms"}}
    driver = {"vcpus": 2, "driver": {"event_cost": 0}, "applications": jobs}
    record = run(host({"kind": "paravirtual"}, streams=200, domains={"dom0": driver}), 1, 0, S)
    done = record.whole.outcomes["domains.dom0.applications.job"].rate
    assert done == pytest.approx((2 - 10_000 * 47e-6) / 50e-3, rel=0.03)
    assert record.whole.outcomes["workloads.media"].loss == 0


def test_direct_and_native_are_the_sums_of_their_costs():
    assert lone_delay(host({"kind": "direct"})) == WIRE + 1_500 + 1_500 + 4_000 + 10_000 + 3_000
    assert lone_delay(host({"kind": "native"})) == WIRE + 1_500 + 3_500 + 10_000 + 2_500


def test_emulated_is_the_sum_of_its_costs():
    """Bridge 4000, model 1500+4000+2*6000, driver 1500+4000+2*4000, thread 10000+3000+2*4000, and back."""
    expected = WIRE + 4_000 + 17_500 + 13_500 + 21_000 + 17_500 + 3_000
    assert lone_delay(host({"kind": "emulated"})) == expected


def test_stub_domain_adds_the_split_driver_both_ways():
    """As emulated, plus 20 us each way between driver and stub domain."""
    assert lone_delay(host({"kind": "stub_domain"})) == lone_delay(host({"kind": "emulated"})) + 40_000


@pytest.mark.parametrize(("kind", "interrupts"), [("native", 50), ("moderated", 0)])
def test_interrupts_of_a_host_are_those_of_its_own_cards(kind, interrupts):
    """A packet each 20 ms for a second; a guest's card interrupts the guest."""
    found = run(host({"kind": kind}), 1, 0, S).whole.outcomes["hosts.host"]
    assert found.interrupts == interrupts
    assert found.declared["interrupts"].label == "interrupts of the host's cards"


def test_one_stub_domain_serves_all_interfaces_of_a_guest():
    """1500 + 4000 + 2 * 6000 ns each way of 100 packets a second over two cards: 0.35 % of a CPU."""
    system = host(
        {"kind": "stub_domain"},
        pcpus=5,
        nics={"eth0": {"network": "lan"}, "eth1": {"network": "back"}},
        networks={"lan": {}, "back": {}},
        media={"interfaces": {n: {"network": n, "path": {"kind": "stub_domain"}} for n in ("lan", "back")}},
        workloads={n: {"kind": "rtp", "to": "guest", "via": n, "streams": 1} for n in ("lan", "back")},
    )
    outcomes = run(system, 1, 0, S, 100 * MS).whole.outcomes
    assert outcomes["domains.guest-stub"].cpu == pytest.approx(0.35, rel=0.03)
    used_ns = sum(each.cpu_ns for owner, each in outcomes.items() if owner.startswith("domains."))
    assert used_ns == sum(outcomes["hosts.host"].busy_ns.values())


def test_every_switch_is_paid():
    """One pCPU, four vCPUs in turn: the packet meets the switches to dom0.0, guest, dom0.1."""
    scheduler = {"kind": "round_robin"}
    base = host({"kind": "paravirtual"}, scheduler=scheduler, pcpus=1)
    costly = host({"kind": "paravirtual"}, scheduler=scheduler, pcpus=1, switch_cost=3_000)
    assert lone_delay(costly) == lone_delay(base) + 3 * 3_000


def poisson(demand_ns, rate, **server):
    """Calls of one packet each to a server that costs nothing but ``demand_ns`` a packet."""
    program = {"kind": "signaling_server", "packet_cost": demand_ns, "threads": 1, **server}
    relay = {"kind": "media_relay"}
    return host(FREE, streams=0, calls_per_s=rate, media={"applications": {"server": program, "relay": relay}})


@pytest.mark.thorough
def test_one_server_is_m_d_1():
    """Utilization 0.6, service 100 us: mean wait 0.6 * 100 / (2 * 0.4) = 75 us."""
    system = poisson(100_000, 6_000.0)
    means = [run(system, 5, r, S // 2, 100 * MS).whole.outcomes["workloads.signaling"].delay.mean for r in range(8)]
    estimate = t_interval([mean - WIRE - 100_000 for mean in means])
    z = (estimate.mean - 75_000) / (estimate.half_width / 2.365)
    assert abs(z) <= 3.5
    assert estimate.half_width < 9_000


@pytest.mark.parametrize(
    ("program", "half"),
    [
        ("signaling_server", {"kind": "calls", "calls_per_s": 25_000.0, "received_packets": 1}),
        ("media_relay", {"kind": "rtp", "streams": 500}),
    ],
)
def test_two_workloads_of_a_kind_send_at_times_of_their_own(program, half):
    """Utilization 0.1 of both together, service 2 us: mean wait 0.1 * 2 / (2 * 0.9) us; of twins 1 us more.

    Of 1,000 streams the standard error is 11 ns: their phases stay.
    """
    guest = {"applications": {"program": {"kind": program, "packet_cost": 2_000, "threads": 1}}}
    halves = {name: {**half, "to": "guest"} for name in ("left", "right")}
    fast = {"lan": {"latency": WIRE // 2, "rate": 100_000_000_000}}
    outcomes = run(host(FREE, media=guest, workloads=halves, networks=fast), 1, 0, 200 * MS).whole.outcomes
    waits_ns = [outcomes[f"workloads.{name}"].delay.mean - WIRE - 2_000 for name in halves]
    assert sum(waits_ns) / 2 == pytest.approx(111, abs=39)


def test_workloads_together_get_no_more_through_than_the_line_carries():
    """Each of two asks for 0.76 Mbit/s of 1 Mbit/s: of frames of 238 bytes 525.2 a second come through, not 800."""
    halves = {name: {"kind": "rtp", "to": "guest", "streams": 8} for name in ("left", "right")}
    narrow = {"lan": {"latency": WIRE // 2, "rate": 1_000_000, "queue": 2_000}}
    record = run(host(FREE, workloads=halves, networks=narrow), 1, 0, 4 * S, 500 * MS)
    flows = [record.whole.outcomes[f"workloads.{name}"] for name in halves]
    assert sum(flow.delivered for flow in flows) / 4 == pytest.approx(1e6 / (8 * 238), rel=0.005)
    assert sum(flow.dropped for flow in flows) / 4 == pytest.approx(800 - 1e6 / (8 * 238), rel=0.01)


def m_d_1_k_loss(load, places):
    """Blocking of M/D/1/K from the chain embedded at departures (Cooper, Introduction to Queueing Theory)."""
    a = [math.exp(-load) * load**j / math.factorial(j) for j in range(places + 1)]
    weight = [1.0]
    for n in range(places - 1):
        inflow = weight[n] - weight[0] * a[n] - sum(weight[k] * a[n - k + 1] for k in range(1, n + 1))
        weight.append(inflow / a[0])
    empty = weight[0] / sum(weight)
    return 1.0 - 1.0 / (empty + load)


@pytest.mark.thorough
def test_full_socket_buffer_loses_as_m_d_1_k():
    """Five places with the packet in service, utilization 1.2."""
    system = poisson(100_000, 12_000.0, receive_buffer_bytes=2_500, packet_charge_bytes=500)
    flows = [run(system, 7, r, S // 2, 100 * MS).whole.outcomes["workloads.signaling"] for r in range(8)]
    loss = ratio_of_sums([f.dropped for f in flows], [f.dropped + f.delivered for f in flows])
    z = (loss.mean - m_d_1_k_loss(1.2, 5)) / (loss.half_width / 2.365)
    assert abs(z) <= 3.5
    assert loss.half_width < 0.02


@pytest.mark.thorough
def test_saturated_driver_domain_carries_one_packet_in_its_cost():
    """Back-end 40 us + driver 2 us at 100,000 packets a second: 1/42 us get through, the rest is lost."""
    path = {"kind": "paravirtual", "backend_receive_cost": 40_000, "backend_transmit_cost": 1_000}
    result = run(host(path, streams=2000, media={"vcpus": 2}), 1, 0, 800 * MS, 100 * MS)
    media = result.whole.outcomes["workloads.media"]
    known = media.delivered + media.dropped
    assert media.loss_ratio == pytest.approx(1.0 - 1.0 / (42e-6 * 100_000), abs=0.004)
    assert known == pytest.approx(80_000, rel=0.01)
    assert set(result.drops) == {("eth0", "receive ring full")}


@pytest.mark.thorough
def test_guest_without_cpu_loses_packets_in_the_driver_domain():
    """A capped guest does not empty its receive ring; the 256 slots fill and the back-end drops."""
    result = run(
        host(
            {"kind": "paravirtual"},
            streams=400,
            scheduler={"kind": "credit", "version": "4.18"},
            media={"cap": 1.0},
        ),
        1,
        0,
        500 * MS,
        500 * MS,
    )
    assert result.whole.outcomes["workloads.media"].loss_ratio > 0.8
    assert ("receive ring", "no slot") in result.drops


def test_sending_grid_makes_bursts_on_the_wire():
    """Phases fall to multiples of 4 ms; packets of one instant follow at 1904 ns (238 bytes at 1 Gbit/s)."""
    system = host({"kind": "native"}, streams=40)
    rtp = streams_of(system).model_copy(update={"sending_grid": 4 * MS})
    source = RtpSource(rtp, Streams(1, 0), flow=1, end_ns=20 * MS, link_bits_per_s=system.networks["lan"].rate)
    times_ns, _ = source.more()
    offsets = [int(time_ns) % (4 * MS) for time_ns in times_ns[:40]]
    assert all(offset % 1904 == 0 for offset in offsets)
    assert max(offsets) < 40 * 1904


def test_bursts_on_a_fast_wire_take_their_time_where_a_frame_takes_no_whole_number_of_ns():
    """64 bytes at 100 Gbit/s take 5.12 ns: the 100th of one instant is sent 506 ns after the first, not 495."""
    rtp = streams_of(host({"kind": "native"}, streams=100)).model_copy(
        update={"sending_grid": 20 * MS, "frame_bytes": 64}
    )
    source = RtpSource(rtp, Streams(1, 0), flow=1, end_ns=20 * MS, link_bits_per_s=100_000_000_000)
    times_ns, _ = source.more()
    assert times_ns[:100].tolist() == [number * 512 // 100 for number in range(100)]


def test_streams_keep_their_own_period_when_their_clocks_are_cycles_apart():
    """A client is late by its clock's error and the frames before its own; after 60 s at 1000 ppm three cycles."""
    system = host({"kind": "native"}, streams=40)
    rtp = streams_of(system).model_copy(update={"clock_error_ppm": 1000.0, "streams_per_client": 1})
    source = RtpSource(rtp, Streams(1, 0), flow=1, end_ns=60 * S, link_bits_per_s=system.networks["lan"].rate)
    phases_ns, errors = senders(rtp, Streams(1, 0))
    blocks = list(iter(lambda: [array.tolist() for array in source.more()], [[], []]))
    sent = [0] * 40
    before_ns = -1
    for time_ns, stream in ((time_ns, stream) for block in blocks for time_ns, stream in zip(*block, strict=True)):
        due_ns = phases_ns[stream] + sent[stream] * rtp.interval * (1.0 + errors[stream])
        assert -1 <= time_ns - due_ns <= 40 * 1904
        assert time_ns > before_ns
        before_ns = time_ns
        sent[stream] += 1
    assert max(sent) - min(sent) > 3


@pytest.mark.parametrize("interval_ms", [10, 20, 60, 120])
def test_speech_waits_for_its_packet_to_fill(interval_ms):
    """G.107: mouth to ear of 60 ms of play-out and one packet's speech; without packets nothing is heard."""
    system = with_values(host({"kind": "native"}), {"workloads.media.interval": interval_ms * MS})
    voice = run(system, 1, 0, 500 * MS, 100 * MS).whole.outcomes["workloads.media"]
    assert voice.loss_ratio == voice.late == 0
    assert voice.rated("r_factor") == e_model(60.0 + interval_ms, 0.0).r_factor
    g729a = {"codec.impairment": 11.0, "codec.robustness": 19.0, "codec.look_ahead": 5 * MS}
    system = with_values(system, {f"workloads.media.{key}": value for key, value in g729a.items()})
    voice = run(system, 1, 0, 500 * MS, 100 * MS).whole.outcomes["workloads.media"]
    assert voice.rated("r_factor") == e_model(65.0 + interval_ms, 0.0).r_factor - 11.0
    silent = run(host({"kind": "native"}, streams=0), 1, 0, 500 * MS, 100 * MS).whole.outcomes["workloads.media"]
    assert silent.rated("mos") is None
    assert math.isnan(silent.mos)
    assert math.isnan(silent.jitter)
