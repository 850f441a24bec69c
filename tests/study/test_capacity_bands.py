"""What the ranges of prices make of a capacity: a band where a price moves it, the same when it is read back."""

import pytest

import vftsim
from tests.study.test_stream_capacity import SERVER
from tests.study.tiny import tiny
from vftsim.cli.main import main
from vftsim.study.designs.capacity import capacity_takes, find_capacity
from vftsim.study.designs.capacity_answer import bands_take, ends_of, runs_of_bands, turning
from vftsim.study.designs.capacity_search import CapacityRequest
from vftsim.study.designs.protections import under
from vftsim.study.execution import Execution
from vftsim.study.runs.estimate import needs_of
from vftsim.study.runs.model import load_model

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


# Of a search


def walked(start, last):
    """The level that is found, and the levels tried."""
    walk, tried = turning(start), []
    try:
        level = next(walk)
        while True:
            tried.append(level)
            level = walk.send(level <= last)
    except StopIteration as end:
        return end.value, tried


@pytest.mark.parametrize("start", [1, 5, 40])
@pytest.mark.parametrize("last", [0, 1, 4, 5, 6, 39, 40, 41, 55, 150, 5000])
def test_the_last_level_within_the_limit_is_found_from_anywhere(start, last):
    most = 64 * start - 1
    found, tried = walked(start, last)
    assert found == min(last, most)
    assert len(set(tried)) == len(tried)
    assert all(1 <= each <= most for each in tried)
    assert len(tried) <= 2 or last != start


@pytest.fixture
def server(tmp_path):
    """Epochs of 1 ms with a boundary of 0.1 to 0.444 ms leave 91 to 69 % of a CPU that 20 streams fill.

    The channel is fast, so that nothing waits for it.
    """
    file = tmp_path / "server.yaml"
    file.write_text(SERVER)
    room = "domains.linux.applications.relay.receive_buffer_bytes=200000"
    epochs = "domains.linux.protection={kind: hypervisor_epoch, channel: {rate: 1 Gbit/s, latency: 74.5 us}}"
    return load_model(file, [room, epochs])


def streams(model, **wishes):
    request = CapacityRequest(resolution=1.0, probability=0.5, budget=60, **wishes)
    return find_capacity(model, request, Execution(3, 1))


@pytest.mark.thorough
def test_prices_move_what_a_search_finds_as_a_search_at_their_ends_does(server):
    found = streams(server).searches["streams"]
    by_price = {each.price: each for each in found.band.effects}
    at_ends = {}
    for end in ends_of(server):
        if end.price == "boundary":
            other = streams(end.model, prices=False).searches["streams"]
            at_ends[end.is_high] = other.result.estimate.mean - found.result.estimate.mean
    assert by_price["boundary"].at_low == pytest.approx(at_ends[False], abs=1.5)
    assert by_price["boundary"].at_high == pytest.approx(at_ends[True], abs=1.5)
    assert by_price["boundary"].at_low > 0.0 > by_price["boundary"].at_high
    assert found.with_prices.low < found.result.estimate.low
    assert found.with_prices.high > found.result.estimate.high


@pytest.mark.thorough
def test_a_search_with_prices_is_read_back(server, tmp_path):
    folder = tmp_path / "kept"
    found = vftsim.capacity(server, quick=True, prices=True, directory=folder)
    assert f"{found.searches['streams'].band.decides} decides" in str(found)
    assert str(vftsim.open(folder)) == str(found)
    assert found.to_pandas()["deciding_price"][0] == found.searches["streams"].band.decides
    again = vftsim.capacity(server, quick=True, prices=True, directory=folder)
    assert again.searches["streams"].band == found.searches["streams"].band


def test_time_is_told_for_the_band_of_a_search(server):
    with_band, without = (capacity_takes(server, CapacityRequest(prices=prices)) for prices in (True, False))
    assert with_band.runs - without.runs == runs_of_bands(server) == 5 * (len(ends_of(server)) + 1)
