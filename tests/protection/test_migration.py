"""Pre-copy migration against its closed form."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vftsim.platform.protection.migration import ReprotectionSpec, plan_copy

GB, S = 10**9, 10**9


def planned(most_volume=3.0, **changes):
    usual = {"memory": GB, "rate": 8 * GB, "dirty_rate": 16 * GB, "stop_below": 1, "resume": 0}
    return plan_copy(ReprotectionSpec(**usual | changes), most_volume)


@given(
    memory=st.integers(10**8, 10**10),
    ratio=st.floats(0.05, 0.7),
    stop=st.integers(10**5, 10**7),
)
def test_rounds_shrink_geometrically(memory, ratio, stop):
    """T_i = V/R l^i, n = ceil(log_l(V_stop/V)), total = V/R (1 - l^(n+1)) / (1 - l), downtime V/R l^n + resume."""
    rate = 8 * GB  # 1 GB/s: bytes are ns
    dirty = round(ratio * rate)
    lam = dirty / rate
    exact = math.log(stop / memory) / math.log(lam)
    if abs(exact - round(exact)) < 1e-3 or exact > 29:
        return
    n = max(1, math.ceil(exact))
    plan = planned(1e9, memory=memory, rate=rate, dirty_rate=dirty, stop_below=stop, resume=50)
    assert len(plan.rounds_ns) == n + 1
    assert sum(plan.rounds_ns) == pytest.approx(memory * (1 - lam ** (n + 1)) / (1 - lam), rel=1e-5)
    assert plan.downtime_ns == pytest.approx(memory * lam**n + 50, rel=1e-3)
    assert plan.live_ns + plan.downtime_ns == sum(plan.rounds_ns) + 50


def test_a_guest_that_dirties_faster_than_the_link_ends_at_the_round_limit():
    plan = planned(100.0, most_rounds=5)
    assert plan.rounds_ns == (S,) * 6


def test_volume_limit_of_xen_ends_it_sooner():
    """More than three times the memory sent: the fourth round is the last."""
    plan = planned()
    assert plan.sent_bytes == 4 * GB


def test_a_working_set_bounds_every_round_after_the_first():
    plan = planned(working_set=10**7, most_rounds=4)
    assert plan.rounds_ns == (S, *(10**7,) * 4)


def test_nothing_dirtied_stops_for_resuming_only():
    plan = planned(dirty_rate=0, resume=7)
    assert (plan.rounds_ns, plan.downtime_ns) == ((S, 0), 7)
