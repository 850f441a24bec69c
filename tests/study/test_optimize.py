"""The cheapest configuration that does: what is chosen, when the search may end, and what it costs."""

import json
import math
from dataclasses import replace

import pytest
from test_knob_capacity import SELDOM, SERVER

import vftsim
from tests.labs.json_schema_check import mistakes
from tests.study.grids import kept
from vftsim.cli.main import main
from vftsim.errors import ModelFileError, UsageError
from vftsim.spec import shipped_dir
from vftsim.stats import mean_interval, runs_range
from vftsim.study.designs import optimize as module
from vftsim.study.designs import runner as evaluator
from vftsim.study.designs.choice import Choice, optimize, why_open
from vftsim.study.designs.optimize import (
    LACKING,
    MET,
    MISSED,
    OPEN,
    PriceTable,
    Request,
    Search,
    candidates_of,
    cost_of,
    price_units,
    prices_schema,
    quantities_of,
    read_choice,
    read_prices,
    verdict_of,
)
from vftsim.study.designs.runner import Evaluator, simulate
from vftsim.study.execution import Execution
from vftsim.study.figures.names import read_objective
from vftsim.study.runs.model import load_model

SHORT = ("workloads.signaling=null", "workloads.media.streams=200", "measure.duration=100 ms", "measure.warm_up=50 ms")
DOM0, LOSS = "domains.dom0.cpu", "workloads.media.loss"
CORES = {"hosts.host.pcpus": ("1", "2", "4"), "domains.dom0.weight": ("256", "512")}


FEW = {"hosts.host.pcpus": ("1", "4")}


def request(objectives=(f"{LOSS} <= 0.5",), choices=None, **more):
    base = load_model("xen-media", SHORT)
    asked = tuple(read_objective(text) for text in objectives)
    return Request("xen-media", SHORT, base, choices or CORES, asked, read_prices(None), **more)


# Costs


def test_a_protected_pair_pays_for_two_hosts():
    plain, pair = (
        load_model("lab-virtual", [f"domains.sut.protection={{kind: {kind}}}"]).spec for kind in ("none", "lockstep")
    )
    alone, both = quantities_of(plain), quantities_of(pair)
    assert (alone["host"], both["host"]) == (1, 2)
    assert both["core"] == 2 * plain.hosts["host"].pcpus
    assert both["vcpu"] == alone["vcpu"] + pair.domains["sut"].vcpus
    assert both["memory"] - alone["memory"] == pytest.approx(pair.domains["sut"].memory_available / 2**30)


def test_each_of_several_alike_pays_for_its_channel():
    """Each copy has a guard, and so a channel of its own."""
    protected = "domains.media.protection={kind: checkpoint, channel: {rate: 2 Gbit/s}}"
    one, three = (load_model("xen-media", [protected, f"domains.media.count={n}"]).spec for n in (1, 3))
    assert quantities_of(three)["network"] - quantities_of(one)["network"] == 2 * 2.0


def test_a_cost_is_the_sum_of_its_parts():
    spec = load_model("xen-media", ["domains.dom0.vcpus=2"]).spec
    table = PriceTable(
        name="t",
        host=100.0,
        core=10.0,
        keys={"domains.dom0.weight": 0.5},
        parts={"hosts.host.scheduler.kind=credit": 7.0, "hosts.host.scheduler.kind=credit2": 1000.0},
    )
    cost, paid = cost_of(table, spec, {"domains.dom0.weight": ""})
    assert cost == 100.0 + 10.0 * spec.hosts["host"].pcpus + 0.5 * spec.domains["dom0"].weight + 7.0
    assert paid["hosts.host.scheduler.kind=credit2"] == 0.0
    assert "vcpu" not in paid, "what has no price is not shown"
    with pytest.raises(UsageError, match="no 'dom9'"):
        cost_of(PriceTable(name="t", keys={"domains.dom9.weight": 1.0}), spec, {"domains.dom9.weight": ""})


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ("hosts.host.scheduler.kind=credti", "no kind 'credti'; did you mean 'credit'"),
        ("domains.dom9.protection.kind=none", "no 'dom9'; did you mean 'dom0'"),
        ("hosts.host.scheduler.slise=30 ms", "no 'slise'; did you mean 'slice'"),
    ],
)
def test_a_price_of_a_part_that_there_is_not_is_refused(part, message):
    spec = load_model("xen-media").spec
    with pytest.raises(UsageError, match=message):
        cost_of(PriceTable(name="t", parts={part: 1.0}), spec, {})
    of_another_kind = PriceTable(name="t", parts={"domains.dom0.protection.interval=25 ms": 1.0})
    assert cost_of(of_another_kind, spec, {})[0] == 0.0, "without protection there is no interval"


