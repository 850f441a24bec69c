"""What becomes of packets when a guest behind a path with rings stands still, is cut off, lost, booted again."""

from typing import Any

import pytest

from vftsim.platform.io.packet import ports
from vftsim.platform.protection.guard import guards
from vftsim.workloads.sip.records import sip_servers

from .machine_park import MS, PATHS, US, Case, Park

PAUSE = [{"kind": "pause", "at": "10 ms", "duration": 10 * MS}]
CRASH = [{"kind": "primary_crash", "at": "20 ms"}]
# No timer entries and no cost of logging: what the guest computes is what its packets make it compute.
PLAIN_LOG = {"log": {"timer_rate": 0}, "cost": {"execution": 1.0, "output": 0, "entry": 0, "kibibyte": 0}}

ROOM = {
    "native": (32, ("eth0", "receive ring full")),
    "direct": (32, ("eth0", "receive ring full")),
    "paravirtual": (8, ("receive ring", "no slot")),
    "emulated": (8, ("emulated receive ring", "full")),
    "stub_domain": (8, ("emulated receive ring", "full")),
    "moderated": (32, ("card", "ring full")),
}


def seen(park: Park) -> list[tuple[int, int]]:
    return park.result()["seen"]


@pytest.mark.parametrize("protection", ["none", "lockstep"])
@pytest.mark.parametrize("path", PATHS)
def test_the_rings_of_a_stopped_guest_fill_and_then_overflow(path: str, protection: str):
    """Forty packets come in a pause: as many as the ring holds are answered after it, the others are lost there."""
    room, place = ROOM[path]
    visits = [12 * MS + 100 * US * number for number in range(40)]
    application = {"receive_buffer_bytes": 1 << 20}
    case = Case(path=path, protection=protection)
    park = Park("simpy", case, visits=visits, blows=PAUSE, application=application)
    park.run(19 * MS)
    assert seen(park) == []
    park.run(60 * MS)
    assert [number for _, number in seen(park)] == list(range(1, room + 1))
    assert min(time_ns for time_ns, _ in seen(park)) > 20 * MS
    assert park.drop_counts() == {place: 40 - room}
    assert park.packets_in_use() == (0 if protection == "none" else int(park.packets_found()))


@pytest.mark.parametrize("path", PATHS)
def test_a_guest_that_boots_again_has_lost_what_it_had_and_what_came_meanwhile(path: str):
    """One thread, 5 ms a packet: of 15 packets 3 are answered by the crash at 20 ms; 10 come while it is down."""
    visits = [4 * MS + 10 * US * number for number in range(15)] + [22 * MS + US * number for number in range(10)]
    application = {"threads": 1, "packet_cost": 5 * MS}
    case = Case(path=path, protection="ha_restart")
    park = Park("simpy", case, visits=[*visits, 50 * MS], blows=CRASH, application=application, ring=64)
    park.run(100 * MS)
    down = ("card", "down") if path == "moderated" else ("guest", "disconnected")
    assert [number for _, number in seen(park)] == [1, 2, 3, 26]
    assert park.drop_counts() == {("socket buffer", "lost in crash"): 12, down: 10}


DRIVER = {
    "native": "driver_receive_cost",
    "direct": "driver_receive_cost",
    "paravirtual": "frontend_receive_cost",
    "emulated": "driver_receive_cost",
    "stub_domain": "driver_receive_cost",
}


@pytest.mark.parametrize("path", DRIVER)
def test_a_crash_loses_the_batch_in_the_hands_of_the_guests_driver(path: str):
    """The driver takes 5 ms a packet: at 12 ms it has the first of three, the ring the others; 40 ms: booted."""
    crash = [{"kind": "primary_crash", "at": "12 ms"}]
    case = Case(path=path, protection="ha_restart", scheduler="native")
    visits = [10 * MS, 10 * MS + 500 * US, 11 * MS, 40 * MS]
    park = Park("simpy", case, visits=visits, blows=crash, path={DRIVER[path]: 5 * MS}).run(100 * MS)
    assert [number for _, number in seen(park)] == [4]
    assert park.drop_counts() == {("guest", "disconnected"): 2, ("guest", "lost in crash"): 1}


