"""Rare events of models: against the exact chance of a queue, the same in any number of workers, kept, refused."""

import json

import numpy as np
import pytest
from scipy.linalg import expm

from vftsim.cli.main import main
from vftsim.composition.branches import Branches
from vftsim.errors import UsageError
from vftsim.stats import mean_interval
from vftsim.stats.splitting import Trials
from vftsim.study.designs.rare import RareStudy, rare_study, read_event, read_levels, request_for
from vftsim.study.execution import Execution
from vftsim.study.runs.estimate import needs_of
from vftsim.study.runs.model import load_model
from vftsim.study.store.store import resumable_store

QUEUE = """\
format: 2
name: queue
hosts: {host: {}}
networks: {lan: {rate: 100 Gbit/s, latency: 0 us}}
domains:
  server:
    interfaces: {eth0: {path: {kind: moderated}}}
    applications: {queue: {kind: service, threads: 1, demand: 1 ms, demand_cv: 1}}
workloads:
  requests: {kind: open_requests, to: server, rate: 300 /s, timeout: 1 min, retries: 0}
measure: {warm_up: 0 s, duration: 100 ms}
"""
HELD = "domains.server.applications.queue.held"


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    found = tmp_path_factory.mktemp("rare") / "queue.yaml"
    found.write_text(QUEUE)
    return found


def chance(limit, arrivals_per_s=300.0, services_per_s=1000.0, seconds=0.1, *, lost=False):
    """Return that of M/M/1 reaching a limit in a time, or of M/M/1/limit losing a customer.

    The process ends where the event takes place; the exponential of its generator is its distribution, exactly.
    """
    states = limit + 1 + lost
    generator = np.zeros((states, states))
    for here in range(states - 1):
        generator[here, here + 1] = arrivals_per_s
        if here:
            generator[here, here - 1] = services_per_s
        generator[here, here] = -generator[here].sum()
    return expm(generator * seconds)[0, -1]


def asked(path, event, trials=30, repetitions=10, levels=None, *, settings=(), brute_force=False, seed=1):
    return request_for(load_model(path, settings), event, levels, trials, repetitions, brute_force=brute_force)


def test_a_branch_is_the_same_whatever_was_continued_before_and_another_is_not(path):
    def after(numbers):
        one = Branches(load_model(path).spec, 1, 1, HELD)
        start, found = one.state(), []
        for number in numbers:
            start.put_back()
            found.append((one.go_on(number, 3), one.events, one.highest))
        return found

    first = after([1, 2, 3])
    assert len(set(first)) == 3
    assert after([3, 1])[::-1] == [first[0], first[2]]


def test_a_run_stops_where_the_level_reaches_its_limit_and_goes_on_from_there(path):
    one = Branches(load_model(path).spec, 1, 1, HELD)
    start = one.state()
    reached = next(n for n in range(1, 100) if (start.put_back(), one.go_on(n, 4))[1])
    assert one.highest == 4
    events = one.events
    state = one.state()
    assert one.go_on(reached, 4), "it is there already"
    assert one.events == events
    ways = {(state.put_back(), one.go_on(reached + n, 1000), one.events)[1:] for n in range(1, 6)}
    assert len(ways) > 2
    assert all(not is_there and after > events for is_there, after in ways)


