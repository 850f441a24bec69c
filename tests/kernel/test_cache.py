"""Compiled kernels in the user's cache: made once, shared by processes, never in the way of a run."""

import errno
import os
import subprocess
import sys
import warnings
from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.kernel import toy
from vftsim.errors import UsageError
from vftsim.kernel import cache_files, code_cache, make_engine, object_code
from vftsim.kernel.cache_files import CacheWarning
from vftsim.kernel.checked_engine import CheckedEngine
from vftsim.kernel.choose import EngineWarning
from vftsim.kernel.compiled_engine import BoundsCheckedEngine, CompiledEngine, kernel_source
from vftsim.kernel.simpy_engine import SimpyEngine

ROOT = Path(__file__).parents[2]
RUN = """
import sys
from tests.kernel import toy
from vftsim.kernel import make_engine
engine = make_engine(toy.linked())
toy.build(engine, [70, 130], [60, 90])
engine.run(100_000)
print(engine.name, engine.call(toy.served, 1), "vftsim.kernel.ir" in sys.modules)
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


@pytest.mark.thorough
def test_several_processes_may_start_at_once_and_leave_one_kernel(tmp_path: Path):
    processes = [start(tmp_path) for _ in range(3)]
    results = [process.communicate() for process in processes]
    compiled = [out == "compiled 999 True\n" for out, _ in results]
    assert sorted(compiled) == [False, False, True], "one compiles, the others wait for it"
    assert len(list(tmp_path.glob("kernels/*/kernel.o"))) == 1
    assert not list(tmp_path.rglob("*.tmp"))


IN_WORKERS = """
from tests.kernel import toy
from vftsim.kernel.compiled_engine import CompiledEngine
from vftsim.study.runs.workers import Workers

def served(until_ns):
    engine = CompiledEngine(toy.linked())
    toy.build(engine, [70, 130], [60, 90])
    engine.run(until_ns)
    return engine.call(toy.served, 1)

if __name__ == "__main__":
    from vftsim.composition import one_kernel

    one_kernel.all_parts = toy.linked  # quicker to make than the kernel of the package
    served(1)  # what vftsim warmup does
    print(Workers(served, 2).in_order([100_000, 100_000, 50_000]))
"""


@pytest.mark.thorough
def test_workers_use_the_kernel_that_was_compiled_before_they_began(tmp_path: Path):
    """They have surroundings of their own: one thread for each library of numpy."""
    program = tmp_path / "program.py"
    program.write_text(IN_WORKERS)
    environment = {**os.environ, "VFTSIM_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, str(program)], check=False, env=environment, capture_output=True, text=True)
    assert done.stdout == "[999, 999, 499]\n", done.stderr
    # The toy's, and the one of the package, which the parent makes ready for workers.
    assert len(list(tmp_path.glob("kernels/*/kernel.o"))) == 2
    assert done.stderr.splitlines() == [
        "vftsim: compiling what this model's parts need, once, 2 to 5 s",
        "vftsim: building the engine, once, about 12 s",
    ]


@pytest.mark.thorough
def test_a_kernel_is_compiled_once_and_a_damaged_one_anew(tmp_path: Path):
    assert start(tmp_path).communicate()[0] == "compiled 999 True\n"
    assert start(tmp_path).communicate()[0] == "compiled 999 False\n"
    (code,) = tmp_path.glob("kernels/*/kernel.o")
    code.write_bytes(b"damaged")
    assert start(tmp_path).communicate()[0] == "compiled 999 True\n"
    assert start(tmp_path).communicate()[0] == "compiled 999 False\n"


def test_code_that_cannot_be_kept_is_said_to_be_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    def fail(path: Path, made_of: str, content: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setenv("VFTSIM_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(cache_files, "write_made", fail)
    assert code_cache.cached("made of", lambda often: often.encode()) == b"once"
    text = capsys.readouterr().err
    assert text.startswith(f"vftsim: it cannot be kept ('{tmp_path}")
    assert text.endswith("No space left on device), and is made again in each process\n")


def test_code_is_taken_only_whole_and_for_the_source_it_was_made_of(tmp_path: Path):
    cache_files.write_made(tmp_path / "code", "source", b"object\n")
    whole = (tmp_path / "code").read_bytes()
    assert cache_files.read_made(tmp_path / "code", "source") == b"object\n"
    assert cache_files.read_made(tmp_path / "code", "another source") is None
    for harm in (b"", whole[:-1], b"{}\n", whole.partition(b"\n")[2], whole + b" ", b"\xff" + whole):
        (tmp_path / "code").write_bytes(harm)
        assert cache_files.read_made(tmp_path / "code", "source") is None


def test_code_that_needs_what_is_not_there_is_not_loaded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(object_code, "_NEEDS", ("fmod", "nobody_has_this"))
    with pytest.raises(OSError, match="C library lacks nobody_has_this"):
        object_code.Loaded(b"")


def test_a_cache_is_made_for_its_owner_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("VFTSIM_CACHE_DIR", str(tmp_path / "made" / "cache"))
    before = os.umask(0)
    try:
        folder = cache_files.kernel_folder("name")
        assert folder is not None
        cache_files.write_made(folder / "file", "source", b"content")
    finally:
        os.umask(before)
    modes = [path.stat().st_mode & 0o777 for path in (*[folder, *folder.parents][:3], folder / "file")]
    assert modes == [0o700, 0o700, 0o700, 0o600]


@pytest.mark.parametrize("which", ["cache", "cache/kernels", "cache/kernels/name"])
def test_a_folder_that_others_may_write_to_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: str):
    monkeypatch.setenv("VFTSIM_CACHE_DIR", str(tmp_path / "cache"))
    assert cache_files.kernel_folder("name") is not None
    (tmp_path / which).chmod(0o777)
    with pytest.warns(CacheWarning, match=rf"{which}' may be written to by others; removed, it is made again"):
        assert cache_files.kernel_folder("name") is None


@pytest.mark.parametrize("which", ["cache", "cache/kernels", "cache/kernels/name"])
def test_what_somebody_else_owns_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: str):
    monkeypatch.setenv("VFTSIM_CACHE_DIR", str(tmp_path / "cache"))
    folder = cache_files.kernel_folder("name")
    assert folder is not None
    cache_files.write_made(folder / "file", "source", b"content")
    assert cache_files.read_made(folder / "file", "source") == b"content"
    _owned_by_another([tmp_path / which], monkeypatch)
    with pytest.warns(CacheWarning, match=rf"{which}' belongs to another user"):
        assert cache_files.kernel_folder("name") is None
    _owned_by_another([folder / "file"], monkeypatch)
    assert cache_files.read_made(folder / "file", "source") is None


def _owned_by_another(paths: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Give files to somebody else; where only root could do that, look at them as somebody else."""
    for path in paths:
        if os.geteuid() == 0:
            os.chown(path, 12345, -1)
        else:
            monkeypatch.setattr(os, "geteuid", lambda: 12345)


