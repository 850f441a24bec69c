"""What a figure depends on, against a figure whose variance is known on paper."""

import json
from dataclasses import replace

import pytest

from tests.study.grids import kept
from vftsim.cli.main import main
from vftsim.errors import UsageError
from vftsim.platform.protection.mechanism import PROTECTIONS
from vftsim.stats import Estimate
from vftsim.study.designs import runner as evaluator
from vftsim.study.designs.points import price_ranges, read_range, span_of, values_outside
from vftsim.study.designs.runner import Evaluator, simulate
from vftsim.study.designs.sensitivity import COMMAND, Request, Response, sensitivity, short_names
from vftsim.study.execution import Execution
from vftsim.study.runs.model import load_model
from vftsim.study.store.store import resumable_store

SHORT = ("workloads.signaling=null", "workloads.media.streams=40", "measure.duration=100 ms", "measure.warm_up=50 ms")
DOM0 = "domains.dom0.cpu"
SPANS = {
    "domains.cpu1.weight": span_of("", 128, 512),
    "workloads.media.streams": span_of("", 20, 60),
    "domains.dom0.driver.receive_cost": span_of("", "2 us", "30 us"),
}
"""CPU of the driver domain is proportional to the streams, and rises with the price of a packet; the weight of a guest
that does not compete with it changes nothing."""


def request(**more):
    base = load_model("xen-media", SHORT)
    few = {"replications": 1, "trajectories": 4, "samples": 64}
    return Request("xen-media", SHORT, DOM0, base=base, **{"spans": SPANS, **few, **more})


def shares_on_paper(ends, low, high):
    """First-order and total shares of s x (a + b c), with s from 20 to 60 and c in its range, both even.

    ``ends`` are the figure at 40 streams with c at either end, which gives a and b up to a factor.
    """
    a_b_c = [ends[0] + (ends[1] - ends[0]) * (n + 0.5) / 200 for n in range(200)]
    streams = [low + (high - low) * (n + 0.5) / 200 for n in range(200)]

    def moments(values):
        mean = sum(values) / len(values)
        return mean, sum(v * v for v in values) / len(values) - mean * mean

    (ms, vs), (mc, vc) = moments(streams), moments(a_b_c)
    whole = vs * vc + vs * mc**2 + vc * ms**2
    of_streams, of_cost = vs * mc**2 / whole, vc * ms**2 / whole
    return {"streams": (of_streams, 1 - of_cost), "cost": (of_cost, 1 - of_streams)}


@pytest.mark.thorough
def test_shares_are_those_of_the_closed_form(tmp_path):
    pytest.importorskip("SALib")
    found = kept(sensitivity, request(), tmp_path / "s")
    names = [each.name for each in found.effects]
    assert names == ["workloads.media.streams", "domains.dom0.driver.receive_cost", "domains.cpu1.weight"]
    streams, cost, weight = found.effects
    assert weight.effect.mean == 0.0
    assert weight.total is None, "screened out"
    ends = [found.in_use.mean + end.mean for end in (cost.low, cost.high)]
    paper = shares_on_paper(ends, 20, 60)
    for one, key in ((streams, "streams"), (cost, "cost")):
        assert one.first.mean == pytest.approx(paper[key][0], abs=0.06)
        assert one.total.mean == pytest.approx(paper[key][1], abs=0.06)
        assert one.total.low <= paper[key][1] <= one.total.high
        for share in (one.first, one.total):
            assert min(share.mean, 0.0) <= share.low <= share.high <= max(share.mean, 1.0), "no share is beyond all"
    assert [each.name for each in found.deciding] == names[:2]
    text = str(found)
    assert "depends on these two of 3 factors: workloads.media.streams" in " ".join(text.split())
    assert "Screened out: domains.cpu1.weight, which moves it by 0" in " ".join(text.split())
    assert "is not known" not in text
    # Of a share between nothing and a fifth nobody knows whether it decides.
    effects = [streams, cost, replace(weight, total=Estimate(0.02, 0.15, -0.1, 0.2, 64, 0.95, "t"))]
    text = " ".join(str(replace(found, effects=effects)).split())
    assert "Of domains.cpu1.weight it is not known whether the share is above 5 %; more --samples tell." in text
    table = found.to_pandas()
    assert list(table["rank"]) == [1, 2, 3]
    assert set(table["unit"]) == {"%"}, "of the CPU"
    for name in ("sensitivity.csv", "answer.json", "charts.png", "manifest.json"):
        assert (tmp_path / "s" / name).stat().st_size > 0


@pytest.mark.thorough
def test_a_figure_that_nothing_moves_is_an_answer(tmp_path):
    """A weight matters to nobody who does not compete, nor memory to who swaps nothing."""
    pytest.importorskip("SALib")
    spans = {
        "domains.cpu1.weight": span_of("", 128, 512),
        "domains.cpu1.memory_available": span_of("", "2 GiB", "4 GiB"),
    }
    found = kept(sensitivity, request(spans=spans, trajectories=2, samples=4), tmp_path / "s")
    assert found.runs == 5 + 6, "its own, four ends, two trajectories; none of the last stage"
    assert [(each.effect.mean, each.total) for each in found.effects] == [(0.0, None)] * 2
    assert "depends on none of 2 factors" in " ".join(str(found).split())
    assert json.loads((tmp_path / "s" / "answer.json").read_text())["depends_on"] == []


