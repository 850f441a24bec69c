"""Figures of studies: names, catalogue, summary, and models of any kind side by side."""

from __future__ import annotations

import json

import pytest

import vftsim
from tests.study.grids import kept, make_grid, run_sweep
from vftsim.composition.run import run_model
from vftsim.errors import UsageError
from vftsim.report.blocks import Answer, Chart, Note, Table, shown
from vftsim.report.terminal import as_text
from vftsim.spec import shipped_dir
from vftsim.stats import Estimate
from vftsim.study.designs.compare import compare_study
from vftsim.study.designs.experiment import experiment_of
from vftsim.study.designs.points import points_of
from vftsim.study.designs.run import run_study
from vftsim.study.designs.study import run_experiment
from vftsim.study.designs.study_spec import read_study
from vftsim.study.execution import Execution
from vftsim.study.figures import names
from vftsim.study.figures.names import catalogue, check_names, find, one_figure
from vftsim.study.figures.summary import Summary
from vftsim.study.runs.model import labels_apart

LOOP = """format: 2
name: loop
networks: {lan: {rate: 1 Gbit/s, latency: 10 us}}
hosts: {host: {pcpus: 1}}
domains:
  vm:
    interfaces: {eth0: {path: {kind: native}}}
    applications: {srv: {kind: service, demand: 10 us, pages_per_request: 0}}
    protection: {kind: checkpoint, interval: 25 ms}
workloads: {load: {kind: request_response, to: vm, clients: 4, turn_around: 20 ms, turn_around_cv: 1.0}}
measure: {warm_up: 100 ms, duration: 300 ms}
"""


@pytest.fixture
def loop(tmp_path):
    path = tmp_path / "loop.yaml"
    path.write_text(LOOP)
    return lambda *changes: vftsim.load(path, changes)


def summary(model, replications=3):
    return Summary([(n, run_model(model.spec, 1, n)) for n in range(replications)])


def one(name, known):
    return names.only(name, find(name, known), known)


def notes_of(result):
    return [block.text for block in result.blocks() if isinstance(block, Note)]


def test_the_catalogue_knows_what_a_run_will_have(loop):
    """No figure of a run is missing from what is known before it, and none is of another kind."""
    model = loop()
    known = catalogue(model.spec)
    patterns = {address.text for address in known}
    for address in summary(model, 1).addresses:
        assert address.text in patterns or find(address.text, known), address.text


def test_short_names_mean_what_they_say(loop):
    known = summary(loop()).addresses
    assert one("load.latency.p99", known).text == "workloads.load.latency.p99"
    assert one("vm.cpu", known).text == "domains.vm.cpu"
    assert one("load.rate_per_s", known).text == "workloads.load.rate", "the name that columns of files have"
    assert [address.entry.path[1] for address in find("load.latency", known)] == ["p50", "p99"]
    with pytest.raises(UsageError, match=r"'busy' is ambiguous: hosts\.host\.busy, networks"):
        one("busy", known)
    declared = catalogue(loop().spec)
    assert one("vm.protection.stopped", declared).text == "domains.vm.protection.stopped", "no counter of a run"
    assert one("vm.protection.states_taken", declared).text == "domains.vm.protection.counted.*"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("load.latenci.p95", r"there is no figure 'load.latenci.p95'; nearest: workloads.load.latency.p95"),
        ("web.response.p95", r"there is no figure 'web.response.p95'"),
        ("frobnicate", r"there is no figure 'frobnicate'; there are workloads.load"),
        ("outage", r"'outage' is one of mechanisms: vftsim compare MODEL --protection all --objective 'outage"),
        ("load", r"'load' is no figure by itself; one of workloads.load"),
        ("load.latency.p99.9", r"'load.latency.p99.9'; did you mean 'load.latency.p99_9'\?"),
        ("load.latency.median", r"'load.latency.median'; did you mean 'load.latency.p50'\?"),
        ("latency.Avg", r"'latency.Avg'; did you mean 'latency.mean'\?"),
        ("web.response.median", r"there is no figure 'web.response.median'; nearest: "),
    ],
)
def test_a_wrong_name_is_refused_before_the_work(loop, name, message, monkeypatch):
    monkeypatch.setattr("vftsim.study.execution.Replications.run", lambda *_, **__: pytest.fail("it ran"))
    with pytest.raises(UsageError, match=message):
        compare_study([loop(), loop()], 2, Execution(), figures=[name])
    check_names(["load.latency.p99_9", "domains.vm.protection.counted.states_taken"], [loop().spec])


