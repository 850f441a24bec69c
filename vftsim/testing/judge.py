"""One call that judges a protection mechanism, from this package or from outside, by what the world sees.

The plant (:mod:`.plant`) is a guest that computes, sends and answers, with clients around it.  A mechanism goes through

* ``quiet``: nothing fails; ``flaps``: the channel is lost and degraded again and again, the guest is paused;
* a crash of either host, at instants that lie in equal parts of a stretch, at the end of a pause and when the
  channel is lost.

It is judged by

* the auditor (:mod:`vftsim.platform.protection.audit`): no output before the backup can take over from there; unless
  the mechanism says that it breaks the promise;
* the world: no output twice without a failure, none out of order, none from a dead host, all of them in the end; one
  second life and no more, which issues nothing again that had left long before; the guest goes on when its backup dies;
* both engines: the same outputs at the same instants;
* the mechanism's account: no packet and no time is lost sight of.

What it cannot see: whether a state is whole, or a replay right (the plant's guest has no memory to compare); how much
of what was lost with the channel is sent again, beyond the last message.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vftsim.errors import VftsimError
from vftsim.kernel import Engine
from vftsim.kernel.compiled_engine import CompiledEngine
from vftsim.kernel.simpy_engine import SimpyEngine
from vftsim.platform.protection.mechanism import ProtectionSpec
from vftsim.spec.units import MS, US, S
from vftsim.testing.plant import OWN, Plant, play

CRASHES = 12
_SPAN_NS = 120 * MS
_FLAPS = (
    {"kind": "channel_loss", "at": "31000011 ns", "duration": "7 ms", "repeat": {"every": "40 ms", "most": 4}},
    {
        "kind": "channel_degradation",
        "at": "44 ms",
        "duration": "9 ms",
        "rate": "30 %",
        "delay": "2 ms",
        "repeat": {"every": "23 ms", "most": 8},
    },
)
_PAUSES = ({"kind": "pause", "at": "60 ms", "duration": "5 ms", "repeat": {"every": "50 ms", "most": 3}},)
_LIVE = "secondary live"
_SERVICES_NS = (0, 900 * US)
_HOLDS, _SLACK_NS = 3, 10 * MS
"""How long before a crash an output may have left that is issued again: so many of the longest waits, and this."""


@dataclass(frozen=True)
class JudgedMechanism:
    """What was found of a mechanism."""

    wrong: tuple[str, ...]
    """What it must not do, in words, with the play in which it did; none: it passed."""
    plays: int
    """How many there were."""
    judged: int
    breaches: int
    """Outputs that the auditor has seen, and those that left too early."""


@dataclass
class _Tally:
    wrong: list[str] = field(default_factory=list)
    plays: int = 0
    judged: int = 0
    breaches: int = 0


def judge(
    mechanism: ProtectionSpec,
    *,
    crashes: int = CRASHES,
    until_ns: int = 6 * S,
    engines: Sequence[type[Engine]] = (SimpyEngine, CompiledEngine),
    spoil: Callable[[Engine], None] | None = None,
) -> JudgedMechanism:
    """Judge a mechanism.

    Parameters
    ----------
    mechanism : ProtectionSpec
        It need not be registered.
    crashes : int
        Of each host.
    until_ns : int
        How long a run with a crash lasts: more than twice as long as detection and takeover.
    engines : sequence of type
        The first plays everything, the others what does not fail for good.
    spoil : callable, optional
        Called with each engine before it runs: to see that a defect is noticed.
    """
    tally = _Tally()
    for name, fields in _plays(mechanism, crashes, until_ns):
        shown: list[list[tuple[int, int]]] = []
        lasting = any(each["kind"].endswith("_crash") for each in fields.get("faults", ()))
        for engine_type in engines[:1] if lasting else engines:
            plant = _played(mechanism, name, {**fields, "engine_type": engine_type, "spoil": spoil}, tally)
            if plant is None:
                break
            shown.append(plant.seen)
            if engine_type is engines[0]:
                tally.wrong += [f"{name}: {each}" for each in _wrong(mechanism, plant, fields)]
        if any(each != shown[0] for each in shown[1:]):
            tally.wrong.append(f"{name}: the engines differ")
    return JudgedMechanism(tuple(tally.wrong), tally.plays, tally.judged, tally.breaches)


def _plays(mechanism: ProtectionSpec, crashes: int, until_ns: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what is played, by name."""
    has_channel = mechanism.has_backup
    for service_ns in _SERVICES_NS:
        service = "" if not service_ns else ", with a service"
        yield f"quiet{service}", _fields(service_ns)
        yield f"flaps{service}", _fields(service_ns, [*(_FLAPS if has_channel else ()), *_PAUSES])
    for number in range(crashes):
        at_ns = 10 * MS + (2 * number + 1) * (_SPAN_NS - 20 * MS) // (2 * crashes) + 7 * number
        service_ns = _SERVICES_NS[number % 2]
        for host in ("primary_crash", "backup_crash") if has_channel else ("primary_crash",):
            faults: list[Mapping[str, Any]] = [{"kind": host, "at": f"{at_ns} ns"}]
            if has_channel and number % 3 == 2:
                faults.insert(0, {"kind": "pause", "at": f"{at_ns - 5 * MS} ns", "duration": "5 ms"})
            yield f"{host} at {at_ns} ns", _fields(service_ns, faults, until_ns)


