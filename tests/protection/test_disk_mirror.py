"""What programs write goes to the disk of the backup: bytes, instants on the wire and after a crash, by hand."""

from typing import Any

import pytest

from vftsim.composition.run import run_model
from vftsim.study.designs.failover import Crashes, crashes_of_each
from vftsim.study.execution import Execution
from vftsim.study.figures.protection_costs import of_runs
from vftsim.study.runs.model import load_model

MS = 1_000_000
STATE_BYTES = 12_500
"""0.1 ms at 1 Gbit/s; the round trip takes another 0.1 ms, and nothing else does."""
WRITE_BYTES = 1_000_000
"""8 ms at 1 Gbit/s."""
JOB = f"""\
hosts: {{host: {{pcpus: 1}}}}
networks: {{san: {{rate: 1 Gbit/s, latency: 50 us}}}}
domains:
  vm:
    interfaces: {{eth0: {{network: san, path: {{kind: native}}}}}}
    applications:
      db: {{kind: batch, demand: 12 ms, disk_operations: 1, disk_wait: 3 ms, think: 1 ms, disk_size: {WRITE_BYTES} B}}
    protection:
      kind: checkpoint
      interval: 20 ms
      suspend_request: 0 ms
      pause: {{fixed: 0 ms, page: 0 ms}}
      memory: {{working_set: 0}}
      state: {{fixed: {STATE_BYTES} B}}
      channel: {{rate: 1 Gbit/s, latency: 50 us, ack: 0 B}}
      failover: {{detection: {{timeout: 40 ms, backup_timeout: 10 s}}, activation_record: 0 ms, go_live: 0 ms}}
      reprotection: null
measure: {{warm_up: 0 ms, duration: 100 ms}}
"""
# A transaction of 16 ms begins at 1 ms: it computes for 6 ms, and its write is done at 10 ms, 26 ms, ...
P = "domains.vm.protection"
WRITES = "domains.vm.applications.db.disk_reads=0 %"


def record_of(tmp_path: Any, *changes: str, engine: str = "compiled") -> Any:
    path = tmp_path / "job.yaml"
    path.write_text(JOB)
    return run_model(load_model(path, [WRITES, *changes]).spec, 1, 0, engine)


def channel_bytes_by(tmp_path: Any, ms: int, *changes: str) -> int:
    """What the channel has sent in the first so many ms."""
    path = tmp_path / "job.yaml"
    path.write_text(JOB)
    spec = load_model(path, [WRITES, *changes]).spec
    spec = spec.model_copy(update={"measure": spec.measure.model_copy(update={"duration": ms * MS})})
    sent: int = run_model(spec, 1, 0).whole.outcomes[P].channel_bytes
    return sent


def protection_of(tmp_path: Any, *changes: str, engine: str = "compiled") -> Any:
    return record_of(tmp_path, *changes, engine=engine).whole.outcomes[P]


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
@pytest.mark.parametrize("channel", ["{rate: 1 Gbit/s, latency: 50 us, ack: 0 B}", "{network: san, ack: 0 B}"])
def test_what_is_written_and_no_read_goes_over_the_channel(tmp_path: Any, engine: str, channel: str) -> None:
    """Of six operations done within 100 ms all write, or three of them."""
    of_half = "domains.vm.applications.db.disk_reads=50 %"
    every, half = (
        protection_of(tmp_path, f"{P}.channel={channel}", *changes, engine=engine) for changes in ((), (of_half,))
    )
    assert (every.backup_disk_bytes, half.backup_disk_bytes) == (6 * WRITE_BYTES, 3 * WRITE_BYTES)
    assert every.channel_bytes - half.channel_bytes == 3 * WRITE_BYTES
    assert every.channel_bytes == pytest.approx(6 * WRITE_BYTES + every.states * STATE_BYTES, abs=2 * STATE_BYTES)
    # That of 10 ms waits for the state of 20 ms, and is not committed before its acknowledgement.
    assert every.most_uncommitted_bytes == 2 * WRITE_BYTES


