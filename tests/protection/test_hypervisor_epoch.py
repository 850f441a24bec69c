"""Epochs of instructions: the closed form of the slowdown, the delay of interrupts, and the promise from outside."""

from functools import cache
from itertools import pairwise
from typing import Any

import pytest

from vftsim.composition.model import ModelSpec
from vftsim.composition.run import run_model
from vftsim.platform.protection import hypervisor_epoch as mechanism
from vftsim.platform.protection.hypervisor_epoch import hypervisor_epoch
from vftsim.spec.units import MS, US, S
from vftsim.testing.plant import ENGINES, OWN, Plant, watched

from .crashes import quarters
from .spoilt import replaced

ROUND_TRIP_NS = 150 * US
BOUNDARY_NS = 250 * US
MESSAGE = 125
WIRE_NS = MESSAGE * 8
"""At 1 Gbit/s."""
TIMEOUT_NS, HEARTBEAT_NS, ACTIVATION_NS, GO_LIVE_NS = 30 * MS, 7 * MS, 5 * MS, 20 * MS
CHUNK_NS = 1_700_001
EPOCH_NS = MS


def parameters(protocol: str, instructions: int = 50_000, **more: Any) -> dict[str, Any]:
    return {
        "kind": "hypervisor_epoch",
        "protocol": protocol,
        "epoch_instructions": instructions,
        "instruction_rate": 50e6,
        "boundary": BOUNDARY_NS,
        "message": MESSAGE,
        "entry": 64,
        "channel": {"rate": 1_000_000_000, "latency": ROUND_TRIP_NS // 2, "ack": 0},
        "reprotection": None,
        "failover": {
            "detection": {"heartbeat_interval": HEARTBEAT_NS, "timeout": TIMEOUT_NS, "backup_timeout": 50 * MS},
            "go_live": GO_LIVE_NS,
        },
        **more,
    }


@pytest.mark.parametrize("engine_type", ENGINES)
@pytest.mark.parametrize("protocol", ["original", "revised"])
def test_slowdown_is_affine_in_the_frequency_of_epochs(protocol, engine_type):
    """NP = 1 + q + K / EL; with K = VI h / RT: 20,000 of 400 us at 50 million instructions a second: 1.6 at 50,000."""
    more = {"simulated_rate": 0.2 * 1e9 / (15 * US), "boundary": 400 * US}
    for instructions, expected in ((50_000, 1.6), (100_000, 1.4), (25_000, 2.0)):
        plant = Plant(parameters(protocol, instructions, **more), until_ns=S, engine_type=engine_type).run()
        run_ns = instructions * 20
        epochs = plant.summary["epochs"]
        assert plant.summary["stopped_s"] * S / epochs / run_ns == pytest.approx(expected - 1, rel=0.005)


@pytest.mark.parametrize("protocol", ["original", "revised"])
def test_the_original_protocol_waits_for_the_backup_at_each_end(protocol):
    """Where the round trip is longer than the work at the boundary."""
    settings = parameters(protocol, boundary=10 * US)
    plant = Plant(settings, until_ns=S).run()
    stop_ns = plant.summary["stopped_s"] * S / plant.summary["epochs"]
    assert stop_ns == pytest.approx(WIRE_NS + ROUND_TRIP_NS if protocol == "original" else 10 * US, rel=0.002)


def test_interrupts_wait_for_the_end_of_their_epoch():
    """Half an epoch in the mean where the boundary costs nothing."""
    asks = [10 * MS + int(i * MS * 0.6180339887) for i in range(2000)]
    wire = {"rate": 10**12, "latency": 0, "ack": 0}
    plant = Plant(parameters("revised", boundary=0, channel=wire), asks=asks, until_ns=3 * S).run()
    delays = [time_ns - asks[number] for time_ns, number in plant.entered]
    assert sum(delays) / len(delays) == pytest.approx(EPOCH_NS / 2, rel=0.005)
    assert max(delays) <= EPOCH_NS + 10


def test_an_output_of_the_revised_protocol_waits_for_one_acknowledgement():
    """The answer to a packet forwarded at the end of an epoch leaves when that is acknowledged; guests wait with it."""
    plant = Plant(parameters("revised"), asks=[5 * MS + 10 * US], until_ns=20 * MS).run()
    (hold_ns,) = plant.holds()
    assert hold_ns == (64 + 200) * 8 + ROUND_TRIP_NS


# Disks

SERVICE_NS = 4 * MS + 102_400
"""Of 8,192 bytes at 640 Mbit/s."""
COMPUTE_NS, INTERRUPT_NS = 100 * US, 5 * US
DISK = {"kind": "disk_bound", "processes": 1, "compute": COMPUTE_NS, "cv": 0.0, "size": 8192}
BATCH = {"kind": "batch", "demand": 1001 * COMPUTE_NS, "disk_operations": 1000, "disk_wait": SERVICE_NS}


def with_disk(protocol: str, application: dict[str, Any], engine: str = "compiled", **more: Any) -> Any:
    """Return what a guest under epochs of 1 ms has done in 10 s, and a second before."""
    disks = {"d": {"kind": "local", "interrupt": INTERRUPT_NS}} if application["kind"] == "disk_bound" else {}
    vm = {
        "disks": disks,
        "applications": {"p": application},
        "protection": {"kind": "hypervisor_epoch", "protocol": protocol},
    }
    spec = {"hosts": {"host": {"pcpus": 1}}, "domains": {"vm": vm}, "measure": {"warm_up": "1 s", "duration": "10 s"}}
    return run_model(ModelSpec.model_validate({**spec, **more}), 1, 0, engine=engine).whole.outcomes


class OneProcess:
    """A process that computes and asks a disk in turn, worked out event by event; defaults of the mechanism.

    Times when it is told of the end of an operation are in ``told``.
    """

    def __init__(self, is_original: bool, data_bytes: int, interrupt_ns: int, until_ns: int) -> None:
        self.data_bytes, self.told = data_bytes, [0]
        self.free_ns = self.acked_ns = self.done_ns = 0
        now_ns, left_ns, to_do_ns = 0, EPOCH_NS, COMPUTE_NS
        while now_ns < until_ns:
            if 0 < to_do_ns <= left_ns:
                # It asks: the guest stands still until everything sent is acknowledged, then the disk begins.
                now_ns, left_ns, to_do_ns = max(now_ns + to_do_ns, self.acked_ns), left_ns - to_do_ns, 0
                self.done_ns = now_ns + SERVICE_NS
                continue
            to_do_ns = max(0, to_do_ns - left_ns)
            now_ns += left_ns
            is_over = self.ends_by(now_ns)
            self.send(now_ns, 128)
            now_ns += BOUNDARY_NS
            is_over = self.ends_by(now_ns) or is_over
            while is_original and now_ns < self.acked_ns:
                now_ns = self.acked_ns
                is_over = self.ends_by(now_ns) or is_over
            left_ns = EPOCH_NS
            if is_over:
                to_do_ns = interrupt_ns + COMPUTE_NS
                self.told.append(now_ns + interrupt_ns)

    def send(self, now_ns: int, size_bytes: int) -> None:
        """At 10 Mbit/s, 200 us away; the acknowledgement has 64 bytes."""
        self.free_ns = max(self.free_ns, now_ns) + size_bytes * 800
        self.acked_ns = self.free_ns + 2 * 200 * US + 64 * 800

    def ends_by(self, now_ns: int) -> bool:
        """Tell whether an operation has ended by now, and forward that."""
        is_over = 0 < self.done_ns <= now_ns
        if is_over:
            self.send(self.done_ns, 64 + self.data_bytes)
            self.done_ns = 0
        return is_over


@pytest.mark.parametrize("protocol", ["original", "revised"])
@pytest.mark.parametrize("reads", [0, 100])
def test_disk_operations_wait_for_acknowledgements_and_end_with_epochs(protocol, reads):
    """Ends are delivered at the ends of epochs, data read are forwarded, and nothing begins before all is known.

    Of 8 kB the channel takes 6.6 ms, longer than the disk.
    """
    data_bytes = 8192 if reads else 0
    found = with_disk(protocol, {**DISK, "reads": reads})
    told = OneProcess(protocol == "original", data_bytes, INTERRUPT_NS, 11 * S).told
    transfers = sum(S <= time_ns < 11 * S for time_ns in told)
    assert found["domains.vm.applications.p"].transfers == transfers
    # A waiting time that stands for a disk: 1,000 operations of each transaction, and no time of an interrupt.
    found = with_disk(protocol, {**BATCH, "disk_size": 8192, "disk_reads": reads})
    told = OneProcess(protocol == "original", data_bytes, 0, 11 * S).told
    assert found["domains.vm.applications.p"].disk_operations == pytest.approx(len(told), abs=3)


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
def test_what_a_page_cache_writes_back_waits_for_the_backup(engine):
    """Each 20 ms of channel one way, after the last message: that of the end of an epoch, some 0.5 ms before.

    The cache is written back 100 ms after the first write since.
    """
    disks = {
        "d": {"kind": "local", "writes": "buffered", "flush_period": "100 ms", "service": "1 us", "rate": "8 Gbit/s"}
    }
    vm = {
        "disks": disks,
        "applications": {"p": {**DISK, "reads": 0, "compute": "3 ms"}},
        "protection": {
            "kind": "hypervisor_epoch",
            "boundary": "0 us",
            "channel": {"rate": "1 Gbit/s", "latency": "20 ms"},
        },
    }
    found = with_disk("revised", DISK, engine, domains={"vm": vm})["domains.vm.protection"].stopped
    assert found == pytest.approx(100 * 39.5 / (39.5 + 101.5), rel=0.02)


@pytest.mark.parametrize(
    ("fault", "least"),
    [
        ({"kind": "primary_crash"}, 900),
        ({"kind": "backup_crash"}, 1500),
        ({"kind": "channel_loss", "duration": "100 ms"}, 1000),
        ({"kind": "pause", "duration": "100 ms"}, 1000),
    ],
)
def test_disk_operations_go_on_after_a_failure(fault, least):
    """Three processes: what was under way ends on the backup, and what is not protected any more waits for nothing."""
    faults = [{"at": "5001500 us", **fault}]
    application = {**DISK, "processes": 3, "reads": 70}
    played = [with_disk("revised", application, engine, faults=faults) for engine in ("compiled", "simpy")]
    transfers, same = (found["domains.vm.applications.p"].transfers for found in played)
    assert transfers == same
    assert transfers > least


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
@pytest.mark.parametrize(
    "program",
    [
        {"kind": "batch", "demand": "728 us", "think": "9672 us"},
        {"kind": "cpu_bound", "duty": 7, "cycle": "10400 us", "cv": 0.0},
    ],
)
def test_timers_of_processes_wait_for_the_end_of_their_epoch(engine, program):
    """Epochs of 1 ms end in nothing: 0.728 ms of work begin with one, and the next is due 10.4 ms later: in 11."""
    plain, epochs = ({"kind": "none"}, {"kind": "hypervisor_epoch", "boundary": "0 us"})
    vm = [{"applications": {"p": program}, "protection": protection} for protection in (plain, epochs)]
    found = [with_disk("revised", program, engine, domains={"vm": each})["domains.vm"].cpu for each in vm]
    assert found == [pytest.approx(72.8 / 10.4, rel=1e-3), pytest.approx(72.8 / 11, rel=1e-3)]


# The promise


class Oracle:
    """From what entered and what was sent, and the sizes of messages: what was at the backup, and when."""

    def __init__(self, alive: Plant) -> None:
        self.alive = alive
        messages = [(t, MESSAGE, 0) for t in self._boundaries()]
        messages += [(t, 64 + alive.size_bytes, 1) for t, _ in alive.entered]
        self.messages: list[tuple[int, int, int]] = []
        free_ns = 0
        for time_ns, size_bytes, is_input in sorted(messages):
            free_ns = max(free_ns, time_ns) + size_bytes * 8
            self.messages.append((time_ns, free_ns, is_input))

    def _boundaries(self) -> list[int]:
        """The stops of the guest after which more bytes left than those of the packets that entered."""
        found = []
        for (stop_ns, sent), (next_ns, sent_then) in pairwise(self.alive.stops):
            inputs = sum(stop_ns < t <= next_ns for t, _ in self.alive.entered)
            if sent_then - sent - inputs * (64 + self.alive.size_bytes) == MESSAGE:
                found.append(stop_ns)
        return found

    def judge(self, crash_ns: int, world: Plant) -> list[str]:
        wrong = []
        lost_ns = min((t for t, departs, _ in self.messages if departs > crash_ns and t <= crash_ns), default=crash_ns)
        issued = {n: t for t, n in self.alive.issued}
        for time_ns, number in world.seen:
            if time_ns > crash_ns:
                continue
            known = [departs for t, departs, _ in self.messages if t <= issued[number]]
            if time_ns < max(known, default=-ROUND_TRIP_NS) + ROUND_TRIP_NS:
                wrong.append(f"{number} left too early")
            if issued[number] > lost_ns:
                wrong.append(f"{number} was seen and is underivable")
        return wrong + self._after(crash_ns, lost_ns, world)

    def _after(self, crash_ns: int, lost_ns: int, world: Plant) -> list[str]:
        live_ns = crash_ns // HEARTBEAT_NS * HEARTBEAT_NS + ROUND_TRIP_NS // 2 + TIMEOUT_NS + ACTIVATION_NS + GO_LIVE_NS
        lives = [t for t, what in world.timeline if what == "secondary live"]
        if lives != [live_ns]:
            return [f"went live at {lives}, not once at {live_ns}"]
        wrong = ["something left between two lives" for t, _ in world.seen if crash_ns < t < live_ns]
        seen = {n for _, n in world.seen}
        known = [n for t, n in self.alive.issued if t < lost_ns]
        wrong += [f"{n} is known to the backup and never issued" for n in known if n not in seen]
        chunks = sorted(n for _, n in world.seen if n > OWN)
        if set(chunks) != set(range(OWN + 1, chunks[-1] + 1)):
            wrong.append("the second life does not go on where the first ended")
        return wrong


ASKS = [2_100_003 * i for i in range(1, 60)]
watched_epoch = watched(hypervisor_epoch)
PER_PHASE = 35


def plant(protocol: str, **fields: Any) -> Plant:
    return Plant(parameters(protocol), asks=ASKS, chunk_ns=CHUNK_NS, chunk_is_output=True, part=watched_epoch, **fields)


@cache
def alive(protocol: str) -> Oracle:
    return Oracle(plant(protocol, until_ns=60 * MS).run())


@cache
def crash_instants(protocol: str) -> tuple[int, ...]:
    messages = [m for m in alive(protocol).messages if m[0] > 20 * MS][:3]
    bounds = sorted({t for m in messages for t in (m[0], m[1], m[1] + ROUND_TRIP_NS // 2, m[1] + ROUND_TRIP_NS)})
    inside = [a + (2 * i + 1) * (b - a) // (2 * PER_PHASE) for a, b in pairwise(bounds) for i in range(PER_PHASE)]
    return tuple(sorted({t + d for t in bounds for d in (-1, 0, 1)} | set(inside)))


def crash(protocol: str, time_ns: int, spoil: Any = None) -> list[str]:
    faults = [{"kind": "primary_crash", "at": f"{time_ns} ns"}]
    world = plant(protocol, faults=faults, until_ns=time_ns + 80 * MS, spoil=spoil).run()
    return alive(protocol).judge(time_ns, world)


@pytest.mark.thorough
@pytest.mark.parametrize("part", quarters(1))
@pytest.mark.parametrize("protocol", ["original", "revised"])
def test_epochs_keep_their_promise_at_stratified_crashes(protocol, part):
    assert len(crash_instants(protocol)) >= 200
    wrong = {t: crash(protocol, t) for t in crash_instants(protocol)[part::4]}
    assert {t: why for t, why in wrong.items() if why} == {}


def at_once(old: Any, namespace: dict[str, Any]) -> Any:
    def act(sim: Any, guard: Any, packet: int) -> None:
        sim.epochs[guard.row].acked_ns = sim.now_ns
        old(sim, guard, packet)

    return act


def nothing(old: Any, namespace: dict[str, Any]) -> Any:
    return lambda *arguments: None


def unlogged(old: Any, namespace: dict[str, Any]) -> Any:
    """Packets are delivered and not forwarded."""
    return lambda sim, guard, size_bytes: 0


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("old", "make", "why"),
    [
        (mechanism.release_or_hold, at_once, "too early"),
        (mechanism.issue_held, nothing, "never issued"),
        (mechanism.forward, unlogged, "too early"),
    ],
)
def test_a_planted_violation_is_caught(old, make, why):
    wrong = [one for t in crash_instants("revised")[::12] for one in crash("revised", t, replaced(old, make))]
    assert any(why in one for one in wrong), wrong[:5]


def test_the_primary_goes_on_alone_when_its_backup_is_gone():
    fault = {"kind": "backup_crash", "at": "10 ms"}
    world = plant("original", until_ns=200 * MS, faults=[fault]).run()
    numbers = [number for _, number in world.seen if number > OWN]
    assert "primary goes on alone" in world.moments
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))


@pytest.mark.parametrize("engine_type", ENGINES)
def test_what_a_lost_channel_has_kept_back_leaves_at_the_rate_that_it_has_then(engine_type):
    """100 kB are forwarded at 10 ms at 5 Mbit/s, of which 12.5 kB have left at 30 ms; the rest from 70 ms on at 10."""
    faults = [
        {"kind": "channel_degradation", "at": "0 ms", "duration": "50 ms", "rate": "50 %"},
        {"kind": "channel_loss", "at": "30 ms", "duration": "40 ms"},
    ]
    patient = {"detection": {"timeout": 10 * S, "backup_timeout": 10 * S, "heartbeat_interval": HEARTBEAT_NS}}
    free = {"boundary": 0, "message": 0, "entry": 0, "channel": {"rate": 10_000_000, "latency": 0, "ack": 0}}
    common = {"asks": [9_500 * US], "size_bytes": 100_000, "guest_runs": False, "until_ns": 300 * MS}
    mechanism = parameters("revised", **free, failover=patient)
    plant = Plant(mechanism, faults=faults, engine_type=engine_type, **common).run()
    assert plant.seen == [(70 * MS + 70 * MS, 0)]
    assert plant.summary["state_bytes"] == 100_000
