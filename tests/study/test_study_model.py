"""Model files: their form, and what a resolved model is."""

import json
import os
import signal
import subprocess
import sys
import threading

import pytest
from tiny import TINY

from vftsim.composition.views import ramp_of
from vftsim.errors import ModelFileError, UsageError
from vftsim.platform.cpu.parameters import schedulers
from vftsim.platform.io.parameters import io_paths
from vftsim.platform.protection.mechanism import protections
from vftsim.study.runs.model import in_yaml, load_model, models_schema, shipped_models
from vftsim.workloads.parts import APPLICATIONS, WORKLOADS


def test_a_part_without_kind_is_told_the_kinds(tmp_path):
    path = tmp_path / "m.yaml"
    path.write_text(TINY.replace("    kind: ims_bench\n", ""))
    with pytest.raises(ModelFileError, match="ims_bench") as caught:
        load_model(path)
    assert caught.value.key == "workloads.calls.kind"


def test_an_unknown_kind_names_file_line_and_the_closest_kind(tmp_path):
    path = tmp_path / "m.yaml"
    path.write_text(TINY.replace("kind: ims_bench\n", "kind: ims_bunch\n"))
    with pytest.raises(ModelFileError, match="did you mean 'ims_bench'") as caught:
        load_model(path)
    assert (caught.value.line, caught.value.key) == (
        TINY.splitlines().index("    kind: ims_bench") + 1,
        "workloads.calls.kind",
    )


def test_a_name_beyond_ascii_is_whole_where_names_of_files_are_taken_to_be_ascii():
    code = "from vftsim.study.runs.model import Model; print(ascii(Model('l\\xe4b', None).label))"
    plain = {**os.environ, "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    assert subprocess.check_output([sys.executable, "-c", code], env=plain, text=True) == "'l\\xe4b'\n"


def test_the_written_out_model_is_the_same_model(tiny, tmp_path):
    path = tmp_path / "again.yaml"
    path.write_text(in_yaml(tiny.resolved()))
    again = load_model(path)
    assert again.spec == tiny.spec
    assert again.digest() == tiny.digest()


def test_a_changed_value_changes_the_digest(tiny, tiny_path):
    assert load_model(tiny_path, ["domains.sut.applications.proxy.touch_cost=4.001 ms"]).digest() != tiny.digest()


def test_scale_shortens_what_is_measured_and_keeps_the_transient(tiny_path):
    """6 s with a transient of 2 s at half scale: 2 + 4 / 2 = 4 s; registration 1 + 2 / 2 = 2 s."""
    short = load_model(tiny_path).scaled(0.5)
    bench = ramp_of(short.spec)
    steps, pre = bench.steps, bench.pre_registration
    assert (steps.duration, steps.transient, pre.duration) == (4_000_000_000, 2_000_000_000, 2_000_000_000)
    assert "2 s instead of 4 s" in short.notes[0]


def test_quick_measures_a_minute_of_long_steps_and_leaves_short_ones(tiny_path):
    long = load_model(tiny_path, ["workloads.calls.steps.duration=902 s"]).quick()
    assert ramp_of(long.spec).steps.duration == 62_000_000_000
    short = load_model(tiny_path).quick()
    assert ramp_of(short.spec) == ramp_of(load_model(tiny_path).spec)
    assert short.notes == ("--quick shortens nothing: the model is as short as its workloads allow",)


def test_a_scale_of_nothing_is_refused(tiny):
    with pytest.raises(UsageError, match="scale"):
        tiny.scaled(0.0)


@pytest.mark.parametrize("name", shipped_models())
def test_shipped_models_are_good_and_say_all_of_themselves(name, tmp_path):
    model = load_model(name)
    path = tmp_path / "again.yaml"
    path.write_text(in_yaml(model.resolved()))
    assert load_model(path).spec == model.spec


def test_the_schema_has_every_kind_and_no_dangling_reference():
    schema = models_schema()
    text = json.dumps(schema)
    for registry in (APPLICATIONS, WORKLOADS, schedulers(), io_paths(), protections()):
        for kind in registry:
            assert f'"{kind}"' in text

    def references(node):
        if isinstance(node, dict):
            for key, value in node.items():
                if key == "$ref":
                    yield value
                else:
                    yield from references(value)
        elif isinstance(node, list):
            for item in node:
                yield from references(item)

    used = {ref.removeprefix("#/$defs/") for ref in references(schema)}
    assert used <= set(schema["$defs"])
    assert used


def _written_out_until(model, press):
    press.start()
    while press.is_alive():
        model.resolved()
    model.resolved()


@pytest.mark.own_process
def test_an_interruption_while_a_model_is_written_out_is_not_lost(tiny):
    """Inside a union pydantic drops what its serializers raise, and a command would go on, deaf to all signals."""
    for attempt in range(12):
        press = threading.Timer(0.02 + 0.0007 * attempt, os.kill, (os.getpid(), signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            _written_out_until(tiny, press)
