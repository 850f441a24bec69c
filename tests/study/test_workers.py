"""Worker processes: replaced when killed, and never longer there than the one that started them."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from itertools import takewhile
from pathlib import Path

import loky
import pytest
from loky.process_executor import BrokenProcessPool
from programs import started

from vftsim.errors import UsageError, WorkerLostError
from vftsim.platform.cpu.parameters import schedulers
from vftsim.study.runs import workers
from vftsim.study.runs.workers import Workers, _suspects_last, deferred_interrupts

SLEEPERS = """
import os, sys, time
from vftsim.cli import main as module
from vftsim.study.runs.workers import Workers

def sleeps(task):
    with open(sys.argv[1], "a") as stream:
        print(os.getpid(), file=stream, flush=True)
    time.sleep(600)

def runs():
    try:
        Workers(sleeps, 2).in_order([1, 2])
    except KeyboardInterrupt:
        return 3

module.main = runs
sys.exit(module.console())
"""


def wait_until(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.02)


def is_there(pid):
    with suppress(ProcessLookupError, FileNotFoundError):
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    return False


def _process_of(_):
    return os.getpid()


def test_parts_of_a_script_are_run_in_its_own_process(monkeypatch):
    """No worker can import them: what it was sent of them was another kind, which no kernel knew."""
    registry = schedulers()
    mine = type("Mine", (registry["round_robin"],), {"__module__": "__main__"})
    monkeypatch.setitem(registry._parts, "mine", mine)
    with pytest.warns(UserWarning, match="^Mine stands in the script or notebook itself: workers need it in a module"):
        assert Workers(_process_of, 2).in_order([1, 2]) == [os.getpid()] * 2
    monkeypatch.setattr(workers, "clusters", [None, loky])
    with pytest.raises(UsageError, match=r"^Mine stands"):
        Workers(_process_of, 2).in_order([1, 2])


class _Circle:
    def __init__(self, gone):
        self.itself = self
        weakref.finalize(self, gone.append, 1)


def test_what_a_task_leaves_in_a_circle_is_gone_before_the_next():
    """An engine of megabytes is few objects: Python would look for them after many runs."""
    gone, before = [], []

    def works(_):
        before.append(len(gone))
        _Circle(gone)

    gc.disable()
    try:
        Workers(works, 1).in_order([1, 2, 3])
    finally:
        gc.enable()
    assert before == [0, 1, 2]


def test_an_import_that_the_end_of_the_process_disturbs_says_nothing():
    done = subprocess.run([sys.executable, "-c", DISTURBED], capture_output=True, text=True, check=True)
    assert done.stderr == ""


DISTURBED = """
import sys, threading
from vftsim.study.figures.frames import import_meanwhile

class Slow:
    def find_spec(self, name, *_):
        if name == "pandas":
            threading.main_thread().join()
            threading._register_atexit(print)

sys.meta_path.insert(0, Slow())
import_meanwhile()
"""


def test_results_come_back_in_the_order_of_the_tasks():
    assert Workers(abs, 2).in_order([-3, 2, -1, 0]) == [3, 2, 1, 0]


AS_A_COMMAND = """
import signal, warnings
from vftsim.cli import output
from vftsim.kernel.cache_files import CacheWarning
from vftsim.study.runs.workers import Workers

def mask(task):
    if task:
        warnings.warn(f"no room for {task}", CacheWarning)
    return sorted(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, ())))

