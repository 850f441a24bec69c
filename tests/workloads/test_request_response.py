"""The closed loop by hand, held outputs (closed form of the round), the machine-repair model, repetition, reboot."""

from functools import partial
from math import ceil, factorial

import pytest

from tests.composition.composed import checked, interface
from tests.workloads import lab
from vftsim.composition.run import Run
from vftsim.platform.io.packet import drops
from vftsim.workloads.farm.calls import FarmCallsSpec
from vftsim.workloads.farm.server import FarmServerSpec
from vftsim.workloads.request_response import OpenRequestsSpec, RequestResponseSpec
from vftsim.workloads.service.application import ServiceSpec
from vftsim.workloads.web.httperf import HttperfSpec
from vftsim.workloads.web.prefork import PreforkWebServerSpec

MS, S = 1_000_000, 1_000_000_000
PARTS = (ServiceSpec, RequestResponseSpec)


class Loop(lab.Lab):
    def __init__(self, server=None, clients=None, beat_ns=0, warmup_ns=0, **network):
        super().__init__(lab.linked(*PARTS), **network)
        self.server = self.run_program(ServiceSpec(**(server or {})))
        if beat_ns:
            self.hold_in_beats(beat_ns)
        spec = RequestResponseSpec(**({"spread": 0} | (clients or {})))
        self.clients = self.add_clients(spec, warmup_ns=warmup_ns)
        self.start()
        self.clients.begin()

    @property
    def result(self):
        return self.clients.outcome()


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
def test_a_round_is_the_sum_of_its_parts_to_the_nanosecond(engine):
    """Request 200 B and answer 1000 B at 8 ns a byte, 50 us each way, 30 us of CPU time."""
    loop = Loop({"demand": 30_000, "answer_size": 1000}, {"request_size": 200, "turn_around": 20_000}, engine=engine)
    loop.run(100 * MS)
    round_ns = 200 * 8 + 50_000 + 30_000 + 1000 * 8 + 50_000
    found = loop.result
    assert (found.latency.min, found.latency.max) == (round_ns, round_ns)
    assert found.answered == (100 * MS - 1 + 20_000) // (round_ns + 20_000)
    assert found.rate == pytest.approx(S / (round_ns + 20_000), rel=2e-3)


@pytest.mark.thorough
@pytest.mark.parametrize(("turn_around_us", "beat_ms"), [(100, 25), (24_900, 25), (26_000, 25), (60_000, 25), (10, 1)])
def test_held_outputs_leave_whole_periods_for_a_round(turn_around_us, beat_ms):
    """Closed form: with outputs released every P, a round takes m P, m = ceil(rtt / P)."""
    loop = Loop({"demand": 1000}, {"turn_around": turn_around_us * 1000, "retry": 0}, beat_ns=beat_ms * MS)
    loop.run(100 * beat_ms * MS + 1)
    rtt_ns = turn_around_us * 1000 + 2 * (50_000 + 128 * 8) + 1000
    m = ceil(rtt_ns / (beat_ms * MS))
    assert loop.result.answered == pytest.approx(100 / m, abs=1.5)


def test_a_server_far_beyond_its_capacity_is_played_to_its_end():
    """2 million a second at 4 threads that take 10 us: 400,000 are answered, and 176,000 wait 110 ms later.

    A client has one event planned, however many requests it has had: else 220,000 time-outs would be planned by now.
    """
    run = Run(
        checked(
            {
                "hosts": {"host": {"pcpus": 4}},
                "networks": {"lan": {"rate": "100 Gbit/s", "latency": "1 us"}},
                "domains": {
                    "vm": {
                        "vcpus": 4,
                        "interfaces": interface("moderated"),
                        "applications": {"srv": {"kind": "service", "threads": 4}},
                    }
                },
                "workloads": {"load": {"kind": "open_requests", "to": "vm", "rate": "2000000 /s"}},
                "measure": {"warm_up": "10 ms", "duration": "100 ms"},
            }
        ),
        1,
        0,
        engine="compiled",
    )
    found = run.run().whole.outcomes["workloads.load"]
    assert found.answers == pytest.approx(400_000 * 0.1, abs=4)
    waiting = 2_000_000 * 0.11 - 400_000 * 0.11
    assert run.engine.sim.planned == pytest.approx(waiting, rel=0.01)


