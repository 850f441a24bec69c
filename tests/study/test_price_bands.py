"""Bands that the ranges of prices make: where they come from, how wide they are, how often they hold the truth."""

import math
import runpy
from pathlib import Path

import numpy as np
import pytest

from vftsim.platform.protection.checkpoint import CheckpointSpec
from vftsim.platform.protection.lockstep import LockstepSpec
from vftsim.platform.protection.mechanism import protections
from vftsim.platform.protection.prices import at_prices, prices_of
from vftsim.spec import Spec
from vftsim.stats import Estimate
from vftsim.study.designs.failover import Crashes, crashes_of_each
from vftsim.study.designs.price_bands import ALL, Effect, band_of, effects_of, variants, widened
from vftsim.study.designs.protections import under
from vftsim.study.execution import Execution
from vftsim.study.runs.model import load_model

COVERAGE = runpy.run_path(str(Path(__file__).parents[2] / "experiments" / "prices" / "coverage.py"))
JOB, PAUSING_JOB, figures_of = COVERAGE["JOB"], COVERAGE["PAUSING_JOB"], COVERAGE["figures_of"]
SETTINGS = {
    "log.buffer",
    "cost.settling",
    "cost.plain_exit",
    "cost.execution",
    "cost.exits",
    "secondary.buffer",
    "throttle.period",
    "throttle.least_share",
    "throttle.cycle",
    "failover.detection.heartbeat_interval",
    "reprotection.cpu_share",
    "reprotection.resume",
    "outputs.most",
    "outputs.spacing",
    "disk.apply_rate",
    "state.compression_cost",
    "failover.storage_latency",
    "interval",
    "missing",
    "epoch_instructions",
    "simulated_rate",
    "simulated_cost",
    "message",
    "entry",
    "adaptive",
    "cost.form",
}
"""Parameters that are assumed and have no range: sizes, settings, what defaults turn off."""


@pytest.fixture
def job(tmp_path):
    path = tmp_path / "job.yaml"
    path.write_text(JOB)
    return load_model(path)


# Declarations


def parameters(spec: Spec, within: str = ""):
    for name, field in type(spec).model_fields.items():
        if isinstance(value := getattr(spec, name), Spec):
            yield from parameters(value, f"{within}{name}.")
        yield f"{within}{name}", field


@pytest.mark.parametrize("kind", sorted(protections()))
def test_no_parameter_is_assumed_without_a_range(kind):
    spec = protections()[kind]()
    priced = {each.key for each in prices_of(spec)}
    assumed = {key for key, field in parameters(spec) if "Assumption" in (field.description or "")}
    assert assumed - priced <= SETTINGS
    for each in prices_of(spec):
        assert each.price.low <= each.value <= each.price.high
        assert each.price.low < each.price.high
        assert each.price.basis == "assumed" or each.price.source


def test_a_price_that_a_model_gives_is_its_own():
    mechanism = LockstepSpec(cost={"entry": "3 us"}, log={"timer_rate": "500 /s"})
    keys = {each.key for each in mechanism.prices()}
    assert "cost.entry" not in keys
    assert {"cost.output", "log.timer_entry"} <= keys
    assert not any(
        each.key.startswith("cost.")
        for each in LockstepSpec(cost={"execution": 1.1}).prices()
        if each.key in ("cost.clock_read", "cost.disk_operation", "cost.batch", "cost.exit")
    )


def test_a_price_that_is_set_leaves_its_neighbours_their_ranges(tmp_path):
    """As a model file says it, and as ``--set`` does."""
    path = tmp_path / "job.yaml"
    path.write_text(JOB)
    one = load_model(path, ["domains.vm.protection={kind: micro_checkpoint, pause: {page: 7 us}}"])
    two = load_model(path, ["domains.vm.protection={kind: micro_checkpoint}", "domains.vm.protection.pause.page=7 us"])
    mechanism = one.spec.domains["vm"].protection
    assert mechanism == two.spec.domains["vm"].protection
    assert mechanism.pause.fixed == type(mechanism)().pause.fixed
    for model in (one, two):
        keys = {each.key for each in model.spec.domains["vm"].protection.prices()}
        assert "pause.fixed" in keys
        assert "pause.page" not in keys


def test_prices_are_set_where_they_are_nested():
    spec = at_prices(CheckpointSpec(), {"pause.page": 7000.0, "failover.go_live": 5e7})
    assert (spec.pause.page, spec.failover.go_live, spec.pause.fixed) == (7000, 50_000_000, 500_000)
    assert isinstance(spec.pause.page, int)


def test_every_price_is_played_at_both_ends_and_all_together(job):
    of = under(job, "lockstep")
    found = list(variants(of, "vm"))
    assert len({each.price for each in found}) * 2 == len(found)
    slow = next(each for each in found if each.is_high and each.price == "failover.detection.timeout")
    detection = slow.model.spec.domains["vm"].protection.failover.detection
    assert detection.timeout == detection.log_silence_ns == 5_000_000_000
    dear = next(each for each in variants(under(job, "hypervisor_epoch"), "vm") if each.price == ALL and each.is_high)
    mechanism = dear.model.spec.domains["vm"].protection
    assert (mechanism.boundary, mechanism.instruction_rate) == (444_000, 100e6)


# Widths


def test_the_band_of_one_price_holds_95_percent_of_its_range():
    band = band_of([Effect("a", "assumed", 0.5, -1.0, 1.0)])
    assert (band.below, band.above) == pytest.approx((-0.95, 0.95), abs=0.02)
    assert (band.decides, band.share) == ("a", 1.0)


