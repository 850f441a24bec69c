"""Recorded schedules: the same events in the text of each tool give the same slices and waits, by hand."""

import json

import pytest

from vftsim.cli.main import main
from vftsim.composition.run import run_model
from vftsim.errors import ModelFileError, UsageError
from vftsim.spec.shipped import shipped_dir
from vftsim.study.blocks.schedules import schedule_blocks
from vftsim.study.runs.model import load_model
from vftsim.tracing.recordings import read_recording
from vftsim.tracing.scheduled import pairs_of, scheduled

RECORDED = shipped_dir("experiments") / "recorded-schedule"

# On CPU 1: a runs from the start, is preempted by b at 2 ms, which sleeps at 5 ms; a goes on; b is woken at 7 ms and
# runs at 9 ms, when a is preempted once more.
PERF = """\
               a    11 [001]   100.000000000:       sched:sched_waking: comm=b pid=12 prio=120 target_cpu=001
               a    11 [001]   100.000500: sched:sched_stat_runtime: comm=a pid=11 runtime=500000 [ns]
               a    11 [001]   100.002000000:       sched:sched_switch: prev_comm=a prev_pid=11 prev_prio=120 prev_state=R ==> next_comm=b next_pid=12 next_prio=120
               b    12 [001]   100.005000000:       sched:sched_switch: prev_comm=b prev_pid=12 prev_prio=120 prev_state=S ==> next_comm=a next_pid=11 next_prio=120
         swapper     0 [000]   100.007000000:       sched:sched_wakeup: comm=b pid=12 prio=120 target_cpu=001
               a    11 [001]   100.009000000:       sched:sched_switch: prev_comm=a prev_pid=11 prev_prio=120 prev_state=R+ ==> next_comm=b next_pid=12 next_prio=120
               b    12 [001]   100.010000000:       sched:sched_switch: prev_comm=b prev_pid=12 prev_prio=120 prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120
"""  # noqa: E501 - as perf writes it
TRACE_CMD = """\
cpus=2
               a-11    [001]   100.000000: sched_waking:         b:12 [120] CPU:001
               a-11    [001]   100.002000: sched_switch:         a:11 [120] R ==> b:12 [120]
               b-12    [001]   100.005000: sched_switch:         b:12 [120] S ==> a:11 [120]
          <idle>-0     [000]   100.007000: sched_wakeup:         b:12 [120] CPU:001
               a-11    [001]   100.009000: sched_switch:         a:11 [120] R ==> b:12 [120]
               b-12    [001]   100.010000: sched_switch:         b:12 [120] S ==> swapper/1:0 [120]
"""
TRACEFS = """\
# tracer: nop
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
               a-11      [001] d..2.   100.000000: sched_waking: comm=b pid=12 prio=120 target_cpu=001
               a-11      [001] d..2.   100.002000: sched_switch: prev_comm=a prev_pid=11 prev_prio=120 prev_state=R ==> next_comm=b next_pid=12 next_prio=120
               b-12      [001] d..2.   100.005000: sched_switch: prev_comm=b prev_pid=12 prev_prio=120 prev_state=S ==> next_comm=a next_pid=11 next_prio=120
          <idle>-0       [000] dNh4.   100.007000: sched_wakeup: comm=b pid=12 prio=120 target_cpu=001
               a-11      [001] d..2.   100.009000: sched_switch: prev_comm=a prev_pid=11 prev_prio=120 prev_state=R ==> next_comm=b next_pid=12 next_prio=120
               b-12      [001] d..2.   100.010000: sched_switch: prev_comm=b prev_pid=12 prev_prio=120 prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120
"""  # noqa: E501 - as the kernel writes it
XEN = """\
CPU1  2000000000 (+       0)  blocked_to_runnable  [ dom:vcpu = 0x00020000 ]
CPU1  2004000000 (+ 4000000)  running_to_runnable  [ dom:vcpu = 0x00010000 ]
CPU1  2004000000 (+       0)  runnable_to_running  [ dom:vcpu = 0x00020000 ]
CPU1  2010000000 (+ 6000000)  running_to_blocked   [ dom:vcpu = 0x00020000 ]
CPU1  2010000000 (+       0)  runnable_to_running  [ dom:vcpu = 0x00010000 ]
CPU0  2014000000 (+       0)  blocked_to_runnable  [ dom:vcpu = 0x00020000 ]
CPU1  2018000000 (+ 8000000)  running_to_runnable  [ dom:vcpu = 0x00010000 ]
CPU1  2018000000 (+       0)  runnable_to_running  [ dom:vcpu = 0x00020000 ]
CPU1  2020000000 (+ 2000000)  running_to_blocked   [ dom:vcpu = 0x00020000 ]
CPU1  2020000000 (+       0)  runnable_to_running  [ dom:vcpu = 0x7fff0001 ]
"""
MS = 1_000_000
TOOLS = {"perf": (PERF, None), "trace-cmd": (TRACE_CMD, None), "tracefs": (TRACEFS, None), "xentrace": (XEN, 2e9)}


@pytest.fixture
def written(tmp_path):
    def write(text):
        path = tmp_path / "recorded.txt"
        path.write_text(text)
        return path

    return write