def test_only_plain_files_of_the_owner_are_opened(tmp_path: Path):
    cache_files.write_made(tmp_path / "whole", "source", b"content")
    (tmp_path / "link").symlink_to(tmp_path / "whole")
    (tmp_path / "device").symlink_to("/dev/zero")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "device", "folder", "pipe", "nothing"):
        assert cache_files.read_made(tmp_path / name, "source") is None
    (tmp_path / "whole").chmod(0o622)
    assert cache_files.read_made(tmp_path / "whole", "source") is None
    for name in ("link", "device", "pipe", "whole"):
        cache_files.write_made(tmp_path / name, "source", b"anew")
        assert cache_files.read_made(tmp_path / name, "source") == b"anew"


@pytest.mark.thorough
def test_a_cache_that_cannot_be_written_does_not_end_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("VFTSIM_CACHE_DIR", str(blocked))
    make, made = object_code.compiled, []

    def counted(*what: str) -> bytes:
        made.append(1)
        return make(*what)

    monkeypatch.setattr(object_code, "compiled", counted)
    for warns in (pytest.warns(CacheWarning, match="the kernel cache is not used .*file"), nullcontext()):
        with warns:
            engine = CompiledEngine(toy.linked())
        toy.build(engine, [70, 130], [60, 90])
        engine.run(100_000)
        assert engine.call(toy.served, 1) == 999
    assert len(made) == 1


def test_where_llvm_fails_the_other_engine_goes_on_and_says_so(monkeypatch: pytest.MonkeyPatch):
    def broken(*_: object, checks: bool) -> None:
        raise RuntimeError("no compiler here")

    monkeypatch.setattr(code_cache, "entry_of", broken)
    with pytest.warns(EngineWarning, match=r"cannot be used \(no compiler here\); going on with simpy"):
        engine = make_engine(toy.linked())
    assert isinstance(engine, SimpyEngine)
    with pytest.raises(RuntimeError, match="no compiler here"):
        make_engine(toy.linked(), "compiled")


def test_the_environment_chooses_where_nobody_else_does(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("VFTSIM_ENGINE", "simpy")
    assert isinstance(make_engine(toy.linked()), SimpyEngine)
    assert isinstance(make_engine(toy.linked(), "compiled"), CompiledEngine)
    for name, kind in (("bounds-checked", BoundsCheckedEngine), ("checked", CheckedEngine)):
        monkeypatch.setenv("VFTSIM_ENGINE", name)
        assert type(make_engine(toy.linked())) is kind, "workers of a command that runs a part of one's own inherit it"
    monkeypatch.setenv("VFTSIM_ENGINE", "quick")
    with pytest.raises(UsageError, match="there is no engine 'quick'"):
        make_engine(toy.linked())


def test_an_engine_that_does_not_exist_is_refused():
    with pytest.raises(
        UsageError, match="there is no engine 'fast'; engines are auto, compiled, simpy, bounds-checked, checked"
    ):
        make_engine(toy.linked(), "fast")


def test_a_kernels_text_does_not_depend_on_the_order_of_linking():
    with warnings.catch_warnings():
        assert kernel_source(toy.linked()) == kernel_source(toy.linked())


def test_a_file_that_cannot_be_put_in_its_place_leaves_no_piece(tmp_path: Path):
    (tmp_path / "kernel.o").mkdir()
    with pytest.raises(OSError, match=r"kernel\.o"):
        cache_files.write_whole(tmp_path / "kernel.o", b"code")
    assert [path.name for path in tmp_path.iterdir()] == ["kernel.o"]