@pytest.mark.parametrize(
    "protection", ["{kind: checkpoint, interval: 20 ms}", "{kind: coarse_lockstep, period: 20 ms, jitter: 0 s}"]
)
def test_each_page_that_is_written_costs_the_driver_domain_as_one_of_memory(tmp_path: Any, protection: str) -> None:
    """At 6 us a page; of six writes the last is covered by a state of 100 ms, which is not sent within the run."""
    changes = (f"{P}=null", f"{P}={protection}", f"{P}.memory.working_set=0", f"{P}.sender.state=0 s")
    host = ("domains.dom0={driver: {}}", "hosts.host.scheduler={kind: credit}", "hosts.host.pcpus=2")
    found = protection_of(tmp_path, *changes, *host)
    assert found.backup_disk_bytes == 6 * WRITE_BYTES
    assert found.sender_cpu_ns == pytest.approx(5 * 6_000 * WRITE_BYTES / 4096, rel=1e-3)


def test_a_stated_rate_is_beside_what_programs_write(tmp_path: Any) -> None:
    """By 80 ms, when the last state is taken whose bytes are counted, the guest has computed for 60 ms."""
    found = protection_of(tmp_path, f"{P}.disk.write_rate=100 MB/s")
    assert found.backup_disk_bytes == 6 * WRITE_BYTES + 60 * 100_000


@pytest.mark.parametrize(("disk_wait_ms", "states"), [(3, [2, 2]), (42, [1, 2])])
def test_a_state_waits_for_what_is_before_it_on_the_wire_only(tmp_path: Any, disk_wait_ms: int, states: Any) -> None:
    """A write done at 42 ms has left before the state of 50, the next follows 50 ms after 50.2; one of 49 ms has not.

    That one leaves at 57 ms, and the state with it: the next follows at 107.2 ms.
    """
    wait = f"domains.vm.applications.db.disk_wait={disk_wait_ms} ms"
    changes = (wait, f"{P}.rule=after_ack", f"{P}.interval=50 ms", f"{P}.failover.detection.timeout=10 s")
    assert [protection_of(tmp_path, *changes, f"measure.duration={ms} ms").states for ms in (107, 107.3)] == states


def test_a_backup_waits_until_its_disk_has_what_was_written(tmp_path: Any) -> None:
    """1 MB in the state of 20 ms, received at 20.15 ms, takes 0.1 s at 10 MB/s; another is in that of 40 ms."""
    crash = "faults=[{kind: primary_crash, at: 59 ms}]"
    record = record_of(tmp_path, crash, f"{P}.disk.apply_rate=10 MB/s", "measure.duration=400 ms")
    restored_ns = next(time_ns for time_ns, what in record.timelines["vm"] if what == "state restored")
    assert restored_ns == 220_150_000
    not_mirrored = record_of(
        tmp_path, crash, f"{P}.disk={{apply_rate: 10 MB/s, mirrored: false}}", "measure.duration=400 ms"
    )
    declared_ns = next(time_ns for time_ns, what in not_mirrored.timelines["vm"] if what == "state restored")
    # The last byte of the state of 40 ms has come at 40.15 ms.
    assert declared_ns == 80_150_000


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
def test_what_a_lost_channel_keeps_back_is_sent_once_and_before_the_state(tmp_path: Any, engine: str) -> None:
    """Lost from 29 to 60 ms: 5/8 of the write of 26 ms, those of 42 and 58 ms and the state of 50 leave from 60 ms on.

    21 ms of writes and 0.1 ms of the state: acknowledged at 81.2 ms, and the next one is taken 50 ms later.
    """
    loss = "faults=[{kind: channel_loss, at: 29 ms, duration: 31 ms}]"
    changes = (loss, f"{P}.rule=after_ack", f"{P}.interval=50 ms", f"{P}.failover.detection.timeout=10 s")
    found = [
        protection_of(tmp_path, *changes, f"measure.duration={ms} ms", engine=engine) for ms in (110, 131.1, 131.3)
    ]
    # Of the write of 106 ms half has left at 110.
    assert found[0].channel_bytes == pytest.approx(6.5 * WRITE_BYTES + STATE_BYTES, abs=10)
    assert [each.states for each in found] == [1, 1, 2]


