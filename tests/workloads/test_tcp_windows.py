"""Messages over TCP in windows: rounds of RFC 6928 and 5681 by hand, what each waits for, and that every byte comes."""

from typing import Any

import pytest

from tests.composition.composed import checked
from vftsim.composition.run import Run, run_model
from vftsim.platform.io.host_cards import cards
from vftsim.platform.io.link import links
from vftsim.platform.io.packet import packets

FRAME = 1538
US, MS, S = 1000, 1_000_000, 1_000_000_000
ROUTE_NS = 50 * MS
WAN = {"latency": "50 ms", "queue": "2 MB"}
"""A gigabit, 50 ms each way: a frame takes 12.3 us, and a round trip is longer than any window below."""


def played(program: dict[str, Any], load: dict[str, Any], engine: str = "compiled", **model: Any) -> Any:
    """Return a run, and what is left of it: a guest on a card of its own, on which only its program costs time."""
    guest = {"interfaces": {"eth0": {"path": {"kind": "moderated"}}}, "applications": {"server": program}}
    data = {
        "hosts": {"host": {}},
        "networks": {"lan": WAN | model.pop("network", {})},
        "domains": {"guest": guest | ({"protection": model.pop("protection")} if "protection" in model else {})},
        "workloads": {"load": load | {"to": "guest"}},
        "measure": {"warm_up": 0, "duration": "20 s"},
    }
    runs: list[Run] = []
    record = run_model(checked(data | model), 1, 0, engine, prepare=runs.append)
    return record.whole.outcomes["workloads.load"], runs[-1], record


def exchange(request: int, answer: int, engine: str = "compiled", turn_around: str = "1 s", **model: Any) -> Any:
    """Let one client ask again and again; sizes in frames."""
    load = {"kind": "request_response", "turn_around": turn_around, "request_size": request * FRAME, "spread": 0}
    program = {"kind": "service", "demand": "1 ms", "answer_size": answer * FRAME}
    return played(program, load, engine, **model)


def rounds(frames: int) -> list[int]:
    """Return the windows of a message: 10 segments, then twice as many."""
    windows = []
    while sum(windows) < frames:
        windows.append(min(10 * 2 ** len(windows), frames - sum(windows)))
    return windows


def answer_ns(windows: list[int]) -> int:
    """Return when the answer to a request of one frame has come: 1 ms of work, and the rounds of its windows."""
    frame_ns = FRAME * 8
    return frame_ns + ROUTE_NS + MS + (len(windows) - 1) * (frame_ns + 2 * ROUTE_NS) + windows[-1] * frame_ns + ROUTE_NS


@pytest.mark.parametrize("frames", [1, 10, 11, 30, 31, 70, 151])
@pytest.mark.parametrize("engine", ["compiled", "simpy"])
def test_an_answer_takes_a_round_trip_for_each_window_but_the_first(frames: int, engine: str):
    """The first segment of each is acknowledged, which leaves while the others arrive."""
    seen, _, _ = exchange(1, frames, engine)
    assert seen.latency.min == seen.latency.max == answer_ns(rounds(frames))


@pytest.mark.parametrize("frames", [10, 11, 70])
def test_a_request_waits_for_the_guest_to_acknowledge(frames: int):
    """Each window as a whole, by a packet of 90 bytes that leaves the guest."""
    seen, _, _ = exchange(frames, 1)
    more = len(rounds(frames)) - 1
    by_hand = (frames + 1) * FRAME * 8 + 2 * ROUTE_NS + MS + more * (2 * ROUTE_NS + 90 * 8)
    assert seen.latency.min == seen.latency.max == by_hand


def test_without_windows_a_message_is_one_packet():
    seen, _, _ = exchange(100, 151, network={"initial_window": 0})
    assert seen.latency.min == seen.latency.max == 251 * FRAME * 8 + 2 * ROUTE_NS + MS