def test_losses_by_chance_count_and_each_branch_has_its_own(path):
    """Of 30 requests in a run 5 % are lost: none with exp(-1.5); the second after the first comes, or does not."""
    lossy = load_model(path, ["networks.lan.loss=5 %"]).spec
    one = Branches(lossy, 1, 1, "networks.lan.to_host.lost")
    start, loss = one.state(), 1 << 40
    reached = [n for n in range(1, 401) if (start.put_back(), one.go_on(n, loss))[1]]
    assert len(reached) / 400 == pytest.approx(1 - np.exp(-1.5), abs=4 * (0.17 / 400) ** 0.5)
    start.put_back()
    one.go_on(reached[0], loss)
    first = one.state()
    ways = {(first.put_back(), one.go_on(n, 2 * loss), one.events)[1:] for n in range(1, 30)}
    assert {is_there for is_there, _ in ways} == {True, False}
    assert len(ways) > 10


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("event", "settings", "exact"),
    [
        ("queue.held >= 10", (), chance(10)),
        pytest.param(
            "queue.lost >= 1",
            ("domains.server.applications.queue.backlog=8",),
            chance(9, lost=True),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_the_interval_holds_the_exact_chance(path, event, settings, exact):
    found = rare_study(asked(path, event, 40, 10, "2,4,6,8", settings=settings), Execution(1, 1))
    assert 1e-5 < exact < 1e-3
    assert found.probability.low < exact < found.probability.high
    assert exact / 2 < found.probability.mean < 2 * exact


@pytest.mark.thorough
def test_brute_force_says_the_same_where_it_can(path):
    found = rare_study(asked(path, "queue.held >= 5", 60, 12, brute_force=True), Execution(1, 1))
    assert found.probability.low < chance(5) < found.probability.high


def study_of(path, levels, *reached, tried=2):
    """Return a study whose repetitions came to its levels as often as is said."""
    request = asked(path, f"queue.held >= {levels[-1]}", brute_force=True)
    manifest = {"models": [], "seed": 1}
    return RareStudy(request, tuple(levels), [Trials(tried, each, 100) for each in reached], None, manifest)


def test_what_no_repetition_has_seen_is_bounded_and_not_impossible(path, capsys):
    """Clopper and Pearson: ten repetitions that see an event of probability p with p or more; (1 - p)^10 = 0.025."""
    unseen = study_of(path, (15, 30), *[(0,)] * 10)
    assert unseen.probability.high == pytest.approx(1 - 0.025**0.1)
    assert unseen.probability.low == 0.0
    print(unseen)
    printed = capsys.readouterr().out
    assert "< 0.31 of a run" in printed
    assert "levels nearer to each other" in printed
    assert unseen.shares(1) is None, "nobody came to the level before"
    always = study_of(path, (1,), *[(2,)] * 10).probability
    assert (always.low, always.high) == (pytest.approx(0.025**0.1), 1.0)


def test_a_table_has_the_probability_of_each_level_and_of_the_event(path):
    """Of 10 trials 5 and 4 came to the first level, and then 2 and none to the event: 0.45, and half of 0.5 x 0.2."""
    table = study_of(path, (2, 4), (5, 2), (4, 0), tried=10).to_pandas()
    assert list(table["probability"]) == [pytest.approx(0.45), pytest.approx(0.05)]
    assert (list(table["low"]), list(table["high"])) == ([0.4, 0.0], [0.5, pytest.approx(0.1)])
    assert list(table["interval"]) == ["range", "range"], "of two repetitions"


def test_nothing_is_more_probable_than_one(path):
    found = study_of(path, (3,), *[(2,)] * 5, *[(0,)] * 5)
    assert mean_interval(found.values).high > 1.0
    assert found.probability.high == found.shares(0).high == 1.0


def test_workers_and_what_is_kept_change_nothing(path, tmp_path):
    request = asked(path, "queue.held >= 6", 8, 3)
    alone = rare_study(request, Execution(1, 1))
    with resumable_store(tmp_path / "out", "rare") as store:
        first = rare_study(asked(path, "queue.held >= 6", 8, 2), Execution(1, 1, store=store))
    with resumable_store(tmp_path / "out", "rare") as store:
        more = rare_study(request, Execution(1, 1, store=store))
    assert first.repetitions == alone.repetitions[:2] == more.repetitions[:2]
    assert more.levels == alone.levels
    assert more.repetitions == alone.repetitions


@pytest.mark.thorough
def test_two_workers_say_the_same(path):
    request = asked(path, "queue.held >= 6", 8, 3)
    assert rare_study(request, Execution(1, 2)).repetitions == rare_study(request, Execution(1, 1)).repetitions


def test_a_trial_is_told_as_a_state_that_goes_on_and_not_as_a_run_that_is_built(path):
    """30 requests take microseconds and a state about a millisecond, a run that is built three."""
    few, more = (asked(path, "queue.held >= 9", trials, 10, "3,5,7").takes() for trials in (100, 200))
    a_trial_s = (more.seconds - few.seconds) / (100 * 4 * 10)
    assert 0.3e-3 < a_trial_s < 3e-3
    assert few.runs == more.runs == 10, "repetitions are what workers share"
    assert needs_of(load_model(path).spec).seconds > 3 * a_trial_s


def test_the_command(path, tmp_path, capsys):
    line = ["rare", str(path), "--event", "queue.held >= 4", "--trials", "6", "-n", "2", "-j", "1", "-q"]
    out = tmp_path / "out"
    assert main([*line, "--json", "-o", str(out)]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["event"] == f"{HELD} >= 4"
    assert printed["levels"][-1]["level"] == 4
    assert printed["events"] > sum(each["events"] for each in printed["repetitions"]) > 0
    assert main(["report", str(out), "-o", str(tmp_path / "page.html")]) == 0
    assert "How probable is" in (tmp_path / "page.html").read_text()


def test_where_no_trial_comes_to_a_level_no_share_of_the_next_is_known(path, capsys):
    """Of 0 trials there is no share, as in the table of ``--json``."""
    line = ["rare", str(path), "--event", "queue.held >= 40", "--levels", "30", "--trials", "2", "-n", "2", "-j", "1"]
    assert main([*line, "-q"]) == 0
    printed = capsys.readouterr().out
    assert [printed.partition(level)[2].split()[0] for level in ("\n30 ", "\n40 ")] == ["0", "-"]
    assert "No repetition saw the event" in printed
    assert main([*line, "-q", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["levels"][1]["share"] is None


@pytest.mark.parametrize(
    ("event", "levels", "words"),
    [
        ("queue.held", None, "not of the form"),
        ("nobody.held >= 3", None, "there are server.queue.held"),
        ("held >= 0", None, "takes a whole number from 1 on"),
        ("to_host.backlog >= 3", None, "--event"),
        ("held >= 5", "3,2", "ascending"),
        ("held >= 5", "3,5", "ascending"),
    ],
)
def test_what_makes_no_sense_is_refused(path, event, levels, words):
    with pytest.raises(UsageError, match=words):
        asked(path, event, levels=levels)


def test_a_backlog_is_a_time_and_losses_are_beyond_every_queue(path):
    spec = load_model(path).spec
    assert read_event("to_host.backlog >= 2 ms", spec).target == 2_000_000
    assert read_event("queue.lost >= 2", spec).target == 2 << 40


def test_levels_on_the_way_to_losses_of_a_link_are_times(path):
    spec = load_model(path).spec
    of_link, of_queue = read_event("to_host.lost >= 2", spec), read_event("queue.lost >= 2", spec)
    assert [of_link.shown(each) for each in (2_500_000, (1 << 40) + 1000, 2 << 40)] == [
        "2500 us",
        "1 lost, 1 us queued",
        "2 lost",
    ]
    assert of_queue.shown(5) == "5"
    assert read_levels("1 ms,2ms", of_link) == (1_000_000, 2_000_000)
    assert read_levels("3,5", of_queue) == (3, 5)
    with pytest.raises(UsageError, match="3 has no unit"):
        read_levels("3,5", of_link)


def test_a_pilot_that_comes_no_further_says_the_level_in_its_unit(path):
    with pytest.raises(UsageError, match=r"came beyond level \d+\.\d+ us of 100000 us"):
        rare_study(asked(path, "to_host.backlog >= 100 ms", 2), Execution(1, 1))


def test_without_the_compiled_engine_nothing_can_be_continued(path, monkeypatch):
    monkeypatch.setenv("VFTSIM_ENGINE", "simpy")
    with pytest.raises(UsageError, match="only the engine 'compiled'"):
        rare_study(asked(path, "queue.held >= 4"), Execution(1, 1))