output.prepare()
print(Workers(mask, 2).in_order([1, 2]), mask(0))
"""


@pytest.fixture(scope="module")
def of_a_command():
    return subprocess.run([sys.executable, "-c", AS_A_COMMAND], capture_output=True, text=True, check=True)


def test_workers_never_see_what_ends_the_command(of_a_command):
    """Not even while they start, when they would print the traceback of an import."""
    assert of_a_command.stdout == "[[1, 2, 15], [1, 2, 15]] []\n", "of the workers, and of the command afterwards"


def test_workers_warn_as_the_command_does(of_a_command):
    """Without place and category, which are for who calls Python."""
    assert sorted(of_a_command.stderr.splitlines()) == ["vftsim: no room for 1", "vftsim: no room for 2"]


class DiesOnce:
    """Kills its process at a task, the first time."""

    def __init__(self, marker):
        self.marker = marker

    def __call__(self, task):
        if task == 3 and not self.marker.exists():
            self.marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return task


@pytest.mark.thorough
def test_a_killed_worker_is_replaced_and_said(tmp_path):
    texts = []
    assert Workers(DiesOnce(tmp_path / "died"), 2, texts.append).in_order(list(range(8))) == list(range(8))
    assert len(texts) == 1
    assert "killed from outside" in texts[0]


def _killed(task):
    if task == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.3 * (task == 4))  # longer than the other lives
    return task


class _Threads(ThreadPoolExecutor):
    """Stands for two worker processes: a task that ends one takes with it what the other is at, and the pool."""

    def __init__(self):
        super().__init__(2)
        self.is_lost, self.tasks, self._one_at_a_time = threading.Event(), {}, threading.RLock()

    def submit(self, numbered, function, index, task):
        """Hand a task over."""
        with self._one_at_a_time:
            if self.is_lost.is_set():
                raise BrokenProcessPool
            self.tasks[task] = Future()
            super().submit(self._work, self.tasks[task], numbered, function, index, task)
            return self.tasks[task]

    def _work(self, future, *task):
        try:
            if not self.is_lost.is_set():
                numbered, *arguments = task
                future.set_result(numbered(*arguments))
        except SystemExit:
            self.shutdown()

    def shutdown(self, **_):
        with self._one_at_a_time:
            if not self.is_lost.is_set():
                self.is_lost.set()
                for future in self.tasks.values():
                    if not future.done():
                        future.set_exception(BrokenProcessPool())
                super().shutdown(wait=False)


def _lost_again_and_again(function):
    """Return what a study gives one of whose tasks ends its process."""
    found, results = [], Workers(function, 2).unordered(list(range(8)))
    with pytest.raises(WorkerLostError, match="killed from outside again and again"):
        found.extend(iter(results.__next__, None))
    return sorted(index for index, _ in found)


def test_a_task_that_kills_every_worker_ends_the_study_after_the_others(monkeypatch):
    pools = [_Threads()]

    def pool(*_, **__):
        if pools[-1].is_lost.is_set():
            pools.append(_Threads())
        return pools[-1]

    def works(task):
        tasks = pools[-1].tasks
        if task == 3:
            wait_until(lambda: all(tasks[other].done() for other in takewhile(lambda each: each != 3, tuple(tasks))))
            raise SystemExit
        if task == 4 and 3 in tasks and pools[-1].is_lost.wait(60.0):
            raise SystemExit  # lost with the other
        return task

    monkeypatch.setattr(loky, "get_reusable_executor", pool)
    assert _lost_again_and_again(works) == [0, 1, 2, 4, 5, 6, 7]
    assert Workers(abs, 2).in_order([-1, 2]) == [1, 2], "and the next study has workers again"
    pools[-1].shutdown()


@pytest.mark.slow
def test_a_task_that_kills_every_process_ends_the_study_after_the_others():
    assert _lost_again_and_again(_killed) == [0, 1, 2, 4, 5, 6, 7]
    assert Workers(abs, 2).in_order([-1, 2]) == [1, 2]


def test_what_may_have_killed_comes_last():
    assert list(_suspects_last({4: "a", 5: "b", 6: "c"}, 2)) == [6, 4, 5]


def _starves(_):
    raise MemoryError


def test_want_of_memory_is_said():
    with pytest.raises(WorkerLostError, match="not enough memory"):
        Workers(_starves, 2).in_order([1, 2, 3])


@pytest.mark.thorough
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes as Linux shows them")
@pytest.mark.parametrize(
    "how",
    [
        signal.SIGKILL,
        signal.SIGINT,
        pytest.param(signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param(signal.SIGHUP, marks=pytest.mark.slow),
    ],
)
def test_workers_end_with_the_process_that_started_them(tmp_path, how):
    noted = tmp_path / "pids"
    with started([sys.executable, "-c", SLEEPERS, str(noted)]) as process:
        wait_until(lambda: noted.exists() and noted.read_text().count("\n") == 2)
        process.send_signal(how)
        errors = process.communicate(timeout=60)[1]
    assert process.returncode == (-9 if how is signal.SIGKILL else 3)
    assert b"Traceback" not in errors
    wait_until(lambda: not any(is_there(int(pid)) for pid in noted.read_text().split()))


@pytest.mark.own_process
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_must_happen_whole_is_interrupted_at_its_end(number):
    def pressed(*_):
        raise KeyboardInterrupt

    happened = []

    def happens():
        with deferred_interrupts():
            os.kill(os.getpid(), number)
            happened.append("all of it")

    before = signal.signal(number, pressed)
    try:
        with pytest.raises(KeyboardInterrupt):
            happens()
        assert signal.getsignal(number) is pressed
    finally:
        signal.signal(number, before)
    assert happened == ["all of it"]


def test_cores_are_those_that_loky_counts(monkeypatch):
    """Which takes a tenth of a second to import: what a run imports is looked at in tests/cli/test_cli_commands.py."""
    monkeypatch.delenv("LOKY_MAX_CPU_COUNT", raising=False)
    assert workers.available_cores() == loky.cpu_count()


@pytest.mark.parametrize(
    ("message", "cores"),
    [
        ({"cpu.max": "150000 100000"}, 2),
        ({"cpu.max": "50000 100000"}, 1),
        ({"cpu.max": "max 100000"}, 8),
        ({"quota": "300000", "period": "100000"}, 3),
        ({"quota": "-1", "period": "100000"}, 8),
        ({}, 8),
    ],
)
def test_a_container_gets_the_cores_of_its_quota(message, cores, tmp_path, monkeypatch):
    for name, text in message.items():
        (tmp_path / name).write_text(f"{text}\n")
    files = ((tmp_path / "cpu.max",), (tmp_path / "quota", tmp_path / "period"))
    monkeypatch.setattr(workers, "_QUOTAS", files)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(8), raising=False)
    monkeypatch.delenv("LOKY_MAX_CPU_COUNT", raising=False)
    assert workers.available_cores() == cores