def test_a_value_of_a_part_is_that_of_the_model_however_it_is_written():
    spec = load_model("lab-virtual", ["domains.sut.protection={kind: checkpoint, interval: 25 ms}"]).spec
    for value, cost in (("25ms", 7.0), ("25 ms", 7.0), ("25000 us", 7.0), ("0.025 s", 7.0), ("25 us", 0.0)):
        table = PriceTable(name="t", parts={f"domains.sut.protection.interval={value}": 7.0})
        assert cost_of(table, spec, {})[0] == cost


@pytest.mark.parametrize(
    ("key", "values", "costs", "message"),
    [
        # The model's latency is 10 us.
        (
            "networks.lan.latency",
            ("0 us", "900 us", "1 ms", "1000 us"),
            [0, 900, 1000, 1000],
            "us of networks.lan.latency",
        ),
        # Here 4 GiB.
        ("domains.media.memory_available", ("512 MiB", "2 GiB"), [0.5, 2], "GiB of domains.media.memory_available"),
        # No mechanism is in the model: the unit of the first choice.
        ("domains.media.protection.interval", ("900 us", "2 ms"), [900, 2000], "us of domains.media.protection."),
    ],
)
def test_a_price_of_a_key_is_of_one_unit_however_values_are_written(key, values, costs, message):
    choices = {"domains.media.protection.kind": ("checkpoint",), key: values}
    asked = replace(request(choices=choices), prices=PriceTable(name="t", keys={key: 1.0}))
    found, refused = candidates_of(asked)
    assert not refused
    assert [each.cost for each in found] == costs
    units = price_units(asked, [each.point for each in found])
    assert f"{units[key]} of {key}".startswith(message)


def test_prices_are_read_from_a_file_with_a_schema(tmp_path):
    folder = shipped_dir("experiments") / "prices"
    written = json.loads((folder / "prices.schema.json").read_text(encoding="utf-8"))
    assert written == prices_schema(), "run: vftsim schema prices > experiments/prices/prices.schema.json"
    assert mistakes(prices_schema(), {"name": "x", "core": 3.0}) == []
    assert mistakes(prices_schema(), {"name": "x", "cores": 3.0})
    wrong = tmp_path / "p.yaml"
    wrong.write_text("name: x\nhost: -1\n")
    with pytest.raises(ModelFileError, match="host"):
        read_prices(str(wrong))
    with pytest.raises(UsageError, match="--prices: no file"):
        read_prices(str(tmp_path / "none.yaml"))


# Verdicts


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([1.0, 1.1, 0.9, 1.2, 0.8, 1.0, 1.1, 0.9, 1.2, 0.8], MET),
        ([3.0, 3.1, 2.9, 3.2, 2.8, 3.0, 3.1, 2.9, 3.2, 2.8], MISSED),
        ([2.0, 2.3, 1.7, 2.2, 1.8, 2.0, 2.1, 1.9, 2.2, 1.8], OPEN),
        ([0.0] * 10, MET),
        ([1.0, 1.1, 0.9], OPEN),
        ([3.0, 3.1, 2.9], MISSED),
        ([1.0, 1.1, 2.9], OPEN),
    ],
)
def test_a_verdict_takes_an_interval_on_one_side_or_runs_that_agree(values, verdict):
    objective = read_objective("x <= 2")
    found = {"x": mean_interval(values, 0.9)}
    assert verdict_of([objective], found, {"x": values}) == verdict
    if len(values) >= 10:
        other = {MET: MISSED, MISSED: MET, OPEN: OPEN}[verdict]
        assert verdict_of([replace(objective, relation=">=")], found, {"x": values}) == other


