"""The records of the schedulers with one run queue for all pCPUs."""

from vftsim.kernel import Chain, Fifo, Record, Table
from vftsim.platform.cpu.records import hosts, pcpus, vcpus


class QueueHost(Record):
    """The run queue of a host, in order of arrival, and the vCPUs that are being placed, most urgent first."""

    waiting: Fifo
    placing: Fifo


class QueuePcpu(Record):
    """A pCPU: the vCPU that the scheduler has chosen for it, and whether one has just been placed there."""

    current: int
    placed: bool


class QueueVcpu(Record):
    """What the queue knows of a vCPU.

    ``current_on`` is the pCPU it was chosen for, ``since_ns`` when it got that pCPU.  ``held``: to be placed.
    ``rank`` and ``level`` are its urgency when it was last looked at for placing.
    """

    is_waiting: bool
    held: bool
    current_on: int
    since_ns: int
    rank: int
    level: int
    next_waiting: int
    next_placing: int


queue_hosts = Table("queue_hosts", QueueHost, beside=hosts)
queue_pcpus = Table("queue_pcpus", QueuePcpu, beside=pcpus)
queue_vcpus = Table("queue_vcpus", QueueVcpu, beside=vcpus)
waiting_list = Chain(queue_vcpus, "next_waiting")
placing_list = Chain(queue_vcpus, "next_placing")
