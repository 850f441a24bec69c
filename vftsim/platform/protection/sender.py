"""The CPU time that copying and sending states costs the primary's driver domain.

Xen's tool (``tools/remus/remus``, ``xc_domain_save``) is a process of the driver domain: for each dirty page it maps
the frame, copies it, compresses it if it does, and hands it to TCP; for each state it asks for the suspension, reads
the dirty bitmap, flushes.
So is its block driver (``block-remus.c``), which sends what the guest writes to disks: as a page, for each 4 KiB.
That work waits for the back-ends that carry packets, which Linux runs as softirqs, and has what they leave of the CPU.

Assumptions: it is one job, made runnable when transmission begins; a driver domain without time for it sends no later
(how long a pause and a transmission take is said by parameters of their own).
"""

from typing import Annotated

from pydantic import Field

from vftsim.kernel import BESIDE, Engine, Record, Sim, Table
from vftsim.platform.arithmetic import nearest
from vftsim.platform.cpu.jobs import on_pcpu_ns, submit
from vftsim.platform.cpu.records import domains, work_done
from vftsim.platform.protection.guard import Guard, guards
from vftsim.platform.protection.prices import assumed
from vftsim.spec.base import Spec
from vftsim.spec.units import DurationNs


class SenderSpec(Spec):
    """What copying and sending a state costs the driver domain, if the host has one."""

    domain: str | None = Field(
        None, description="Domain whose CPU time it is; the driver domain of the guest's host if not given."
    )
    page: Annotated[DurationNs, assumed(3_000, 12_000)] = Field(
        6_000,
        description="CPU time of a page: mapped and copied (2 us, as in the pause), sent by TCP (4 us: 1.6 cycles a "
        "byte at 1.6 GHz). Assumption; 0: none.",
    )
    state: Annotated[DurationNs, assumed(50_000, 1_000_000)] = Field(
        200_000, description="CPU time of a state: suspension asked for, dirty bitmap read, flush. Assumption; 0: none."
    )


class Sender(Record):
    """Who pays for sending the states of one guard; ``domain`` 0: nobody.  ``charged_ns`` is what was paid by now."""

    domain: int
    page_ns: float
    compression_ns: float
    state_ns: int
    charged_ns: int


senders = Table("senders", Sender, beside=guards)


def install(engine: Engine, guard: int, spec: SenderSpec, compression_ns: int) -> None:
    """Write the costs into the record of a guard; a page of memory is compressed in ``compression_ns``."""
    sender = engine.rows(senders)[guard]
    sender.page_ns, sender.state_ns = float(spec.page), spec.state
    sender.compression_ns = float(compression_ns)


def charge(sim: Sim, guard: Guard, pages: float, pages_of_disk: float, sender: Sender = BESIDE) -> None:
    """Give the domain that sends a state of so many pages, and as much of disk writes, the work."""
    pages_ns = sender.page_ns * (pages + pages_of_disk) + sender.compression_ns * pages
    demand_ns = sender.state_ns + nearest(pages_ns)
    if sender.domain != 0 and demand_ns > 0:
        # Beside the state, not before it: the state leaves while the driver domain still works.
        domain = domains(sim)[sender.domain]
        sender.charged_ns += on_pcpu_ns(domain, demand_ns)
        submit(sim, domain, demand_ns, on_sent, guard.row, 0)


@work_done
def on_sent(sim: Sim) -> None:
    """The work is done; nothing waits for it."""