@pytest.mark.parametrize("tool", TOOLS)
def test_each_tool_gives_the_same_schedule(tool, written):
    text, cycles = TOOLS[tool]
    trace = read_recording(written(text), cycles)
    a, b = ("d1v0", "d2v0") if tool == "xentrace" else ("a-11", "b-12")
    names = trace.vcpu_names
    ran = sorted((names[one.vcpu], one.start_ns / MS, one.end_ns / MS, one.reason) for one in trace.slices)
    waited = sorted((names[one.vcpu], one.start_ns / MS, one.end_ns / MS) for one in trace.waits)
    assert ran == [
        (a, 0, 2, "preempted"),
        (a, 5, 9, "preempted"),
        (b, 2, 5, "blocked"),
        (b, 9, 10, "blocked"),
    ]
    assert waited == [(a, 2, 5), (a, 9, 10), (b, 0, 2), (b, 7, 9)]
    assert {one.pcpu for one in trace.slices} <= {0, 1}
    assert trace.end_ns == 10 * MS


def test_what_everybody_got_adds_up(written):
    first, second = scheduled(read_recording(written(PERF)))
    assert (first.name, first.share_percent, first.switches_per_s) == ("a-11", 60, 200)
    assert (second.share_percent, second.slice_ms) == (40, 2)
    assert list(second.waits_ms) == [2, 2]
    assert first.wait_ms(50) == 2
    assert first.share_percent + second.share_percent == 100


def test_a_model_beside_itself_has_no_gap(written):
    trace = read_recording(written(PERF))
    answer, table, *_ = schedule_blocks(trace, trace, pairs_of(trace, trace, ()))
    assert answer.text == "CPU within 0.0 points, 1 times the switches, 1 times the wait p95"
    assert [row[0] for row in table.rows] == ["b-12, model", "b-12, recorded", "a-11, model", "a-11, recorded"]


@pytest.mark.parametrize(
    ("matches", "text"),
    [
        (["c=*"], "the model has no vCPU 'c'; it has b-12, a-11"),
        (["a-11=*-1*"], "2 fit b-12, a-11"),
        (["a-11=x"], "none fits; the recording has a-11, b-12"),
    ],
)
def test_a_match_must_be_one(matches, text, written):
    trace = read_recording(written(PERF))
    with pytest.raises(UsageError, match="--match") as refused:
        pairs_of(trace, trace, matches)
    assert text in str(refused.value)


def test_what_is_no_schedule_is_refused(written, tmp_path):
    with pytest.raises(UsageError, match="cycles: --cycles"):
        read_recording(written(XEN))
    with pytest.raises(UsageError, match="is no recorded schedule"):
        read_recording(written("model: lab\n"))
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        read_recording(tmp_path / "nowhere")
    with pytest.raises(ModelFileError, match="nobody runs in it"):
        read_recording(written(PERF.splitlines()[0]))


@pytest.mark.thorough
def test_a_recording_of_a_real_machine_has_the_demand_of_its_program_and_the_rule_of_its_kernel():
    """The program takes 4 ms of CPU time and sleeps; its kernel has EEVDF, which the model's guests have too."""
    recording = read_recording(RECORDED / "recorded.txt")
    real = {one.name.partition("-")[0]: one for one in scheduled(recording)}
    (periodic,) = [n for n, name in enumerate(recording.vcpu_names) if name.startswith("periodic-")]
    run_slices = [one for one in recording.slices if one.vcpu == periodic]
    bursts = sum(one.reason == "blocked" for one in run_slices)
    assert sum(one.end_ns - one.start_ns for one in run_slices) / bursts == pytest.approx(4 * MS, rel=0.02)
    assert sum(one.share_percent for one in scheduled(recording)) == pytest.approx(100, abs=1)
    spec = load_model(str(RECORDED / "guest.yaml")).spec
    done = run_model(spec, 1, 0).whole.outcomes["domains.machine.applications.periodic"].transactions
    share_percent = 100 * done * 4 * MS / spec.measure.duration
    assert share_percent == pytest.approx(real["periodic"].share_percent, rel=0.04)


MODEL = """\
format: 2
hosts: {host: {pcpus: 1, scheduler: {kind: cfs}}}
domains:
  a: {shares: 1024, applications: {job: {kind: cpu_bound}}}
  b: {shares: 1024, applications: {job: {kind: cpu_bound}}}
measure: {duration: 1 s, warm_up: 0 s}
"""


@pytest.mark.thorough
def test_the_command_lays_both_beside_each_other(written, tmp_path, capsys):
    recorded, model, out = written(PERF), tmp_path / "two.yaml", tmp_path / "both.json"
    model.write_text(MODEL)
    typed = ["trace", str(model), "--beside", str(recorded), "--match", "a.0=a-*", "--match", "b.0=b-*"]
    assert main([*typed, "--length", "50 ms", "-o", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "a.0, model" in printed
    assert "a-11, recorded" in printed
    events = json.loads(out.read_text())["traceEvents"]
    processes = {e["args"]["name"]: e["pid"] for e in events if e.get("name") == "process_name"}
    assert {"pCPUs", "vCPUs", "recorded CPUs", "recorded"} <= processes.keys()
    ran = [e for e in events if e["ph"] == "B" and e["pid"] == processes["recorded CPUs"]]
    assert [e["args"]["length_ns"] for e in sorted(ran, key=lambda e: e["ts"])] == [2 * MS, 3 * MS, 4 * MS, MS]


@pytest.mark.parametrize(
    ("typed", "text"),
    [
        (["--match", "a.0=a"], "--match and --cycles are about the recording"),
        (["--beside", "nowhere"], "'nowhere' cannot be read"),
    ],
)
def test_mistakes_are_said_before_the_run(typed, text, tmp_path, capsys):
    model = tmp_path / "two.yaml"
    model.write_text(MODEL)
    assert main(["trace", str(model), "-o", str(tmp_path / "x.json"), *typed]) == 2
    assert text in capsys.readouterr().err
