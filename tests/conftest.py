import gc
import importlib
import os
import shutil
import signal
import sys
import tempfile
import traceback
import warnings
from pathlib import Path

import pytest
from hypothesis import settings

from vftsim.__main__ import COLLECT_AFTER

# A slow machine is no fault.
settings.register_profile("vftsim", deadline=None)
settings.load_profile("vftsim")

_SKETCHED = ("calibrate", "cli", "docs", "malformed", "records", "study", "ui")

# Models run as users run them.  Labs of a few parts mostly run as plain Python, which stops at a wrong index or value:
# their kernels take longer to compile than to run.
_ENGINE = os.environ.get("VFTSIM_ENGINE", "compiled")

# An output that leaves before the backup can take over is a defect, unless a test plants it.
os.environ.setdefault("VFTSIM_STRICT", "1")


# As the command does: looking for garbage after each 700 new objects took a quarter of the time of all tests.
gc.set_threshold(COLLECT_AFTER)

_LONGEST_S = 300
_HERE = Path(__file__).parent
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")


class _ByFile:
    """How tests go to worker processes: those of a file to one, as what it makes once would be made in each.

    Those of tests/report share the results that they look at.
    """

    def _split_scope(self, nodeid):
        file = nodeid.partition("::")[0]
        return "reports" if file.startswith("tests/report/") else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Take the place of ``--dist``, but for one file alone; xdist 3.8 cannot read its own groups with pytest 9.2."""
    if [Path(name.partition("::")[0]).suffix for name in config.args] == [".py"]:
        return None
    from xdist.scheduler import LoadScopeScheduling

    return type("_Scheduling", (_ByFile, LoadScopeScheduling), {})(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """Let every second worker begin with the last file: each finds half of them with their assertions rewritten."""
    report = yield
    number = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    if int(number) % 2 and isinstance(collector, pytest.Directory):
        report.result.reverse()
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Put files in the same order in every worker."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        items.sort(key=lambda item: item.path.parts)


def pytest_collection_finish():
    """What was made to collect thousands of tests stays to the end: no search for garbage need look at it again."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish():
    """End the worker processes that a study left for the next one, or the end of this process would wait for them."""
    if (workers := sys.modules.get("vftsim.study.runs.workers")) is not None:
        workers.end_processes()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup():
    """Choose the engine anew for each test: a command's --engine stays chosen in its process."""
    os.environ["VFTSIM_ENGINE"] = _ENGINE


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    """Run a test that signals its own process in a child: late under load, the signal would end the whole run."""
    if pyfuncitem.get_closest_marker("own_process") is None:
        return None
    if failed := _forked(pyfuncitem):
        pytest.fail(f"in a process of its own:\n{failed}", pytrace=False)
    return True


def _forked(item):
    """Run a test in a copy of this process; return how it failed, or nothing."""
    with tempfile.TemporaryFile("w+") as text:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of threads, none of which the test needs
            child = os.fork()
        if child == 0:
            signal.alarm(_LONGEST_S)
            _end_with(item, text)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        text.seek(0)
        return text.read() or (f"ended with {code}" if code else "")


def _end_with(item, message):
    """Run a test and end this process, which is a copy of another one."""
    code = 1
    try:
        item.obj(**{name: item.funcargs[name] for name in item._fixtureinfo.argnames})
        code = 0
    except BaseException:
        traceback.print_exc(file=message)
        message.flush()
    finally:
        os._exit(code)


@pytest.fixture(autouse=True, scope="session")
def _signals_reach_the_programs_under_test():
    """A shell ignores Ctrl-C for what it starts in the background, ``nohup`` the hang-up, and programs inherit that."""
    usual = {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: signal.SIG_DFL}
    ignored = [number for number in usual if signal.getsignal(number) is signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, usual[number])
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)


class _Sketch:
    """Stands for the figure of charts: bytes that are equal where all that would be drawn is."""

    def __init__(self, charts):
        self._content = b"\x89PNG" + repr(charts).encode()

    def savefig(self, path, **_):
        Path(path).write_bytes(self._content)


@pytest.fixture(autouse=True)
def _charts_are_sketched(request, monkeypatch):
    """Drawing takes most of the time of a short study; those of tests/report and what is marked ``draws`` are drawn."""
    room = request.path.relative_to(_HERE).parts[0]
    if room in _SKETCHED and request.node.get_closest_marker("draws") is None:
        # By its module: the function vftsim.study has the name of the room.
        monkeypatch.setattr(importlib.import_module("vftsim.report.pictures"), "drawn", _Sketch)


@pytest.fixture(scope="session")
def browser():
    """A Chromium without a window; where there is none, what needs it is skipped."""
    playwright = pytest.importorskip("playwright.sync_api", reason="pip install 'vftsim[browser]' has it")
    path = next((found for name in _BROWSERS if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip("there is no Chromium here: apt-get install chromium")
    with playwright.sync_playwright() as running:
        started = running.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield started
        started.close()