def test_a_figure_that_no_run_has_neither_meets_nor_misses():
    assert verdict_of([read_objective("x <= 2")], {}, {}) == LACKING


# The search, on figures that are known


class Known:
    """Figures of configurations by a rule, with the same spread at all."""

    def __init__(self, rule):
        self.rule, self.asked = rule, []

    def __call__(self, evaluate, request, some, n):
        del evaluate
        done = []
        for one in some:
            self.asked.append((one.number, n))
            middle = self.rule({name: float(value) for name, value in one.point.values.items()})
            values = [middle * (1.0 + 0.01 * math.sin(7.0 * k)) for k in range(n)]
            figures = {LOSS: mean_interval(values, 0.9)}
            verdict = verdict_of(request.objectives, figures, {LOSS: values})
            done.append(replace(one, n=n, figures=figures, verdict=verdict))
        return done


def searched(monkeypatch, rule, **more):
    known = Known(rule)
    monkeypatch.setattr(module, "measured", known)
    search = Search(request(**more), Evaluator(0.9, Execution()), None)
    return search, search.run(), known


WIDE = {"hosts.host.pcpus": tuple(map(str, range(1, 13))), "domains.dom0.vcpus": tuple(map(str, range(1, 9)))}


@pytest.mark.parametrize("looks", [8, 500])
def test_the_cheapest_is_found_and_everything_cheaper_was_looked_at(monkeypatch, looks):
    if looks == 8:
        pytest.importorskip("optuna")

    def rule(x):
        return 4.01 / (x["hosts.host.pcpus"] + 0.3 * x["domains.dom0.vcpus"])

    search, winner, _ = searched(monkeypatch, rule, choices=WIDE, looks=looks)
    best = min(
        (each for each in search.candidates if rule({k: float(v) for k, v in each.point.values.items()}) < 0.5),
        key=lambda each: (each.cost, each.number),
    )
    assert winner is not None
    assert winner.number == best.number
    assert search.unknown_below(winner) == []
    cheaper = [each for each in search.candidates if (each.cost, each.number) < (winner.cost, winner.number)]
    assert all(each.verdict == MISSED for each in cheaper)
    assert search.proven[winner.number].verdict == MET
    if looks == 8:
        assert not all(each.n for each in search.candidates), "dearer ones are of no interest"


def test_a_winner_that_fails_with_fresh_seeds_is_out(monkeypatch):
    def rule(x):
        return 1.0 / x["hosts.host.pcpus"]

    known = Known(rule)

    def measured(evaluate, request, some, n):
        found = known(evaluate, request, some, n)
        if evaluate == "fresh":
            found = [replace(e, verdict=MISSED) if e.point.values["hosts.host.pcpus"] == "4" else e for e in found]
        return found

    monkeypatch.setattr(module, "measured", measured)
    choices = {"hosts.host.pcpus": ("1", "4", "6")}
    search = Search(request(choices=choices), "search", "fresh")
    winner = search.run()
    assert winner is not None
    assert winner.point.values["hosts.host.pcpus"] == "6"
    assert [each.failed_again for each in search.candidates] == [False, True, False]


@pytest.mark.parametrize("looks", [1, 500])
def test_a_budget_ends_the_search_and_that_is_said(monkeypatch, looks):
    """Looks leave runs to close with: of 96 configurations two are looked at where 46 runs are all there are."""
    search, winner, _ = searched(monkeypatch, lambda x: 0.1, choices=WIDE, looks=looks, budget=46)
    assert winner is not None
    assert search.unknown_below(winner) or winner is search.candidates[0]
    assert search.runs <= 46


def test_nothing_is_chosen_where_nothing_does(monkeypatch):
    _, winner, known = searched(monkeypatch, lambda x: 9.0)
    assert winner is None
    assert {n for _, n in known.asked} == {3}


# With runs