def test_an_ended_study_goes_on_to_the_same_answer(tmp_path, monkeypatch):
    pytest.importorskip("SALib")
    small, left, ran = request(samples=2), [12], []

    def ended(task, *_):
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return simulate(task)

    with monkeypatch.context() as patch:
        patch.setattr(evaluator, "simulate", ended)
        with pytest.raises(KeyboardInterrupt, match="12 finished runs are in"):
            kept(sensitivity, small, tmp_path / "s")
    monkeypatch.setattr(evaluator, "simulate", lambda task, *_: ran.append(task) or simulate(task))
    found = kept(sensitivity, small, tmp_path / "s")
    again = len(ran)
    whole = kept(sensitivity, small, tmp_path / "whole")
    assert again == len(ran) - again - 12
    assert found.to_pandas().equals(whole.to_pandas())


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"spans": {"streams": span_of("", 1, 2)}}, "at least two factors"),
        ({"samples": 48}, "power of 2"),
        ({"trajectories": 1}, "--trajectories"),
        ({"figure": "domains.dom0.cpuu"}, "nearest: .*domains.dom0.cpu"),
    ],
)
def test_what_makes_no_sense_is_refused(change, why):
    data = {"model": "xen-media", "settings": SHORT, "figure": DOM0, "spans": SPANS}
    asked = Request(**{**data, "base": load_model("xen-media", SHORT), **change})
    with pytest.raises(UsageError, match=why):
        asked.check()


def test_a_step_may_be_named_by_its_number(tiny_path, tmp_path):
    """Of step 1, whose load one of the factors turns: CPU time goes with the load and with the inflation."""
    first = span_of("", "9 /s", "11 /s")
    spans = {"workloads.calls.steps.initial": first, "domains.sut.cpu_inflation": span_of("", 1.0, 1.1)}
    shorter = ("workloads.calls.steps.most=1", "workloads.calls.steps.duration=20 s")
    base, figure = load_model(str(tiny_path), shorter), "sut.step_1.cpu"
    asked = Request(str(tiny_path), shorter, figure, spans, base, replications=1)
    asked.check()
    with resumable_store(tmp_path / "s", COMMAND) as store:
        in_use, ends, _ = Response(asked, figure, Evaluator(0.95, Execution(1, 1, store=store))).one_at_a_time()
    assert in_use.mean == pytest.approx(34.0, rel=0.2), "10 attempts of 8.5 touches of 4 ms"
    low, high = ends["workloads.calls.steps.initial"]
    assert low.mean < -1.0
    assert high.mean > 1.0


@pytest.mark.parametrize(
    ("figure", "why"),
    [
        ("calls.step_6.setup.p95", r"nearest: .*workloads\.calls\.at_"),
        ("calls.at_60.setup.p95", r"nearest: .*workloads\.calls\.at_"),
        ("calls.setup.p95", "ambiguous"),
    ],
)
def test_a_step_that_the_model_has_not_is_refused_before_any_run(tiny, figure, why):
    with pytest.raises(UsageError, match=why):
        Request("tiny", (), figure, SPANS, tiny).check()


def test_ranges_are_read_as_a_user_writes_them():
    name, span = read_range("domains.sut.protection.interval=10 ms..0.1 s log")
    assert (name, span.at(0.0), span.at(0.5), span.at(1.0)) == (
        "domains.sut.protection.interval",
        "10 ms",
        "31622.8 us",
        "100 ms",
    )
    assert read_range("streams=200..400")[1].is_whole
    assert not read_range("x.y=0.5..2")[1].is_whole
    rate = read_range("workloads.web.rate=1 /s..6000 /min")[1]
    assert [rate.at(share) for share in (0.0, 1.0)] == ["1 /s", "100 /s"], "6,000 a minute are 100 a second"
    for wrong in ("streams", "streams=5", "streams=5..4", "a.b=1 ms..2", "a.b=1 /s..2 ms", "a.b=100 /s..6000 /min"):
        with pytest.raises(UsageError):
            read_range(wrong)


def test_a_wrong_factor_is_refused_by_the_option_that_has_it():
    spans = {"nope": span_of("", 1, 2), "domains.dom0.weight": span_of("", 1, 2)}
    with pytest.raises(UsageError, match=r"^--range: no short name 'nope'"):
        Request("xen-media", SHORT, DOM0, spans, load_model("xen-media", SHORT)).points([{"nope": "1"}])


