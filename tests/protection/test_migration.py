"""Pre-copy migration against its closed form."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vftsim.platform.protection.migration import plan_precopy

GB, S = 10**9, 10**9


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
    plan = plan_precopy(memory, rate, dirty_bits_per_s=dirty, stop_bytes=stop, resume_ns=50, most_volume=1e9)
    assert len(plan.rounds_ns) == n + 1
    assert plan.total_ns == pytest.approx(memory * (1 - lam ** (n + 1)) / (1 - lam), rel=1e-5)
    assert plan.downtime_ns == pytest.approx(memory * lam**n + 50, rel=1e-3)
    assert plan.live_ns + plan.downtime_ns == plan.total_ns + 50


def test_a_guest_that_dirties_faster_than_the_link_ends_at_the_round_limit():
    plan = plan_precopy(
        GB, 8 * GB, dirty_bits_per_s=16 * GB, stop_bytes=1, resume_ns=0, most_rounds=5, most_volume=100.0
    )
    assert plan.rounds_ns == (S,) * 6


def test_volume_limit_of_xen_ends_it_sooner():
    """More than three times the memory sent: the fourth round is the last."""
    plan = plan_precopy(GB, 8 * GB, dirty_bits_per_s=16 * GB, stop_bytes=1, resume_ns=0)
    assert plan.sent_bytes == 4 * GB


def test_a_working_set_bounds_every_round_after_the_first():
    plan = plan_precopy(
        GB, 8 * GB, dirty_bits_per_s=16 * GB, stop_bytes=1, resume_ns=0, working_set_bytes=10**7, most_rounds=4
    )
    assert plan.rounds_ns == (S, *(10**7,) * 4)


def test_nothing_dirtied_stops_for_resuming_only():
    plan = plan_precopy(GB, 8 * GB, dirty_bits_per_s=0, stop_bytes=1, resume_ns=7)
    assert (plan.rounds_ns, plan.downtime_ns) == ((S, 0), 7)
