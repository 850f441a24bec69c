"""A web server's processes under the guest's schedulers, and SYNs that are repeated at a steady pace at first."""

import json

import pytest

from tests.workloads.test_web_server import MS, ONE_PROCESS, S, Web
from vftsim.composition.model import ModelSpec
from vftsim.composition.run import run_model
from vftsim.spec import load
from vftsim.workloads.web.prefork import PIECE_BYTES

PIECES = 8
FREE_CARD = {"kind": "moderated", "moderation": "0 us", "packet_cost": "0 us", "interrupt_cost": "0 us"}


@pytest.fixture
def make(tmp_path):
    """Two connections 300 ms apart on one CPU: the second comes when the first has computed and begins its output."""

    def made(guest, **changes):
        web = {"kind": "prefork_web_server", "script": "400 ms", "reply_size": f"{PIECES * PIECE_BYTES} B"}
        model = {
            "networks": {"lan": {"rate": "10 Gbit/s", "latency": "1 us"}},
            "domains": {
                "server": {
                    "guest_scheduler": guest,
                    "quantum": "50 ms",
                    "interfaces": {"eth0": {"path": FREE_CARD}},
                    "applications": {"web": web | changes},
                }
            },
            "workloads": {"load": {"kind": "httperf", "rate": "200 /min", "connections": 2}},
            "measure": {"warm_up": "0 s", "duration": "5 s"},
        }
        path = tmp_path / "web.yaml"
        path.write_text(json.dumps(model), encoding="utf-8")
        return load(path, ModelSpec)

    return made


def transfer_ms(spec, engine="auto"):
    """Mean of the two transfer times."""
    figures = run_model(spec, 1, 0, engine=engine).whole.outcomes["workloads.load"]
    assert figures.replies == 2
    return figures.transfer_ms


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
@pytest.mark.parametrize("kind", ["cfs", "eevdf"])
def test_a_process_that_puts_out_keeps_its_half_of_the_cpu(make, kind, engine):
    """Seven pieces of 12.5 ms at half the speed while the other computes, at full speed when it is alone."""
    alone_ms = 7 * 12.5
    assert transfer_ms(make({"kind": kind}), engine) == pytest.approx((2 * alone_ms + alone_ms) / 2, abs=8)


def test_under_turns_each_piece_waits_for_a_whole_quantum(make):
    """Which is what a kernel does not do: 50 ms of the other before each piece but the first."""
    assert transfer_ms(make({"kind": "round_robin"})) > (7 * (12.5 + 45) + 7 * 12.5) / 2


def test_no_more_processes_than_there_are_work_at_once(make):
    """One process: the second request is served when the first is over, by the same."""
    one = {"start_servers": 1, "min_spare": 1, "max_spare": 2, "max_clients": 1}
    spec = make({"kind": "cfs"}, **one)
    figures = run_model(spec, 1, 0).whole.outcomes["workloads.load"]
    assert figures.transfer_ms == pytest.approx(7 * 12.5, rel=0.01)
    assert figures.duration_s == pytest.approx(0.8, rel=0.01)


def test_syns_come_at_a_steady_pace_at_first():
    """Linux since 6.5: after 1, 1, 1, 1, 1, 2, 4 s; one process for ever busy, 8 of 20 do not fit into the queue."""
    server = ONE_PROCESS | {"script": 10_000 * S, "accept_queue": 10}
    for after_ms, tries in ((500, 1), (1500, 2), (2500, 3), (4500, 5), (5500, 6), (6500, 6), (7500, 7)):
        test = {"rate": 1e3, "connections": 20, "linear_retries": 4}
        web = Web(server, test, until_ns=2 * S + after_ms * MS)
        assert web.refused == 8 * tries
        assert web.report().requests == 12
