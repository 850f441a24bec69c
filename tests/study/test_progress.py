"""How far a study is: also within a replication, by simulated time, which changes nothing else."""

import re

import numpy as np
import pytest
from tiny import TINY

from tests.study.grids import kept
from vftsim.composition.run import Run
from vftsim.spec.units import S
from vftsim.study.designs import failover
from vftsim.study.designs.decision import decide
from vftsim.study.designs.decision_crossovers import DecisionRequest
from vftsim.study.designs.study import run_experiment
from vftsim.study.designs.sweep import plan_sweep
from vftsim.study.execution import Execution, Replications
from vftsim.study.runs import progress as shown
from vftsim.study.runs.estimate import Expected, share_by
from vftsim.study.runs.model import load_model
from vftsim.study.runs.progress import Bar, Lines, Silent

JOB = """\
hosts: {host: {pcpus: 1}}
domains: {vm: {applications: {db: {kind: batch, processes: 1, demand: 1 ms, disk_operations: 0}}}}
measure: {warm_up: 100 ms, duration: 200 ms}
"""


def every(part_ns, told):
    """Return what notes the times it is told, and wants to be told again after so long."""

    def note(now_ns):
        told.append(now_ns)
        return part_ns

    return note


class Clock:
    """A clock that a test sets."""

    def __init__(self):
        self.now_s = 0.0

    def monotonic(self):
        return self.now_s


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(shown, "time", clock)
    return clock


class Noting(Silent):
    """Keeps what it is told."""

    def __init__(self):
        self.parts = []
        self.done = 0

    def part(self, share):
        self.parts.append(self.done + share)

    def advance(self, text=""):
        self.done += 1
        self.parts.append(self.done)


def tiny(tmp_path):
    path = tmp_path / "tiny.yaml"
    path.write_text(TINY)
    return load_model(path)


@pytest.mark.thorough
def test_a_run_in_parts_is_the_same_run():
    for name, short in (("xen-media", "measure.duration=200 ms"), ("xen-media-native", "measure.duration=100 ms")):
        spec = load_model(name, [short, "measure.warm_up=50 ms"]).spec
        told = []
        in_parts = Run(spec, 1, 0)
        in_parts.on_time = every(7_654_321, told)
        assert in_parts.run().to_dict() == Run(spec, 1, 0).run().to_dict()
        assert len(told) > 10
        assert told == sorted(told)
        assert Expected(spec).length_ns - 7_654_321 <= told[-1] < Expected(spec).length_ns


def test_a_ramp_in_parts_is_the_same_ramp(tmp_path):
    spec = tiny(tmp_path).spec
    told = []
    in_parts = Run(spec, 1, 0)
    in_parts.on_time = every(765_432_100, told)
    assert in_parts.run().to_dict() == Run(spec, 1, 0).run().to_dict()
    assert len(told) > 20


def of_models(tmp_path, execution):
    Replications([tiny(tmp_path)], execution).run(2)


def of_a_sweep(tmp_path, execution):
    tiny(tmp_path)
    experiment = plan_sweep(str(tmp_path / "tiny.yaml"), None, ["hosts.host.switch_cost=1 us"], replications=2)
    kept(run_experiment, experiment, tmp_path / "out", execution)


class Totals(Silent):
    """Keeps what there is to be done in all, as it is known at each stage."""

    def __init__(self):
        self.totals = []
        self.done = 0

    def total(self, units):
        self.totals.append(self.done + units + self.later)

    def advance(self, text=""):
        self.done += 1


@pytest.mark.parametrize("bands", [False, pytest.param(True, marks=pytest.mark.thorough)])
def test_a_decision_knows_from_the_first_stage_on_how_much_it_plays(bands, tmp_path, monkeypatch):
    """Runs and crashes of each mechanism, then of its prices."""
    monkeypatch.setattr(failover, "STEADY_AFTER_NS", 3 * S)
    path = tmp_path / "job.yaml"
    path.write_text(JOB)
    noted = Totals()
    kinds = ("none", "checkpoint", "lockstep")
    decide(load_model(path), kinds, 1, DecisionRequest((), bands=bands), Execution(1, 1, progress=noted))
    assert len(noted.totals) == (4 if bands else 2)
    assert set(noted.totals) == {noted.done}
    # One run, and two crashes.
    assert bands or noted.done == 3 * (1 + 2)


@pytest.mark.thorough
@pytest.mark.parametrize("runs", [of_models, of_a_sweep])
def test_progress_grows_within_a_replication_and_never_falls(runs, tmp_path):
    noted = Noting()
    runs(tmp_path, Execution(progress=noted))
    assert noted.parts == sorted(noted.parts)
    assert noted.parts[0] < 0.1, "it moves from the beginning"
    assert sum(1.0 < part < 2.0 for part in noted.parts) > 3
    assert noted.parts[-1] == 2


