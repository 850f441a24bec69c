"""The record of the mechanism ``hypervisor_epoch``."""

from vftsim.kernel import Fifo, Record, Table
from vftsim.platform.protection.guard import guards, protection

hypervisor_epoch = protection.kind("hypervisor_epoch")


class Epoch(Record):
    """The epochs of one guard.

    The present one ends at ``due_ns``, or ``left_ns`` of running after the guest goes on.  The backup's last
    acknowledgement comes at ``acked_ns``, of a message that left at ``departed_ns``.  Messages that would leave after
    ``limit_ns``, the least of ``limits``, die with the primary.  ``copies`` are of outputs since the epoch began.
    What a lost channel has kept back takes ``unsent_ns`` to leave; on a shared wire it is ``unsent_bytes``, those of
    messages since one found all before it gone.
    """

    is_original: bool
    is_at_boundary: bool
    epoch_ns: int
    boundary_ns: int
    message_bytes: int
    entry_bytes: int
    due_ns: int
    left_ns: int
    departed_ns: int
    acked_ns: int
    unsent_ns: int
    unsent_bytes: int
    limit_ns: int
    limits: Fifo
    copies: Fifo


epochs = Table("epochs", Epoch, beside=guards)
