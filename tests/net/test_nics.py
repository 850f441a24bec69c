"""Several cards, several kinds of traffic, apart or together."""

from __future__ import annotations

import pytest
from network import Network
from pydantic import ValidationError

from vftsim.kernel import EventKind
from vftsim.platform.io.host_cards import BackgroundTrafficSpec, HostCards, NicSpec, NicsSpec, cards
from vftsim.platform.io.link import Link, links, utilization

_US = 1_000
_MS = 1_000_000


def _spec(**layout: str) -> NicsSpec:
    card = NicSpec(rate=1_000_000_000, latency=0, queue=256 * 1024)
    return NicsSpec.model_validate(
        {
            "cards": {"vmnic0": card, "vmnic1": card},
            "layout": layout,
            "background": {"storage": BackgroundTrafficSpec(burst=125_000, period=10 * _MS)},
        }
    )


def _arrival_us(spec: NicsSpec) -> float:
    """When a frame of 125 bytes arrives that is sent at the instant of the second storage burst."""
    network = Network()
    nics = HostCards(network.engine, spec)
    nics.start()
    network.use_card(nics.carrying("vm"))
    network.at(20 * _MS, EventKind.ARRIVAL, 0, lambda: network.send(125, 0))
    network.engine.run(30 * _MS)
    return network.log[0][0] / _US - 20_000


def _from_host(network: Network, nics: HostCards, kind: str) -> Link:
    link: Link = network.engine.rows(links)[network.engine.rows(cards)[nics.carrying(kind)].from_host]
    return link


def test_a_shared_card_makes_the_servers_frame_wait_for_the_burst() -> None:
    """125 kB at 1 Gbit/s hold the transmitter for 1 ms; the frame itself needs 1 us."""
    assert _arrival_us(_spec(vm="vmnic0", storage="vmnic0")) == 1_001
    assert _arrival_us(_spec(vm="vmnic0", storage="vmnic1")) == 1


def test_kinds_not_named_use_the_first_card_and_directions_are_apart() -> None:
    network = Network()
    nics = HostCards(network.engine, _spec(ft_logging="vmnic1"))
    assert nics.carrying("vm") == nics.carrying("migration") == nics.rows["vmnic0"]
    assert nics.carrying("ft_logging") == nics.rows["vmnic1"] != nics.rows["vmnic0"]
    card = network.engine.rows(cards)[nics.carrying("vm")]
    assert card.to_host != card.from_host


def test_background_traffic_is_carried_up_to_the_rate_and_dropped_beyond() -> None:
    """25 MB/s on a link of 125 MB/s; of 2.5 MB a burst a queue of 256 KiB takes nothing."""
    spec = _spec()
    spec = spec.model_copy(update={"background": {"storage": BackgroundTrafficSpec(burst=250_000, period=10 * _MS)}})
    network = Network()
    nics = HostCards(network.engine, spec)
    nics.start()
    network.engine.run(1_000 * _MS + 1)
    link = _from_host(network, nics, "storage")
    assert utilization(link.sent_bytes, link.rate_bits_per_s, 1_000 * _MS) == pytest.approx(0.2)
    assert network.dropped(nics.bursts_lost) == 0

    # As large as a model file may say: what takes longer than 64 bits hold is lost all the same.
    for burst in (2_500_000, 1 << 50):
        too_much = BackgroundTrafficSpec(burst=burst, period=10 * _MS)
        network = Network()
        nics = HostCards(network.engine, spec.model_copy(update={"background": {"storage": too_much}}))
        nics.start()
        network.engine.run(1_000 * _MS + 1)
        assert (network.dropped(nics.bursts_lost), _from_host(network, nics, "storage").sent_bytes) == (100, 0)


def test_a_layout_must_name_a_card_that_exists() -> None:
    with pytest.raises(ValidationError, match="vmnic7"):
        NicsSpec.model_validate({"layout": {"vm": "vmnic7"}})