COURSES = {
    "lab-native": (
        330_066,
        1_351_637,
        2_567_867,
        3_997_791,
        5_616_756,
        7_447_972,
        9_486_968,
        11_723_241,
        14_174_999,
        16_819_982,
        19_677_550,
        22_733_040,
        25_995_639,
        30_045_238,
    ),
    "lab-virtual": (340_563, 1_381_035, 2_616_165, 4_064_964, 5_702_829, 7_552_913, 9_633_383, 12_739_165),
    "lab-virtual-ft": (
        424_647,
        782_807,
        1_303_082,
        1_999_430,
        2_868_164,
        3_909_395,
        5_130_863,
        6_536_488,
        8_126_308,
        10_999_228,
    ),
}
"""Events by the end of the stir phase and of each step of 900 s, counted in replication 0 of seed 1."""
EVENTS_PER_S = 50_000


def instant_of(events, course, begins_ns):
    """Return the simulated time in ns at which a ramp has had so many events."""
    ends_ns = [0, *(begins_ns + step * 900 * 10**9 for step in range(len(course)))]
    return int(np.interp(events, (0, *course), ends_ns))


@pytest.mark.parametrize("name", COURSES)
def test_after_a_tenth_of_the_work_the_time_that_is_left_is_right_within_a_quarter(name, clock, capsys):
    """A tenth of a ramp's events is two steps of ten: simulated time alone would be wrong by 60 to 70 %."""
    spec, course = load_model(name).spec, COURSES[name]
    share, begins_ns = share_by(spec), spec.workloads["calls"].time_of("step 1", 0)
    bar, lines = Bar("run"), Lines("run")
    with bar:
        for one in (bar, lines):
            one.total(1)
        bar._bar.start_task(bar._task)
        for look in range(1, 101):
            clock.now_s = look / 1000 * course[-1] / EVENTS_PER_S
            for one in (bar, lines):
                one.part(share(instant_of(clock.now_s * EVENTS_PER_S, course, begins_ns)))
        left_s = 0.9 * course[-1] / EVENTS_PER_S
        assert bar._bar.tasks[0].time_remaining == pytest.approx(left_s, rel=0.25)
    *_, last = (line for line in capsys.readouterr().err.splitlines() if " left - " in line)
    minutes, seconds = (int(found or 0) for found in re.search(r"about (?:(\d+) min )?(\d+) s left", last).groups())
    assert 60 * minutes + seconds == pytest.approx(left_s, rel=0.27), "and up to five seconds old"


def test_lines_say_what_is_left_by_the_share_that_is_done(clock, capsys):
    lines = Lines("run")
    lines.total(4)
    clock.now_s = 4.0
    lines.part(0.1)
    assert capsys.readouterr().err == "", "not before five seconds"
    clock.now_s = 10.0
    lines.part(0.25)
    assert capsys.readouterr().err == "run: 0/4, about 2 min 30 s left - 25 % of number 1\n"
    clock.now_s = 40.0
    lines.advance()
    assert capsys.readouterr().err == "run: 1/4, about 2 min 0 s left\n"


def test_what_workers_take_to_begin_is_no_part_of_the_pace(clock, capsys):
    """One of 300 after 5 s, the others each 0.4 s: 26 minutes were told."""
    lines = Lines("search")
    lines.total(300)
    clock.now_s = 5.3
    lines.advance("at 850 /s")
    assert capsys.readouterr().err == "search: 1/300 - at 850 /s\n"
    for _ in range(13):
        clock.now_s += 0.4
        lines.advance()
    assert capsys.readouterr().err == "search: 14/300, about 1 min 54 s left\n", "286 units of 0.4 s"


def test_the_beginning_is_said_once_when_there_is_work(capsys):
    for begin in ("total", "advance"):
        shown_quietly = shown.make_progress("run", True, ["a vCPU is idle", "a vCPU is idle", "this takes 2 hours"])
        shown_quietly.total(0)
        assert capsys.readouterr().err == ""
        for _ in range(2):
            getattr(shown_quietly, begin)(3)
        assert capsys.readouterr().err == "vftsim: a vCPU is idle\nvftsim: this takes 2 hours\n"


def test_no_remaining_time_is_guessed_from_almost_nothing(clock, capsys):
    """A billionth of a run after a minute of compiling said 57,639,571 minutes."""
    lines = Lines("study")
    clock.now_s = 60.0  # compiling
    lines.total(6)
    clock.now_s = 66.0
    lines.part(1e-9)
    assert "left" not in capsys.readouterr().err
    clock.now_s = 72.0
    lines.part(0.5)
    assert "about 2 min 12 s left" in capsys.readouterr().err, "12 s for a twelfth"
