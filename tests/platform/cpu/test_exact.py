"""Products and quotients beyond 64 bits against Python's integers."""

from fractions import Fraction
from random import Random

import pytest

from tests.platform.cpu.host_lab import MS, Lab
from vftsim.errors import UsageError
from vftsim.kernel.declare import part_of
from vftsim.platform.arithmetic import LARGEST, product_quotient, scaled
from vftsim.platform.cpu.records import hosts
from vftsim.platform.cpu.schedulers.esxi import Esxi, machines
from vftsim.platform.cpu.schedulers.zvm import Zvm, interval_ns, zvm_hosts, zvm_users


def test_product_quotient_is_exact_up_to_its_bound():
    random = Random(1)
    for _ in range(5_000):
        a, b, divisor = (random.randrange(1, 1 << random.randint(1, 61)) for _ in range(3))
        assert product_quotient(a, b, divisor) == min(a * b // divisor, LARGEST)
    assert product_quotient(0, 5, 7) == product_quotient(5, 0, 7) == 0


def test_scaled_is_exact():
    random = Random(2)
    for _ in range(2_000):
        amount, divisor = random.randrange(1 << 41), random.randrange(1, 1 << 20)
        assert scaled(amount, divisor) == (amount << 20) // divisor


def test_zvm_interval_is_that_of_exact_fractions():
    """As from the definition, with shares as fractions, for users with absolute and relative shares."""
    random = Random(3)
    lab = Lab(Zvm(), pcpus=3)
    host = lab.engine.rows(hosts)[lab.host]
    zvm_host, user = lab.engine.rows(zvm_hosts)[lab.host], lab.engine.rows(zvm_users)[0]
    namespace = lab.engine._namespace
    for _ in range(2_000):
        zvm_host.minor_slice_ns = random.randrange(1, 10**11)
        user.listed = random.randint(1, 64)
        user.absolute = random.choice((0, random.randint(1, 100_000)))
        user.relative = random.randint(1, 10_000)
        zvm_host.absolute = user.absolute + random.choice((0, random.randrange(300_000)))
        zvm_host.relative = random.randrange(10**7) + (0 if user.absolute else user.relative)
        absolute = Fraction(zvm_host.absolute, 100_000)
        scale = min(Fraction(1), Fraction(99, 100) / absolute) if absolute else Fraction(1)
        share = Fraction(user.absolute, 100_000) * scale
        if not user.absolute:
            share = (1 - absolute * scale) * Fraction(user.relative, zvm_host.relative)
        expected = int(zvm_host.minor_slice_ns / (share * 3 / user.listed))
        assert namespace[part_of(interval_ns).name](lab.engine.sim, host, user) == min(expected, LARGEST)


def test_a_machine_that_has_idled_for_a_day_has_a_full_reserve():
    """100 pCPUs reserved, and one used for 0.5 ms since: the product of rate and time would be 8.6e21."""
    lab = Lab(Esxi(), pcpus=100)
    row = lab.domain("A", reservation=10_000)
    lab.burst("A", 0, 86_400_000, demand_ms=1)
    lab.run(86_400_000.5)
    assert lab.engine.rows(machines)[row].reserve == 100 * 10**6 * 50 * MS + 99 * 10**6 * MS // 2


def test_a_quantum_that_leaves_64_bits_is_refused():
    lab = Lab(Esxi(quantum=10**13))
    lab.domain("A", reservation=10)
    with pytest.raises(UsageError, match="too long to account"):
        lab.run(1)
