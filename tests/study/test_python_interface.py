"""The package's functions: what the commands do, as objects that print themselves."""

import math
import pickle
import re

import numpy as np
import pytest

import vftsim
from tests.report.conftest import SERVER
from vftsim.errors import UsageError
from vftsim.files import write_file
from vftsim.interface.plan import plan_of
from vftsim.stats import t_interval
from vftsim.study.designs import failover
from vftsim.study.figures.frames import as_dataset, csv_text, estimate_columns, frame, with_numbers
from vftsim.tracing.trace import usual_window_ns

SHORT = ["measure.duration=100 ms", "measure.warm_up=20 ms", "workloads.media.streams=20"]


@pytest.fixture(scope="module")
def model():
    return vftsim.load("xen-media-native", SHORT)


def test_a_run_prints_what_the_command_prints(model, tmp_path, capsys):
    result = vftsim.run(model, replications=2)
    assert str(result).startswith("xen-media-native (rtp, calls), seed 1; --set measure.duration=100 ms")
    result.print_tables()
    assert capsys.readouterr().out == str(result)


def test_a_variant_is_written_as_in_the_command():
    """The docstring said so, and it was looked for as a file."""
    slower = "xen-media-native+workloads.media.streams=10"
    models = plan_of(vftsim.compare, {"models": ["xen-media-native", slower]}).models
    assert [(model.label, model.spec.workloads["media"].streams) for model in models][1] == (slower, 10)


def test_a_session_shows_what_commands_print_and_not_all_that_a_result_holds(model):
    traced = vftsim.trace(model, 0.05, 0.01)
    for shown in (
        vftsim.run(model, 1),
        vftsim.failover("job-compile", 1, over_s=0.1, after_s=0.1),
        vftsim.explain(model),
    ):
        assert repr(shown) == str(shown)
    assert repr(traced).startswith(f"50 to 60 ms: {len(traced.slices)} slices, ")
    assert len(repr(traced)) < 100
    assert repr(model).startswith("Model(label='xen-media-native', assignments=('measure.duration=100 ms', ")


def test_a_model_without_workloads_has_no_kinds_of_them_in_its_heading():
    short = ["measure.duration=100 ms", "measure.warm_up=0 s"]
    assert str(vftsim.run(vftsim.load("job-database", short), 1)).startswith("job-database, seed 1; --set")


def test_quick_shortens(model):
    quick = vftsim.run(vftsim.load("xen-media-native", SHORT[1:]), replications=1, quick=True)
    assert quick.manifest["models"][0]["resolved"]["measure"]["duration"] == "500 ms"


GUARDED = "domains.media.protection={kind: checkpoint}"


@pytest.mark.parametrize(
    ("study", "with_states", "without"),
    [
        (vftsim.compare, {"models": [[], [GUARDED]]}, {"models": [[], []]}),
        (vftsim.decide, {"protection": "none,checkpoint"}, {"protection": "none,ha_restart"}),
        (vftsim.sweep, {"protection": "none,checkpoint"}, {"protection": "none,ha_restart"}),
    ],
)
def test_what_is_compared_is_shortened_to_the_same_time(study, with_states, without):
    """Half a second holds two states of 270 ms; ten take 2.7 s, and the 2 s of the model are all there is."""

    def durations_ns(arguments):
        given = (
            {"model": "xen-media", **arguments}
            if study is not vftsim.compare
            else {"models": [vftsim.load("xen-media", changes) for changes in arguments["models"]]}
        )
        return {each.spec.measure.duration for each in plan_of(study, {**given, "quick": True}).models}

    assert durations_ns(without) == {500_000_000}
    assert durations_ns(with_states) == {2_000_000_000}


def test_replications_go_on_until_a_figure_is_known(model):
    """As ``--precision 50%``: at least the 10 that begin and 5 that confirm."""
    result = vftsim.run(model, 40, precision_percent=50.0, figures=["workloads.media.delay.p50"])
    assert result.precision.reached
    assert 15 <= len(result.records) <= 40
    with pytest.raises(UsageError, match="above 0 and below 100 %, got 500 %"):
        vftsim.run(model, precision_percent=500)


def test_a_sweep_needs_no_directory():
    grid = {"workloads.media.streams": [10, 20]}
    result = vftsim.sweep("xen-media-native", grid, replications=1, overrides=SHORT[:2])
    assert result.results.query("figure == 'workloads.media.loss'")["estimate"].tolist() == [0.0, 0.0]
    assert "lost, %" in str(result)


