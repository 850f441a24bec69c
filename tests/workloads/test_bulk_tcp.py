"""Bulk TCP: frame arithmetic, window over round trip, slow start, loss by hand, what processors carry, held outputs."""

from math import ceil
from statistics import mean

import pytest

from tests.workloads import lab
from vftsim.workloads.stations import StationsSpec
from vftsim.workloads.tcp.client import BulkTcpSpec, line_payload_bits_per_s
from vftsim.workloads.tcp.program import TcpSinkSpec, TcpSourceSpec

US, MS, S = 1000, 1_000_000, 1_000_000_000
PARTS = (TcpSinkSpec, TcpSourceSpec, BulkTcpSpec)
FREE = {"segment_cost": 0, "copy_cost": 0, "ack_cost": 0}
STATED = {1: 936.9, 2: 472.5, 3: 306.3, 4: 235.6}
"""Mbit/s a client on bare metal (Timalsena 2013, table 3.1, second sample)."""
LINE = line_payload_bits_per_s(10**9)


def window_payload_bits_per_s(window_bytes, round_trip_ns, mss=1448):
    """Payload of a connection that a window of whole segments bounds."""
    return window_bytes // mss * mss * 8 * S / round_trip_ns


class Bulk(lab.Lab):
    def __init__(self, duration_ns, costs=None, beat_ns=0, network=None, until_ns=None, **spec):
        lab_keys = {"engine", "pcpus", "latency_ns", "queue", "rate", "packet_ns", "interrupt_ns", "ring", "moderation"}
        super().__init__(lab.linked(*PARTS), **{key: spec.pop(key) for key in list(spec) if key in lab_keys})
        download = spec.get("direction") == "download"
        end = (TcpSourceSpec if download else TcpSinkSpec)(**(FREE if costs is None else costs))
        self.run_program(end)
        if beat_ns:
            self.hold_in_beats(beat_ns)
        spec = {"interval": duration_ns // 10, "duration": duration_ns, "spread": 0, "reaction": 0} | spec
        self.spec = BulkTcpSpec(network=StationsSpec(**(network or {})), **spec)
        self.clients = self.add_clients(self.spec)
        self.start()
        self.clients.begin()
        if until_ns is None:
            self.run(duration_ns + MS)
        else:
            self.run(until_ns)

    @property
    def results(self):
        return self.clients.results()

    def rates(self, skip=2):
        """Mbit/s of each client without the first intervals."""
        return [
            sum(c for _, _, c in r.intervals[skip:]) * 8 / sum(e - b for b, e, _ in r.intervals[skip:]) / 1e6
            for r in self.results
        ]


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
@pytest.mark.parametrize("direction", ["upload", "download"])
def test_one_client_fills_the_line(engine, direction):
    """1448 of 1538 bytes of each frame: 941.5 Mbit/s, both ways round."""
    found = Bulk(100 * MS, direction=direction, engine=engine)
    assert found.rates()[0] == pytest.approx(LINE / 1e6, rel=2e-3)
    assert found.dropped() == 0


def test_window_over_round_trip():
    """64 KiB are 45 segments; a round is two latencies, one segment and one acknowledgement on the wire."""
    found = Bulk(200 * MS, window=64 * 1024, latency_ns=5 * MS, delayed_ack=0)
    round_ns = 2 * 5 * MS + 1538 * 8 + 90 * 8
    assert found.rates()[0] == pytest.approx(window_payload_bits_per_s(64 * 1024, round_ns) / 1e6, rel=0.06)
    assert window_payload_bits_per_s(64 * 1024, round_ns) < LINE
    sent = found.results[0].bytes
    # To the segment: slow start 10, 20, 40, then 45 a round of 10.01 ms; 20 rounds have been acknowledged or arrived.
    rounds = [min(45, 10 * 2**n) for n in range(20)]
    assert sent // 1448 == sum(rounds)


def test_a_window_of_one_segment_is_one_a_round_trip():
    """It was taken for two, four times what 2,000 B let through."""
    found = Bulk(200 * MS, window=9_000, mss=8948, latency_ns=MS, delayed_ack=0)
    there_ns, back_ns = MS + (8948 + 90) * 8, MS + 90 * 8
    assert found.results[0].bytes // 8948 == 1 + (200 * MS - there_ns) // (there_ns + back_ns)


def test_delayed_acknowledgements_halve_their_number():
    every, second = Bulk(50 * MS, delayed_ack=0), Bulk(50 * MS)
    # What is under way when time is up is acknowledged too.
    segments = every.results[0].bytes / 1448
    assert every.results[0].acknowledgements == pytest.approx(segments, rel=0.03)
    assert second.results[0].acknowledgements == pytest.approx(segments / 2, rel=0.03)


def test_a_lone_segment_waits_for_the_delayed_acknowledgement():
    """By hand: the first arrives at 1.012 ms and waits 40 ms; from 42.013 ms on two go out each 2.026 ms."""
    found = Bulk(500 * MS, window=2 * 1448, initial_window=1, latency_ns=MS)
    arrivals = [n for n in range(10) if 42.013 + 2.026 * n + 1.025 <= 50]
    assert found.results[0].intervals[0][2] == (1 + 2 * len(arrivals)) * 1448
    assert found.results[0].timeouts == 0


@pytest.mark.thorough
@pytest.mark.parametrize("clients", [1, 2, 3, 4])
def test_clients_of_a_switch_share_the_line(clients):
    """Frame arithmetic alone, against the record's first rows: within 3 % (the host's link drops, TCP recovers)."""
    found = Bulk(300 * MS, clients=clients, network={"switched": True}, reaction=25 * US, spread=MS)
    rates = found.rates()
    assert sum(rates) == pytest.approx(LINE / 1e6, rel=0.01)
    assert mean(rates) == pytest.approx(STATED[clients], rel=0.03)


@pytest.mark.slow
def test_clients_of_a_switch_are_served_alike_in_the_long_run():
    """Ten seconds: within a third of the mean; with perfect timing one client is locked out for whole seconds."""
    found = Bulk(10 * S, clients=4, network={"switched": True}, reaction=25 * US, spread=MS, engine="compiled")
    rates = found.rates()
    assert max(rates) < 4 / 3 * mean(rates)
    assert min(rates) > 2 / 3 * mean(rates)
    locked = Bulk(2 * S, clients=4, network={"switched": True}, spread=500 * US, engine="compiled").rates()
    assert min(locked) < mean(locked) / 4


def test_flow_control_loses_nothing():
    lossy = Bulk(100 * MS, clients=4, network={"switched": True}, window=256 * 1024)
    paused = Bulk(100 * MS, clients=4, network={"switched": True, "flow_control": True}, window=256 * 1024)
    assert lossy.dropped() > 0
    assert paused.dropped() == 0
    assert sum(r.retransmitted for r in paused.results) == 0
    assert sum(paused.rates()) == pytest.approx(LINE / 1e6, rel=0.01)


def test_processor_bounds_the_rate():
    """20 us of CPU time a segment and 5 us an acknowledgement of two: 22.5 us, so 514.8 Mbit/s, not the line's."""
    found = Bulk(100 * MS, costs={"segment_cost": 20 * US, "copy_cost": 0, "ack_cost": 5 * US})
    assert found.rates()[0] == pytest.approx(1448 * 8 / 22.5, rel=0.01)
    assert found.busy_ns() == pytest.approx(100 * MS, rel=0.02)


def test_segmentation_offload_divides_the_cost():
    """45 segments a packet: the cost of a packet falls on 45 segments, and the line is full again."""
    found = Bulk(
        100 * MS, costs={"segment_cost": 20 * US, "copy_cost": 0, "ack_cost": 5 * US}, segmentation_offload=True
    )
    assert found.rates()[0] == pytest.approx(LINE / 1e6, rel=0.01)
    assert found.busy_ns() < 10 * MS


@pytest.mark.parametrize(("beat_us", "window"), [(5000, 64 * 1024), (1000, 64 * 1024), (7300, 32 * 1024)])
def test_held_acknowledgements_bound_the_rate_by_the_window(beat_us, window):
    """Closed form: min(line, window / (m P)) with m = ceil(rtt / P), outputs released every P."""
    found = Bulk(40 * beat_us * US, beat_ns=beat_us * US, window=window, delayed_ack=0)
    m = ceil((2 * 50 * US + 1538 * 8) / (beat_us * US))
    expected = min(LINE, window_payload_bits_per_s(window, m * beat_us * US)) / 1e6
    assert found.rates(skip=4)[0] == pytest.approx(expected, rel=0.01)


def test_loss_is_recovered_without_a_time_out():
    """A queue of 20 frames at the host's link drops in slow start; the line stays full and every byte comes."""
    found = Bulk(300 * MS, network={"switched": True, "rate": 2 * 10**9}, queue=20 * 1538)
    result = found.results[0]
    assert found.dropped() > 0
    assert result.recoveries > 0
    assert result.retransmitted >= found.dropped()
    assert found.rates(skip=3)[0] == pytest.approx(LINE / 1e6, rel=0.03)


def test_a_reboot_ends_the_connections():
    """The guest knows the connection no more; the client backs off: time-outs after 0.2, 0.4, 0.8 s."""
    found = Bulk(10 * S, until_ns=20 * MS)
    found.engine.call(lab.boot_program, found.program)
    at_boot = found.dropped()
    before = found.busy_ns()
    found.run(1900 * MS)
    result = found.results[0]
    assert result.intervals[0][2] > 0
    assert result.timeouts == 3
    assert found.dropped() - at_boot >= 3
    assert found.busy_ns() == before


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
def test_a_client_notices_a_reboot_that_no_acknowledgement_follows(engine):
    """A segment under way at 12 ms meets a booted server; nothing comes back, but the client's timer was its own."""
    found = Bulk(10 * S, until_ns=12 * MS, window=2_000, latency_ns=5 * MS, delayed_ack=0, engine=engine)
    found.engine.call(lab.boot_program, found.program)
    found.run(1900 * MS)
    # Sent anew at 0.2, 0.6 and 1.4 s after the only acknowledgement.
    assert found.results[0].timeouts == 3


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
def test_a_lost_request_of_a_download_comes_again(engine):
    """Three fit, into a ring of two and into work: of eight five ask again after a second, and two after two more."""
    card = {"ring": 2, "packet_ns": 100 * US}
    found = Bulk(10 * S, clients=8, direction="download", window=2_000, engine=engine, until_ns=MS, **card)
    seen = []
    for until_ns in (999 * MS, 1001 * MS, 2999 * MS, 3001 * MS):
        found.run(until_ns)
        seen.append((sum(client.bytes > 0 for client in found.results), found.dropped()))
    assert seen == [(3, 5), (6, 7), (6, 7), (8, 7)]


@pytest.mark.slow
def test_engines_agree_on_losses():
    """Three clients, drops, recoveries: to the last segment."""
    both = [
        Bulk(
            60 * MS,
            clients=3,
            network={"switched": True},
            window=256 * 1024,
            engine=engine,
            costs={"segment_cost": 3 * US, "copy_cost": 200, "ack_cost": US},
            packet_ns=2 * US,
        )
        for engine in ("simpy", "compiled")
    ]
    assert both[0].results == both[1].results
    assert both[0].dropped() == both[1].dropped() > 0
    assert both[0].busy_ns() == both[1].busy_ns()
