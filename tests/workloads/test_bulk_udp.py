"""Bulk UDP: offered, sent and received; jitter in closed form; loss at socket, switch and line; flow control."""

import pytest

from tests.workloads import lab
from vftsim.composition.model import ModelSpec
from vftsim.composition.run import run_model
from vftsim.records.forms.networks import moderation_jitter_ns
from vftsim.workloads.bulk_udp import BulkUdpSpec
from vftsim.workloads.stations import StationsSpec
from vftsim.workloads.udp_sink import UdpSinkSpec

US, MS, S = 1000, 1_000_000, 1_000_000_000
PARTS = (UdpSinkSpec, BulkUdpSpec)
FRAME = 1470 + 66
LINE = 1470 / FRAME * 1e9


class Bulk(lab.Lab):
    def __init__(self, duration_ns, sink=None, network=None, until_ns=None, **spec):
        lab_keys = {
            "engine",
            "pcpus",
            "latency_ns",
            "queue",
            "rate_host",
            "packet_ns",
            "interrupt_ns",
            "moderation",
            "quantum_ns",
            "ring",
        }
        lab_settings = {key: spec.pop(key) for key in list(spec) if key in lab_keys}
        super().__init__(lab.linked(*PARTS), **({"rate": lab_settings.pop("rate_host", 10**9)} | lab_settings))
        self.run_program(UdpSinkSpec(**({"read_cost": 0} | (sink or {}))))
        self.spec = BulkUdpSpec(network=StationsSpec(**(network or {})), duration=duration_ns, **({"spread": 0} | spec))
        self.clients = self.add_clients(self.spec)
        self.start()
        self.clients.begin()
        self.run(duration_ns + 10 * MS if until_ns is None else until_ns)

    @property
    def results(self):
        return self.clients.results()