@pytest.mark.parametrize("kind", sorted(set(PROTECTIONS) - {"none"}))
def test_prices_have_the_ranges_that_are_declared_for_them(kind):
    settings = [f"domains.sut.protection={{kind: {kind}}}"]
    spec = load_model("lab-virtual", settings).spec
    found = price_ranges(spec)
    declared = {f"domains.sut.protection.{each.key}": each.price for each in spec.domains["sut"].protection.prices()}
    assert set(found) == set(declared)
    for key, span in found.items():
        for share, end in ((0.0, declared[key].low), (1.0, declared[key].high)):
            text = span.at(share)
            protection = load_model("lab-virtual", [*settings, f"{key}={text}"]).spec.domains["sut"].protection
            value = protection
            for part in key.split(".")[3:]:
                value = getattr(value, part)
            assert value == pytest.approx(end, rel=5e-6, abs=0.51), (key, text)  # six digits
        load_model("lab-virtual", [*settings, f"{key}={span.at(0.337)}"])


def test_a_model_without_protection_has_no_prices():
    with pytest.raises(UsageError, match="--prices: no mechanism"):
        price_ranges(load_model("xen-media").spec)


def test_fitted_parameters_have_the_ranges_of_their_intervals():
    from vftsim.calibrate.fitted import _fitted, read_fit
    from vftsim.composition.keys import read

    spec, fit = load_model("lab-virtual").spec, read_fit("sip-lab/virtual")
    for key, span in _fitted(spec, "sip-lab/virtual").items():
        fitted_value = float(read(spec, key))
        bounds = (fit.low[key] / fit.values[key], fit.high[key] / fit.values[key])
        if key not in fit.undetermined:
            assert span.high / span.low == pytest.approx(bounds[1] / bounds[0])
            assert fitted_value > 0.0


def test_a_fitted_parameter_that_the_model_has_as_zero_goes_over_its_interval():
    """0 of the shipped model is within the interval of linux-lab/base; of a cost surely above 0 it is no multiple."""
    from vftsim.calibrate.fitted import read_fit, spans_named

    spec, key = load_model("linux-lab").spec, "domains.sut.applications.proxy.work_after_send"
    span, fit = spans_named(spec, (), fit="linux-lab/base")[key], read_fit("linux-lab/base")
    assert fit.values[key] > 0.0 == fit.low[key]
    assert (span.low, span.high) == (fit.low[key], fit.high[key])
    with pytest.raises(UsageError, match=r"the model has 0 at domains\.sut\.applications\.proxy\.script\.cost"):
        spans_named(load_model("lab-virtual").spec, (), fit="linux-lab/base")


def test_a_model_outside_of_a_range_is_said_in_any_unit_and_at_zero():
    settings = ["hosts.host.switch_cost=0 ns", "measure.warm_up=2 s", "domains.dom0.weight=256"]
    spec = load_model("xen-media", settings).spec
    spans = {
        "hosts.host.switch_cost": span_of("", "1 us", "2 us"),
        "measure.warm_up": span_of("", "100 ms", "1500 ms"),
        "measure.duration": span_of("", "1 ms", "1 d"),
        "domains.dom0.weight": span_of("", 1, 256),
    }
    assert [text.partition(" ")[0] for text in values_outside(spec, spans)] == list(spans)[:2]


def test_names_are_as_short_as_tells_them_apart():
    assert short_names(["a.b.c", "a.d.c", "x.y", "streams"]) == {
        "a.b.c": "b.c",
        "a.d.c": "d.c",
        "x.y": "y",
        "streams": "streams",
    }


def test_the_library_is_named_where_it_is_missing(monkeypatch, capsys, tmp_path):
    from vftsim.study.runs import extras

    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(extras.importlib, "import_module", missing)
    with pytest.raises(UsageError, match=r"needs SALib: pip install 'vftsim\[sensitivity\]'"):
        kept(sensitivity, request(), tmp_path / "s")
    assert not (tmp_path / "s").exists()


def test_the_command_says_everything_as_data(tmp_path, capsys):
    pytest.importorskip("SALib")
    ranges = ["--range", "workloads.media.streams=20..60", "--range", "domains.dom0.driver.receive_cost=2 us..30 us"]
    few = ["--samples", "2", "--trajectories", "2", "-n", "1", "-j", "1", "-q", "--json", "-o", str(tmp_path / "s")]
    changes = [word for setting in SHORT for word in ("--set", setting)]
    command = ["sensitivity", "xen-media", "--figure", "dom0.cpu", *ranges, *few, *changes]
    assert main(command) == 0
    out, err = capsys.readouterr()
    data = json.loads(out)
    assert "on disk already" not in err, "what the command has put there itself was not there"
    assert main(command) == 0
    assert "on disk already" not in capsys.readouterr().err, "nothing is said of how far it is with --quiet"
    assert main([word for word in command if word != "-q"]) == 0
    assert "replications are on disk already" in capsys.readouterr().err
    assert data["figure"] == DOM0
    assert {each["factor"] for each in data["factors"]} == {
        "workloads.media.streams",
        "domains.dom0.driver.receive_cost",
    }
