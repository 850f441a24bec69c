"""Arithmetic that is exact in 64 bits, where plain products would not fit, and rounding as Python rounds."""

from vftsim.kernel import Failure, Sim, fail

SCALE_BITS = 20
LARGEST = 1 << 61
MOST_EXPONENT = 64.0
TERMS = 16
MOST_TIME_NS = 1 << 62
TOO_MUCH_TIME = Failure("times that are added up come to more than 146 years; measure for less, or lower the load")


def add_time(sim: Sim, sum_ns: int, more_ns: int) -> int:
    """Return a sum of times with one more; where they pass 64 bits the run ends."""
    if sum_ns + more_ns > MOST_TIME_NS:
        fail(sim, TOO_MUCH_TIME)
        return sum_ns
    return sum_ns + more_ns


def scaled(amount: int, divisor: int) -> int:
    """Return ``amount * 2**20 // divisor``; the result must fit, and 0 < ``divisor`` < 2**43."""
    return ((amount // divisor) << SCALE_BITS) + ((amount % divisor) << SCALE_BITS) // divisor


def product_quotient(a: int, b: int, divisor: int) -> int:
    """Return ``a * b // divisor``, but no more than 2**61; ``a`` and ``b`` from 0, ``divisor`` from 1, all up to 2**61.

    Long multiplication, bit by bit of ``b``, with a remainder that stays below the divisor.
    """
    if b == 0 or a <= LARGEST // b:
        return a * b // divisor
    whole = a // divisor
    rest = a % divisor
    quotient = 0
    remainder = 0
    for bit in range(61, -1, -1):
        quotient *= 2
        remainder *= 2
        if (b >> bit) & 1 == 1:
            quotient += whole
            remainder += rest
        # Twice a remainder and once a rest: at most two divisors to be taken out.
        while remainder >= divisor:
            remainder -= divisor
            quotient += 1
        if quotient > LARGEST:
            return LARGEST
    return quotient


def nearest(value: float) -> int:
    """Return the nearest whole number of a value of at least 0 and below 2**53, the even one of two."""
    below = int(value)
    over = value - below
    if over > 0.5 or (over == 0.5 and below % 2 == 1):
        return below + 1
    return below


def exp_minus(value: float) -> float:
    """Return e to the power of minus ``value``, of at least 0, to 13 digits.

    Only sums and products of floats, so that both engines give the same bits, whatever their library's ``exp`` does.
    """
    if value > MOST_EXPONENT:
        return 0.0
    halvings = 0
    while value > 0.5:
        value /= 2.0
        halvings += 1
    result = 1.0
    for term in range(TERMS, 0, -1):
        result = 1.0 - value * result / term
    for _ in range(halvings):
        result *= result
    return result
