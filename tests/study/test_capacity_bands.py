"""What the ranges of prices make of a capacity: a band where a price moves it, the same when it is read back."""

import pytest

import vftsim
from tests.study.tiny import tiny
from vftsim.cli.main import main
from vftsim.study.capacity_bands import bands_take, ends_of
from vftsim.study.estimate import needs_of
from vftsim.study.model import load_model
from vftsim.study.protections import under

STEPS = "{initial: 10 /s, increment: 2 /s, duration: 4 s, transient: 1 s, most: 14}"


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "tiny.yaml"
    file.write_text(tiny(steps=STEPS))
    return file


def test_without_protection_there_are_no_prices(path):
    model = load_model(path)
    assert ends_of(model) == []
    assert bands_take(model).events == 0


def test_time_is_told_for_a_ramp_at_each_end_and_one_between(path):
    model = under(load_model(path), "checkpoint")
    assert bands_take(model).events == pytest.approx((len(ends_of(model)) + 1) * needs_of(model.spec).events)


@pytest.mark.thorough
def test_prices_move_the_capacity_and_the_band_is_read_back(path, tmp_path):
    model, folder = under(load_model(path), "checkpoint"), tmp_path / "kept"
    found = vftsim.capacity(model, replications=3, prices=True, directory=folder)
    plain = vftsim.capacity(model, replications=3)
    assert found.ramp.estimate == plain.ramp.estimate
    assert plain.with_prices is None
    # Which price decides hangs on chance in a ramp this small: a step's verdict rests on some fifty attempts.
    assert found.band.decides in {each.price for each in ends_of(model)}
    assert found.with_prices.low < found.ramp.estimate.low
    assert found.with_prices.high >= found.ramp.estimate.high
    assert found.with_prices.low >= 0.0
    assert f"{found.band.decides} decides" in str(found)
    assert "with_prices" not in str(plain)
    assert str(vftsim.open(folder)) == str(found)


@pytest.mark.thorough
def test_the_command_leaves_it_out_when_told_to(path, capsys):
    typed = ["capacity", str(path), "-n", "2", "-j", "1", "-q", "--set", "domains.sut.protection={kind: checkpoint}"]
    assert main(typed) == 0
    assert "anywhere in their ranges" in capsys.readouterr().out
    assert main([*typed, "--no-prices"]) == 0
    assert "anywhere in their ranges" not in capsys.readouterr().out
