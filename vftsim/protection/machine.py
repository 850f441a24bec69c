"""The protected virtual machine as its hypervisor sees it: it can stop it, cut its network, lose it.

Several causes can stop a guest at once (a full log buffer, a pause, a migration's last round): it runs
again when the last of them is over.  While it is stopped its virtual network card takes packets into
its ring and raises no interrupt.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from vftsim.cpu import Guest
from vftsim.engine import Alarm, Clock, EventKind
from vftsim.protection.interposed_nic import InterposedNic

_ENTITY = 2


@dataclass(frozen=True, slots=True)
class Overhead:
    """What protection costs the guest's own work, beside what its log entries cost.

    Parameters
    ----------
    output_ns : int
        CPU time for each output.
    execution : float
        Factor on all its CPU work.
    exits : float
        Factor on the cost of its exits to the hypervisor.
    """

    output_ns: int = 0
    execution: float = 1.0
    exits: float = 1.0


NO_OVERHEAD = Overhead()


class Machine:
    """The handle of one protected guest.

    Parameters
    ----------
    clock : Clock
    guest : Guest
    nic : InterposedNic
    set_overhead : callable
        ``set_overhead(Overhead)``: what the guest's work costs from now on, on account of protection.
    forget : callable
        Begin anew with empty memory: called when the guest is booted again.
    """

    def __init__(
        self,
        clock: Clock,
        guest: Guest,
        nic: InterposedNic,
        set_overhead: Callable[[Overhead], None],
        forget: Callable[[], None],
    ) -> None:
        self.clock = clock
        self.guest = guest
        self._vcpus = guest.vcpus
        self.nic = nic
        self.set_overhead = set_overhead
        self.dead = False
        self.stopped = False
        self.stopped_ns = 0
        self.before_stop: Callable[[], None] | None = None
        self._forget = forget
        self._reasons: set[str] = set()
        self.resumed_ns = 0
        self._since_ns = 0

    def run_ns(self, now_ns: int) -> int:
        """Return the CPU time that the guest has used up to now."""
        total_ns = 0
        for vcpu in self._vcpus:
            total_ns += vcpu.run_ns
            if vcpu.pcpu >= 0 and vcpu.dispatched_ns < now_ns:
                total_ns += now_ns - vcpu.dispatched_ns
        return total_ns

    def stop(self, reason: str) -> None:
        """Stop the guest at once."""
        if not self._reasons:
            if self.before_stop is not None:
                self.before_stop()
            self._since_ns = self.clock.now_ns
            self.stopped = True
            self.nic.mask()
            self.guest.freeze()
        self._reasons.add(reason)

    def resume(self, reason: str) -> None:
        """Take one cause away; the guest goes on when none is left."""
        if reason not in self._reasons:
            return
        self._reasons.remove(reason)
        if not self._reasons:
            self.stopped = False
            self.resumed_ns = self.clock.now_ns
            self.stopped_ns += self.resumed_ns - self._since_ns
            self.nic.unmask()
            self.guest.thaw()

    def disconnect(self) -> None:
        """Cut the network: packets in the ring and packets to come are lost."""
        self.nic.connected = False
        self.nic.discard()

    def connect(self, _: Any = None) -> None:
        """Connect the network again."""
        if not self.dead:
            self.nic.connected = True

    def kill(self) -> None:
        """Lose the machine for good, unless :meth:`reboot` brings it back."""
        self.stop("dead")
        self.disconnect()
        self.dead = True

    def reboot(self) -> None:
        """Start with empty memory on a working host."""
        self.guest.forget()
        self.nic.forget()
        self._forget()
        self.dead = False
        for reason in list(self._reasons):
            self.resume(reason)
        self.connect()

    def call_after(self, delay_ns: int, action: Callable[[Any], None], argument: Any = None) -> Alarm:
        """Plan something the hypervisor does."""
        return self.clock.after(delay_ns, EventKind.CONTROL, _ENTITY, action, argument)
