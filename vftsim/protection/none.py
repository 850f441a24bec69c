"""No protection: outputs leave at once, and a crash loses everything."""

from collections.abc import Callable
from typing import Any, Literal

from vftsim.protection.base import PROTECTIONS, ProtectionSpec


@PROTECTIONS.register
class NoProtectionSpec(ProtectionSpec):
    """No fault tolerance."""

    kind: Literal["none"] = "none"


class NoProtection:
    """Passes everything through."""

    def on_input(self, size_bytes: int) -> int:
        """Costs nothing."""
        return 0

    def on_events(self, count: int) -> int:
        """Costs nothing."""
        return 0

    def on_output(self, size_bytes: int, release: Callable[[Any], None], argument: Any) -> None:
        """Leaves at once."""
        release(argument)