def test_two_prices_add_up_as_independent_ones_do():
    """The sum of two even ones between -1 and 1 is above s with probability (2 - s)**2 / 8."""
    band = band_of([Effect("a", "assumed", 0.5, -1.0, 1.0), Effect("b", "assumed", 0.5, 1.0, -1.0)])
    expected = 2.0 - math.sqrt(8.0 * 0.025)
    assert (band.below, band.above) == pytest.approx((-expected, expected), abs=0.06)
    assert band.share == pytest.approx(0.5)


def test_a_value_near_an_end_of_its_range_moves_one_way():
    band = band_of([Effect("a", "assumed", 0.0, 0.0, 2.0), Effect("b", "assumed", 0.2, -0.2, 0.4)])
    assert band.below > -0.2
    assert band.decides == "a"


def test_what_saturates_does_not_add_up():
    both = [Effect("a", "assumed", 0.1, 0.0, 100.0), Effect("b", "assumed", 0.1, 0.0, 100.0)]
    assert band_of(both).above > 150.0
    assert band_of([*both, Effect(ALL, "assumed", 0.1, 0.0, 100.0)]).above <= 100.0


def test_a_cost_is_linear_in_its_price_and_prices_are_drawn_in_their_logarithm():
    """From 1 to 100, in use at 1: half of the prices drawn are below 10, which is 9 of 99 parts of the way."""
    found = Effect("a", "assumed", 0.0, 0.0, 99.0, 100.0).moved(np.array([0.0, 0.5, 1.0]))
    assert found == pytest.approx([0.0, 9.0, 99.0])
    # A value inside of the range moves nothing at its own place, and the ends are as they were played.
    found = Effect("a", "assumed", 0.5, -9.0, 90.0, 100.0).moved(np.array([0.0, 0.25, 0.5, 1.0]))
    assert found == pytest.approx([-9.0, 10.0**0.5 - 10.0, 0.0, 90.0])


def test_what_prices_do_in_pairs_is_read_off_the_run_with_all_at_their_ends():
    """A time of a pages at b each: (1 + x)(1 + y) - 1 with x and y even between 0 and 1."""
    alone = [Effect("a", "assumed", 0.0, 0.0, 1.0), Effect("b", "assumed", 0.0, 0.0, 1.0)]
    band = band_of([*alone, Effect(ALL, "assumed", 0.0, 0.0, 3.0)])
    x, y = np.random.default_rng(1).random((2, 200_000))
    low, high = np.quantile((1.0 + x) * (1.0 + y) - 1.0, (0.025, 0.975))
    assert (band.below, band.above) == pytest.approx((low, high), abs=0.04)
    # Where prices move a figure to both sides the run with all of them says nothing of pairs.
    against = [Effect("a", "assumed", 0.0, 0.0, 1.0), Effect("b", "assumed", 0.0, 0.0, -0.5)]
    both = band_of([*against, Effect(ALL, "assumed", 0.0, 0.0, 0.1)])
    plain = band_of(against)
    assert (both.below, both.above) == (plain.below, plain.above)


def test_replications_and_prices_are_independent():
    found = Estimate(10.0, 3.0, 7.0, 13.0, 20, 0.95, "t")
    band = band_of([Effect("a", "assumed", 0.5, -4.0, 4.0)])
    wide = widened(found, {"x": band}, "x")
    assert wide.high == pytest.approx(10.0 + math.hypot(3.0, band.above))
    assert wide.kind == "with prices"
    assert widened(found, {}, "x") is found
    # A figure that cannot be below 0 is not.
    large = band_of([Effect("a", "assumed", 0.5, -40.0, 40.0)])
    assert widened(found, {"x": large}, "x").low == 0.0
    assert widened(found, {"x": large}, "x", is_difference=True).low < 0.0


def test_no_price_no_band():
    assert band_of([Effect("a", "assumed", 0.5, 0.0, 0.0)]) is None


# Simulated


def test_the_price_that_decides_is_found(tmp_path):
    """An epoch of 50,000 instructions takes 1 ms; a boundary of 0.1 to 0.444 ms stops the guest for 9 to 31 %."""
    path = tmp_path / "job.yaml"
    path.write_text(PAUSING_JOB)
    model = under(load_model(path), "hypervisor_epoch")
    stopped = "domains.vm.protection.stopped"
    played = [(each, figures_of(each.model)(stopped)) for each in variants(model, "vm") if not each.is_of_failure]
    effects = effects_of(played, figures_of(model)(stopped))
    by_price = {each.price: each for each in effects}
    assert by_price["boundary"].at_low == pytest.approx(100 * (0.1 / 1.1 - 0.25 / 1.25), abs=0.3)
    assert by_price["boundary"].at_high == pytest.approx(100 * (0.444 / 1.444 - 0.25 / 1.25), abs=0.3)
    band = band_of(effects)
    assert band.effects[0].width >= band.effects[-1].width
    assert {each.price for each in band.effects} == {"boundary", "instruction_rate"}


def test_an_outage_moves_by_what_its_parts_do(job):
    model = under(job, "checkpoint")
    ends = [each for each in variants(model, "vm") if each.price == "failover.go_live"]
    low, high, mechanism = (
        each.failovers[0].away_s
        for each in crashes_of_each([*(e.model for e in ends), model], Crashes(1), Execution(1, 1))
    )
    assert high - mechanism == pytest.approx(0.9, abs=1e-6)
    assert mechanism - low == pytest.approx(0.09, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("spec", COVERAGE["MECHANISMS"], ids=lambda spec: spec.kind)
def test_bands_hold_laboratories_whose_prices_are_drawn(spec):
    """95 % of 1000 laboratories should lie within: 90 to 97."""
    inside = COVERAGE["coverage"](spec)
    assert all(90.0 <= share <= 97.0 for share in inside.values()), inside