def test_a_packet_on_its_way_into_a_port_that_is_cut_off_is_lost_and_its_slot_is_free():
    """The back-end takes 5 ms a packet: at 12 ms it has the first of three in its hands and a slot kept for it."""
    crash = [{"kind": "primary_crash", "at": "12 ms"}]
    case = Case(protection="ha_restart", scheduler="native")
    visits = [10 * MS, 10 * MS + 500 * US, 11 * MS, 40 * MS]
    park = Park("simpy", case, visits=visits, blows=crash, path={"backend_receive_cost": 5 * MS}).run(100 * MS)
    assert [number for _, number in seen(park)] == [4]
    assert park.drop_counts() == {("guest", "disconnected"): 3}


def slow_way_out(protection: str, engine: str = "simpy", **changes: Any) -> Park:
    """Twenty packets at once to a relay whose back-end takes 5 ms to send one, with a ring of two."""
    parameters: dict[str, Any] = {"load": 0, "blows": [], "ring": 2, "path": {"backend_transmit_cost": 5 * MS}}
    if protection == "lockstep":
        parameters["protection"] = PLAIN_LOG
    # Packets are so far apart that the receive ring always has a slot.
    visits = [2 * MS + 200 * US * number for number in range(20)]
    case = Case(protection=protection, scheduler="native")
    return Park(engine, case, visits=visits, **(parameters | changes))


def test_threads_sleep_while_the_way_out_has_no_room():
    park = slow_way_out("none").run(6 * MS)
    # One in the back-end's hands, one in the ring, and all eight threads asleep; the rest in the socket.
    assert (park.pool.active, park.pool.blocked, park.pool.socket.packets.length) == (8, 8, 10)
    park.run(300 * MS)
    assert [number for _, number in seen(park)] == list(range(1, 21))
    assert park.drop_counts() == {}


def test_a_guard_that_holds_nothing_changes_nothing():
    free = slow_way_out("none")
    free.engine.rows(ports)[free.port].guard = 0
    assert seen(free.run(300 * MS)) == seen(slow_way_out("none").run(300 * MS))


def test_outputs_that_were_held_wait_for_room_in_order():
    park = slow_way_out("lockstep").run(7 * MS)
    assert (park.pool.active, park.pool.blocked) == (0, 0)
    park.run(300 * MS)
    assert [number for _, number in seen(park)] == list(range(1, 21))
    assert park.drop_counts() == {}
    # The back-end takes two at a time once its first is done.
    assert all(seen(park)[n + 2][0] - seen(park)[n][0] >= 10 * MS for n in range(1, 17))


def test_a_bounded_queue_of_outputs_overflows():
    park = slow_way_out("lockstep", most_waiting=6).run(300 * MS)
    assert [number for _, number in seen(park)] == list(range(1, 9))
    assert park.drop_counts() == {("guard", "no room"): 12}
    assert int(park.engine.rows(guards)[park.guard].most_waiting) == 6


def test_a_backup_does_not_owe_what_a_full_queue_has_lost():
    """Twelve of twenty outputs are lost for want of room.  The secondary issues the last again: no entry told of it."""
    park = slow_way_out("lockstep", most_waiting=6, blows=CRASH).run(300 * MS)
    audit = park.engine.rows(guards)[park.guard].audit
    assert park.drop_counts()["guard", "no room"] == 12
    assert park.result()["counters"]["outputs_issued_again"] == 1
    assert int(audit.breaches) == 0
    assert int(audit.known_issued) - int(audit.known_settled) == 1


@pytest.mark.parametrize(("crash_ns", "answered", "in_ring"), [(6 * MS + 500 * US, 1, 1), (20 * MS, 5, 0)])
def test_what_waits_on_the_way_out_is_lost_with_its_host(crash_ns: int, answered: int, in_ring: int):
    """What the back-end has in its hands leaves: one at first, then two at a time.  Eight threads sleep."""
    crash = [{"kind": "primary_crash", "at": f"{crash_ns} ns"}]
    for protection in ("none", "ha_restart"):
        park = slow_way_out(protection, blows=crash).run(300 * MS)
        assert [number for _, number in seen(park)] == list(range(1, answered + 1))
    assert park.drop_counts() == {
        ("guest", "lost in crash"): in_ring + 8,
        ("socket buffer", "lost in crash"): 20 - answered - in_ring - 8,
    }
    assert park.packets_in_use() == 0


