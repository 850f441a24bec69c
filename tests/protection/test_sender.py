"""CPU time of the driver domain for sending states: by hand, and where nobody pays."""

from typing import Any

import pytest

from tests.platform.machine_park import MS, US, Case, Park
from vftsim.platform.cpu.records import domains, vcpus
from vftsim.platform.protection.state_stream import state_streams

INTERVAL_NS = 25 * MS


def park(sender: dict[str, Any], compression_ns: int = 0, **more: Any) -> Park:
    """An idle guest under checkpoints; a driver domain that does nothing else."""
    protection = {"interval": INTERVAL_NS, "suspend_request": 0, "memory": {"per_request": 40.0}, "sender": sender}
    protection["state"] = {"compression": 2.0, "compression_cost": compression_ns}
    made = Park("simpy", Case(protection="checkpoint", scheduler="native"), blows=[], protection=protection, **more)
    return made.run(S)


S = 1_000 * MS


def driver_ns(made: Park) -> int:
    """CPU time of the driver domain."""
    driver = made.engine.rows(domains)[made.driver]
    first, count = int(driver.first_vcpu), int(driver.vcpus)
    return sum(int(made.engine.rows(vcpus)[row].run_ns) for row in range(first, first + count))


def test_the_driver_domain_pays_for_every_state_and_page():
    """39 states in a second, 40 pages a packet received."""
    visits = [100 * MS * number for number in range(1, 9)]
    free, paid = (
        park(prices, visits=visits) for prices in ({"page": 0, "state": 0}, {"page": 6 * US, "state": 200 * US})
    )
    states = int(paid.spec.measured(paid.engine, paid.guard).counted["states_taken"])
    pages = float(paid.engine.rows(state_streams)[paid.guard].pages_taken)
    assert states == S // INTERVAL_NS - 1 or states == S // INTERVAL_NS
    assert pages >= 8 * 40
    expected_ns = states * 200 * US + pages * 6 * US
    assert driver_ns(paid) - driver_ns(free) == pytest.approx(expected_ns, abs=states + 250 * US)
    assert paid.spec.measured(paid.engine, paid.guard).sender_cpu_ns == pytest.approx(expected_ns, abs=250_000)
    assert free.spec.measured(free.engine, free.guard).sender_cpu_ns == 0


def test_pages_are_compressed_by_who_sends_them():
    """30 us more a page, of its CPU time, than where only the wire has less to carry."""
    visits = [100 * MS * number for number in range(1, 9)]
    prices = {"page": 6 * US, "state": 200 * US}
    plain, busy = (park(prices, compression_ns, visits=visits) for compression_ns in (0, 30 * US))
    pages = float(busy.engine.rows(state_streams)[busy.guard].pages_taken)
    assert pages == pytest.approx(float(plain.engine.rows(state_streams)[plain.guard].pages_taken), rel=1e-3)
    assert driver_ns(busy) - driver_ns(plain) == pytest.approx(30 * US * pages, rel=0.01)


def test_a_driver_domain_with_much_to_send_loses_no_packet():
    """Ten milliseconds for each state, on one of its two vCPUs."""
    visits = [3 * MS * number for number in range(1, 200)]
    made = park({"page": 0, "state": 10 * MS}, visits=visits)
    made.run(2 * S)
    assert sorted(number for _, number in made.result()["seen"]) == list(range(1, 200))
    assert made.drop_counts() == {}