def test_models_are_compared_on_any_figure_with_pairs(loop):
    found = compare_study(
        [loop(), loop("domains.vm.protection=null")], 3, Execution(1, 1), figures=["load.latency.p99_9"]
    )
    (address,) = found.addresses
    less, plain, held = found.difference_of(1, address), found.estimate(1, address), found.estimate(0, address)
    series = [summary.values(address.text) for summary in found.summaries]
    assert less.mean == pytest.approx(sum(series[1][run] - series[0][run] for run in range(3)) / 3), (
        "as three have no interval"
    )
    assert (held.mean > 20, plain.mean < 1) == (True, True), "outputs wait for the state of their interval"
    (answer,) = (block for block in found.blocks() if isinstance(block, Answer))
    assert "workloads.load.latency.p99_9" in answer.text
    assert any(isinstance(block, Table) for block in found.blocks())
    rows = found.figures_to_pandas().to_dict("records")
    assert [row["estimate"] for row in rows] == [held.mean, plain.mean]
    assert rows[1]["difference_estimate"] == less.mean


def test_a_point_of_a_sweep_without_the_figure_asked_for_has_none(tmp_path):
    (tmp_path / "loop.yaml").write_text(LOOP)
    held, axis = "domains.vm.protection.output_held", ["workloads.load.clients=1"]
    grid = make_grid(str(tmp_path / "loop.yaml"), None, axis, (), "none,checkpoint")
    found = run_sweep(grid, tmp_path / "s", 1, Execution(1, 1), figures=["output_held"])
    assert [list(of_point.values[0]) for of_point in found.of_points] == [[], [held]]
    assert list(found.results["figure"]) == [held]
    alone = make_grid(str(tmp_path / "loop.yaml"), None, axis, (), "none")
    with pytest.raises(UsageError, match="there is no figure 'output_held'"):
        run_sweep(alone, tmp_path / "alone", 1, Execution(1, 1), figures=["output_held"])


def test_models_of_one_name_are_told_apart_by_their_settings():
    rate, short = "workloads.calls.rate", ("measure.duration=1 s", "measure.warm_up=1 s")
    slow, fast = (vftsim.load("sip-farm-r1", [*short, f"{rate}={n} /s"]) for n in (10, 90))
    found = vftsim.compare([slow, fast, slow], 1, figures=["calls.rate"])
    names = [f"sip-farm-r1+{rate}=10 /s", f"sip-farm-r1+{rate}=90 /s", f"sip-farm-r1+{rate}=10 /s (2)"]
    assert list(found.to_pandas()["model"]) == names
    (table,) = (block for block in found.blocks() if isinstance(block, Table))
    assert list(table.columns[1:4]) == ["rate=10 /s", "rate=90 /s", "rate=10 /s (2)"], "no letters"
    assert set(found.to_xarray()["model"].to_numpy()) == {each["label"] for each in found.manifest["models"]}
    assert labels_apart(["a", "b", "a"], [[], ["x=1"], ["x=1"]]) == ["a", "b", "a+x=1"]


def test_unequal_loads_are_named(loop):
    found = compare_study([loop(), loop("workloads.load.clients=2")], 2, Execution(1, 1))
    notes = [block.text for block in found.blocks() if isinstance(block, Note)]
    assert any("workloads.load is offered at 4, 2" in text for text in notes)