def test_senders_of_a_stopped_guest_sleep_on_though_there_is_room():
    """Of the outputs, those in the ring leave in the pause, and then nothing does until it is over."""
    pause = [{"kind": "pause", "at": "8 ms", "duration": 30 * MS}]
    park = slow_way_out("none", blows=pause).run(37 * MS)
    assert [number for _, number in seen(park)] == [1, 2, 3]
    assert park.pool.blocked == 8
    park.run(300 * MS)
    assert [number for _, number in seen(park)] == list(range(1, 21))


@pytest.mark.parametrize("path", PATHS)
def test_protection_makes_the_work_of_packets_dearer(path: str):
    """Each of 50 packets costs the relay's execution 1.3 times and 10 us for its output."""
    visits = [2 * MS + MS * number for number in range(50)]
    costs = {"execution": 1.3, "output": 10 * US, "entry": 0, "kibibyte": 0}
    used = []
    for cost in (PLAIN_LOG["cost"], costs):
        parameters = PLAIN_LOG | {"cost": cost}
        case = Case(path=path, protection="lockstep")
        park = Park("simpy", case, visits=visits, blows=[], protection=parameters).run(80 * MS)
        assert len(seen(park)) == 50
        used.append(park.result()["run_ns"][2])
    plain_ns = 18 * US + int(park.engine.rows(ports)[park.port].transmit_ns)
    assert used[1] - used[0] == 50 * (int(plain_ns * 1.3) - plain_ns + 10 * US)


def busy_server(protection: str, blows: list[dict[str, Any]], engine: str = "simpy") -> Park:
    """Twelve registrations in a row at a server of four processes whose back-end takes 5 ms to send a datagram."""
    return Park(
        engine,
        Case("sip_server", protection=protection, scheduler="native"),
        ring=2,
        blows=blows,
        visits=[2 * MS + 300 * US * number for number in range(12)],
        application={"processes": 4},
        path={"backend_transmit_cost": 5 * MS, "backend_receive_cost": 0},
        scenarios=["IMS_REREG"],
    )


def test_processes_of_a_sip_server_sleep_while_the_way_out_has_no_room():
    """One datagram is in the back-end's hands, one in the ring, four processes sleep, six datagrams are unread."""
    park = busy_server("none", [])
    park.bench.t1_ns = 500 * MS
    park.run(6 * MS + 500 * US)
    server = park.engine.rows(sip_servers)[park.server]
    assert (server.taken, server.buffer.length, server.idle.length) == (2, 6, 0)
    park.run(400 * MS)
    assert (server.received, server.taken, server.idle.length) == (24, 24, 4)
    assert park.bench.over == 12
    assert park.drop_counts() == {}


def test_a_server_that_boots_again_has_forgotten_what_its_processes_slept_with():
    park = busy_server("ha_restart", [{"kind": "primary_crash", "at": "6 ms"}])
    park.bench.t1_ns = 100 * MS
    park.run(90 * MS)
    server = park.engine.rows(sip_servers)[park.server]
    assert (server.lost_in_crash, server.idle.length) == (10, 4)
    # The one in the back-end's hands leaves, and its answer finds nobody; the others and the ring's one are lost.
    assert park.drop_counts() == {("guest", "lost in crash"): 5, ("guest", "disconnected"): 1}
    park.run(900 * MS)
    assert park.bench.over == 12


@pytest.mark.slow
def test_both_engines_agree():
    crash, pause = {"kind": "primary_crash", "at": "20 ms"}, {"kind": "pause", "at": "8 ms", "duration": 30 * MS}
    for blow in (crash, pause):
        for protection in ("none", "ha_restart", "lockstep"):
            plain, compiled = (
                (
                    slow_way_out(protection, engine, blows=[blow], most_waiting=9).run(200 * MS).result(),
                    busy_server(protection, [blow], engine).run(200 * MS).result(),
                )
                for engine in ("simpy", "compiled")
            )
            assert plain == compiled, (protection, blow)