def test_a_trace_holds_the_window_alone(model, tmp_path):
    found = vftsim.trace(model, 0.03, 0.05, path=tmp_path / "schedule.json")
    assert found.slices
    assert all(30_000_000 <= one.start_ns <= one.end_ns <= 80_000_000 for one in found.slices)
    assert (tmp_path / "schedule.json").stat().st_size > 0
    with pytest.raises(UsageError, match="the run ends after"):
        vftsim.trace(model, 0.1, 0.05)


def test_every_command_has_a_function_of_its_name():
    from vftsim.cli.main import build_app

    of_files = {"import", "warmup", "ui"}
    """What writes files of a lab or nothing, and the page."""
    names = {each.name for each in build_app().registered_commands}
    assert names - of_files <= set(vftsim.__all__)


def test_functions_have_the_options_of_their_commands():
    with pytest.raises(UsageError, match="--budget: 5 runs decide nothing"):
        vftsim.capacity("xen-media", budget=5)
    with pytest.raises(UsageError, match="--window: goes with --after-stop"):
        vftsim.capacity("lab-native", window_s=5.0)
    with pytest.raises(UsageError, match="--coverage: from 2 to 1000 laboratories, got 1"):
        vftsim.calibrate("sip-lab/native", coverage=1)
    with pytest.raises(UsageError, match="--mtbf: above 0"):
        vftsim.decide("job-database", "none", mtbf_s=0.0)


def test_a_record_is_judged_as_by_its_command(capsys):
    from vftsim.cli.main import main

    judged = vftsim.record("epochs", quick=True)
    assert judged.record.budget["replications"] == 2
    assert main(["record", "epochs", "--quick", "-q"]) == 0
    assert capsys.readouterr().out.strip() == str(judged).strip()


def test_figures_as_a_dataset_over_what_names_them(model):
    pytest.importorskip("xarray")
    found = vftsim.run(model, replications=3).to_xarray()
    assert set(found.dims) == {"figure"}
    assert float(found.estimate.sel(figure="workloads.media.delivered")) == 100.0
    assert found.phase.sel(figure="workloads.media.delivered") == "measured"
    swept = vftsim.sweep(
        "xen-media-native", ["workloads.media.streams=10,20"], replications=1, overrides=SHORT[:2]
    ).to_xarray()
    assert swept.estimate.sel({"workloads.media.streams": 20, "figure": "workloads.media.loss"}).item() == 0.0
    assert {"model", "workloads.media.streams", "figure"} == set(swept.dims)


def test_a_comparison_says_what_each_kind_of_brackets_is(model):
    """Of ten runs a mean may have an interval; a percentile beyond which few values lie has the runs' range."""
    other = vftsim.load("xen-media-native", [*SHORT, "workloads.media.streams=40"])
    text = " ".join(str(vftsim.compare([model, other], 10, figures=["media.delay"])).split())
    text += " ".join(str(vftsim.compare([model, other], 10, figures=["media.delay.mean"])).split())
    assert re.search(r"\[[0-9.]+, [0-9.]+\]", text)
    assert re.search(r"\([0-9.]+ to [0-9.]+\)", text)
    assert "± or [..]: 95 % interval over replications" in text
    assert "(x to y): lowest and highest replication, no interval" in text


def test_models_that_are_measured_for_other_times_are_said_to_be():
    """Twice the time takes twice the CPU time, under streams that come evenly."""
    even = [*SHORT, "workloads.signaling=null"]
    short, longer = (vftsim.load("xen-media-native", [*even, f"measure.duration={n} ms"]) for n in (100, 200))
    found = vftsim.compare([short, longer], 1, figures=["domains.linux.cpu_ns"])
    (mine, its) = (row.estimate for row in found.to_pandas().itertuples())
    assert its == pytest.approx(2 * mine, rel=0.001)
    told = "They are measured for 100 ms, 200 ms (a ramp each step): counts and extremes of a run differ by that too."
    assert told in " ".join(str(found).split())
    assert "They are measured for" not in str(vftsim.compare([short, short], 1))


def test_what_else_is_known_of_a_figure_is_no_axis_of_a_dataset():
    """The least, middle and largest of three figures are three numbers each, not a cube of 27 places."""
    pytest.importorskip("xarray")
    named = [
        {"load_n": "1", "figure": name, "unit": "s", "crashes": n} for n, name in enumerate(("outage", "lost", "x"))
    ]
    table = [row | estimate_columns(t_interval([n, n + 1.0])) | {"least": n} for n, row in enumerate(named)]
    found = as_dataset(frame(table))
    assert dict(found.sizes) == {"load_n": 1, "figure": 3}
    assert found.least.sel(figure="lost").item() == found.crashes.sel(figure="lost").item() == 1
    with pytest.raises(UsageError, match="several points have the same settings"):
        as_dataset(frame([*table, *table]))