def test_a_write_on_the_wire_is_counted_as_far_as_it_has_left_beside_compressed_states(tmp_path: Any) -> None:
    """That of 106 ms has left by half at 110 ms; the state of 100 ms has left."""
    found = protection_of(tmp_path, f"{P}.state.compression_cost=1 us", "measure.duration=110 ms")
    assert found.channel_bytes == pytest.approx(6.5 * WRITE_BYTES + 5 * STATE_BYTES, abs=10)
    assert type(found.channel_bytes) is int


def test_what_is_behind_a_state_follows_it_over_a_channel_at_half_the_rate(tmp_path: Any) -> None:
    """A state of 8 ms is taken at 150 ms, 1 MB written at 152; from 154 on what is left takes twice as long.

    The state leaves at 162 ms, and by 170 half of what is behind it.
    """
    slow = "faults=[{kind: channel_degradation, at: 154 ms, rate: 50 %}]"
    settings = ("interval=150 ms", "failover.detection.timeout=10 s", "state.fixed=1000000 B")
    wait = "domains.vm.applications.db.disk_wait=145 ms"
    changes = (slow, wait, *(f"{P}.{text}" for text in settings))
    found = protection_of(tmp_path, *changes, "measure.duration=170 ms")
    assert found.channel_bytes == pytest.approx(1.5 * WRITE_BYTES, abs=10)


@pytest.mark.parametrize("kind", ["checkpoint", "coarse_lockstep"])
def test_a_write_goes_on_at_the_new_rate_where_no_state_is_on_the_wire(tmp_path: Any, kind: str) -> None:
    """Done at 10 ms over a channel of 10 Mbit/s until 15, when 6,250 bytes have left; the others need 7.95 ms."""
    slow = "faults=[{kind: channel_degradation, at: 5 ms, duration: 10 ms, rate: 1 %}]"
    channel = "{rate: 1 Gbit/s, latency: 50 us, ack: 0 B}"
    settings = f"{P}={{kind: {kind}, channel: {channel}, reprotection: null}}"
    for at_ms, left_bytes in ((14, 5_000), (15, 6_250), (19, 506_250), (24, WRITE_BYTES)):
        assert channel_bytes_by(tmp_path, at_ms, settings, slow) == pytest.approx(left_bytes, abs=2)


def test_a_write_under_way_when_the_last_state_is_taken_goes_before_it_whether_a_crash_comes_or_not(
    tmp_path: Any,
) -> None:
    """Asked for at 23 ms and done at 26: the state of 24 ms, which is copied until 28, leaves behind it at 34.1."""
    paused = [f"{P}.interval=24 ms", f"{P}.pause.fixed=4 ms"]
    crash = "faults=[{kind: primary_crash, at: 40 ms}]"
    for changes in (paused, [*paused, crash]):
        assert channel_bytes_by(tmp_path, 41, *changes) == 2 * WRITE_BYTES + STATE_BYTES


@pytest.mark.parametrize("end_ms", [31, 45, 90])
def test_what_a_channel_has_sent_by_its_loss_it_has_sent(tmp_path: Any, end_ms: int) -> None:
    """A write by 18 ms, then of a state of a megabyte 1 ms at 1 Gbit/s and 9 at a tenth, until 30 ms.

    The write of 26 ms is behind it; from 40 ms on the channel would be as before.
    """
    slow = "{kind: channel_degradation, at: 21 ms, duration: 19 ms, rate: 10 %}"
    faults = f"faults=[{slow}, {{kind: channel_loss, at: 30 ms}}]"
    patient = f"{P}.failover.detection.timeout=10 s"
    sent_bytes = channel_bytes_by(tmp_path, end_ms, f"{P}.state.fixed=1 MB", faults, patient)
    assert sent_bytes == pytest.approx(WRITE_BYTES + 125_000 + 112_500, abs=2)


def test_a_state_that_is_sent_to_a_dead_backup_is_not_counted(tmp_path: Any) -> None:
    """The backup is dead from 15 ms on; the state of 20 ms goes nowhere."""
    crash = "faults=[{kind: backup_crash, at: 15 ms}]"
    patient = f"{P}.failover.detection.timeout=10 s"
    for end_ms in (16, 25, 90):
        sent_bytes = channel_bytes_by(tmp_path, end_ms, f"{P}.state.fixed=1 MB", crash, patient)
        assert sent_bytes == pytest.approx(625_000, abs=2)


