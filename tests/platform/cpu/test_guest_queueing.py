"""Guests against queueing theory; bands are 3.5 standard errors from 20 batches."""

import math

import numpy as np
import pytest

from tests.platform.cpu.host_lab import MS, Lab
from tests.platform.scripted_host import finished, on_job
from vftsim.kernel import EventKind
from vftsim.platform.cpu.schedulers.native import Native


def _sojourns_ns(arrivals_ns, demands_ns, servers, quantum_ns):
    lab = Lab(Native(), servers)
    lab.domain("A", servers, quantum_ns=quantum_ns)
    first = None
    for arrival_ns, demand_ns in zip(arrivals_ns.tolist(), demands_ns.tolist(), strict=True):
        row = lab.job("A", demand_ns)
        first = first or row
        lab.at(arrival_ns / MS, EventKind.ARRIVAL, on_job, row)
    lab.run((arrivals_ns[-1] + 10**11) / MS)
    sojourns = np.zeros(len(arrivals_ns))
    ended = [lab.engine.rows(finished)[row] for row in range(1, lab.engine.used(finished) + 1)]
    for one in ended:
        sojourns[one.job - first] = one.time_ns - arrivals_ns[one.job - first]
    assert len(ended) == len(sojourns)
    return sojourns


def _z(values, expected):
    batches = np.array_split(values[len(values) // 20 :], 20)
    means = [batch.mean() for batch in batches]
    return (np.mean(means) - expected) / (np.std(means, ddof=1) / math.sqrt(len(means)))


@pytest.mark.thorough
@pytest.mark.parametrize("demand", [pytest.param("exponential", marks=pytest.mark.slow), "hyperexponential"])
def test_a_short_quantum_is_processor_sharing(demand):
    """M/G/1-PS: mean sojourn = E[S] / (1 - load), whatever the distribution of S."""
    rng = np.random.default_rng(7)
    jobs, load = 8_000, 0.6
    demands = rng.exponential(MS, jobs)
    if demand == "hyperexponential":
        short = rng.random(jobs) < 0.9472
        demands *= np.where(short, 0.5279, 9.472)
    arrivals = np.cumsum(rng.exponential(MS / load, jobs))
    sojourns = _sojourns_ns(arrivals.astype(np.int64), demands.astype(np.int64) + 1, 1, quantum_ns=MS // 20)
    assert abs(_z(sojourns, MS / (1 - load))) < 3.5
    # First come, first served would be far off for this much variation: the test tells them apart.
    if demand == "hyperexponential":
        fcfs = _sojourns_ns(arrivals.astype(np.int64), demands.astype(np.int64) + 1, 1, quantum_ns=10**12)
        assert fcfs.mean() > 1.5 * sojourns.mean()


def _erlang_c(servers, offered):
    terms = [offered**k / math.factorial(k) for k in range(servers)]
    last = offered**servers / math.factorial(servers) * servers / (servers - offered)
    return last / (sum(terms) + last)


@pytest.mark.thorough
@pytest.mark.parametrize("servers", [1, 3])
def test_vcpus_are_an_m_m_c_queue(servers):
    """Mean wait = Erlang C x E[S] / (c - offered load), offered load 0.75 a vCPU."""
    rng = np.random.default_rng(11)
    jobs, offered = 20_000, 0.75 * servers
    demands = rng.exponential(MS, jobs).astype(np.int64) + 1
    arrivals = np.cumsum(rng.exponential(MS / offered, jobs)).astype(np.int64)
    waits = _sojourns_ns(arrivals, demands, servers, quantum_ns=10**12) - demands
    assert abs(_z(waits, _erlang_c(servers, offered) * MS / (servers - offered))) < 3.5
