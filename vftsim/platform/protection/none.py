"""No protection: outputs leave at once, and a crash is the end of the service."""

from typing import ClassVar, Literal

from vftsim.platform.protection.guard import protection
from vftsim.platform.protection.mechanism import PROTECTIONS, ProtectionSpec

none = protection.kind("none")


@PROTECTIONS.register
class NoProtectionSpec(ProtectionSpec):
    """No fault tolerance."""

    protects: ClassVar[bool] = False

    kind: Literal["none"] = "none"
    promises: ClassVar[bool] = False
