"""No protection: outputs leave at once, and a crash is the end of the service."""

from typing import Literal

from vftsim.engine import Clock
from vftsim.net.link import Link
from vftsim.protection.base import PROTECTIONS, Mechanism, ProtectionSpec
from vftsim.protection.machine import Machine


@PROTECTIONS.register
class NoProtectionSpec(ProtectionSpec):
    """No fault tolerance."""

    kind: Literal["none"] = "none"

    def build(self, clock: Clock, machine: Machine, vm_link: Link) -> Mechanism:
        """Make the mechanism."""
        return NoProtection(clock, machine)


class NoProtection(Mechanism):
    """Passes everything through."""