@pytest.mark.parametrize(("gap_cv", "apart"), [(0.0, 1), (1.0, 4 * 9000**0.5)])
@pytest.mark.parametrize(
    ("server", "load", "count"),
    [
        (ServiceSpec, partial(OpenRequestsSpec, rate=3e8), "offered"),
        (PreforkWebServerSpec, partial(HttperfSpec, rate=3e8, connections=20_000), "begun"),
        (FarmServerSpec, partial(FarmCallsSpec, to="server", rate=3e8, established=False), "begun"),
    ],
    ids=["open_requests", "httperf", "farm_calls"],
)
def test_a_gap_that_is_no_whole_number_of_ns_is_kept(server, load, count, gap_cv, apart):
    """300 million a second, 3.33 ns apart: 9,000 in 30 us, evenly or but for four standard deviations."""
    open_loop = lab.Lab(lab.linked(server, load.func), engine="simpy")
    open_loop.run_program(server())
    clients = open_loop.add_clients(load(gap_cv=gap_cv))
    open_loop.start()
    clients.begin()
    open_loop.run(30_000)
    assert int(getattr(clients.record, count)) == pytest.approx(9000, abs=apart)


def repair_model(clients, think_s, service_s):
    """Throughput of ``clients`` that think for an exponential time and queue at one exponential server."""
    ratio = service_s / think_s
    terms = [factorial(clients) // factorial(clients - k) * ratio**k for k in range(clients + 1)]
    return (1.0 - 1.0 / sum(terms)) / service_s


@pytest.mark.thorough
@pytest.mark.parametrize("clients", [1, 4, 12])
def test_exponential_clients_are_the_machine_repair_model(clients):
    """Think 10 ms, service 2 ms; 60 s are some 6,000 to 30,000 rounds: standard error below 1.2 %."""
    loop = Loop(
        {"demand": 2 * MS, "demand_cv": 1.0},
        {"clients": clients, "turn_around": 10 * MS, "turn_around_cv": 1.0, "request_size": 64},
        latency_ns=0,
        rate=10**12,
    )
    loop.run(60 * S)
    assert loop.result.rate == pytest.approx(repair_model(clients, 0.010, 0.002), rel=0.03)


def test_thousands_of_clients_ask_once_in_their_thinking_time():
    """6,000 that think for 6 s ask 1,000 times a second; each has a feed of its own."""
    thinking = {"clients": 6000, "turn_around": 6 * S, "turn_around_cv": 1.0, "spread": 6 * S}
    loop = Loop({"demand": 100_000}, thinking, warmup_ns=6 * S, engine="compiled").run(12 * S)
    assert loop.result.rate == pytest.approx(1000.0, rel=0.05)


def test_threads_bound_what_is_in_work_and_the_processor_the_rate():
    """Eight clients, four threads, one pCPU: the CPU is never idle, 1 ms a request."""
    loop = Loop({"demand": MS, "threads": 4}, {"clients": 8, "turn_around": 0}).run(S)
    assert loop.result.rate == pytest.approx(1000, rel=2e-3)
    assert loop.server.active == 4
    assert loop.server.in_hand.length == 4
    assert loop.busy_ns() == pytest.approx(S, rel=1e-3)


def test_a_full_socket_drops_and_the_client_repeats():
    """One thread of 300 ms, room for one more, three clients: the third repeats after 200 ms, then 400 ms.

    The second waits for as long: its request is with the server, and is not repeated.
    """
    loop = Loop({"demand": 300 * MS, "backlog": 1}, {"clients": 3, "turn_around": 10 * S, "retry": 200 * MS})
    loop.run(2 * S)
    found = loop.result
    assert found.answered == 3
    assert int(loop.engine.rows(drops)[loop.server.socket_full].count) == found.dropped == 2
    assert found.repeated == 2
    assert found.requests == 3


def test_what_the_server_has_is_not_repeated_however_long_it_takes():
    """40 clients of a thread of 10 ms: each waits 400 ms, twice the first wait before a repetition."""
    loop = Loop({"demand": 10 * MS}, {"clients": 40, "turn_around": 0, "retry": 200 * MS})
    loop.run(10 * S)
    assert loop.result.repeated == 0
    assert loop.result.answered == pytest.approx(1000, abs=2)


def test_what_protection_makes_work_cost():
    """Execution twice, 5 us an output: 2 x 10 + 5 us of CPU time a request."""
    loop = Loop({"demand": 10_000})
    loop.engine.call(lab.add_overhead, loop.program, 5000)
    loop.run(10 * MS)
    assert loop.result.latency.min == 2 * (50_000 + 128 * 8) + 25_000


def test_a_reboot_loses_what_was_in_work_and_the_client_repeats_it():
    loop = Loop({"demand": 10 * MS}, {"clients": 3, "turn_around": 10 * S})
    loop.run(5 * MS)
    loop.engine.call(lab.boot_program, loop.program)
    assert loop.result.dropped == 3
    assert loop.server.active == 0
