"""What the caller sent and got, read from a capture: one record a call, then one row a step of the ramp."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

CALLER_PORT = 5061
LIMIT_S = 2.0
"""A call is inadequately handled when its INVITE or its BYE has no 200 within this time."""
_HEADERS = 14 + 20 + 8
_SWAPPED = {b"\xd4\xc3\xb2\xa1": ("<", 1e-6), b"\xa1\xb2\xc3\xd4": (">", 1e-6), b"\x4d\x3c\xb2\xa1": ("<", 1e-9)}


@dataclass(slots=True)
class Call:
    """First transmissions of a call at the caller, and how often the rest came."""

    invite: float
    answered: float | None = None
    bye: float | None = None
    released: float | None = None
    repeats: int = 0
    repeated_answers: int = 0

    def verdict(self, end: float) -> bool | None:
        """Tell whether it was handled adequately; None: the capture ended before that was decided."""
        for asked, got in ((self.invite, self.answered), (self.bye, self.released)):
            if asked is None:
                return None
            if got is None:
                return False if end - asked >= LIMIT_S else None
            if got - asked > LIMIT_S:
                return False
        return True


def packets(path: Path) -> Iterator[tuple[float, int, bytes]]:
    """Yield time, source port and payload of each UDP datagram of a capture of Ethernet frames (pcap)."""
    data = path.read_bytes()
    order, unit = _SWAPPED[data[:4]]
    head = struct.Struct(f"{order}IIII")
    place = 24
    while place + head.size <= len(data):
        seconds, fraction, length, _ = head.unpack_from(data, place)
        place += head.size
        frame = data[place : place + length]
        if len(frame) < length:
            return  # the last one was being written
        place += length
        yield seconds + fraction * unit, int.from_bytes(frame[34:36], "big"), frame[_HEADERS:]


def calls_of(datagrams: Iterator[tuple[float, int, bytes]]) -> tuple[dict[bytes, Call], float]:
    """Return the calls by Call-ID, and the time of the last datagram."""
    calls: dict[bytes, Call] = {}
    at = 0.0
    for at, port, text in datagrams:
        key = _header(text, b"\r\nCall-ID: ")
        call = calls.get(key)
        if port == CALLER_PORT:
            if text.startswith(b"INVITE "):
                if call is None:
                    calls[key] = Call(at)
                else:
                    call.repeats += 1
            elif call is not None and text.startswith(b"BYE "):
                if call.bye is None:
                    call.bye = at
                else:
                    call.repeats += 1
        elif call is not None and text.startswith(b"SIP/2.0 200 "):
            _answer(call, _header(text, b"\r\nCSeq: "), at)
    return calls, at


def _answer(call: Call, sequence: bytes, at: float) -> None:
    if sequence.endswith(b"BYE"):
        call.released = call.released or at
    elif call.answered is None:
        call.answered = at
    else:
        call.repeated_answers += 1


def _header(text: bytes, name: bytes) -> bytes:
    start = text.find(name) + len(name)
    return text[start : text.find(b"\r\n", start)]


def step_rows(calls: Sequence[Call], end: float, step_s: float, steps: int) -> list[dict[str, Any]]:
    """Return what happened to the calls that began in each step; the first call begins the first step."""
    start = min(call.invite for call in calls)
    rows = []
    for step in range(steps):
        calls_of = [call for call in calls if step <= (call.invite - start) / step_s < step + 1]
        verdicts = [call.verdict(end) for call in calls_of]
        rows.append(
            {
                "step": step + 1,
                "attempts": len(calls_of),
                "inadequate": verdicts.count(False),
                "undecided": verdicts.count(None),
                "completed": sum(call.released is not None for call in calls_of),
                "repeats": sum(call.repeats for call in calls_of),
                "repeated_answers": sum(call.repeated_answers for call in calls_of),
                **_percentiles("setup", [call.answered - call.invite for call in calls_of if call.answered]),
                **_percentiles(
                    "release", [call.released - call.bye for call in calls_of if call.bye and call.released]
                ),
            }
        )
    return rows


def _percentiles(name: str, delays_s: Sequence[float]) -> dict[str, float | None]:
    found = np.percentile(delays_s, (50, 90, 99, 100)) * 1e3 if delays_s else [None] * 4
    return {
        f"{name}_{what}_ms": None if value is None else round(float(value), 3)
        for what, value in zip(("p50", "p90", "p99", "max"), found, strict=True)
    }
