"""Periodic CPU work as an application: machines and duties that share a host without being modelled further.

Protection makes it cost ``execution`` times as much, as all work of a guest.  Loads do not keep step, of one period or
of periods that divide each other: the first begins with the run, each other one at a random instant of its period.
"""

from typing import Literal

from vftsim.kernel import Sim
from vftsim.platform.cpu.background import CyclicLoadSpec, add_load, begin_load, cyclic_loads
from vftsim.platform.cpu.elided import account_for_elided
from vftsim.platform.io.packet import Application, application, set_overhead
from vftsim.workloads.common import add_application
from vftsim.workloads.parts import APPLICATIONS, ApplicationSpec, InstallContext, Program

periodic_load = application.kind("periodic_load")


@periodic_load.implements(set_overhead)
def slow_down(sim: Sim, program: Application, output_ns: int, execution: float, exits: float) -> None:
    """Set what work costs that begins from now on."""
    cyclic_loads(sim)[program.state_row].execution = execution


@APPLICATIONS.register
class PeriodicLoadSpec(CyclicLoadSpec, ApplicationSpec):
    """``busy`` CPU time at the start of every ``period``: a management VM, the hypervisor's work."""

    entries = (begin_load, account_for_elided)

    kind: Literal["periodic_load"] = "periodic_load"

    def events_per_s(self, vcpus: int) -> float:
        """Begin and end of a period's work, and the switches for them."""
        return 5e9 / self.period

    def contradiction(self, cpu_inflation: float) -> str:
        """Refuse work that the hypervisor's factor makes longer than its period."""
        if round(self.busy * cpu_inflation) <= self.period:
            return ""
        return f"a factor of {cpu_inflation:g} (cpu_inflation) makes its work longer than its period"

    def install(self, context: InstallContext) -> "PeriodicLoad":
        """Add the load."""
        return PeriodicLoad(self.model_copy(update={"busy": context.inflated(self.busy)}), context)


class PeriodicLoad(Program):
    """A periodic load in a running model."""

    def __init__(self, spec: PeriodicLoadSpec, context: InstallContext) -> None:
        super().__init__(context)
        rows = context.engine.rows(cyclic_loads)
        is_first = context.engine.used(cyclic_loads) == 0
        self._load = add_load(context.engine, context.domain, spec, context.number)
        if not is_first:
            rows[self._load].phase_ns = context.streams.phase_ns(
                "periodic_load.phase", context.serial(spec), spec.period
            )
        self.row = add_application(context.engine, periodic_load, self._load, context.domain)
        self._elide = context.elide
        self._is_elided = False

    def start(self) -> None:
        """Begin the first period."""
        self._is_elided = self._elide(self._load)
        if not self._is_elided:
            self.engine.call(begin_load, self._load)

    def update_accounts(self) -> None:
        """Compute the periods whose events were elided."""
        if self._is_elided:
            self.engine.call(account_for_elided, self._load)
