"""Several cards, several kinds of traffic, apart or together."""

from __future__ import annotations

import pytest
from network import Network
from pydantic import ValidationError

from vftsim.composition.model import ModelSpec
from vftsim.composition.run import Run
from vftsim.kernel import EventKind
from vftsim.platform.io.host_cards import BackgroundTrafficSpec, add_card, cards, start_background
from vftsim.platform.io.link import Link, links, utilization
from vftsim.platform.io.packet import drops

_US = 1_000
_MS = 1_000_000
_RATE = 1_000_000_000
_STORAGE = BackgroundTrafficSpec(burst=125_000, period=10 * _MS)


class Cards:
    """Two cards without latency, and storage traffic on one of them."""

    def __init__(self, network: Network, storage_on: str, storage: BackgroundTrafficSpec = _STORAGE) -> None:
        self.engine = engine = network.engine
        self.rows = {name: add_card(engine, _RATE, 0, 256 * 1024) for name in ("vmnic0", "vmnic1")}
        self.bursts_lost, _ = engine.add(drops)
        start_background(engine, self.rows[storage_on], 0, storage, self.bursts_lost, storage.period)

    def from_host(self, name: str) -> Link:
        link: Link = self.engine.rows(links)[self.engine.rows(cards)[self.rows[name]].from_host]
        return link


def _arrival_us(storage_on: str) -> float:
    """When a frame of 125 bytes on vmnic0 arrives that is sent at the instant of the second storage burst."""
    network = Network()
    network.use_card(Cards(network, storage_on).rows["vmnic0"])
    network.at(20 * _MS, EventKind.ARRIVAL, 0, lambda: network.send(125, 0))
    network.engine.run(30 * _MS)
    return network.log[0][0] / _US - 20_000


def test_a_shared_card_makes_the_servers_frame_wait_for_the_burst() -> None:
    """125 kB at 1 Gbit/s hold the transmitter for 1 ms; the frame itself needs 1 us."""
    assert _arrival_us("vmnic0") == 1_001
    assert _arrival_us("vmnic1") == 1


def _model(interface: dict[str, str]) -> ModelSpec:
    """A server whose interface says nothing or its network, and a third network with storage traffic."""
    path = {"path": {"kind": "moderated"}}
    sut = {"interfaces": {"eth0": {**interface, **path}}, "applications": {"proxy": {"kind": "sip_server"}}}
    storage = {"background": {"storage": _STORAGE}}
    return ModelSpec.model_validate(
        {"networks": {"vmnic0": {}, "vmnic1": {}, "vmnic2": storage}, "domains": {"sut": sut}}
    )


def test_interfaces_without_a_network_use_the_first_and_directions_are_apart() -> None:
    for interface, name in (({}, "vmnic0"), ({"network": "vmnic1"}, "vmnic1")):
        run = Run(_model(interface), 1, 0)
        built = run.built.hosts["host"].cards
        assert set(built) == {name, "vmnic2"}, "cards that nothing uses are left out"
        card = run.engine.rows(cards)[built[name]]
        assert card.to_host != card.from_host


def test_background_traffic_is_carried_up_to_the_rate_and_dropped_beyond() -> None:
    """25 MB/s on a link of 125 MB/s; of 2.5 MB a burst a queue of 256 KiB takes nothing."""
    network = Network()
    nics = Cards(network, "vmnic0", BackgroundTrafficSpec(burst=250_000, period=10 * _MS))
    network.engine.run(1_000 * _MS + 1)
    link = nics.from_host("vmnic0")
    assert utilization(link.sent_bytes, link.rate_bits_per_s, 1_000 * _MS) == pytest.approx(0.2)
    assert network.dropped(nics.bursts_lost) == 0

    # As large as a model file may say: what takes longer than 64 bits hold is lost all the same.
    for burst in (2_500_000, 1 << 50):
        network = Network()
        nics = Cards(network, "vmnic0", BackgroundTrafficSpec(burst=burst, period=10 * _MS))
        network.engine.run(1_000 * _MS + 1)
        assert (network.dropped(nics.bursts_lost), nics.from_host("vmnic0").sent_bytes) == (100, 0)


def test_background_traffic_of_one_name_on_two_networks_is_on_both() -> None:
    """Of what is sent every 10 ms a second has 100 bursts, and 99 before its end."""
    sizes = {"lan": 1_000, "san": 3_000}
    networks = {name: {"background": {"storage": {"burst": f"{b} B", "period": "10 ms"}}} for name, b in sizes.items()}
    run = Run(ModelSpec.model_validate({"networks": networks, "domains": {"idle": {}}}), 1, 0)
    run.built.start()
    run.engine.run(1_000 * _MS - 1)
    for name, card in run.built.hosts["host"].cards.items():
        link = run.engine.rows(links)[run.engine.rows(cards)[card].from_host]
        assert link.sent_bytes == 99 * sizes[name]


def test_background_traffic_of_several_kinds_does_not_keep_step() -> None:
    """Three bursts of 100 kB every 10 ms, 0.8 ms each: at once they would be more than the queue of 256 KiB takes."""
    burst = {"burst": "100 kB", "period": "10 ms"}
    lan = {"background": {"backup": burst, "management": burst, "storage": {**burst, "period": "20 ms"}}}
    run = Run(ModelSpec.model_validate({"networks": {"lan": lan}, "domains": {"idle": {}}}), 1, 0)
    run.built.start()
    run.engine.run(1_000 * _MS)
    assert run.built.hosts["host"].io.drop_counts() == {}
    (card,) = run.built.hosts["host"].cards.values()
    link = run.engine.rows(links)[run.engine.rows(cards)[card].from_host]
    assert link.sent_bytes == pytest.approx(250 * 100_000, abs=3 * 100_000)


def test_an_interface_must_name_a_network_that_exists() -> None:
    with pytest.raises(ValidationError, match="'vmnic7' is none of vmnic0, vmnic1, vmnic2"):
        _model({"network": "vmnic7"})
