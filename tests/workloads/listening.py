"""A lab in the engine for reading: its functions are listened to, and its lines lose frames of given numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from vftsim.kernel.declare import part_of
from vftsim.kernel.simpy_engine import SimpyEngine
from vftsim.platform.io.host_cards import cards
from vftsim.platform.io.link import set_loss


def listen(engine: SimpyEngine, part: Any, listener: Callable[..., None]) -> None:
    """Call ``listener`` with what a function is called with, before it."""
    namespace: dict[str, Any] = engine._namespace
    name = part_of(part).name
    original = namespace[name]

    def heard(*arguments: Any) -> Any:
        listener(*arguments)
        return original(*arguments)

    namespace[name] = heard


def lose(lab: Any, numbers: tuple[list[int], list[int]]) -> None:
    """Let a lab's lines lose these frames: those to the host, and those from it."""
    card = lab.engine.rows(cards)[lab.card]
    for way, lost in zip((card.to_host, card.from_host), numbers, strict=True):
        if lost:
            set_loss(lab.engine, lab.feeder, int(way), _feed(lost))


def _feed(lost: list[int]) -> Any:
    """Return how many frames come up to each that is lost, as a link's feed has it."""
    gaps = iter(np.diff([-1, *lost]).tolist())
    return lambda count: [next(gaps, 1 << 60) for _ in range(count)]
