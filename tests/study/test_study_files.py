"""Study files: the points that a design makes, and results that go on, merge, and can be run again."""

import json
import math
import re
import sqlite3
from collections import Counter
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest
from ruamel.yaml import YAML
from scipy.stats import t as student_t

import vftsim
from tests.labs.json_schema_check import mistakes
from tests.study.grids import kept
from vftsim.cli.main import main
from vftsim.errors import ModelFileError, UsageError
from vftsim.spec import shipped_dir
from vftsim.study.designs import runner
from vftsim.study.designs.experiment import experiment_of, template
from vftsim.study.designs.past import digest_of, export, is_reproduced, read_points, stored_run, write_points
from vftsim.study.designs.points import Point, Span, points_of, size_of, span_of
from vftsim.study.designs.runner import simulate
from vftsim.study.designs.study import run_experiment
from vftsim.study.designs.study_spec import COLUMNS, StudySpec, changed, read_study, shipped_studies, study_schema
from vftsim.study.execution import Execution
from vftsim.study.runs.model import load_model
from vftsim.study.runs.workers import Interrupted
from vftsim.study.store.database import DATABASE
from vftsim.study.store.lock import DirectoryLock

ROOT = Path(__file__).parents[2]
SMALL = """\
name: small
models: [xen-media]
set: [workloads.signaling=null, "measure.duration=100 ms", "measure.warm_up=100 ms"]
factors:
  streams: [10, 20]
figures: [media.loss, domains.dom0.cpu]
replications: 2
"""
COUNT = "replications: 2\n"
FILES = ("results.csv", "replications.csv", "points.json", "charts.png")


def written(folder, text=SMALL, **more):
    path = folder / "small.yaml"
    path.write_text(text + "".join(f"{key}: {value}\n" for key, value in more.items()))
    return path


def points(folder, text):
    spec, document = read_study(str(written(folder, text)))
    made = points_of(spec, document)
    assert made[:1]
    return spec, made


def small(factors, design=""):
    return SMALL.replace("  streams: [10, 20]\n", factors) + (f"design: {design}\n" if design else "")


@pytest.mark.parametrize(
    ("model", "domain", "held"), [("two-tier", "database", "event_sync"), ("lab-virtual-ft", "sut", "checkpoint")]
)
def test_a_point_is_under_the_mechanism_that_it_names(tmp_path, model, domain, held):
    """Also where what holds at all points protects another domain, or by another mechanism, than the file."""
    factors = "  protection: [none, lockstep, checkpoint]\n"
    settings = f'set: ["domains.{domain}.protection={{kind: {held}}}"]'
    text = small(factors).replace("xen-media", model).replace(SMALL.splitlines()[2], settings)
    for point in points(tmp_path, text)[1]:
        kinds = {domain.protection.kind for domain in point.made().spec.domains.values()} - {"none"}
        assert kinds == {point.values["protection"]} - {"none"}


def test_a_setting_of_a_parameter_holds_for_every_kind_that_is_a_factor(tmp_path):
    """For the model's kind alone, checkpoints would go by the channel's default rate."""
    text = small("  protection: [lockstep, checkpoint]\n").replace("xen-media", "lab-virtual-ft")
    text = text.replace(SMALL.splitlines()[2], 'set: ["domains.sut.protection.channel={rate: 123 Mbit/s}"]')
    rates = [point.model.spec.domains["sut"].protection.channel.rate for point in points(tmp_path, text)[1]]
    assert rates == [123_000_000, 123_000_000]
    with pytest.raises(ModelFileError, match=r"--set: domains.sut.protection.channel=.*: .*'channel'"):
        points(tmp_path, text.replace("checkpoint]", "ha_restart]"))


def run_study_file(spec, points, folder, execution):
    return kept(run_experiment, experiment_of(spec, points), folder, execution)


def run(folder, target, *more):
    return main(["study", str(folder / "small.yaml"), "-j", "1", "-q", "--csv", "-o", str(target), *more])


# Points