@pytest.mark.thorough
def test_the_choice_is_that_of_all_runs_and_goes_on_when_ended(tmp_path, monkeypatch):
    whole = kept(optimize, request(choices=FEW), tmp_path / "whole")
    assert whole.winner is not None
    assert whole.is_settled
    cheaper = whole.candidates[: whole.candidates.index(whole.winner)]
    assert cheaper
    assert all(each.figures[LOSS].mean > 0.5 for each in cheaper)
    assert whole.again[whole.winner.number].figures[LOSS].mean <= 0.5
    text = " ".join(str(whole).split())
    assert len(cheaper) == 1
    assert "More runs cannot change that: the one cheaper configuration misses it." in text
    left = [8]

    def ended(task, *_):
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return simulate(task)

    with monkeypatch.context() as patch:
        patch.setattr(evaluator, "simulate", ended)
        with pytest.raises(KeyboardInterrupt, match="8 finished runs"):
            kept(optimize, request(choices=FEW), tmp_path / "s")
    again = kept(optimize, request(choices=FEW), tmp_path / "s")
    assert again.to_pandas().equals(whole.to_pandas())
    for name in ("configurations.csv", "answer.json", "charts.png", "manifest.json"):
        assert (tmp_path / "s" / name).stat().st_size > 0


def test_runs_without_the_figure_of_an_objective_are_said(tmp_path):
    """Of requests at 1.5 a second every fourth second has none, and no delay either."""
    (tmp_path / "seldom.yaml").write_text(SELDOM.replace("0.7 /s", "1.5 /s"))
    choice = vftsim.optimize(
        tmp_path / "seldom.yaml", ["domains.vm.weight=1,2"], ["users.latency.p95 <= 400"], directory=tmp_path / "out"
    )
    assert choice.winner is not None
    known = choice.winner.figures["workloads.users.latency.p95"].n
    assert 0 < known < choice.winner.n
    text = " ".join(str(choice).split())
    assert f"workloads.users.latency.p95: from {known} of {choice.winner.n} replications; the others say" in text


def test_a_choice_whose_first_runs_have_no_figure_is_no_choice_without_one(tmp_path):
    """At one request in five seconds some runs of a second have a delay, and none of the first three."""
    (tmp_path / "seldom.yaml").write_text(SELDOM.replace("0.7 /s", "0.2 /s"))
    choice = vftsim.optimize(
        tmp_path / "seldom.yaml", ["domains.vm.weight=1,2"], ["users.latency.p95 <= 400"], directory=tmp_path / "out"
    )
    cheapest = choice.candidates[0]
    assert (cheapest.verdict, cheapest.n, cheapest.figures["workloads.users.latency.p95"].n) == (MET, 40, 10)
    never = ["workloads.users.rate=0.0001 /s"]
    choice = vftsim.optimize(
        tmp_path / "seldom.yaml",
        ["domains.vm.weight=1,2"],
        ["users.latency.p95 <= 400"],
        overrides=never,
        directory=tmp_path / "never",
    )
    assert "with 95 % confidence. Some stay open. 2 of 2" in " ".join(str(choice).split())


def test_a_choice_with_the_name_of_a_figure_has_a_column_of_its_own(tmp_path):
    rate, short = "workloads.calls.rate", ("measure.duration=1 s", "measure.warm_up=1 s")
    base, asked = load_model("sip-farm-r1", short), (read_objective(f"{rate} >= 50"),)
    choice = Request("sip-farm-r1", short, base, {rate: ("10 /s", "90 /s")}, asked, read_prices(None))
    table = kept(optimize, choice, tmp_path / "s").to_pandas()
    measured = dict(zip(table[f"set.{rate}"], table[rate], strict=True))
    assert measured["10 /s"] < 50.0 < measured["90 /s"]


@pytest.mark.thorough
def test_the_command_says_everything_as_data(tmp_path, capsys):
    changes = [word for setting in SHORT for word in ("--set", setting)]
    choices = ["--choose", "hosts.host.pcpus=1", "--choose", "scheduler=credit,native"]
    more = ["--objective", "media.loss <= 0.5", "-j", "1", "-q", "--json", "-o", str(tmp_path / "s")]
    assert main(["optimize", "xen-media", *choices, *more, *changes]) == 0
    printed = json.loads(capsys.readouterr().out)
    verdicts = {each["scheduler"]: each["verdict"] for each in printed["configurations"]}
    assert verdicts["native"] == "cannot be run", "it takes no more vCPUs than pCPUs"
    assert {each["scheduler"]: each["n"] for each in printed["configurations"]}["native"] == 0
    assert "each of the" in printed["refused"]["scheduler=native"]
    assert verdicts["credit"] in (MET, MISSED, OPEN)
    assert printed["objectives"] == ["workloads.media.loss <= 0.5 %"]
    assert {each[f"{LOSS}_unit"] for each in printed["configurations"]} == {"%"}
    assert set(printed["fronts"]) == {LOSS}
    assert main(["studies", str(tmp_path), "--json"]) == 0
    (one,) = json.loads(capsys.readouterr().out)
    assert (one["command"], one["points"], one["replications"]) == ("optimize", 2, "")


