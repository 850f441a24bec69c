"""Arithmetic that is exact in 64 bits, where plain products would not fit, and rounding as Python rounds."""

from vftsim.kernel import part

MOST = (1 << 63) - 1
MOST_EXPONENT = 64.0
TERMS = 16


@part
def scaled(value: int, numerator: int, denominator: int) -> int:
    """Return ``value * numerator // denominator`` though the product may need 128 bits.

    All are at least 0, the denominator is below 2**61, and the result fits into 64 bits.
    """
    if numerator == 0 or value <= MOST // numerator:
        return value * numerator // denominator
    result = value // denominator * numerator
    value = value % denominator
    part_result = 0
    rest = 0
    for bit in range(61, -1, -1):
        # Long division, bit by bit of the numerator; the rest stays below three denominators.
        part_result *= 2
        rest *= 2
        if (numerator >> bit) & 1 == 1:
            rest += value
        while rest >= denominator:
            rest -= denominator
            part_result += 1
    return result + part_result


@part
def nearest(value: float) -> int:
    """Return the nearest whole number of a value of at least 0 and below 2**53, the even one of two."""
    below = int(value)
    over = value - below
    if over > 0.5 or (over == 0.5 and below % 2 == 1):
        return below + 1
    return below


@part
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