@pytest.mark.parametrize(("rate", "queue"), [("1 Gbit/s", "20 kB"), ("1 Gbit/s", "100 kB"), ("30 Gbit/s", "20 kB")])
def test_a_message_longer_than_the_queue_takes_as_long_as_the_line(rate: str, queue: str):
    """It fills the queue as that empties; what a ns at 30 Gbit/s has no whole number of is not lost."""
    seen, _, record = exchange(100, 151, network={"initial_window": 0, "rate": rate, "queue": queue})
    frame_ns = FRAME * 8 if rate == "1 Gbit/s" else FRAME * 8 / 30
    assert seen.latency.min == seen.latency.max == pytest.approx(251 * frame_ns + 2 * ROUTE_NS + MS, abs=1)
    assert sum(record.drops.values()) == 0


def test_a_message_longer_than_the_queue_leaves_room_for_datagrams():
    """Speech beside answers of 1 MB that keep the line busy, whose queue holds a hundredth of one."""
    guest = {
        "interfaces": {"eth0": {"path": {"kind": "moderated"}}},
        "applications": {"server": {"kind": "service", "answer_size": 2**20}, "relay": {"kind": "media_relay"}},
    }
    load = {"kind": "request_response", "to": "guest.server", "turn_around": 0}
    data = {
        "networks": {"lan": {"queue": "10 kB", "rate": "100 Mbit/s"}},
        "domains": {"guest": guest},
        "workloads": {"load": load, "speech": {"kind": "rtp", "to": "guest.relay", "streams": 20}},
        "measure": {"warm_up": "100 ms", "duration": "2 s"},
    }
    outcomes = run_model(checked(data), 1, 0).whole.outcomes
    assert outcomes["workloads.load"].answers == pytest.approx(2e8 / (2**20 * 8), rel=0.2)
    assert outcomes["workloads.speech"].dropped == 0
    assert outcomes["workloads.speech"].delay.max < 2 * MS


@pytest.mark.parametrize(("turn_around", "kept"), [("190 ms", True), ("210 ms", False)])
def test_a_connection_keeps_its_window_until_it_has_been_idle(turn_around: str, kept: bool):
    """For 200 ms longer than a round trip, TCP_RTO_MIN: then it begins with ten segments again (RFC 5681, 4.1)."""
    seen, _, _ = exchange(1, 70, turn_around=turn_around)
    assert seen.latency.max == answer_ns(rounds(70))
    assert seen.latency.min == answer_ns([70] if kept else rounds(70))


def called(request: int, answer: int, engine: str = "compiled", turn_around: str = "1 s", **call: Any) -> Any:
    """Let a client, next to its server, ask this for what it asks another one for, 50 ms away; sizes in frames."""
    asked = {"to": "back", "via": "wan", "size": request * FRAME, "timeout": "10 s", **call}
    card, back = {"kind": "moderated"}, {"network": "wan", "path": {"kind": "moderated"}}
    data = {
        "hosts": {"host": {}, "far": {}},
        "networks": {"lan": {"rate": "100 Gbit/s", "latency": 0}, "wan": WAN | {"latency": "25 ms"}},
        "domains": {
            "front": {
                "host": "host",
                "interfaces": {"eth0": {"network": "lan", "path": card}, "eth1": back},
                "applications": {"server": {"kind": "service", "demand": 0, "calls": [asked]}},
            },
            "back": {
                "host": "far",
                "interfaces": {"eth0": back},
                "applications": {"server": {"kind": "service", "demand": "1 ms", "answer_size": answer * FRAME}},
            },
        },
        "workloads": {"load": {"kind": "request_response", "to": "front", "turn_around": turn_around, "spread": 0}},
        "measure": {"warm_up": 0, "duration": "20 s"},
    }
    return run_model(checked(data), 1, 0, engine).whole.outcomes["workloads.load"]


def call_ns(request: list[int], answer: list[int]) -> int:
    """Return how long windows of a call and of its answer take: over two links, acknowledged by the guests."""
    frames, more = sum(request) + sum(answer), len(request) + len(answer) - 2
    return MS + 2 * (frames * FRAME + more * 90) * 8 + 2 * (1 + more) * ROUTE_NS