def test_a_choice_that_a_mechanism_does_not_know_is_no_reason_to_refuse_it():
    base, asked = load_model("lab-virtual"), (read_objective("domains.sut.cpu <= 50"),)
    choices = {"protection": ("checkpoint", "none", "nine"), "checkpoint_interval": ("25 ms", "100 ms")}
    found, refused = module.candidates_of(Request("lab-virtual", (), base, choices, asked, read_prices(None)))
    assert sorted(each.point.values["protection"] for each in found) == ["checkpoint", "checkpoint", "none", "none"]
    assert all("unknown protection mechanism kind 'nine'" in why for why in refused.values())
    assert len(refused) == 2


def test_an_objective_may_be_on_a_figure_that_only_some_choices_have(tmp_path):
    """Outputs wait half of an interval on average; without protection none is held, which does not meet it."""
    path = tmp_path / "server.yaml"
    path.write_text(SERVER)
    choose = ["protection=none,checkpoint,micro_checkpoint", "checkpoint_interval=20 ms,100 ms"]
    settings = ("workloads.load.clients=4",)
    base = load_model(str(path), settings)
    asked = Request.read(str(path), settings, base, choose, ["protection.output_held <= 30 ms"], None)
    assert asked.figures == ("domains.server.protection.output_held",)
    found = kept(optimize, asked, tmp_path / "found")
    verdicts = {tuple(each.point.values.values()): each.verdict for each in found.candidates if each.n}
    assert verdicts["none", "20 ms"] == LACKING
    assert verdicts["checkpoint", "100 ms"] == MISSED
    assert found.winner is not None
    assert found.winner.point.values["checkpoint_interval"] == "20 ms"
    with pytest.raises(UsageError, match=r"nearest: domains\.server\.protection\.output_held"):
        Request.read(str(path), settings, base, choose, ["output_hold <= 30 ms"], None)


# What is refused


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("weight=256,512", ("weight", ("256", "512"))),
        ("a.path=[0,1],{kind: x, y: 2}", ("a.path", ("[0,1]", "{kind: x, y: 2}"))),
        ("a.b=10 ms..40 ms/4", ("a.b", ("10 ms", "20 ms", "30 ms", "40 ms"))),
    ],
)
def test_choices_are_read_as_a_user_writes_them(text, found):
    assert read_choice(text) == found


@pytest.mark.parametrize("text", ["weight", "weight=", "=3", "weight=1,,2", "a.b=1..2/1"])
def test_what_is_no_choice_is_refused(text):
    with pytest.raises(UsageError, match="--choose"):
        read_choice(text)


@pytest.mark.parametrize("text", ["weight=100..200", "a.b=1 GiB..2 GiB", "weight=256,300..400"])
def test_a_range_without_its_levels_is_asked_for_them(text):
    with pytest.raises(UsageError, match=r"how many levels of that range\? Such as .*\.\..*/5"):
        read_choice(text)


def test_what_makes_no_sense_is_refused(tmp_path):
    for wrong, why in (
        ({"choices": {"streams": ("1", "2"), "workloads.media.streams": ("3",)}}, "both set workloads.media.streams"),
        ({"choices": {"a.b": tuple(map(str, range(6000)))}}, "at most 5000"),
        ({"confidence": 0.4}, "--confidence"),
        ({"budget": 3}, "--budget"),
    ):
        with pytest.raises(UsageError, match=why):
            kept(optimize, request(**wrong), tmp_path / "s")
    assert not (tmp_path / "s").exists()


