"""A page about a tiny model of one's own, and a client that reaches it as a browser on this machine does."""

import html
import re
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

import pytest
from starlette.testclient import TestClient

from tests.study.tiny import tiny
from vftsim.ui.app import build
from vftsim.ui.desk import Desk

ROOT = Path(__file__).resolve().parents[2]
MODEL = (
    tiny(
        subscribers="600",
        pre_registration="{duration: 1 s, rate: 20 /s, transient: 500 ms}",
        steps="{initial: 10 /s, increment: 10 /s, duration: 3 s, transient: 1 s, most: 2}",
    )
    + '\ncalibrated: {by: "tiny, first step", loads: [10 /s, 15 /s]}\n'
)
LOOPBACK = "http://127.0.0.1:8765"
ASKED = "model=tiny.yaml&ask=run&n=1&quick=0"
LONGEST_S = 60.0


@dataclass
class Page:
    """A running page, as tests use it."""

    desk: Desk
    client: TestClient

    def get(self, query, path="/"):
        """Return the answer to an address."""
        return self.client.get(f"{path}?{query}", follow_redirects=False)

    def post(self, path, query, **more):
        """Send a form with the token of the page."""
        told = [*parse_qsl(query), *{"token": self.desk.token, **more}.items()]
        return self.client.post(path, content=urlencode(told), follow_redirects=False)

    def posed(self, query=ASKED):
        """Return the configurations of an address."""
        return self.desk.posed(self.desk.read(parse_qsl(query)))

    def until(self, word, query=ASKED):
        """Wait until every study of an address is at a word."""
        end = time.monotonic() + LONGEST_S
        while (found := {each.state.word for each in self.posed(query)}) != {word}:
            assert time.monotonic() < end, found
            time.sleep(0.05)

    def commands(self, query):
        """Return the command lines that stand below an address."""
        text = self.get(query).text
        return [html.unescape(each) for each in re.findall(r'aria-label="Command of [^"]*">(.*?)</pre>', text)]


@pytest.fixture
def opened(tmp_path, monkeypatch):
    """Return a function that opens a page about a model in a store; what is open at the end is closed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    (tmp_path / "tiny.yaml").write_text(MODEL)
    desks = []

    def open_page(store="store", models=("tiny.yaml", "lab-virtual")):
        desk = Desk({each: each for each in models}, tmp_path / store, ["-j", "1"])
        desks.append(desk)
        return Page(desk, TestClient(build(desk), base_url=LOOPBACK))

    yield open_page
    for desk in desks:
        desk.runs.close()


@pytest.fixture
def page(opened):
    """A page with an empty store."""
    return opened()


class NoProcess:
    """Stands for a process that goes on until it is interrupted."""

    def __init__(self, words, **_):
        self.words, self._ended = words, threading.Event()

    def poll(self):
        return 3 if self._ended.is_set() else None

    def terminate(self):
        self._ended.set()

    def wait(self):
        self._ended.wait()
        return 3


@pytest.fixture
def idle(monkeypatch):
    """Have studies wait for ever instead of running; return the command lines that were begun."""
    begun = []

    def popen(words, **more):
        begun.append(words)
        return NoProcess(words, **more)

    monkeypatch.setattr("vftsim.ui.runs.subprocess.Popen", popen)
    return begun
