"""The server against queueing theory: one kind of message, 0.2 ms of work, Poisson arrivals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from bench import US, Bench, plain_server
from hypothesis import given, settings
from hypothesis import strategies as st
from open_queue import OpenQueue, poisson_load

from tests.stats.theory import mg1, mm1, mm1k_loss
from vftsim.sampling import Streams, exponential_ns, poisson_gaps_ns
from vftsim.workloads.ims_bench.workload import ImsBenchSpec
from vftsim.workloads.sip.messages import Scenario

_WORK_NS = 200 * US
_REPLICATIONS = 20


def _lindley(arrivals_ns: list[int], work_ns: list[int]) -> list[int]:
    """Response times of one server in order of arrival: W' = max(0, W + S - gap)."""
    responses, free_ns = [], 0
    for arrival_ns, need_ns in zip(arrivals_ns, work_ns, strict=True):
        free_ns = max(free_ns, arrival_ns) + need_ns
        responses.append(free_ns - arrival_ns)
    return responses


def _check(means: list[float], theory: float, half_width: float) -> None:
    """Within 3.5 standard errors, and sharp enough to tell: 95 % half width below ``half_width``."""
    standard_error = float(np.std(means, ddof=1)) / math.sqrt(len(means))
    assert 2.093 * standard_error <= half_width * theory
    assert abs(float(np.mean(means)) - theory) <= 3.5 * standard_error


@pytest.mark.thorough
@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 400 * US), st.floats(0.001, 5.0, allow_nan=False)), min_size=1, max_size=60),
    st.integers(1, 5),
)
def test_every_response_time_is_that_of_lindleys_recursion(customers: list[tuple[int, float]], processes: int) -> None:
    """To the nanosecond, for any arrivals, demands and number of worker processes on one CPU."""
    arrivals_ns = np.cumsum([gap for gap, _ in customers]).tolist()
    demands = [demand for _, demand in customers]
    queue = OpenQueue(plain_server(processes=processes))
    queue.play(arrivals_ns, demands)
    expected = _lindley(arrivals_ns, [int(_WORK_NS * demand) for demand in demands])
    assert [queue.responses_ns[n] for n in range(len(customers))] == expected


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("demand_cv", "messages"),
    [
        pytest.param(0.0, 1_600, id="M/D/1, few"),
        pytest.param(0.0, 6_000, id="M/D/1", marks=pytest.mark.slow),
        pytest.param(0.5, 6_000, id="M/E4/1", marks=pytest.mark.slow),
        pytest.param(1.0, 6_000, id="M/M/1", marks=pytest.mark.slow),
        pytest.param(1.5, 6_000, id="M/G/1", marks=pytest.mark.slow),
    ],
)
def test_mean_response_is_that_of_pollaczek_and_khinchine(demand_cv: float, messages: int) -> None:
    """At half load: 20 replications, the first 500 messages left out."""
    rate_per_s = 0.5 * 1e9 / _WORK_NS
    means = []
    for replication in range(_REPLICATIONS):
        queue = OpenQueue()
        queue.play(*poisson_load(replication, messages, rate_per_s, demand_cv))
        means.append(float(np.mean([queue.responses_ns[n] for n in range(500, messages)])))
    theory_ns = 1e9 * mg1(rate_per_s, _WORK_NS / 1e9, demand_cv).response
    _check(means, theory_ns, 0.02 if demand_cv <= 1.0 else 0.04)


@pytest.mark.thorough
def test_loss_of_a_small_socket_is_that_of_m_m_1_k() -> None:
    """Two workers and a buffer of three: K = 5, at 90 % load 12.6 % of the messages are lost."""
    rate_per_s, messages = 0.9 * 1e9 / _WORK_NS, 3_000
    losses = []
    for replication in range(_REPLICATIONS):
        queue = OpenQueue(plain_server(processes=2, socket_buffer=3, memory_per_datagram=1))
        queue.play(*poisson_load(replication, messages, rate_per_s, 1.0))
        assert queue.server.received == messages == len(queue.responses_ns) + queue.server.dropped
        losses.append(queue.server.dropped / messages)
    _check(losses, mm1k_loss(rate_per_s, 1e9 / _WORK_NS, 5), 0.05)


@pytest.mark.parametrize("share_after", [0.0, 0.4])
def test_cpu_time_used_is_the_work_offered(share_after: float) -> None:
    """To the nanosecond, whatever the queue did."""
    arrivals_ns, demands = poisson_load(0, 2_000, 4_000, 1.0)
    queue = OpenQueue(plain_server(work_after_send=share_after), cpu_inflation=1.25, packet_cost_ns=3 * US)
    queue.play(arrivals_ns, demands)
    assert queue.busy_ns() == sum(int(250 * US * demand) + 3 * US for demand in demands)


def test_little_law_at_the_socket() -> None:
    """Time integral of the messages in progress = sum of their response times, with losses left out.

    The server's count goes down when its worker is released, which is when the reply leaves.
    """
    queue = OpenQueue(plain_server(processes=3, socket_buffer=10, memory_per_datagram=1))
    queue.play(*poisson_load(0, 3_000, 5_000, 1.0))
    assert queue.server.dropped > 50
    assert queue.area_ns == sum(queue.responses_ns.values())
    assert queue.server.in_progress == 0


def test_faster_messages_never_make_any_message_wait_longer() -> None:
    """Common random numbers: with 5 % less work every single response is shorter or equal."""
    load = poisson_load(0, 2_000, 4_500, 1.0)
    slow, fast = OpenQueue(), OpenQueue(plain_server(register_touch_cost=95 * US))
    slow.play(*load)
    fast.play(*load)
    assert all(fast.responses_ns[n] <= slow.responses_ns[n] for n in range(2_000))
    assert sum(fast.responses_ns.values()) < 0.9 * sum(slow.responses_ns.values())


@pytest.mark.slow
def test_both_halves_of_a_registration_wait_as_in_a_product_form_network() -> None:
    """Exponential work, one queue in order of arrival, constant think times between the two passes.

    The second REGISTER depends on the first, so its arrivals are not Poisson; by the product form (Baskett,
    Chandy, Muntz and Palacios 1975) both still take 1 / (mu - 2 lambda) on average.
    """
    rate_per_s, wire_us, count = 1_250.0, 500, 3_000
    means: dict[str, list[float]] = {"REG1": [], "REG2": []}
    for replication in range(_REPLICATIONS):
        streams = Streams(25, replication)
        starts = poisson_gaps_ns(streams.uniforms("starts", count=count), rate_per_s).cumsum()
        demands = exponential_ns(streams.uniforms("work", count=2 * count), 10**9).reshape(count, 2) / 1e9
        bench = Bench(workload=ImsBenchSpec(to="server"), wire_us=wire_us)
        for number, (start_ns, work) in enumerate(zip(starts.tolist(), demands.tolist(), strict=True)):
            bench.plan(number, Scenario.IMS_REG, work, 1, 1, start_ns)
        bench.run()
        for name, found in means.items():
            found.append(bench.record.delays[name].mean - 2 * wire_us * US)
    theory_ns = 1e9 * mm1(2 * rate_per_s, 1e9 / _WORK_NS).response
    for found in means.values():
        _check(found, theory_ns, 0.03)
