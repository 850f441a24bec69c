"""Pages that an application's requests dirty, beside the working set that its CPU time touches.

A request leaves its packet in a buffer and, with most applications, something that outlives it: a transaction, a
connection, a response.  A mechanism that sends states sends those pages once, with the first state after them.

Assumption: every default here.  What a real guest dirties is counted by its hypervisor's dirty bitmap, once idle and
once under load; pages a request are the difference by the requests in between.
"""

from typing import Any

from pydantic import Field

from vftsim.spec.base import Spec


def pages_per_request(default: float, why: str) -> Any:
    """Return the field of an application that has another default, with what it assumes."""
    description = f"Pages that each packet received dirties, beside the working set. Assumption: {why}."
    return Field(default, ge=0.0, le=1e6, description=description)


class DirtyPagesFields(Spec):
    """What an application says of the pages that its packets dirty."""

    pages_per_request: float = pages_per_request(2.0, "the packet's buffer, and a page of what is kept of it")

    @property
    def pages_a_packet(self) -> float:
        """Pages that each packet received dirties."""
        return float(self.pages_per_request)
