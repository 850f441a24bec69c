"""CPUs: hosts, virtual CPUs, guests and the schedulers between them."""

from vftsim.cpu.guest import Guest
from vftsim.cpu.host import Host
from vftsim.cpu.scheduler import Decision, PeriodicTimer, Scheduler
from vftsim.cpu.vcpu import Vcpu, VcpuState, Work

__all__ = ["Decision", "Guest", "Host", "PeriodicTimer", "Scheduler", "Vcpu", "VcpuState", "Work"]
