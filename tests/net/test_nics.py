"""Several cards, several kinds of traffic, apart or together."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from vftsim.engine import Clock, EventKind
from vftsim.net.link import utilization
from vftsim.net.nics import BackgroundTrafficSpec, Nics, NicSpec, NicsSpec

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
    clock = Clock()
    nics = Nics(clock, spec)
    nics.start()
    arrived: list[float] = []

    def send(_: Any) -> None:
        nics.from_host("vm").send(125, 0, lambda _: arrived.append(clock.now_ns / _US), None)

    clock.at(20 * _MS, EventKind.ARRIVAL, 0, send)
    clock.run(30 * _MS)
    return arrived[0] - 20_000


def test_a_shared_card_makes_the_servers_frame_wait_for_the_burst() -> None:
    """125 kB at 1 Gbit/s hold the transmitter for 1 ms; the frame itself needs 1 us."""
    assert _arrival_us(_spec(vm="vmnic0", storage="vmnic0")) == 1_001
    assert _arrival_us(_spec(vm="vmnic0", storage="vmnic1")) == 1


def test_kinds_not_named_use_the_first_card_and_directions_are_apart() -> None:
    nics = Nics(Clock(), _spec(ft_logging="vmnic1"))
    assert nics.from_host("vm") is nics.from_host("migration") is nics.outbound["vmnic0"]
    assert nics.from_host("ft_logging") is nics.outbound["vmnic1"]
    assert nics.to_host("vm") is nics.inbound["vmnic0"]
    assert nics.to_host("vm") is not nics.from_host("vm")


def test_background_traffic_is_carried_up_to_the_rate_and_dropped_beyond() -> None:
    """25 MB/s on a link of 125 MB/s; of 2.5 MB a burst a queue of 256 KiB takes nothing."""
    clock = Clock()
    spec = _spec()
    spec = spec.model_copy(update={"background": {"storage": BackgroundTrafficSpec(burst=250_000, period=10 * _MS)}})
    nics = Nics(clock, spec)
    nics.start()
    clock.run(1_000 * _MS + 1)
    link = nics.from_host("storage")
    assert utilization(link.sent_bytes, link.rate_bits_per_s, 1_000 * _MS) == pytest.approx(0.2)
    assert nics.background_dropped == 0

    clock = Clock()
    too_much = BackgroundTrafficSpec(burst=2_500_000, period=10 * _MS)
    nics = Nics(clock, spec.model_copy(update={"background": {"storage": too_much}}))
    nics.start()
    clock.run(1_000 * _MS + 1)
    assert (nics.background_dropped, nics.from_host("storage").sent_bytes) == (100, 0)


def test_a_layout_must_name_a_card_that_exists() -> None:
    with pytest.raises(ValidationError, match="vmnic7"):
        NicsSpec.model_validate({"layout": {"vm": "vmnic7"}})
