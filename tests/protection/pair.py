"""A protected machine without a workload, for tests that drive it by hand."""

from vftsim.cpu import Guest, Host
from vftsim.cpu.schedulers.native import Native
from vftsim.engine import Clock, EventKind
from vftsim.net.link import Link
from vftsim.protection.interposed_nic import InterposedNic
from vftsim.protection.lockstep import Lockstep, LockstepSpec
from vftsim.protection.machine import Machine

MS = 1_000_000
S = 1_000_000_000

QUIET = {"timer_rate": 0.0, "packet_entry": 0, "transport_overhead": 1.0}
"""A log of nothing but packets' data and outputs, byte for byte."""


class Pair:
    """Clock, host, guest and a lockstep mechanism; outputs are recorded as (time, argument)."""

    def __init__(self, **fields):
        self.clock = Clock()
        self.host = Host(self.clock, 1, Native().build())
        self.guest = Guest(self.host, [self.host.add_vcpu(None)], 100 * MS)
        self.delivered = []
        self.nic = InterposedNic(self.clock, self.guest, 256, 0, 0, 0, self._input, self._deliver)
        self.machine = Machine(self.clock, self.guest, self.nic, lambda cost: None, lambda: None)
        self.link = Link(self.clock, 1_000_000_000, 0, 256 * 1024)
        self.lockstep = Lockstep(self.clock, self.machine, LockstepSpec(**fields), self.link)
        self.seen = []
        self.host.start()
        self.lockstep.begin()

    def _input(self, size_bytes):
        return self.lockstep.on_input(size_bytes)

    def _deliver(self, payload):
        self.delivered.append((self.clock.now_ns, payload))

    def at(self, time_ns, action, argument=None):
        self.clock.at(time_ns, EventKind.ARRIVAL, 0, action, argument)

    def output(self, name):
        self.lockstep.on_output(1000, self._see, name)

    def _see(self, name):
        self.seen.append((self.clock.now_ns, name))

    def crash_at(self, time_ns):
        self.lockstep.expect_primary_crash(time_ns)
        self.clock.at(time_ns, EventKind.CONTROL, 4, lambda _: self.lockstep.primary_crash())
