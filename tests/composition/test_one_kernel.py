"""The one kernel of all parts of the package: no model of them compiles, and results are the other engine's."""

import os
import subprocess
import sys
import warnings
from functools import cache
from pathlib import Path
from typing import Literal

import pytest

from tests.kernel import toy
from vftsim.cli.main import main
from vftsim.composition import one_kernel
from vftsim.composition.link import all_parts, is_ours, kinds_of, linked_for, parts_in
from vftsim.composition.model import ModelSpec
from vftsim.composition.run import run_model
from vftsim.kernel import code_cache, object_code, prepared
from vftsim.kernel.compiled_engine import CompiledEngine, kernel_source
from vftsim.kernel.layout import layout_of
from vftsim.kernel.link import LinkError
from vftsim.kernel.simpy_engine import SimpyEngine
from vftsim.platform.cpu.schedulers.credit import Credit
from vftsim.spec import list_shipped
from vftsim.study.runs.model import load_model
from vftsim.testing.differences import state_differences

ROOT = Path(__file__).parents[2]
RUNS = """
from vftsim.composition.run import run_model
from vftsim.study.runs.model import load_model
for name in ("xen-media", "net-kvm", "sip-farm-r6"):
    print(run_model(load_model(name, ["measure.duration=100 ms"]).spec, 1, 0, "compiled").events)
"""


def engine_of(content: bytes) -> CompiledEngine:
    """An engine on a kernel that was kept."""
    kernel, layout, code = prepared.loaded(content)
    kernel.compiled["compiled"] = code_cache.called(code), layout
    return CompiledEngine(kernel)


@pytest.fixture(scope="module")
def kept() -> bytes:
    linked = toy.linked()
    return prepared.dumped(linked, layout_of(linked), code_cache.translated(kernel_source(linked), layout_of(linked)))


def test_a_kernel_that_was_kept_is_the_kernel(kept: bytes):
    linked = toy.linked()
    kernel, layout, _ = prepared.loaded(kept)
    assert layout == layout_of(linked)
    assert layout.text() == layout_of(linked).text()
    for action in (toy.on_arrival, toy.on_seen, toy.on_served):
        assert kernel.number(action) == linked.number(action)
    engine, other = engine_of(kept), SimpyEngine(linked)
    for one in (engine, other):
        toy.build(one, [70, 130], [60, 90])
        one.run(100_000)
    assert engine.call(toy.served, 1) == 999
    engine.linked = linked
    assert not list(state_differences(engine, other))


def test_what_a_kept_kernel_does_not_hold_is_named(kept: bytes):
    with pytest.raises(LinkError, match=r"has no kind of scheduler credit"):
        prepared.loaded(kept)[0].number(Credit.part)


@pytest.mark.thorough
def test_every_shipped_model_runs_on_it():
    linked = all_parts()
    for name in list_shipped("models"):
        spec = load_model(name).spec
        assert all(is_ours(type(part)) for part in parts_in(spec)), name
        for kind in kinds_of(spec):
            assert kind in linked.kinds[kind.sort.name], f"{name}: {kind.name}"
        single = linked_for(spec)
        assert single.tables.keys() <= linked.tables.keys(), name
        assert single.functions.keys() <= linked.functions.keys(), name


