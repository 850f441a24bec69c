"""Ctrl-C that Python drops, in a destructor or a callback, still ends the command."""

import signal
import subprocess
import sys

import pytest

from vftsim.__main__ import begin

DROPPED = """
import os, signal, sys, time, weakref
from vftsim.cli import main as module

class Gone:
    pass

def press(_):
    os.kill(os.getpid(), {number})
    for _ in range(1000):
        pass

def runs():
    gone = Gone()
    reference = weakref.ref(gone, press)
    del gone
    try:
        for _ in range(600):
            time.sleep(0.1)
    except KeyboardInterrupt:
        return 3
    return 0

module.main = runs
sys.exit(module.console())
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_that_python_drops_comes_again(number):
    words = [sys.executable, "-c", DROPPED.format(number=int(number))]
    done = subprocess.run(words, capture_output=True, text=True, timeout=50, check=False)
    assert (done.returncode, done.stderr) == (3, "")


def test_a_mistake_is_not_told_beside_an_interruption_that_python_dropped():
    """As ``--max-time`` says that it is over, and the command is refused before it is interrupted again."""
    dropping = DROPPED.partition("    try:")[0] + "    raise module.UsageError('a mistake')\n"
    ending = "module.main = module._saying_what_is_kept(runs)\nmodule._AGAIN_S = 5\nsys.exit(module.console())\n"
    words = [sys.executable, "-c", dropping.format(number=int(signal.SIGINT)) + ending]
    done = subprocess.run(words, capture_output=True, text=True, timeout=50, check=False)
    assert "interrupted; nothing had finished" in done.stderr
    assert "a mistake" not in done.stderr


def test_ctrl_c_before_the_command_line_is_read(monkeypatch, capsys):
    """Importing what reads it takes tenths of a second."""

    class Struck:
        def find_spec(self, name, *_):
            if name == "vftsim.cli.main":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "vftsim.cli.main", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Struck(), *sys.meta_path])
    assert begin() == 3
    assert capsys.readouterr().err == "vftsim: interrupted\n"
