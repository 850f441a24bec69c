"""Faults that strike again and again: periods by hand, what is drawn against its distribution."""

import numpy as np
import pytest
from pydantic import ValidationError

from vftsim.errors import UsageError
from vftsim.platform.protection.faults import Pause, RepeatSpec
from vftsim.platform.protection.when import Instant
from vftsim.sampling import Streams, renewals_ns

from .test_faults import S, lab

MS = 1_000_000


def pause(repeat, at="9 s", duration="100 ms"):
    return {"kind": "pause", "at": at, "duration": duration, "repeat": repeat}


def begun(run):
    run.play()
    return [time_ns for time_ns, what in run.timeline if what == "pause"]


def test_a_period_counts_from_the_first():
    run = lab({"kind": "none"}, pause({"every": "2 s", "most": 3}))
    assert begun(run) == [9 * S, 11 * S, 13 * S]
    assert [t for t, what in run.timeline if what == "pause over"] == [
        9 * S + 100 * MS,
        11 * S + 100 * MS,
        13 * S + 100 * MS,
    ]


@pytest.mark.thorough
def test_what_is_drawn_is_the_same_under_every_mechanism():
    drawn = pause({"mean": "3 s"})
    times = [begun(lab({"kind": kind}, drawn)) for kind in ("none", "lockstep", "ha_restart")]
    assert times[0] == times[1] == times[2]
    assert len(times[0]) > 2
    assert all(after - before > 100 * MS for before, after in zip(times[0], times[0][1:], strict=False))
    assert begun(lab({"kind": "none"}, drawn, replication=1)) != times[0]


def test_two_faults_of_a_kind_are_drawn_apart():
    twice = lab({"kind": "none"}, pause({"mean": "4 s", "most": 2}), pause({"mean": "4 s", "most": 2}))
    times = begun(twice)
    assert len(set(times)) == len(times) > 2


@pytest.mark.thorough
def test_a_channel_that_flaps_only_delays():
    """0.2 s of each second for 5 s; nobody is declared dead, and every output leaves."""
    loss = {"kind": "channel_loss", "at": "8 s", "duration": "200 ms", "repeat": {"every": "1 s", "most": 5}}
    steady, flapping = lab({"kind": "lockstep"}), lab({"kind": "lockstep"}, loss)
    before, after = steady.play()[-1], flapping.play()[-1]
    lost = [time_ns for time_ns, what in flapping.timeline if what == "channel loss"]
    assert lost == [8 * S + number * S for number in range(5)]
    assert [what for _, what in flapping.timeline].count("channel works again") == 5
    assert flapping.state == "protected"
    assert after.attempts == before.attempts
    assert sum(after.inadequate) == sum(before.inadequate)
    assert after.delays["PMM1"].percentile(99) > before.delays["PMM1"].percentile(99) + 50 * MS


@pytest.mark.parametrize("cv", [0.5, 1.0, 2.0])
def test_gaps_have_the_mean_and_the_spread_asked_for(cv: float):
    """20,000 gaps: mean within 4 standard errors, coefficient of variation within 10 %."""
    n, lasts_ns = 20_000, 7 * MS
    times = np.array(renewals_ns(Streams(3, 0), "faults.pause", 1, 5 * S, 1.0 * S, cv, lasts_ns, n))
    gaps = np.diff(times, prepend=5 * S - lasts_ns) - lasts_ns
    assert abs(gaps.mean() / S - 1.0) < 4.0 * cv / np.sqrt(n)
    assert gaps.std() / gaps.mean() == pytest.approx(cv, rel=0.1)


def test_no_spread_is_a_period():
    assert renewals_ns(Streams(3, 0), "x", 0, 1 * S, 2.0 * S, 0.0, 10 * MS, 3) == [
        3 * S,
        5 * S + 10 * MS,
        7 * S + 20 * MS,
    ]


def test_repetitions_that_cannot_be_are_refused():
    for wrong in ({}, {"every": S, "mean": S}):
        with pytest.raises(ValidationError, match=r"every .a period. or mean"):
            RepeatSpec(**wrong)
    with pytest.raises(ValidationError, match=r"repeat\.every must be longer"):
        lab({"kind": "none"}, pause({"every": "100 ms"}))
    drawn = Pause(at=Instant("run", 0), duration=MS, repeat=RepeatSpec(mean=S))
    with pytest.raises(UsageError, match="random streams"):
        drawn.instants_ns(0, None, 0)