def test_optuna_is_named_where_it_is_missing_and_needed(monkeypatch):
    def missing(module, name, what):
        raise UsageError(f"{what} needs {module}: pip install 'vftsim[{name}]'")

    monkeypatch.setattr(module, "extra", missing)
    with pytest.raises(UsageError, match=r"optimize needs optuna: pip install 'vftsim\[optimize\]'"):
        searched(monkeypatch, lambda x: 1.0, choices=WIDE, looks=3)
    _, winner, _ = searched(monkeypatch, lambda x: 0.1, looks=10)
    assert winner is not None, "so few are all looked at"


def test_an_objective_is_in_the_unit_that_is_written():
    base = load_model("xen-media", SHORT)
    read = Request.read("xen-media", SHORT, base, ["hosts.host.pcpus=1,4"], ["media.delay.p99 <= 0.1 s"], None)
    (one,) = read.objectives
    assert (one.figure, one.value, one.unit) == ("workloads.media.delay.p99", 100.0, "ms")
    assert one.holds(99.0), "99 ms are no more than 0.1 s"
    assert not one.holds(101.0)
    with pytest.raises(UsageError, match=r"media\.loss is in %, not in ms"):
        Request.read("xen-media", SHORT, base, ["hosts.host.pcpus=1,4"], ["media.loss <= 5 ms"], None)


@pytest.mark.parametrize(
    ("choose", "message"),
    [
        (["nope=1,2"], "no short name 'nope'; short names: weight, .*; or a dotted key of the model"),
        (["pcpus=1,2"], r"no short name 'pcpus'; did you mean 'hosts\.host\.pcpus'\?$"),
        (["calls=1,2"], r"'calls' \(.*\) means nothing"),
        (["checkpoint_interval=5 ms,9 ms"], r"'checkpoint_interval' \(.*\) means nothing under none"),
        (["domains.dom0.weight=1,2", "domains.dom0={weight: 3},{weight: 4}"], "undoes 'domains.dom0.weight'"),
        (["=1..2/3"], "not of the form"),
    ],
)
def test_a_wrong_choice_is_refused_by_the_option_that_has_it(choose, message):
    base = load_model("xen-media", SHORT)
    with pytest.raises(UsageError, match=f"^--choose: .*{message}"):
        candidates_of(Request.read("xen-media", SHORT, base, choose, [f"{LOSS} <= 0.5"], None))


def test_what_a_choice_makes_impossible_is_said_of_the_choice():
    base = load_model("xen-media", SHORT)
    asked = Request.read("xen-media", SHORT, base, ["hosts.host.pcpus=1,none"], [f"{LOSS} <= 0.5"], None)
    candidates, refused = candidates_of(asked)
    assert len(candidates) == 1
    assert [why.partition(" ")[0] for why in refused.values()] == ["--choose:"]
    with pytest.raises(UsageError, match=r"no configuration is possible: --choose: hosts\.host\.pcpus=none"):
        candidates_of(replace(asked, choices={"hosts.host.pcpus": ("none",)}))


def test_intervals_are_shared_among_objectives():
    one, two = request(), request(objectives=(f"{LOSS} <= 1", f"{DOM0} <= 90"))
    assert one.interval == pytest.approx(0.90)
    assert two.interval == pytest.approx(0.95)
    assert two.figures == (LOSS, DOM0)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (runs_range(0.4, [0.1, 0.6], 0.9), "has no interval at hosts.host.pcpus=1: single runs see too little of it"),
        (None, "no run of hosts.host.pcpus=1 gives one"),
        (runs_range(0.4, [0.1, 0.45], 0.9), ""),
        (mean_interval([0.1, 0.6, 0.7] * 10), ""),
    ],
)
def test_why_a_configuration_stays_open_is_said(found, said):
    """Of one that 40 runs did not decide; the limit is 0.5."""
    (first, second), _ = candidates_of(request(choices=FEW))
    first = replace(first, n=40, figures={} if found is None else {LOSS: found})
    notes = why_open(Choice(request(choices=FEW), None, None, {}, [first, second], {}, False, 40, {}))
    assert [said in note for note in notes] == [True] * bool(said)
