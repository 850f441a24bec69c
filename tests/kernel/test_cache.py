"""Compiled kernels in the user's cache: made once, shared by processes, never in the way of a run."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from tests.kernel import toy
from vftsim.errors import UsageError
from vftsim.kernel import compiled_engine, machine_code, make_engine
from vftsim.kernel.choose import EngineWarning
from vftsim.kernel.compiled_engine import CompiledEngine, kernel_source
from vftsim.kernel.machine_code import MachineCode
from vftsim.kernel.simpy_engine import SimpyEngine

ROOT = Path(__file__).parents[2]
RUN = """
import sys
from tests.kernel import toy
from vftsim.kernel import make_engine
engine = make_engine(toy.linked())
toy.build(engine, [70, 130], [60, 90])
engine.run(100_000)
print(engine.name, engine.call(toy.served, 1), "numba" in sys.modules)
"""


@pytest.fixture(autouse=True)
def _engine_of_a_user(monkeypatch: pytest.MonkeyPatch):
    """Tests elsewhere choose an engine for the whole process."""
    monkeypatch.delenv("VFTSIM_ENGINE", raising=False)


def start(cache: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "VFTSIM_CACHE_DIR": str(cache), "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-c", RUN], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.slow
def test_several_processes_may_start_at_once_and_leave_one_kernel(tmp_path: Path):
    processes = [start(tmp_path) for _ in range(3)]
    results = [process.communicate() for process in processes]
    assert {out for out, _ in results} == {"compiled 999 True\n"}, results
    assert len(list(tmp_path.glob("kernels/*/kernel.py"))) == 1
    assert not list(tmp_path.rglob("*.tmp"))


@pytest.mark.thorough
def test_a_kernel_is_compiled_once_and_then_loaded_without_numba(tmp_path: Path):
    assert start(tmp_path).communicate()[0] == "compiled 999 True\n"
    assert start(tmp_path).communicate()[0] == "compiled 999 False\n"
    (code,) = tmp_path.glob("kernels/*/kernel.code")
    for harm in (b"", code.read_bytes()[:-1], b"{}\n", b"[]\n", code.read_bytes() + b" ", b"\xff\n"):
        code.write_bytes(harm)
        assert machine_code.read(code) is None
    assert start(tmp_path).communicate()[0] == "compiled 999 True\n"
    assert machine_code.read(code) is not None


def test_code_that_calls_what_is_not_there_is_not_loaded(tmp_path: Path):
    MachineCode("enter", ("strlen",), b"object").write(tmp_path / "code")
    assert machine_code.read(tmp_path / "code") == MachineCode("enter", ("strlen",), b"object")
    MachineCode("enter", ("strlen", "nobody_has_this"), b"object").write(tmp_path / "code")
    assert machine_code.read(tmp_path / "code") is None
    assert machine_code.read(tmp_path / "no_code") is None


@pytest.mark.thorough
def test_where_numba_does_not_give_its_code_away_it_makes_the_call_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("VFTSIM_CACHE_DIR", str(tmp_path))
    asked = []
    monkeypatch.setattr(machine_code, "of_compiled", asked.append)
    for _ in range(2):
        engine = CompiledEngine(toy.linked())
        toy.build(engine, [70, 130], [60, 90])
        engine.run(100_000)
        assert engine.call(toy.served, 1) == 999
    assert len(asked) == 1  # and not compiled for it again
    assert not list(tmp_path.rglob("kernel.code"))


@pytest.mark.thorough
def test_a_cache_that_cannot_be_written_does_not_end_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("VFTSIM_CACHE_DIR", str(blocked))
    engine = CompiledEngine(toy.linked())
    toy.build(engine, [70, 130], [60, 90])
    engine.run(100_000)
    assert engine.call(toy.served, 1) == 999


def test_where_numba_fails_the_other_engine_goes_on_and_says_so(monkeypatch: pytest.MonkeyPatch):
    def broken(*_: object, by_numba: bool) -> None:
        raise RuntimeError("no compiler here")

    monkeypatch.setattr(compiled_engine, "load_kernel", broken)
    with pytest.warns(EngineWarning, match=r"cannot be used \(no compiler here\); going on with simpy"):
        engine = make_engine(toy.linked())
    assert isinstance(engine, SimpyEngine)
    with pytest.raises(RuntimeError, match="no compiler here"):
        make_engine(toy.linked(), "compiled")


def test_the_environment_chooses_where_nobody_else_does(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("VFTSIM_ENGINE", "simpy")
    assert isinstance(make_engine(toy.linked()), SimpyEngine)
    assert isinstance(make_engine(toy.linked(), "compiled"), CompiledEngine)
    monkeypatch.setenv("VFTSIM_ENGINE", "quick")
    with pytest.raises(UsageError, match="there is no engine 'quick'"):
        make_engine(toy.linked())


def test_an_engine_that_does_not_exist_is_refused():
    with pytest.raises(UsageError, match="there is no engine 'fast'; engines are auto, compiled, simpy"):
        make_engine(toy.linked(), "fast")


def test_a_kernels_text_does_not_depend_on_the_order_of_linking():
    with warnings.catch_warnings():
        assert kernel_source(toy.linked()) == kernel_source(toy.linked())