def _fields(service_ns: int, faults: Sequence[Mapping[str, Any]] = (), until_ns: int = 500 * MS) -> dict[str, Any]:
    asks = [1_100_003 * number for number in range(1, 110)]
    return {
        "asks": asks,
        "chunk_ns": 1_700_001,
        "chunk_is_output": True,
        "service_ns": service_ns,
        "faults": [dict(each) for each in faults],
        "until_ns": until_ns,
    }


def _played(mechanism: ProtectionSpec, name: str, fields: Mapping[str, Any], tally: _Tally) -> Plant | None:
    """Return a run that was played; None where the mechanism lost sight of something."""
    tally.plays += 1
    try:
        plant = play(mechanism=mechanism, **fields).run
    except VftsimError as error:
        tally.wrong.append(f"{name}: {error}")
        return None
    tally.judged += int(plant.audit.judged)
    tally.breaches += int(plant.audit.breaches)
    if plant.audit.breaches and not mechanism.breaks_promise:
        first = plant.audit
        tally.wrong.append(
            f"{name}: {first.breaches} of {first.judged} outputs left before the backup could take over, the first at "
            f"{first.first_left_ns} ns"
        )
    return plant


def _wrong(mechanism: ProtectionSpec, plant: Plant, fields: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the world saw and must not see."""
    crash = next((each for each in fields["faults"] if each["kind"].endswith("_crash")), None)
    crash_ns = int(crash["at"].removesuffix(" ns")) if crash is not None else plant.until_ns
    issued = {number: time_ns for time_ns, number in reversed(plant.issued)}
    before = [number for time_ns, number in plant.seen if time_ns < crash_ns]
    if again := [number for number, count in Counter(before).items() if count > 1]:
        yield f"{len(again)} outputs left twice, nothing having failed"
    if before != sorted(before, key=lambda number: issued[number]):
        yield "outputs left out of order"
    if any(time_ns < issued[number] for time_ns, number in plant.seen):
        yield "an output left before it was issued"
    if crash is None:
        yield from ["no output left at all"] if not before else []
        yield from _in_the_end(plant, issued)
    elif crash["kind"] == "primary_crash":
        yield from _second_incarnation(mechanism, plant, crash_ns, issued)
    elif not any(time_ns > (crash_ns + plant.until_ns) // 2 for time_ns, _ in plant.seen):
        yield "the guest does not go on when its backup has died"


def _in_the_end(plant: Plant, issued: Mapping[int, int]) -> Iterator[str]:
    """Judge a run in which nothing fails for good: all that was issued early enough is out."""
    arrived = {number for _, number in plant.seen}
    late_ns = plant.until_ns - 250 * MS
    if missing := [number for number, time_ns in issued.items() if time_ns < late_ns and number not in arrived]:
        yield f"{len(missing)} outputs of {len(issued)} never left"


def _second_incarnation(
    mechanism: ProtectionSpec, plant: Plant, crash_ns: int, issued: Mapping[int, int]
) -> Iterator[str]:
    """Judge what came after the primary's host had crashed."""
    lives = [time_ns for time_ns, event in plant.timeline if event == _LIVE]
    if not mechanism.has_backup:
        return
    if len(lives) != 1:
        yield f"{len(lives)} second lives"
        return
    if any(crash_ns < time_ns < lives[0] for time_ns, _ in plant.seen):
        yield "an output left a dead host"
    after = [number for time_ns, number in plant.seen if time_ns >= lives[0]]
    if again := [number for number, count in Counter(after).items() if count > 1]:
        yield f"the second life sends {len(again)} outputs twice"
    if not any(number >= OWN for number in after):
        yield "the second life sends nothing"
    left_ns = {number: time_ns for time_ns, number in plant.seen if time_ns <= crash_ns}
    oldest_ns = crash_ns - _HOLDS * max((left_ns[n] - issued[n] for n in left_ns), default=0) - _SLACK_NS
    if old := [number for number in after if left_ns.get(number, crash_ns) < oldest_ns]:
        yield f"{len(old)} outputs that had left long before the crash are issued again"