def test_a_part_from_outside_has_a_kernel_of_its_own(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(one_kernel, "the_kernel", lambda: "the one")
    spec = load_model("xen-media").spec
    assert one_kernel.prepared_for(spec) == "the one"
    (name, host), *_ = spec.hosts.items()

    class Mine(Credit):
        kind: Literal["credit"] = "credit"

    mine = host.model_copy(update={"scheduler": Mine.model_construct(**dict(host.scheduler))})
    other = spec.model_copy(update={"hosts": {name: mine}})
    assert isinstance(other, ModelSpec)
    assert one_kernel.prepared_for(other) is linked_for(other)


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of an installed package's kernels, and a cache that cannot be used."""
    monkeypatch.setattr(one_kernel, "_SHIPPED", tmp_path / "kernels")
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("VFTSIM_CACHE_DIR", str(tmp_path / "file"))
    (tmp_path / "kernels").mkdir()
    return tmp_path / "kernels" / one_kernel.machine()


@pytest.mark.skipif(object_code.processor() == "x86-64", reason="older than what is shipped")
def test_what_was_made_with_the_package_is_taken(kept: bytes, shipped: Path, monkeypatch: pytest.MonkeyPatch):
    one_kernel.cache_files.write_made(shipped, one_kernel._source(), kept)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the cache is not even looked at
        kernel = one_kernel.the_kernel.__wrapped__()
    engine = CompiledEngine(kernel)
    toy.build(engine, [70, 130], [60, 90])
    engine.run(100_000)
    assert engine.call(toy.served, 1) == 999


@pytest.mark.filterwarnings("ignore:the kernel cache is not used")
@pytest.mark.parametrize("harm", [lambda kept: kept[:-1], lambda kept: b"", lambda kept: kept])
def test_what_was_made_of_other_files_is_not_taken(
    harm, kept: bytes, shipped: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    made = []
    monkeypatch.setattr(one_kernel, "_build", lambda triple, cpu: made.append(triple) or kept)
    monkeypatch.setattr(code_cache, "_in_memory", {})
    one_kernel.cache_files.write_made(shipped, "other files", kept)
    shipped.write_bytes(harm(shipped.read_bytes()))
    one_kernel.the_kernel.__wrapped__()
    assert made == [""]
    # Tests have a cache that must not be used: what is made is kept in memory.
    assert capsys.readouterr().err == "vftsim: building the engine, again in each process, about 12 s\n"


def test_an_edit_makes_another_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(one_kernel, "PACKAGE", tmp_path)
    seen = [one_kernel._source()]
    for text in ("a = 1\n", "a = 2\n"):
        (tmp_path / "kernel").mkdir(exist_ok=True)
        (tmp_path / "kernel" / "new.py").write_text(text)
        seen.append(one_kernel._source())
    (tmp_path / "kernel" / "new.py").rename(tmp_path / "kernel" / "old.py")
    assert len({*seen, one_kernel._source()}) == 4


@pytest.mark.thorough
def test_different_models_are_one_kernel_and_agree_with_the_other_engine(monkeypatch: pytest.MonkeyPatch):
    one_kernel.the_kernel()
    monkeypatch.setattr(code_cache, "translated", lambda *_, **__: pytest.fail("it compiled"))
    for name in ("xen-media", "net-kvm", "sip-farm-r6"):
        spec = load_model(name, ["measure.warm_up=10 ms", "measure.duration=100 ms"]).spec
        compiled, other = (run_model(spec, 1, 0, engine) for engine in ("compiled", "simpy"))
        assert compiled.to_dict() == other.to_dict()
        assert compiled.events > 1000


def test_what_was_built_once_is_found_by_the_next_process(
    shipped: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """Two processes, by what they remember: a kernel of a few parts in the place of the one."""
    assert not shipped.exists()
    monkeypatch.setenv("VFTSIM_CACHE_DIR", str(shipped.parent / "cache"))
    monkeypatch.setattr(one_kernel, "all_parts", toy.linked)
    for text in ("vftsim: building the engine, once, about 12 s\n", ""):
        monkeypatch.setattr(one_kernel, "the_kernel", cache(one_kernel.the_kernel.__wrapped__))
        assert main(["warmup"]) == 0
        assert capsys.readouterr().err == text
    assert len(list(shipped.parent.glob("cache/kernels/*/kernel.o"))) == 1


@pytest.mark.slow
def test_one_kernel_is_built_for_processes_that_run_different_models(tmp_path: Path):
    environment = {**os.environ, "VFTSIM_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    texts = []
    for command in (["-m", "vftsim", "warmup"], ["-c", RUNS]):
        done = subprocess.run(
            [sys.executable, *command], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        texts.append(done.stderr)
    assert texts == ["vftsim: building the engine, once, about 12 s\n", ""]
    assert all(int(events) > 1000 for events in done.stdout.split())
    assert len(list(tmp_path.glob("kernels/*/kernel.o"))) == 1


@pytest.mark.parametrize("parts", [toy.linked, pytest.param(all_parts, marks=pytest.mark.slow)])
def test_the_package_brings_a_kernel_for_each_machine(parts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(one_kernel, "all_parts", parts)
    assert len(one_kernel.TRIPLES) == 2
    for name, machine in (("linux-x86_64", 62), ("linux-aarch64", 183)):  # numbers of the ELF format
        content = one_kernel.cache_files.read_made(one_kernel.write(tmp_path, name), one_kernel._source())
        assert content is not None
        _, layout, code = prepared.loaded(content)
        assert layout == layout_of(parts())
        assert (code[:4], int.from_bytes(code[18:20], "little")) == (b"\x7fELF", machine)
