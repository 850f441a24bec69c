"""A real Dask scheduler and worker processes on loopback: same results, nothing lost or twice."""

import concurrent.futures
import contextlib
import importlib
import itertools
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections import Counter, deque
from concurrent.futures import Future
from queue import SimpleQueue
from unittest.mock import Mock

import pytest

from tests.study.searches import search_study
from vftsim.cli.main import main
from vftsim.errors import UsageError, WorkerLostError
from vftsim.study.designs.capacity_search import SearchSettings
from vftsim.study.runs.cluster import Cluster, on_cluster
from vftsim.study.runs.versions import different, versions
from vftsim.study.runs.workers import Workers
from vftsim.study.store.database import DATABASE
from vftsim.study.store.store import Store

pytest.importorskip("distributed", reason="Dask is not installed: pip install 'vftsim[cluster]'")
pytestmark = pytest.mark.thorough

BEGINS = """
import sys
from vftsim.study.runs import versions as module
if len(sys.argv) > 4 and sys.argv[4] == "other":
    module._source = lambda: "0123456789abcdef"
from distributed.cli import dask_worker
dask_worker.main([sys.argv[1], "--host", "127.0.0.1", "--no-dashboard", "--nthreads", sys.argv[3],
                  "--nanny" if sys.argv[2] == "nanny" else "--no-nanny"])
"""


class LocalCluster:
    """A scheduler and its workers, each a process of its own."""

    def __init__(self, folder):
        self.file, self.log = folder / "scheduler.json", (folder / "log").open("w")
        words = ["-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
        self.scheduler = self._begin([*words, "--scheduler-file", str(self.file)])
        self.workers = []
        end = time.monotonic() + 60
        while not (self.file.exists() and self.file.read_text().endswith("}")):  # whole
            assert time.monotonic() < end, "no scheduler"
            time.sleep(0.05)
        self.address = json.loads(self.file.read_text())["address"]

    def _begin(self, words):
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        return subprocess.Popen(
            [sys.executable, *words], stdout=self.log, stderr=self.log, env=environment, start_new_session=True
        )

    def add(self, count, *, nanny=False, threads=1, other=False):
        more = ["other"] if other else []
        kind = "nanny" if nanny else "alone"
        for _ in range(count):
            self.workers.append(self._begin(["-c", BEGINS, self.address, kind, str(threads), *more]))

    def wait_for(self, count):
        from distributed import Client

        with Client(self.address, set_as_default=False) as client:
            client.wait_for_workers(count, timeout=60)

    def have(self, count):
        """Begin as many workers as are missing of so many."""
        self.workers = [each for each in self.workers if each.poll() is None]
        self.add(count - len(self.workers))
        self.wait_for(count)

    def end(self):
        for process in [*self.workers, self.scheduler]:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self.log.close()


@pytest.fixture
def cluster(tmp_path):
    made = LocalCluster(tmp_path)
    yield made
    made.end()


@pytest.fixture(scope="module")
def clusters(tmp_path_factory):
    """Return a function that gives one whose scheduler lives, for tests that need no other than plain workers."""
    made = []

    def living():
        if not made or made[-1].scheduler.poll() is not None:
            made.append(LocalCluster(tmp_path_factory.mktemp("cluster")))
        return made[-1]

    yield living
    for each in made:
        each.end()


@pytest.fixture
def two_workers(clusters):
    made = clusters()
    made.have(2)
    return made


@pytest.fixture(scope="module")
def here(tmp_path_factory, tiny_path):
    """The directory of the sweep that one process has made."""
    folder = tmp_path_factory.mktemp("one-process") / "out"
    assert sweep(tiny_path, folder, "-j", "1") == 0
    return folder


def stored(folder):
    with contextlib.closing(sqlite3.connect(folder / DATABASE)) as connection:
        return sorted(
            connection.execute("SELECT key, replication, data FROM replications JOIN studies ON studies.id = study")
        )


def sweep(path, folder, *more):
    grid = "domains.sut.applications.proxy.touch_cost=" + ",".join(f"{n} ms" for n in range(2, 6))
    return main(["sweep", str(path), "--grid", grid, "-n", "2", "-q", "--csv", "-o", str(folder), *more])


def test_max_time_holds(clusters, tmp_path, tiny_path, capsys):
    cluster = clusters()
    assert not cluster.workers, "of those whom tests share it this is the first"
    begin = time.monotonic()
    code = sweep(tiny_path, tmp_path / "o", "--cluster", cluster.address, "--max-time", "1 s")
    assert code == 3
    assert time.monotonic() - begin < 20
    assert "--max-time" in capsys.readouterr().err


def test_a_cluster_gives_what_one_process_gives(two_workers, here, tmp_path, tiny_path, tiny, capsys):
    assert sweep(tiny_path, tmp_path / "there", "--cluster", str(two_workers.file)) == 0
    assert stored(here) == stored(tmp_path / "there") != []
    assert (here / "results.csv").read_bytes() == (tmp_path / "there/results.csv").read_bytes()
    settings = SearchSettings(probability=0.5, resolution=8.0, budget=16)
    with on_cluster(two_workers.address) as used:
        assert used.count() == 2
        far = search_study(tiny, 3, 2, settings=settings).searches["steady"]
    near = search_study(tiny, 3, 1, settings=settings).searches["steady"]
    assert far.result == near.result, "a search looks at what came before it goes on"
    capsys.readouterr()


def test_what_goes_wrong_in_a_task_is_passed_on(two_workers):
    with on_cluster(two_workers.address):
        with pytest.raises(UsageError, match="from 1 to"):
            Workers(_refuses, 1).in_order([1, 2])
        assert Workers(abs, 1).in_order([-1, 2, -3]) == [1, 2, 3], "and the cluster goes on"


def _refuses(_):
    raise UsageError("from 1 to 2")


def _where(task):
    begin = time.monotonic()
    time.sleep(0.05)
    return os.getpid(), begin, time.monotonic()


@pytest.mark.slow
def test_a_worker_with_threads_simulates_one_at_a_time(cluster):
    cluster.add(1, threads=4)
    cluster.wait_for(1)
    with on_cluster(cluster.address):
        seen = sorted((begin, end) for _, begin, end in Workers(_where, 1).in_order(list(range(6))))
    assert all(earlier[1] <= later[0] for earlier, later in itertools.pairwise(seen))


@pytest.mark.slow  # beside test_versions_differ_by_name
def test_another_source_is_refused_by_name(cluster):
    cluster.add(1, other=True)
    cluster.wait_for(1)
    with pytest.raises(UsageError, match=r"worker tcp://127.* has other versions \(source of vftsim: 0123"):
        on_cluster(cluster.address).__enter__()
    cluster.add(1)
    cluster.wait_for(2)
    texts = []
    with on_cluster(cluster.address, texts.append) as used:
        assert used.count() == 1
        assert len({pid for pid, _, _ in Workers(_where, 1).in_order(list(range(4)))}) == 1
    assert len(texts) == 1


@pytest.mark.slow
def test_a_worker_that_comes_later_takes_part(cluster):
    texts = []
    with on_cluster(cluster.address) as used:
        cluster.add(1)
        results = Workers(_where, 1, texts.append).unordered(list(range(1200)))
        pids = {next(results)[1][0]}
        cluster.add(1)
        for _, found in results:
            pids.add(found[0])
            if len(pids) == 2:
                break
        results.close()
        assert used.count() == 2


class _KillsOnce:
    def __init__(self, marker, times):
        self.marker, self.times = marker, times

    def __call__(self, task):
        if task == 3:
            with self.marker.open("a") as stream:
                stream.write("x")
            if len(self.marker.read_text()) <= self.times:
                os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.01)
        return task