def test_a_figure_of_a_part_from_outside_is_compared_by_its_declaration_alone(loop, monkeypatch):
    """One statement beside the record; nothing above it is told."""
    from vftsim.outcome import declare
    from vftsim.workloads.request_response import RequestLoop

    again = declare.ratio(RequestLoop.declared["repeated"], RequestLoop.declared["requests"], unit="%", headline=True)
    again.__set_name__(RequestLoop, "asked_again")
    monkeypatch.setattr(RequestLoop, "declared", {**RequestLoop.declared, "asked_again": again})
    turn = ("workloads.load.turn_around=0", "workloads.load.retry=1 ms", "domains.vm.protection=null")
    full = ("domains.vm.applications.srv.backlog=1", "domains.vm.applications.srv.demand=1 ms", *turn)
    found = compare_study([loop(), loop(*full)], 2, Execution(1, 1), figures=["load.asked_again"])
    (address,) = found.addresses
    assert (found.estimate(0, address).mean, found.estimate(1, address).mean > 10) == (0.0, True)
    assert compare_study([loop(), loop()], 2, Execution(1, 1)).addresses[-4:], "and it leads"


def test_a_verdict_of_a_whole_run_is_called_by_its_figure(loop, monkeypatch):
    from vftsim.outcome import declare
    from vftsim.workloads.request_response import RequestLoop

    most = max(summary(loop()).values("workloads.load.requests").values())
    beyond = declare.verdict(source=lambda outcome: outcome.requests == most)
    beyond.__set_name__(RequestLoop, "beyond")
    monkeypatch.setattr(RequestLoop, "declared", {**RequestLoop.declared, "beyond": beyond})
    found = run_study(loop(), 3, Execution(1, 1))
    assert any(note.startswith("workloads.load.beyond: 1 of 3 runs beyond the limit") for note in notes_of(found))


def test_figures_that_rest_on_some_replications_only_say_so(loop, tmp_path):
    """At ten requests a second a tenth of a second has none in 37 of 100 runs: no latency, and a rate of none."""
    few = loop("workloads.load={kind: open_requests, to: vm, rate: 10 /s}", "measure.duration=100 ms")
    found = run_study(few, 10, Execution(1, 1))
    known = len(found.figures_found.values("workloads.load.latency.p50"))
    assert 0 < known < 10
    (text,) = [note for note in notes_of(found) if f"from {known} of 10 replications" in note]
    assert "workloads.load.latency.p50" in text
    assert "workloads.load.rate" not in text
    assert not [note for note in notes_of(run_study(loop(), 3, Execution(1, 1))) if "of 3 replications" in note]
    compared = compare_study([few, loop()], 10, Execution(1, 1), figures=["load.latency.p50"])
    assert any(
        note.startswith("A, ") and f"p50: from {known} of 10 replications" in note for note in notes_of(compared)
    )
    (tmp_path / "few.yaml").write_text(
        f"name: few\nmodels: [loop.yaml]\nset: {json.dumps(few.assignments)}\nfigures: [load.latency.p50]\n"
        "factors: {workloads.load.rate: [10 /s]}\nreplications: 10\n"
    )
    rate, only = ["workloads.load.rate=10 /s"], ["load.latency.p50"]
    swept = vftsim.sweep(
        tmp_path / "loop.yaml",
        rate,
        replications=10,
        figures=only,
        overrides=few.assignments,
        directory=tmp_path / "sweep",
    )
    for points in (swept, vftsim.study(tmp_path / "few.yaml", directory=tmp_path / "study")):
        assert any(f"workloads.load.latency.p50: from {known} of 10 replications" in note for note in notes_of(points))


@pytest.mark.parametrize("width", [60, 80, 100, 120])
def test_no_line_is_longer_than_the_terminal_is_wide(loop, width):
    found = compare_study(
        [loop(), loop("domains.vm.protection.interval=50 ms"), loop("domains.vm.protection=null")], 2, Execution()
    )
    assert max(map(len, as_text(found.blocks(), width).splitlines())) <= width


@pytest.mark.parametrize("name", sorted(path.stem for path in shipped_dir("models").glob("*.yaml")))
def test_the_catalogue_of_every_shipped_model_is_made_without_running_it(name):
    texts = [address.text for address in catalogue(vftsim.load(name).spec)]
    assert len(texts) > 20
    assert len(set(texts)) == len(texts), "an address means one figure"