@pytest.mark.parametrize("engine", ["compiled", "simpy"])
@pytest.mark.parametrize(("turn_around", "kept"), [("190 ms", True), ("210 ms", False)])
@pytest.mark.parametrize(("request_frames", "answer_frames"), [(1, 70), (70, 1)])
def test_a_call_takes_the_connection_that_was_used_last(
    engine: str, turn_around: str, kept: bool, request_frames: int, answer_frames: int
):
    """It keeps its window until it has been idle for 200 ms longer than a round trip, as those of clients do."""
    seen = called(request_frames, answer_frames, engine, turn_around)
    first_ns = call_ns(rounds(request_frames), rounds(answer_frames))
    next_ns = call_ns([request_frames], [answer_frames]) if kept else first_ns
    assert (seen.latency.min, seen.latency.max) == (
        pytest.approx(next_ns, abs=2 * US),
        pytest.approx(first_ns, abs=2 * US),
    )


def test_a_slow_line_is_full_after_the_first_window():
    """10 Mbit/s, 0.1 ms each way: ten segments take 12.3 ms, and there is nothing to wait for but the line."""
    network = {"rate": "10 Mbit/s", "latency": "100 us"}
    whole, _, _ = exchange(1, 151, network=network | {"initial_window": 0})
    seen, _, _ = exchange(1, 151, network=network)
    assert whole.latency.min == 152 * FRAME * 800 + 2 * 100 * US + MS
    assert seen.latency.min == seen.latency.max == whole.latency.min + 100 * US


def test_each_window_of_a_checkpointed_guest_waits_for_a_state():
    """Ten segments wait for one state of 200 ms; 11 for two, 150 for four, 151 for five."""
    protection = {"kind": "checkpoint", "interval": "200 ms"}
    network = {"latency": "100 us"}
    found = []
    for frames in (1, 10, 11, 150, 151):
        seen, _, _ = exchange(1, frames, protection=protection, network=network, measure={"duration": "60 s"})
        found.append(seen.latency.mean)
    cycle_ns = found[2] - found[1]
    assert found[0] == pytest.approx(found[1], abs=MS)
    assert 200 * MS < cycle_ns < 202 * MS
    assert found[3] - found[1] == pytest.approx(3 * cycle_ns, rel=0.01)
    assert found[4] - found[1] == pytest.approx(4 * cycle_ns, rel=0.01)


@pytest.mark.parametrize("engine", ["compiled", "simpy"])
def test_a_long_reply_of_a_web_server_takes_six_rounds(engine: str):
    """352 segments of 1448 bytes: 10, 20, 40, 80, 160, 42; the script puts them out faster than they leave."""
    program = {"kind": "prefork_web_server", "script": "1 ms", "reply_size": 352 * 1448}
    seen, _, _ = played(program, {"kind": "httperf", "connections": 1, "rate": "1 /s"}, engine)
    frame_ns, pieces = FRAME * 8, 8
    # Before the first packet the script computes, and has put the first piece out.
    first_ns = 4 * (50 * MS) + 2 * 90 * 8 + (66 + 90) * 8 + 750 * US + 250 * US // pieces + 10 * frame_ns
    # A window that needs several packets is acknowledged with each.
    assert seen.lifetime.min == pytest.approx(first_ns + 5 * (2 * ROUTE_NS + frame_ns) + 32 * frame_ns, abs=4 * US)


def test_a_window_that_is_not_used_does_not_grow():
    """Two pieces of 45 segments, 1 s apart: 10, 20, then 15 of 40, which stays; so the second piece is 40 and 5."""
    program = {"kind": "prefork_web_server", "script": "2 s", "output_share": "100 %", "reply_size": 90 * 1448}
    seen, _, _ = played(program, {"kind": "httperf", "connections": 1, "rate": "1 /s"})
    assert seen.transfer_ms * MS == pytest.approx(S + 2 * ROUTE_NS - 4 * FRAME * 8, abs=1)