@pytest.mark.parametrize("kind", ["lockstep", "checkpoint", "event_sync", "hypervisor_epoch", "coarse_lockstep"])
@pytest.mark.parametrize("channel", ["{rate: 50 Mbit/s}", "{network: san}"])
def test_a_channel_of_its_own_is_a_resource_that_may_be_full(tmp_path: Any, kind: str, channel: str) -> None:
    runs: list[Any] = []
    path = tmp_path / "job.yaml"
    path.write_text(JOB)
    settings = [WRITES, f"{P}=null", f"{P}={{kind: {kind}, channel: {channel}}}"]
    found = run_model(load_model(path, settings).spec, 1, 0, prepare=runs.append).whole.outcomes[P]
    built = runs[-1].built
    transmitters = built.protection_of("vm").transmitters(runs[-1].engine, built.guards["vm"])
    name = "logging channel" if kind == "lockstep" else "channel to the backup"
    assert transmitters == ({name: (found.channel_bytes, 50_000_000)} if "rate" in channel else {})


@pytest.mark.parametrize(("rate", "is_full"), [("200 Mbit/s", True), ("1 Gbit/s", False)])
def test_a_full_channel_is_said(tmp_path: Any, rate: str, is_full: bool) -> None:
    """Its six writes in 100 ms are 480 Mbit/s, of which the first comes at 10 ms."""
    path = tmp_path / "job.yaml"
    path.write_text(JOB)
    spec = load_model(path, [WRITES, f"{P}.channel.rate={rate}", "measure.warm_up=50 ms"]).spec
    text = f"domains.vm.protection: its channel of {rate} is 100 % busy, and what goes over it waits"
    assert [each for each in of_runs(spec, [(0, run_model(spec, 1, 0))]) if "busy" in each] == [text] * is_full


@pytest.mark.parametrize(
    ("kind", "apply_rate", "is_slow"),
    [("checkpoint", "50 MB", True), ("checkpoint", "70 MB", False), ("coarse_lockstep", "50 MB", False)],
)
def test_a_disk_that_does_not_keep_up_is_said(tmp_path: Any, kind: str, apply_rate: str, is_slow: bool) -> None:
    """Those writes are 60 MB/s; that of COLO's second replica takes them as the first one's does."""
    path = tmp_path / "job.yaml"
    path.write_text(JOB)
    settings = [f"{P}=null", f"{P}={{kind: {kind}, disk: {{apply_rate: {apply_rate}}}}}", "measure.warm_up=50 ms"]
    model = load_model(path, [WRITES, *settings])
    said = [each for each in of_runs(model.spec, [(0, run_model(model.spec, 1, 0))]) if "apply_rate" in each]
    assert len(said) == is_slow
    assert all("domains.vm.protection: 60 MB/s are written to the backup's disk, which takes 50" in e for e in said)
    crashes, execution = Crashes(1, span_ns=100 * MS, after_ns=2000 * MS), Execution(1, 1)
    assert bool(crashes_of_each([model], crashes, execution)[0].remarks) == is_slow


@pytest.mark.parametrize(
    ("protection", "is_mirrored"),
    [
        ("{kind: coarse_lockstep}", True),
        ("{kind: micro_checkpoint, shipped: true}", True),
        ("{kind: micro_checkpoint}", False),
        ("{kind: event_sync}", False),
        ("{kind: event_sync, disk: {mirrored: true}}", True),
        ("{kind: hypervisor_epoch}", False),
        ("{kind: lockstep}", False),
    ],
)
def test_who_mirrors(tmp_path: Any, protection: str, is_mirrored: bool) -> None:
    """Kemari, lockstep and epochs have disks that both hosts reach; copies that stay on a host go nowhere."""
    found = protection_of(tmp_path, f"{P}=null", f"{P}={protection}")
    assert (found.backup_disk_bytes >= 4 * WRITE_BYTES) == is_mirrored
    assert is_mirrored or found.backup_disk_bytes == 0