@pytest.mark.parametrize(
    ("estimate", "expected"),
    [
        (Estimate(2765.4, 41.0, 2724.4, 2806.4, 12, 0.95, "t"), ("2,765", "± 41")),
        (Estimate(0.111, 0.02, 0.0912, 0.1510, 12, 0.95, "t"), ("0.111", "[0.091, 0.151]")),
        (Estimate(3.0, 1.0, 2.0, 4.5, 3, 0.95, "range"), ("3.0", "(2.0 to 4.5)")),
        (Estimate(0.00001236, 0.0, 0.00001236, 0.00001236, 5, 0.95, "t"), ("0.00001236", "")),
        (Estimate(123456.0, 0.0, 123456.0, 123456.0, 1, 0.95, "t"), ("123,456", "")),
        (None, ("-", "")),
    ],
)
def test_a_figure_has_the_digits_of_its_interval(estimate, expected):
    """Two digits of the half width, none rounded left of the point, no power of ten."""
    assert shown(estimate) == expected


def test_tables_have_what_outcomes_declare_and_the_summary_names_it(loop):
    from vftsim.study.designs.run import run_study

    found = run_study(loop(), 2, Execution(1, 1))
    assert list(found.tables) == ["figures", "delays", "percentiles", "windows", "timeline", "drops"]
    delay = found.tables["delays"].query("metric == 'load.latency' and replication == 1").iloc[0]
    outcome = found.records[1][1].whole.outcomes["workloads.load"]
    assert delay["p99_ms"] == outcome.latency.percentile(99) / 1e6
    row = found.summary.set_index("figure").loc["domains.vm.protection.stopped"]
    assert (row["unit"], row["metric"], row["n"]) == ("%", "vm.protection.stopped_percent", 2)
    assert {
        address.text for address in found.figures_found.addresses if found.figures_found.estimate(address.text)
    } == {*found.summary["figure"]}


def test_a_figure_of_a_step_is_one_statement_and_stands_everywhere(tiny, monkeypatch):
    """Declared from outside: nothing in study, report or calibrate is told."""
    from vftsim.calibrate.figures import observations_of
    from vftsim.outcome import declare
    from vftsim.study.blocks.run_charts import run_charts
    from vftsim.study.designs.experiment import Reader
    from vftsim.study.designs.run import precision_rule, run_study
    from vftsim.workloads.ims_bench.metrics import PhaseRecord

    lost = declare.ratio(
        PhaseRecord.declared["dropped"],
        PhaseRecord.declared["attempts"],
        unit="%",
        headline=True,
        label="lost",
        observed_as="lost",
    )
    lost.__set_name__(PhaseRecord, "lost_share")
    monkeypatch.setattr(PhaseRecord, "declared", {**PhaseRecord.declared, "lost_share": lost})
    found = run_study(tiny, 2, Execution(7, 1))
    name = "workloads.calls.at_10.lost_share"
    assert name in set(found.summary["figure"]), "in files and JSON"
    assert "lost, %" in str(found), "in the terminal"
    assert "lost, workloads.calls" in {
        chart.title for chart in run_charts(found.figures_found, found.model.spec, found.records)
    }, "as a chart"
    assert "workloads.calls.step_1.lost_share" in Reader((), 0.95).read(found.records).estimates, "in a sweep"
    assert one_figure("calls.at_10.lost_share", tiny.spec), "as an objective"
    assert precision_rule(tiny, 5.0, ["calls.step_1.lost_share"], 20).metrics == ("calls.step_1.lost_share",)
    assert ("step_1", "lost") in observations_of(found.records[0][1]), "in a dataset, a fit and a prediction"
    assert name in str(compare_study([tiny, tiny], 1, Execution(1, 1), figures=["calls.at_10.lost_share"]))


def test_a_figure_that_no_run_has_is_named(tiny):
    """The tiny server is full at 29 attempts a second: no ramp of it reaches 50."""
    found = compare_study([tiny, tiny], 1, Execution(1, 1), figures=["calls.at_10.cpu", "calls.at_50.cpu"])
    assert found.without_value == ["calls.at_50.cpu"]
    assert "calls.at_50.cpu: no run has it: a step that none reaches" in str(found)