def test_replies_beyond_the_line_wait_in_their_connections():
    """200 of 10 MB at 20 a second are 1.7 times a gigabit: all come, as fast as the line carries them."""
    program = {"kind": "prefork_web_server", "script": "1 ms", "reply_size": "10 MB"}
    load = {"kind": "httperf", "connections": 200, "rate": "20 /s"}
    network = {"latency": "100 us", "queue": "256 KiB"}
    seen, _, record = played(program, load, network=network, measure={"duration": "40 s"})
    assert (seen.replies, dict(record.drops)) == (200, {})
    segments = -(-10_000_000 // 1448)
    carried_s = 200 * (10_000_000 + 90 * segments) * 8 / 1e9
    assert seen.duration_s == pytest.approx(carried_s, rel=0.02)


def test_every_byte_crosses_the_line_once():
    """Of each answer all frames, of each request and its acknowledgements all; and no packet is left over."""
    seen, run, _ = exchange(31, 151)
    card = run.engine.rows(cards)[1]
    out, into = run.engine.rows(links)[int(card.from_host)], run.engine.rows(links)[int(card.to_host)]
    assert run.engine.used(packets) <= 2
    # The run ends while the client turns around.
    assert int(into.sent_bytes) == 31 * FRAME * seen.requests
    assert int(out.sent_bytes) == (151 * FRAME + 2 * 90) * seen.answered


MECHANISMS = ("checkpoint", "lockstep", "hypervisor_epoch", "event_sync", "coarse_lockstep")


@pytest.mark.parametrize("kind", MECHANISMS)
@pytest.mark.parametrize("at_ms", [1301, 1340, 1397])
def test_messages_go_on_after_a_crash_within_them(kind: str, at_ms: int):
    """No output is early, none is missing, and no client waits for ever: it asks again when its window has been lost.

    A round trip is 10 ms: of requests and answers of five windows some crash comes between, or in the air.
    """
    crash = {"kind": "primary_crash", "at": f"{at_ms} ms", "domain": "guest"}
    network = {"latency": "5 ms"}
    protection = {"kind": kind}
    measure = {"duration": "8 s"}
    load = {"turn_around": "10 ms", "network": network, "protection": protection, "measure": measure}
    seen, run, record = exchange(151, 151, faults=[crash], **load)
    before, _, _ = exchange(151, 151, **(load | {"measure": {"duration": "5 s"}}), faults=[crash])
    assert record.whole.outcomes["domains.guest.protection"].breaches == 0
    assert seen.answered > before.answered
    assert run.engine.used(packets) < 8


def test_copies_that_a_mechanism_keeps_are_no_losses():
    """Lockstep keeps a copy of each window until the next entry: a transfer longer than ``retry`` is not repeated."""
    seen, _, _ = exchange(1, 151, protection={"kind": "lockstep"})
    assert seen.latency.min > 400 * MS
    assert (seen.repeated, seen.dropped) == (0, 0)


@pytest.mark.parametrize(("at_ms", "window"), [(12, 10), (23, 20), (35, 40)])
def test_a_backup_that_issues_a_window_again_goes_on_from_there(at_ms: int, window: int):
    """Its acknowledgement finds a dead host, 5 ms away: the copy is sent, and what is left of 151 frames once."""
    crash = {"kind": "primary_crash", "at": f"{at_ms} ms", "domain": "guest"}
    network, protection = {"latency": "5 ms"}, {"kind": "event_sync"}
    seen, run, _ = exchange(1, 151, turn_around="60 s", network=network, protection=protection, faults=[crash])
    out = run.engine.rows(links)[int(run.engine.rows(cards)[1].from_host)]
    assert (seen.answered, seen.repeated) == (1, 0)
    assert int(out.sent_bytes) == (151 + window) * FRAME