def test_the_settings_of_a_dataset_are_numbers_where_they_can_be_in_the_order_of_the_grid():
    pytest.importorskip("xarray")
    points = [{"weight": weight, "wait": wait} for weight in ("64", "256", "1024") for wait in ("5 ms", "10 ms")]
    table = [{**each, "figure": "loss"} | estimate_columns(t_interval([n, n + 1.0])) for n, each in enumerate(points)]
    found = as_dataset(with_numbers(frame(table)))
    assert [found.weight.values.tolist(), found.wait.values.tolist()] == [[64, 256, 1024], ["5 ms", "10 ms"]]
    assert found.estimate.sel(weight=256, wait="10 ms", figure="loss").item() == 3.5


def test_counts_that_some_rows_lack_are_whole_numbers_in_csv():
    rows = [
        {"mean": 2.0, "n": 3, "difference_n": None, "share_n": 0.5},
        {"n": None, "difference_n": 2, "share_n": None},
    ]
    assert csv_text(frame(rows)) == "mean,n,difference_n,share_n\n2.0,3,,0.5\n,,2,\n"


def test_a_page_that_cannot_be_written_is_named_as_it_was_asked_for(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"'.*nowhere.page\.html'$"):
        write_file(tmp_path / "nowhere" / "page.html", b"")


def test_what_never_comes_is_empty_in_csv():
    assert csv_text(frame([{"kind": "none", "back_s": math.inf}])) == "kind,back_s\nnone,\n"


def test_a_study_is_kept_listed_exported_run_again_and_checked(tmp_path):
    file = tmp_path / "study.yaml"
    file.write_text(
        "name: streams\nmodels: [xen-media-native]\n"
        f"set: {[text.replace('workloads.media.streams=20', 'workloads.media.streams=10') for text in SHORT]}\n"
        "factors: {workloads.media.streams: [10, 20]}\nfigures: [media.loss]\nreplications: 2\n"
    )
    folder = tmp_path / "out"
    result = vftsim.study(file, directory=folder)
    assert len(result.points) == 2
    assert [found for found, _ in vftsim.studies(tmp_path)] == [folder]
    assert len(vftsim.export(folder)) == 4
    assert vftsim.replay(folder, 3) is True
    assert not vftsim.check(folder).damage
    assert str(vftsim.open(folder)) == str(result)


def test_runs_of_mechanisms_are_exported_and_run_again_beside_crashes_of_the_same_models(tmp_path, monkeypatch):
    monkeypatch.setattr(failover, "STEADY_AFTER_NS", 2_000_000_000)
    model, folder = vftsim.load("job-database", SHORT[:2]), tmp_path / "out"
    vftsim.decide(model, "none,checkpoint", replications=2, prices=False, directory=folder)
    table = vftsim.export(folder)
    assert list(table.protection) == ["none", "checkpoint"] * 2
    assert list(table["domains.vm.protection.states"].notna()) == [False, True] * 2
    assert [vftsim.replay(folder, run) for run in range(4)] == [True] * 4


def test_results_go_to_other_processes_before_and_after_somebody_reads_them(model):
    results = [
        vftsim.run(model, 2),
        vftsim.compare([model, model], 2),
        vftsim.sweep("xen-media-native", ["streams=10,20"], replications=1, overrides=SHORT[:2]),
    ]
    for result in results:
        sent = pickle.dumps(result)
        assert str(pickle.loads(sent)) == str(result)
        assert str(pickle.loads(pickle.dumps(result))) == str(result)


def test_calls_of_nothing_are_refused_in_words(model, tmp_path):
    with pytest.raises(UsageError, match="a page is of one result or several"):
        vftsim.report([])
    with pytest.raises(UsageError, match="what is to be put together"):
        vftsim.merge([], tmp_path / "all")
    assert not (tmp_path / "all").exists()
    for look in (vftsim.trace, vftsim.explain):
        with pytest.raises(UsageError, match=r"start_s: a number from 0 on or None, got -1\.0"):
            look(model, start_s=-1.0, length_s=0.01)