def test_a_figure_that_no_point_has_is_named(tiny_path, tmp_path):
    """A sweep and a study of it: the same, beside the figures that there are."""
    figures = ["calls.at_10.cpu", "calls.at_50.cpu"]
    grid = make_grid(str(tiny_path), None, ["domains.sut.cpu_inflation=1,1.1"], ())
    swept = run_sweep(grid, tmp_path / "sweep", 1, Execution(1, 1), figures=figures)
    file = tmp_path / "study.yaml"
    factor = "factors: {domains.sut.cpu_inflation: [1, 1.1]}"
    file.write_text(f"name: s\nmodels: [{tiny_path}]\n{factor}\nfigures: {json.dumps(figures)}\nreplications: 1\n")
    spec, folder = read_study(str(file))
    studied = kept(run_experiment, experiment_of(spec, points_of(spec, folder)), tmp_path / "study")
    for found in (str(swept), str(studied)):
        assert found.count("no run has it") == 1
        assert "calls.at_50.cpu: no run has it" in found


def test_a_figure_that_there_is_not_is_named_as_it_was_written(tiny):
    with pytest.raises(UsageError, match=r"there is no figure 'calls\.nothing\.p97'"):
        one_figure("calls.nothing.p97", tiny.spec)


DATABASE = """format: 2
name: database
networks: {lan: {rate: 10 Gbit/s, latency: 10 us}}
hosts: {host: {pcpus: 1}}
domains:
  db:
    interfaces: {eth0: {path: {kind: native}}}
    disks: {data: {kind: array, disks: 3, service: 12 ms, hits: 25 %, hit_time: 1 ms, interrupt: 0}}
    applications: {rows: {kind: service, threads: 200, demand: 10 us, reads: 1, pages_per_request: 0}}
workloads: {load: {kind: open_requests, to: db, rate: 100 /s}}
measure: {warm_up: 1 s, duration: 20 s}
"""


def test_disks_have_figures_by_the_laws_of_queues(tmp_path):
    """Use is the requests that take a disk, a second, times 12 ms, by 3 disks; the queue is Little's law.

    What is under way at either end of the 20 s blurs it: three services, and the time of some requests, of thousands.
    """
    path = tmp_path / "database.yaml"
    path.write_text(DATABASE)
    model = vftsim.load(path)
    check_names(["db.disks.data.use", "data.response_time", "data.cache_hits"], [model.spec])
    database = run_model(model.spec, 1, 0).of("domains.db.disks.data")
    assert database.cache_hits == pytest.approx(25.0, abs=3 * 100 * (0.25 * 0.75 / 2000) ** 0.5)
    assert database.iops == pytest.approx(100.0, abs=4 * (100 / 20) ** 0.5)
    to_disks_per_s = (database.served - database.hits) / 20
    assert database.use == pytest.approx(100 * to_disks_per_s * 12e-3 / 3, abs=100 * 12e-3 / 20)
    assert database.queue == pytest.approx(database.iops * database.response_time / 1e3, rel=0.01)
    assert 1.0 < database.response_time < 0.25 * 1.0 + 0.75 * 14.0, "little waiting at 30 %"
    assert "domains.db.disks.data\n  busy, %" in as_text(run_study(model, 2, Execution(1, 1)).blocks(), 100)


@pytest.mark.parametrize(("other", "scale"), [("2 ms", "linear"), ("200 ms", "log")])
def test_delays_that_lie_far_apart_are_told_apart_in_their_chart(tmp_path, other, scale):
    """Voice of 0.1 ms, pages of 10 and jobs of 4,000 were three lines on one edge."""
    path = tmp_path / "two.yaml"
    program = (
        "{vcpus: 1, interfaces: {eth0: {path: {kind: moderated}}}, applications: {p: {kind: service, demand: %s}}}"
    )
    hosts = "hosts: {host: {pcpus: 2}}\ndomains:\n"
    domains = "".join(f"  {name}: {program % demand}\n" for name, demand in (("a", "1 ms"), ("b", other)))
    load = "".join(f"  of_{name}: {{kind: open_requests, to: {name}, rate: 4 /s, gap_cv: 0}}\n" for name in "ab")
    path.write_text(f"{hosts}{domains}workloads:\n{load}measure: {{duration: 10 s}}\n")
    charts = {chart.title: chart for chart in vftsim.run(path, 1).blocks() if isinstance(chart, Chart)}
    assert charts["Delays longer than this"].x_scale == scale