def test_a_grid_crosses_values_models_and_levels(tmp_path):
    text = small("  streams: [10, 20]\n  weight: {low: 64, high: 1024, scale: log, levels: 3}\n")
    spec, found = points(tmp_path, text.replace("[xen-media]", "[xen-media, xen-media-two-core]"))
    assert len(found) == size_of(spec) == 12
    assert [p.values for p in found[:3]] == [{"streams": "10", "weight": w} for w in ("64", "256", "1024")]
    model = found[7].model.spec
    assert model.workloads["media"].streams == 10
    assert {model.domains[name].weight for name in ("dom0", "media")} == {256}, "a short name of sweeps"
    assert model.hosts["host"].pcpus == load_model("xen-media-two-core").spec.hosts["host"].pcpus


def test_entries_of_one_model_are_told_apart_by_their_settings(tmp_path):
    entries = (
        "{model: xen-media, set: [hosts.host.pcpus=2]}",
        "{model: xen-media, label: one, set: [hosts.host.pcpus=1]}",
    )
    _, found = points(tmp_path, SMALL.replace("[xen-media]", f"[xen-media, {', '.join(entries)}]"))
    assert [point.label for point in found[::2]] == ["xen-media", "xen-media+hosts.host.pcpus=2", "one"]
    assert [model.spec.hosts["host"].pcpus for model in found.some_models[2:]] == [2, 2, 1, 1]


def test_pairs_and_lists_are_what_they_say(tmp_path):
    _, found = points(tmp_path, small("  streams: [10, 20]\n  domains.dom0.weight: [64, 128]\n", "{kind: paired}"))
    assert [tuple(p.values.values()) for p in found] == [("10", "64"), ("20", "128")]
    design = "{kind: list, points: [{streams: 5, cost: 2 us}, {streams: 6, cost: 3 us}]}"
    _, found = points(tmp_path, small("  streams: {}\n  cost: {key: hosts.host.switch_cost}\n", design))
    assert [p.model.spec.hosts["host"].switch_cost for p in found] == [2000, 3000]


def test_a_longer_sobol_sequence_goes_on_from_the_shorter(tmp_path):
    text = small("  streams: {low: 10, high: 100}\n  scheduler: [credit, credit2]\n", "{kind: sobol, points: 5}")
    spec, few = points(tmp_path, text)
    many = points_of(changed(spec, 13, None, None), tmp_path)
    assert [p.values for p in few] == [p.values for p in many[: len(few)]]
    assert len(few) == 10
    assert {p.model.spec.hosts["host"].scheduler.kind for p in few} == {"credit", "credit2"}
    assert points_of(changed(spec, None, None, 2), tmp_path)[0].values != few[0].values, "another seed, other points"


