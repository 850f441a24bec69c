"""What is said to the servers of a farm, by user agents and by each other.

SIP (RFC 3261) as far as a proxy sees it; provisional and final answers are messages of their own, because each costs
the proxy a pass.  Within the farm: a lookup (account and address of record), an update of a registration, an operation
on a file (NFS), and the answer to any of them.
"""

from enum import IntEnum

from vftsim.kernel import part


class Message(IntEnum):
    """A message; the first seven come from user agents, the next two go to them, the rest stays inside."""

    REGISTER = 1
    INVITE = 2
    RINGING = 3
    OK = 4
    ACK = 5
    BYE = 6
    BYE_OK = 7
    TRYING = 8
    REGISTERED = 9
    LOOKUP = 10
    UPDATE = 11
    FILE = 12
    ANSWER = 13


KINDS = 16
"""What a packet means is (serial x 2 + on the way from a balancer to its server) x ``KINDS`` + message."""


@part
def message_of(what: int) -> int:
    """Return the message of what a packet means."""
    return what % KINDS


@part
def is_passed_on(what: int) -> bool:
    """Tell whether a packet is on its way from a balancer to the server that it has chosen."""
    return what // KINDS % 2 == 1


@part
def serial_of(what: int) -> int:
    """Return the serial number of the call or request that a packet belongs to."""
    return what // (2 * KINDS)