def test_a_setting_of_null_is_one_in_the_table_of_a_directory_too(tmp_path):
    short = ["measure.duration=100 ms", "measure.warm_up=0 s"]
    swept = vftsim.sweep(
        "xen-media", ["workloads.signaling=null", "streams=10"], None, 1, overrides=short, directory=tmp_path / "s"
    )
    for table in (swept.to_pandas(), vftsim.open(tmp_path / "s").to_pandas()):
        assert set(table["workloads.signaling"]) == {"null"}


def test_an_explanation_sums_to_its_delay(model):
    found = vftsim.explain(model, start_s=0.03, length_s=0.05)
    assert sum(part.length_ns for part in found.parts) == found.delay_ns
    assert found.title in str(found)


@pytest.mark.thorough
def test_sensitivity_decisions_and_mechanisms(tmp_path):
    server = tmp_path / "server.yaml"
    server.write_text(SERVER)
    ranges = ["workloads.load.clients=5..15", "hosts.host.cpu_speed=0.8..1.2"]
    found = vftsim.sensitivity(
        server, "load.latency.p95", ranges, trajectories=2, samples=4, directory=tmp_path / "sensitivity"
    )
    assert {each.name for each in found.effects} == {text.partition("=")[0] for text in ranges}
    best = vftsim.optimize(
        server,
        ["hosts.host.pcpus=1,2", "workloads.load.clients=5"],
        ["load.latency.p95 <= 20"],
        looks=2,
        directory=tmp_path / "optimize",
    )
    assert best.to_pandas().shape[0] == 2
    decided = vftsim.decide(server, "none,checkpoint", ["load.latency.p95 <= 100 ms"], 2, prices=False)
    assert "checkpoint" in str(decided)


def test_a_trace_without_a_window_is_where_the_command_looks():
    ramp = vftsim.load("lab-virtual")
    found = vftsim.trace(ramp)
    assert (found.start_ns, found.end_ns - found.start_ns) == usual_window_ns(ramp.spec, None, None)
    assert found.packets, "in the first step of the ramp, where calls are"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda it: vftsim.run(it, replications=2.5), r"replications: a whole number or None, got 2\.5"),
        (lambda it: vftsim.run(it, seed="1"), "seed: a whole number, got '1'"),
        (lambda it: vftsim.run(it, replications=True), "replications: a whole number or None, got True"),
        (lambda it: vftsim.run(it, jobs=1.5), r"jobs: a whole number or None, got 1\.5"),
        (lambda it: vftsim.run(it, quick="no"), "quick: True or False, got 'no'"),
        (lambda it: vftsim.run(it, precision_percent=math.nan), "precision_percent: a number from 0 on"),
        (lambda it: vftsim.run(it, precision_percent=50, figures="media.loss"), "figures: a list, got 'media.loss'"),
        (lambda it: vftsim.run(it, overrides=["measure.duration=1 s"]), "overrides: they go with a name or a file"),
        (lambda _: vftsim.sweep("xen-media", "weight=256,512"), "grid: a list or a dictionary, got 'weight=256,512'"),
        (lambda _: vftsim.run(3), "a model is a name, a file, or what vftsim.load returns; got 3"),
        (lambda _: vftsim.compare("xen-media"), "models: a list, got 'xen-media'"),
        (lambda _: vftsim.compare(["xen-media", 3]), "a model is a name, a file, .* got 3"),
        (lambda _: vftsim.load("xen-media", [3]), "overrides: text, got 3"),
        (lambda it: vftsim.trace(it, start_s=math.nan), "start_s: a number from 0 on or None, got nan"),
        (lambda it: vftsim.trace(it, 1e300), "a time is at most 3653 d, got 1e.300 s"),
        (lambda _: vftsim.capacity("lab-virtual", ihs_limit_percent=-3.0), "ihs_limit_percent: a number from 0 on"),
        (lambda _: vftsim.capacity("lab-virtual", after_stop_s=-1.0), "after_stop_s: a number from 0 on"),
        (lambda _: vftsim.open(None), "directory: text or a path, got None"),
        (lambda _: vftsim.report("result"), "directories: a list, got 'result'"),
        (lambda _: vftsim.replay("result", 1.0), r"run: a whole number, got 1\.0"),
    ],
)
def test_an_argument_of_another_type_is_refused_in_words_before_any_work(model, call, message):
    with pytest.raises(UsageError, match=message):
        call(model)


def test_numbers_of_numpy_are_numbers(model):
    assert len(vftsim.run(model, np.int64(1), np.uint32(3)).records) == 1