def test_a_latin_hypercube_has_one_point_in_each_slice(tmp_path):
    text = small(
        "  cost: {key: hosts.host.switch_cost, low: 1 us, high: 0.011 ms}\n", "{kind: latin_hypercube, points: 10}"
    )
    _, found = points(tmp_path, text)
    costs = sorted(p.model.spec.hosts["host"].switch_cost for p in found)
    assert [int(cost - 1000) // 1000 for cost in costs] == list(range(10)), "units are converted, slices are 1 us wide"


@pytest.mark.parametrize("kind", ["sobol", "latin_hypercube"])
def test_whole_numbers_are_drawn_equally_often(tmp_path, kind):
    text = small("  hosts.host.pcpus: {low: 1, high: 4}\n", f"{{kind: {kind}, points: 64}}")
    _, found = points(tmp_path, text)
    assert Counter(point.model.spec.hosts["host"].pcpus for point in found) == dict.fromkeys((1, 2, 3, 4), 16)


def test_a_drawn_whole_number_lies_in_its_range():
    by_ratio = Counter(span_of("x", 1, 7, is_log=True).drawn_at(n / 3000) for n in range(3001))
    assert [by_ratio[n] for n in "1234567"] == [
        1000,
        *(pytest.approx(1000 * math.log2(1 + 1 / n), abs=2) for n in range(2, 8)),
    ]
    for span in (Span(0.3, 2.2, "", is_log=True, is_whole=True), Span(95.5, 97.4, "", is_whole=True)):
        ends = [int(span.at(end)) for end in (0.0, 1.0)]
        assert {int(span.drawn_at(n / 100)) for n in range(101)} == set(range(ends[0], ends[1] + 1))
    assert Span(1.0, 2.0, "ms").drawn_at(0.5) == "1.5 ms"


def test_ranges_are_spread_as_they_say():
    span = span_of("x", "1 ms", "1 s", is_log=True)
    numbers = [span.number_at(n / 3) for n in range(4)]
    assert numbers == [1.0, 10.0, 100.0, 1000.0]
    assert [span.at(n / 3) for n in range(4)] == ["1 ms", "10 ms", "100 ms", "1 s"]
    assert span_of("x", 1, 4).at(0.5) in ("2", "3")
    linear = span_of("x", 0.0, 1.0)
    assert all(b - a == pytest.approx(0.25) for a, b in pairwise(linear.number_at(n / 4) for n in range(5)))


def test_a_parameter_says_nothing_under_a_mechanism_without_it(tmp_path):
    factors = "  protection: [checkpoint, none]\n  checkpoint_interval: [20 ms, 40 ms]\n"
    text = small(factors).replace("[xen-media]", "[lab-virtual]").replace("workloads.signaling=null, ", "")
    _, found = points(tmp_path, text.replace('"measure.duration=100 ms", "measure.warm_up=100 ms"', ""))
    protections = [point.model.spec.domains["sut"].protection for point in found]
    assert [getattr(each, "interval", None) for each in protections] == [20_000_000, 40_000_000, None, None]
    with pytest.raises(ModelFileError, match="unknown protection mechanism kind 'nine'"):
        points(tmp_path, text.replace("none]", "nine]"))


def test_what_the_costs_of_each_mechanism_rest_on_is_said_once(tmp_path):
    (tmp_path / "loop.yaml").write_text(
        "networks: {lan: {}}\nhosts: {host: {pcpus: 1}}\ndomains:\n  vm:\n"
        "    interfaces: {eth0: {path: {kind: native}}}\n    applications: {srv: {kind: service}}\n"
        "workloads: {load: {kind: request_response, to: vm, clients: 1}}\n"
        "measure: {warm_up: 10 ms, duration: 100 ms}\n"
    )
    text = "name: small\nmodels: [loop.yaml]\nfactors: {protection: [none, checkpoint, lockstep]}\n"
    spec, few = points(tmp_path, f"{text}figures: [load.rate]\nreplications: 1\n")
    message = str(run_study_file(spec, few, tmp_path / "s", Execution(1, 1)))
    assert [message.count(f"Costs of {kind} (vm)") for kind in ("none", "checkpoint", "lockstep")] == [0, 1, 1]


def test_the_first_example_of_the_page_is_planned_as_it_stands(tmp_path, capsys):
    page = (ROOT / "docs/studies.md").read_text(encoding="utf-8")
    written(tmp_path, page.partition("```yaml\n")[2].partition("```")[0])
    assert run(tmp_path, tmp_path / "s", "--dry-run") == 0
    assert "128 points with 5 replications" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("factors", "design", "why"),
    [
        ("  streams: {low: 10, high: 20}\n", "", "a grid needs levels"),
        ("  streams: {low: 10}\n", "", "needs both low and high"),
        ("  streams: [1, 2]\n  weight: [64]\n", "{kind: paired}", "streams has 2, weight has 1"),
        ("  streams: [1, 2]\n", "{kind: sobol, points: 4}", "draws from ranges"),
        ("  streams: {}\n", "{kind: list, points: [{stream: 1}]}", "did you mean 'streams'"),
        ("  streams: {}\n", "{kind: nonsense}", "nonsense"),
        ("  streams: {low: 20 ms, high: 3}\n", "{kind: sobol, points: 4}", "one unit"),
        ("  streams: {low: -1, high: 3, scale: log}\n", "{kind: sobol, points: 4}", "begins above 0"),
        ("  streams: [1]\n  load: {key: workloads.media.streams, values: [2]}\n", "", "'streams' and 'load' both set"),
        ("  streams: [10, 20, 10.0]\n", "", "factor 'streams' names a value twice"),
        ("  strems: [1]\n", "", "did you mean 'streams'"),
        ("  domains.dom0.wieght: [1]\n", "", "did you mean 'weight'"),
        ("  domains.dom0.vcpus: [1, 0]\n", "", "^factors: domains.dom0.vcpus=0: 'vcpus' must be >= 1, got 0$"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_runs(tmp_path, factors, design, why):
    with pytest.raises((ModelFileError, UsageError), match=why):
        points(tmp_path, small(factors, design))


def test_a_wrong_response_is_refused_and_nothing_is_written(tmp_path, capsys):
    written(tmp_path, SMALL.replace("media.loss", "media.los"))
    assert run(tmp_path, tmp_path / "out") == 2
    assert "nearest: workloads.media.loss" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


# Results


def test_a_study_goes_on_with_more_points_and_replications(tmp_path, monkeypatch):
    spec, few = points(tmp_path, SMALL)
    first = run_study_file(spec, few, tmp_path / "s", Execution(1, 1))
    assert (first.finished, first.already) == (4, 0)
    ran = []
    monkeypatch.setattr(runner, "simulate", lambda task, *_: ran.append(task.replication) or simulate(task))
    more, many = points(
        tmp_path, SMALL.replace("[10, 20]", "[10, 20, 30]").replace("replications: 2", "replications: 3")
    )
    second = run_study_file(more, many, tmp_path / "s", Execution(1, 1))
    assert (second.finished, second.already, sorted(ran)) == (9, 4, [0, 1, 2, 2, 2])
    assert second.of_points[0].values[1] == first.of_points[0].values[1]


def test_an_ended_study_ends_in_the_same_files(tmp_path, monkeypatch, capsys):
    written(tmp_path)
    assert run(tmp_path, tmp_path / "whole") == 0
    left = [2]

    def ended(task, *_):
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return simulate(task)

    with monkeypatch.context() as patch:
        patch.setattr(runner, "simulate", ended)
        assert run(tmp_path, tmp_path / "s") == 3
        assert "rest on what had finished; it is in" in capsys.readouterr().err
        left[0] = 0
        with pytest.raises(Interrupted):
            run_study_file(*points(tmp_path, SMALL), tmp_path / "none", Execution(1, 1))
    assert run(tmp_path, tmp_path / "s") == 0
    for name in FILES:
        assert (tmp_path / "s" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    capsys.readouterr()


@pytest.mark.thorough
@pytest.mark.parametrize("text", [SMALL, SMALL.replace(COUNT, "precision: {percent: 20 %, of: [domains.dom0.cpu]}\n")])
def test_merged_shards_are_the_whole(tmp_path, text, capsys):
    written(tmp_path, text)
    shards = [tmp_path / f"s{n}" for n in (1, 2)]
    for number, folder in enumerate(shards, 1):
        assert run(tmp_path, folder, "--shard", f"{number}/2") == 0
    assert main(["merge", *map(str, shards), "-o", str(tmp_path / "all")]) == 0
    for target in ("all", "whole"):
        assert run(tmp_path, tmp_path / target) == 0
    for name in FILES:
        assert (tmp_path / "all" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    capsys.readouterr()


@pytest.mark.thorough
def test_a_precision_takes_as_many_replications_as_its_point_needs(tmp_path):
    text = SMALL.replace("streams: [10, 20]", "streams: [4, 400]").replace("media.loss", "media.delay.p99")
    rule = "precision: {percent: 5 %, most: 22, of: [media.delay.p99]}\n"
    with pytest.raises(ModelFileError, match=r"replications and precision: .* leave one out"):
        points(tmp_path, text + rule)
    spec, found = points(tmp_path, text.replace(COUNT, rule))
    result = run_study_file(spec, found, tmp_path / "s", Execution(1, 1))
    counts = [len(of_point.values) for of_point in result.of_points]
    assert counts[0] == 15, "the first look, and five that confirm it"
    assert counts[1] == 22, "nearly full, much spread: all that it may take"
    assert result.unreached == [1]


def test_the_confidence_of_a_study_is_that_of_its_intervals_and_of_their_caption(tmp_path):
    """Student's t of 9 degrees of freedom at 60 and 99 %: 0.883 and 3.25 standard errors."""
    text, figure = (
        small("  streams: [10]\n").replace("domains.dom0.cpu", "media.delay.mean"),
        "workloads.media.delay.mean",
    )
    widths, captions = [], []
    for percent in (60, 99):
        spec, found = points(tmp_path, text.replace(COUNT, f"replications: 10\nconfidence: {percent} %\n"))
        result = run_study_file(spec, found, tmp_path / str(percent), Execution(1, 1))
        row, runs = result.results.set_index("figure").loc[figure], result.replications[figure]
        assert row["high"] >= runs.mean() + student_t.ppf(0.5 + percent / 200, 9) * runs.std() / math.sqrt(10)
        widths.append(row["high"] - row["low"])
        captions.append(" ".join(str(result).split()).partition("± or [..]: ")[2][:30])
    assert widths[0] < widths[1] / 3
    assert captions == ["60 % interval over replication", "99 % interval over replication"]


def test_a_run_is_replayed_to_the_last_bit(tmp_path, capsys, monkeypatch):
    """Without the writer's lock, so that a directory which nobody may write to can be asked."""
    written(tmp_path)
    assert run(tmp_path, tmp_path / "s") == 0
    monkeypatch.setattr(DirectoryLock, "acquire", lambda *_: pytest.fail("it locks the directory"))
    assert len(export(tmp_path / "s")) == 4
    one = stored_run(tmp_path / "s", 3)
    assert (one.point.values, one.replication) == ({"streams": "20"}, 1)
    assert is_reproduced(tmp_path / "s", one) is True
    for point in read_points(tmp_path / "s"):
        assert digest_of(point) == point.sha256
    capsys.readouterr()
    trace = tmp_path / "t.json"
    window = ["--start", "100 ms", "--length", "5 ms"]
    assert main(["replay", str(tmp_path / "s"), "--run", "3", "--trace", str(trace), *window]) == 0
    assert "to the last bit" in capsys.readouterr().out
    assert json.loads(trace.read_text())["traceEvents"]
    assert main(["replay", str(tmp_path / "s"), "--run", "4"]) == 2
    assert "has runs 0 to 3" in capsys.readouterr().err


@pytest.mark.parametrize("is_first", [True, False])
def test_a_point_that_has_more_or_less_than_the_first_is_kept(tmp_path, is_first):
    models = [load_model("xen-media"), load_model("xen-media", ["workloads.signaling=null", "hosts.host.pcpus=2"])]
    order = models if is_first else models[::-1]
    write_points(tmp_path, [Point.of(n, "x", {}, lambda model=model: model) for n, model in enumerate(order)])
    assert [point.spec for point in read_points(tmp_path)] == [model.spec for model in order]


def test_a_run_that_differs_is_said(tmp_path, monkeypatch, capsys):
    written(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(runner, "simulate", lambda task, *_: {**simulate(task), "events": 1})
        assert run(tmp_path, tmp_path / "s") == 0
    assert main(["replay", str(tmp_path / "s"), "--run", "0"]) == 1
    assert "NOT what was kept" in capsys.readouterr().out


def test_the_debugger_stands_at_the_begin_of_the_run(tmp_path, monkeypatch, capsys):
    written(tmp_path)
    assert run(tmp_path, tmp_path / "s") == 0
    commands = iter(["args", "c"])
    monkeypatch.setattr("builtins.input", lambda *_: next(commands))
    monkeypatch.setenv("VFTSIM_ENGINE", "simpy")
    assert main(["replay", str(tmp_path / "s"), "--run", "1", "--debugger"]) == 0
    out = capsys.readouterr().out
    assert "run_model()" in out
    assert "replication = 0" in out


def test_every_figure_of_every_run_is_exported(tmp_path, capsys):
    pandas, _ = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    written(tmp_path)
    assert run(tmp_path, tmp_path / "s") == 0
    assert (
        main(
            ["export", str(tmp_path / "s"), "--parquet", str(tmp_path / "r.parquet"), "--csv", str(tmp_path / "r.csv")]
        )
        == 0
    )
    table = pandas.read_parquet(tmp_path / "r.parquet")
    assert list(table["run"]) == [0, 1, 2, 3]
    assert list(table["streams"]) == ["10", "20", "10", "20"]
    shown = pandas.read_csv(tmp_path / "s/replications.csv")
    assert list(table["domains.dom0.cpu"]) == list(shown["domains.dom0.cpu"])
    assert "workloads.media.delay.p99" in table, "also what the study did not ask for"
    assert len(pandas.read_csv(tmp_path / "r.csv")) == 4
    capsys.readouterr()


@pytest.mark.parametrize("words", [["export", "--csv", "r.csv"], ["replay", "--run", "0"]])
def test_a_damaged_run_is_not_left_out(tmp_path, monkeypatch, capsys, words):
    monkeypatch.chdir(tmp_path)
    written(tmp_path)
    assert run(tmp_path, tmp_path / "s") == 0
    with closing(sqlite3.connect(tmp_path / "s" / DATABASE)) as connection, connection:
        connection.execute("UPDATE replications SET sha256 = 'x' WHERE replication = 0")
    assert main([words[0], "s", *words[1:]]) == 2
    assert "replications in 's' are damaged; 'vftsim check s' says which" in capsys.readouterr().err
    assert not (tmp_path / "r.csv").exists()


def test_a_factor_with_the_name_of_a_figure_has_a_column_of_its_own(tmp_path, capsys):
    pandas, rate = pytest.importorskip("pandas"), "workloads.calls.rate"
    written(
        tmp_path,
        "name: small\nmodels: [sip-farm-r1]\nset: [measure.duration=1 s, measure.warm_up=1 s]\nreplications: 1\n"
        f"factors:\n  {rate}: [10 /s, 90 /s]\nfigures: [{rate}]\n",
    )
    assert run(tmp_path, tmp_path / "s") == 0
    assert main(["export", str(tmp_path / "s"), "--csv", str(tmp_path / "r.csv")]) == 0
    for table in map(pandas.read_csv, (tmp_path / "s/replications.csv", tmp_path / "r.csv")):
        assert list(table[f"set.{rate}"]) == ["10 /s", "90 /s"]
        assert table[rate].tolist() == sorted(table[rate])
    results = pandas.read_csv(tmp_path / "s/results.csv")
    assert (list(results[rate]), set(results["figure"])) == (["10 /s", "90 /s"], {rate})
    capsys.readouterr()


@pytest.mark.parametrize("name", COLUMNS)
def test_a_factor_with_the_name_of_a_fixed_column_is_refused(tmp_path, name):
    with pytest.raises(ModelFileError, match=f"factor '{name}' has the name of a column.*`key: hosts.host.pcpus`"):
        points(tmp_path, small(f"  {name}: {{key: hosts.host.pcpus, values: [1, 2]}}\n"))


def test_the_names_of_all_fixed_columns_are_refused(tmp_path):
    spec, few = points(tmp_path, SMALL)
    result = run_study_file(spec, few, tmp_path / "s", Execution(1, 1))
    assert {*result.results, *result.replications} - {*spec.factors, *result.addresses} == set(COLUMNS)


def test_past_results_are_listed(tmp_path, capsys):
    written(tmp_path)
    assert run(tmp_path, tmp_path / "there/s") == 0
    (tmp_path / "manifest.json").write_text("{}")
    capsys.readouterr()
    assert main(["studies", str(tmp_path), "--json"]) == 0
    (one,) = json.loads(capsys.readouterr().out)
    assert (one["command"], one["models"], one["points"], one["replications"]) == ("study", "xen-media", 2, 2)
    assert main(["studies", str(tmp_path / "none")]) == 2
    capsys.readouterr()


def test_a_dry_run_lists_and_writes_nothing(tmp_path, capsys):
    written(tmp_path)
    assert run(tmp_path, tmp_path / "s", "--dry-run", "-n", "7") == 0
    out = capsys.readouterr().out
    assert "2 points with 7 replications: 14 runs" in out
    assert not (tmp_path / "s").exists()


# What ships


@pytest.mark.parametrize("model", ["xen-media", "lab-virtual", "net-kvm", "job-compile"])
def test_the_file_to_begin_with_is_complete(tmp_path, model):
    path = tmp_path / "own.yaml"
    path.write_text(template(model))
    spec, folder = read_study(str(path))
    experiment_of(spec, points_of(spec, folder)).check_figures()
    assert mistakes(study_schema(), YAML(typ="safe").load(path.read_text())) == []


def test_the_schema_is_shipped_as_it_is_printed():
    kept = json.loads((shipped_dir("experiments") / "studies/study.schema.json").read_text(encoding="utf-8"))
    assert kept == study_schema(), "run: vftsim schema study > experiments/studies/study.schema.json"
    assert mistakes(study_schema(), {"name": "x", "models": ["m"], "figures": ["r"], "design": {"kind": "none"}})


@pytest.mark.parametrize("name", shipped_studies())
def test_shipped_studies_are_accepted(name):
    spec, folder = read_study(name)
    assert spec.name == name
    text = (folder / f"{name}.yaml").read_text(encoding="utf-8")
    assert text.startswith("# yaml-language-server: $schema=study.schema.json")
    assert mistakes(study_schema(), YAML(typ="safe").load(text)) == []
    experiment_of(spec, points_of(spec, folder)).check_figures()


def test_a_study_file_may_extend_another(tmp_path):
    written(tmp_path)
    (tmp_path / "more.yaml").write_text("extends: small\nname: more\nseed: 7\n")
    spec, _ = read_study(str(tmp_path / "more.yaml"))
    base = read_study(str(tmp_path / "small.yaml"))[0].model_dump()
    assert spec == StudySpec.model_validate({**base, "name": "more", "seed": 7})


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda path: path.unlink(), "has no manifest.json: the command that made it has not finished"),
        (lambda path: path.write_text('{"x'), "changed or damaged since it was written"),
        (lambda path: path.write_text(path.read_text().replace('"seed": 1', '"seed": 2')), "changed or damaged"),
        (lambda path: (path.unlink(), path.mkdir()), "the command that made .* writes it again"),
    ],
)
def test_a_manifest_that_cannot_be_trusted_has_one_answer(spoil, why, tiny_path, tmp_path, capsys, monkeypatch):
    """With another seed in it, none of the runs that are there was exported, and replay ran one that nobody had."""
    monkeypatch.chdir(tmp_path)
    vftsim.run(tiny_path, 1, directory="s", seed=1)
    spoil(Path("s/manifest.json"))
    texts = []
    for words in (["export", "s", "--csv", "r.csv"], ["replay", "s", "--run", "0"], ["report", "s", "-o", "r.html"]):
        assert main(words) == 2
        texts.append(capsys.readouterr().err)
    assert main(["studies", "s"]) == 0
    assert {*texts, capsys.readouterr().err} == {texts[0]}
    assert re.search(why, texts[0])
    assert not list(tmp_path.glob("r.*"))


def test_a_name_that_cannot_be_a_directorys_says_which_can(tmp_path):
    """Nobody reads a pattern: the message ended at one."""
    path = tmp_path / "study.yaml"
    path.write_text("name: größe\nmodels: [lab-virtual]\n")
    with pytest.raises(ModelFileError, match=r"letters a to z, digits, - and _\), got 'größe'"):
        read_study(path)