def test_below_the_line_everything_arrives():
    found = Bulk(100 * MS, rate=500_000_000).results[0]
    assert found.sent == found.received == found.total == -(-100 * MS // (1470 * 8 * 2))
    assert (found.lost, found.late, found.jitter_ns) == (0, 0, 0.0)
    assert found.sent_bits_per_s == pytest.approx(500e6, rel=1e-3)


def test_above_the_line_the_socket_blocks():
    """Offered 1.2 Gbit/s: the client's card takes the line's 957 Mbit/s (and what its queue holds), nothing is lost.

    What the queue holds when sending ends arrives at the line's rate like the rest.
    """
    found = Bulk(200 * MS, rate=1_200_000_000)
    result = found.results[0]
    assert result.lost == found.dropped() == 0
    assert result.received == result.sent
    assert 0.999 * LINE < result.received_bits_per_s <= LINE < result.sent_bits_per_s
    assert result.sent_bits_per_s == pytest.approx(LINE, rel=0.015)


@pytest.mark.parametrize(("payload", "frame"), [(16, 84), (18, 84), (19, 85), (100, 166)])
def test_a_small_datagram_is_padded_to_the_smallest_frame(payload, frame):
    """IEEE 802.3: 46 bytes of data in a frame of 84 with all around it, 1,488,095 a second of a gigabit."""
    found = Bulk(20 * MS, rate=10**9, payload=payload)
    assert found.results[0].received_bits_per_s == pytest.approx(1e9 * payload / frame, rel=5e-3)


def test_a_slow_client_sends_less_than_it_offers():
    """The printed example: 900 Mbit/s asked for, 814 sent; a datagram each 14.4 us."""
    found = Bulk(100 * MS, rate=900_000_000, send_cost=14_447)
    assert found.results[0].sent_bits_per_s == pytest.approx(814e6, rel=1e-3)


@pytest.mark.parametrize(("spacing_us", "period_us", "read_us"), [(12.5, 125, 2), (25, 125, 5), (50, 500, 10)])
def test_jitter_under_interrupt_moderation(spacing_us, period_us, read_us):
    """Closed form 2 (s - g) (1 - s / t) for whole batches; J itself swings around it."""
    found = Bulk(
        400 * MS,
        rate=int(1470 * 8 / (spacing_us * 1e-6)),
        sink={"read_cost": int(read_us * US)},
        packet_ns=1,
        moderation=int(period_us * US),
        rate_host=10**10,
        latency_ns=0,
    ).results[0]
    expected = moderation_jitter_ns(spacing_us * 1e3, period_us * 1e3, read_us * 1e3)
    assert found.mean_difference_ns == pytest.approx(expected, rel=0.02)
    assert found.jitter_ns == pytest.approx(expected, rel=0.75)
    assert found.lost == 0


def test_a_reader_too_slow_loses_the_difference():
    """Datagrams each 20 us, 30 us to read: a third is lost at the socket, once its 92 places are full."""
    result = Bulk(600 * MS, rate=588_000_000, sink={"read_cost": 30 * US}).results[0]
    assert result.lost / result.total == pytest.approx(1 / 3, abs=0.005)
    assert result.lost == pytest.approx(result.socket_drops, abs=1)
    # 92 places fill at a third of a datagram each: nothing is lost before number 3 x 92 or so.
    early = Bulk(5 * MS, rate=588_000_000, sink={"read_cost": 30 * US}).results[0]
    assert early.lost == 0


def test_clients_of_a_switch_lose_what_the_line_cannot_carry_unless_it_pauses_them():
    """Three senders of the line's rate: two thirds are lost at the switch, or nothing with IEEE 802.3x."""
    lossy = Bulk(60 * MS, clients=3, rate=10**9, network={"switched": True})
    assert lossy.dropped() / sum(r.sent for r in lossy.results) == pytest.approx(2 / 3, abs=0.05)
    # By its numbers a flow of which nothing comes has lost nothing: the loss is that of what was sent.
    outcome = lossy.clients.outcome()
    assert sum(outcome.dropped.values()) / sum(outcome.offered.values()) == pytest.approx(2 / 3, abs=0.05)
    assert [outcome.dropped[f"client_{r.client}"] for r in lossy.results] == [r.dropped for r in lossy.results]
    paused = Bulk(100 * MS, clients=3, rate=10**9, network={"switched": True, "flow_control": True}, until_ns=100 * MS)
    assert paused.dropped() == 0
    for result in paused.results:
        assert result.received_bits_per_s == pytest.approx(LINE / 3, rel=0.05)
    assert sum(r.received_bits_per_s for r in paused.results) == pytest.approx(LINE, rel=0.02)


@pytest.mark.parametrize("rates", [[10**9] * 4, [200_000_000, 10**9, 600_000_000]])
def test_clients_that_share_the_line_get_their_fair_share(rates):
    """Max-min (Bertsekas and Gallager 1992, 6.5.2): who asks for less than an equal share has it."""
    least = min(rates)
    share = LINE / 4 if least == max(rates) else (LINE - least) / 2
    path = {"kind": "moderated", "interrupt_cost": "0 s", "packet_cost": "0 s"}
    sink = {"kind": "udp_sink", "read_cost": "0 s"}
    flows = {f"u{n}": {"kind": "bulk_udp", "to": "a", "rate": f"{rate} bit/s"} for n, rate in enumerate(rates)}
    spec = ModelSpec.model_validate(
        {
            "format": 2,
            "networks": {"lan": {"rate": "1 Gbit/s", "latency": "0 us"}},
            "domains": {"a": {"interfaces": {"eth0": {"path": path}}, "applications": {"sink": sink}}},
            "workloads": flows,
            "measure": {"warm_up": "0 s", "duration": "300 ms"},
        }
    )
    outcomes = run_model(spec, seed=1, replication=0, engine="compiled").whole.outcomes
    received = [outcomes[f"workloads.{name}"].received["client_1"] * 1e6 for name in flows]
    assert received == pytest.approx([min(rate, share) for rate in rates], rel=0.03)


def test_each_flow_has_its_own_buffer():
    """Bursts of four clients into one socket of 20 places overflow; into a socket each they do not."""
    keys = {"clients": 4, "rate": 200_000_000, "packet_ns": 1, "moderation": 2 * MS, "rate_host": 10**10}
    sink = {"read_cost": US, "receive_buffer": 40 * 2304}
    bulk = Bulk(50 * MS, sink=sink, **keys)
    shared = Bulk(50 * MS, sink=sink | {"shared_buffer": True}, **keys)
    assert bulk.dropped() == 0
    assert shared.dropped() > 0
    assert sum(r.socket_drops for r in shared.results) == shared.dropped()
    # By its numbers a receiver does not know of the datagrams that would have been the last.
    assert 0 <= shared.dropped() - sum(r.lost for r in shared.results) <= 4 * 34


def test_a_reboot_loses_what_was_in_the_sockets():
    found = Bulk(S, rate=588_000_000, sink={"read_cost": 30 * US}, until_ns=20 * MS)
    before, sent = found.dropped(), found.results[0]
    found.engine.call(lab.boot_program, found.program)
    assert found.dropped() - before == 92
    assert sent.received + found.dropped() == pytest.approx(sent.sent, abs=6)


@pytest.mark.slow
def test_engines_agree():
    keys = {"clients": 3, "rate": 900_000_000, "network": {"switched": True}, "sink": {"read_cost": 20 * US}}
    both = [Bulk(30 * MS, engine=engine, packet_ns=US, **keys) for engine in ("simpy", "compiled")]
    assert both[0].results == both[1].results
    assert both[0].dropped() == both[1].dropped() > 0


def line_shared(clients, read_us, shared=False):
    """Clients that offer a gigabit each, paused by the switch, into a guest of two processors."""
    return Bulk(
        100 * MS,
        clients=clients,
        rate=10**9,
        network={"switched": True, "flow_control": True},
        pcpus=2,
        sink={"read_cost": read_us * US, "shared_buffer": shared},
        packet_ns=US,
        interrupt_ns=2 * US,
        spread=MS,
        until_ns=100 * MS,
        engine="compiled",
    ).results


@pytest.mark.slow
def test_loss_of_a_flow_falls_with_clients_unless_they_share_a_buffer():
    """13 us to read and one frame each 12.3 us: one thread is too slow, threads on two processors are not.

    It reads where no interrupts are: what is lost is what neither it nor its socket of 92 datagrams could take.
    """
    lost = 1 - 12.288 / 13 - 92 * 12.288 * US / (100 * MS)
    assert line_shared(1, 13)[0].loss_ratio == pytest.approx(lost, abs=0.002)
    assert all(result.loss_ratio == 0.0 for result in line_shared(3, 13))
    for result in line_shared(3, 13, shared=True):
        assert result.loss_ratio == pytest.approx(lost, abs=0.002)


@pytest.mark.slow
def test_jitter_rises_with_clients():
    """Closed form with the spacing of a share of the line: 19, 49, 60 us for one, three, five clients."""
    means_ns = {n: sum(r.mean_difference_ns for r in line_shared(n, 2)) / n for n in (1, 3, 5)}
    assert means_ns[1] < means_ns[3] < means_ns[5]
    for n, found_ns in means_ns.items():
        assert found_ns == pytest.approx(moderation_jitter_ns(FRAME * 8 * n, 125 * US, 2 * US), rel=0.25)


def test_a_link_is_no_busier_than_its_line_while_its_queue_fills():
    """60 Mbit/s at a line of 20 for 200 ms: it carries 500 kB of them, and its queue has taken 256 KiB more."""
    card = {"eth0": {"path": {"kind": "moderated"}}}
    flood = {"kind": "bulk_udp", "to": "a", "rate": "60 Mbit/s", "spread": "0 s", "network": {"switched": True}}
    spec = {
        "networks": {"lan": {"rate": "20 Mbit/s"}},
        "domains": {"a": {"interfaces": card, "applications": {"sink": {"kind": "udp_sink"}}}},
        "workloads": {"load": flood},
        "measure": {"warm_up": "0 s", "duration": "200 ms"},
    }
    found = run_model(ModelSpec.model_validate(spec), 1, 0).whole.outcomes["networks.lan.to_host"]
    assert found.busy == pytest.approx(100, abs=0.1)
    assert found.throughput == pytest.approx(20, abs=0.02)