def test_what_a_lost_worker_was_at_goes_to_another(two_workers, tmp_path):
    texts = []
    with on_cluster(two_workers.address) as _:
        found = list(Workers(_KillsOnce(tmp_path / "k", 1), 1, texts.append).unordered(list(range(40))))
    assert sorted(found) == [(n, n) for n in range(40)], "none lost, none twice"
    assert (tmp_path / "k").read_text() == "xx"
    assert texts == ["lost 1 worker of the cluster; 1 left"]


@pytest.mark.slow  # beside the same of a pool of processes (test_workers.py)
def test_a_task_that_kills_every_worker_ends_the_study_after_the_others(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr("vftsim.study.runs.cluster._MOST_LOSSES", 3)  # each is a worker that starts anew
    cluster.add(2, nanny=True)
    cluster.wait_for(2)
    found = []
    with on_cluster(cluster.address):
        results = Workers(_KillsOnce(tmp_path / "k", 99), 1).unordered(list(range(8)))
        with pytest.raises(WorkerLostError, match="lost at the same task"):
            found.extend(iter(results.__next__, None))
    assert sorted(index for index, _ in found) == [0, 1, 2, 4, 5, 6, 7]


def test_a_task_at_which_a_worker_was_lost_has_the_next_one_for_itself():
    """With another one ahead of it, that one's result is lost with the worker each time, and it is blamed."""
    from vftsim.study.runs.cluster import Cluster

    class Client:
        def submit(self, *_, workers, **__):
            given.append(workers[0])
            return Mock()

    cluster, given = Cluster.__new__(Cluster), []
    cluster._admitted, cluster._running, cluster._engine = {"a", "b", "c"}, {}, "auto"
    cluster._client = Client()
    cluster._running["first"] = 9, "a"
    left = deque([0, 1, 2, 3, 4])
    cluster._assign(b"", range(5), left, Counter({1: 1}), SimpleQueue())
    at = dict(zip([0, 1, 2, 3], given, strict=False))
    assert at[0] != at[1] != "a"
    assert given.count(at[1]) == 1, "no other beside it, neither before nor after"
    assert not {index for index, _ in cluster._running.values()} & set(left)


def test_nobody_waits_for_results_of_who_is_gone(monkeypatch):
    monkeypatch.setattr("vftsim.study.runs.cluster._LOOK_S", 0.001)
    cluster, getting = Cluster.__new__(Cluster), Future()
    cluster.address, cluster._client = "tcp://gone", Mock(status="running", nthreads=lambda: {"a": 1})
    with pytest.raises(concurrent.futures.TimeoutError):
        cluster._waited_for(getting, {"a", "b"})
    cluster._client.status = "connecting"
    with pytest.raises(WorkerLostError, match="is gone"):
        cluster._waited_for(getting, {"a"})


def test_a_lost_scheduler_costs_what_was_under_way(clusters, here, tmp_path, tiny_path, capsys, monkeypatch):
    out, keep_all, cluster = tmp_path / "out", Store.keep_all, clusters()
    cluster.have(1)

    def keeps(self, replications):
        keep_all(self, replications)
        if cluster.scheduler.poll() is None:
            os.killpg(cluster.scheduler.pid, signal.SIGKILL)
            cluster.scheduler.wait()

    with monkeypatch.context() as patch:
        patch.setattr(Store, "keep_all", keeps)
        assert sweep(tiny_path, out, "--cluster", cluster.address) == 3
    assert "is gone" in capsys.readouterr().err
    kept = stored(out)
    assert 0 < len(kept) < len(stored(here))
    assert sweep(tiny_path, out, "-j", "1") == 0
    assert set(kept) <= set(stored(out)) == set(stored(here))
    capsys.readouterr()


def test_what_cannot_be_reached_is_said_before_anything_is_written(tmp_path, tiny_path, capsys):
    assert sweep(tiny_path, tmp_path / "o", "--cluster", str(tmp_path / "none.json")) == 2
    assert "no scheduler file" in capsys.readouterr().err
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize("content", ["", "hello", "[1]", '{"id": 1}'])
def test_a_file_that_is_no_scheduler_file_is_refused(tmp_path, tiny_path, capsys, content):
    (tmp_path / "s.json").write_text(content)
    assert sweep(tiny_path, tmp_path / "o", "--cluster", str(tmp_path / "s.json")) == 2
    assert "s.json' is no scheduler file: it has no address" in capsys.readouterr().err


def test_a_port_that_says_nothing_is_not_waited_for(monkeypatch):
    """As the port of another service, which a scheduler's dashboard is, too."""
    monkeypatch.setattr("vftsim.study.runs.cluster._CONNECT_S", 0.1)
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        pytest.raises(UsageError, match=r"no Dask scheduler answers at 'tcp://127\.0\.0\.1:"),
    ):
        Cluster(f"tcp://127.0.0.1:{silent.getsockname()[1]}")


def test_versions_differ_by_name():
    installed = versions("simpy")
    assert different(installed, installed) == ""
    assert different(installed, {**installed, "numpy": "1.0"}).startswith("numpy: 1.0, not ")
    assert installed["kernel"] == "simpy"


def test_a_machine_without_a_kernel_says_why(monkeypatch):
    from vftsim.study.runs import versions as module

    def fails():
        raise RuntimeError("no LLVM")

    monkeypatch.setattr(module, "the_kernel", fails)
    module._kernel.cache_clear()
    try:
        assert module.versions("compiled")["kernel"] == "none (no LLVM)"
        monkeypatch.delenv("VFTSIM_ENGINE", raising=False)
        assert module.installed_engine() == "simpy"
    finally:
        module._kernel.cache_clear()


def test_without_dask_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.delitem(sys.modules, "vftsim.study.runs.cluster")
    with pytest.raises(UsageError, match=r"^--cluster needs Dask: pip install 'vftsim\[cluster\]'$"):
        importlib.import_module("vftsim.study.runs.cluster")
