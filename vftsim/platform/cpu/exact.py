"""Products and quotients whose intermediate results do not fit into 64 bits."""

from vftsim.kernel import part

SCALE_BITS = 20
LARGEST = 1 << 61


@part
def scaled(amount: int, divisor: int) -> int:
    """Return ``amount * 2**20 // divisor``; the result must fit, and 0 < ``divisor`` < 2**43."""
    return ((amount // divisor) << SCALE_BITS) + ((amount % divisor) << SCALE_BITS) // divisor


@part
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
