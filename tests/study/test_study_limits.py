"""What a study may take: asked about, refused, and ended when it takes more."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from vftsim.errors import UsageError
from vftsim.study.runs import limits
from vftsim.study.runs.estimate import Needs
from vftsim.study.runs.limits import Limits, check, ended_beyond

HOUR = Needs(events=1e9, seconds=3601.0, runs=1.0)


def refused(needs, limits, asked=False):
    """Return the refusal, or what is said as a list."""
    try:
        words = check(needs, 1, limits, lambda _: asked)
    except UsageError as error:
        return str(error)
    return [words] if words else []


def test_an_hour_is_asked_about_once_and_a_minute_is_said():
    assert refused(Needs(seconds=59.0, runs=1.0), Limits()) == []
    assert refused(Needs(events=123.0, seconds=150.0, runs=1.0), Limits()) == [
        "this takes about 1.2e+02 events, 2 minutes on 1 worker, 0.04 GB of memory"
    ]
    assert "above an hour; --yes" in refused(HOUR, Limits())
    assert len(refused(HOUR, Limits(is_agreed=True))) == 1
    assert len(refused(HOUR, Limits(), asked=True)) == 1
    assert len(refused(HOUR, Limits(most_ns=600 * 10**9))) == 1, "it ends after ten minutes anyhow"


def test_memory_has_a_limit_of_its_own():
    large = Needs(seconds=1.0, worker_bytes=1e15, runs=1.0)
    assert "a quarter of this machine's memory" in refused(large, Limits())
    assert refused(large, Limits(is_agreed=True)) == []
    assert "--max-memory allows 2 GB" in refused(large, Limits(is_agreed=True, most_bytes=2 * 10**9))
    assert refused(Needs(worker_bytes=1e9, runs=1.0), Limits(most_bytes=2 * 10**9)) == []


@pytest.mark.own_process
def test_time_that_is_over_interrupts():
    texts = []
    with pytest.raises(KeyboardInterrupt), ended_beyond(50_000_000, None, texts.append):
        time.sleep(60)
    assert texts == ["the --max-time of 0.05 seconds is over"]


@pytest.mark.own_process
def test_a_mistake_is_not_told_beside_time_that_is_over():
    """It comes while the end of time is being said: what is inside is interrupted, and nobody hears of both."""
    is_said, mistake = threading.Event(), threading.Event()

    def say(_: str) -> None:
        is_said.set()
        mistake.wait(10)

    def work() -> None:
        is_said.wait(10)
        threading.Timer(0.1, mistake.set).start()
        raise UsageError("a mistake")

    with pytest.raises(KeyboardInterrupt), ended_beyond(1_000_000, None, say):
        work()


@pytest.mark.own_process
def test_time_that_is_over_interrupts_where_ctrl_c_is_ignored():
    """As it is in a job that a script starts in the background; Ctrl-C itself goes on being ignored."""

    def work():
        signal.raise_signal(signal.SIGINT)
        time.sleep(60)

    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with pytest.raises(KeyboardInterrupt), ended_beyond(200_000_000, None, lambda _: None):
            work()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.own_process
def test_memory_beyond_the_limit_interrupts():
    texts = []
    with pytest.raises(KeyboardInterrupt), ended_beyond(None, 1_000_000, texts.append):
        time.sleep(60)
    assert re.fullmatch(r"\d+ MB of memory are used, --max-memory allows 1 MB", texts[0])


@pytest.mark.own_process
def test_time_that_is_not_over_interrupts_nothing():
    with ended_beyond(50_000_000, None, pytest.fail):
        pass
    time.sleep(0.1)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads memory as Linux shows it")
def test_a_child_that_has_not_begun_its_program_counts_once(monkeypatch):
    """Between fork and exec it has its parent's pages; the sum of both ended studies that had room."""
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        told = {os.getpid(): "900 500 1 1 0 9 0", child.pid: "900 500 1 1 0 9 0"}
        monkeypatch.setattr(limits, "_memory_of", lambda process: told.get(process, ""))
        assert limits.memory_in_use() == 500 * os.sysconf("SC_PAGE_SIZE")
        told[child.pid] = "800 300 1 1 0 9 0"
        assert limits.memory_in_use() == 800 * os.sysconf("SC_PAGE_SIZE")
    finally:
        child.communicate(b"\n")
