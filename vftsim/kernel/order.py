"""The order in which simultaneous events take effect: by kind, then by entity, then as planned.

Commensurate timers (30 ms slices, 20 ms packets) coincide by construction, so the order at one instant is a
rule of the model, the same in every engine, not an accident of insertion.
"""

from enum import IntEnum


class EventKind(IntEnum):
    """What happens at an instant, in the order in which simultaneous events take effect."""

    CPU = 0  # a piece of CPU work ends
    TICK = 1  # a scheduler's tick
    ACCOUNTING = 2  # a scheduler's accounting or replenishment
    SLICE = 3  # a slice ends, and every pCPU that was asked chooses, once
    CHANNEL = 4  # a log entry, an acknowledgement or a checkpoint arrives
    DELIVERY = 5  # a packet reaches the far end of a link
    DEVICE = 6  # an interrupt coalescing timer, a disk completion
    TIMER = 7  # a protocol or application timer
    ARRIVAL = 8  # a sample of the time before is taken, then the workload starts something
    CONTROL = 9  # a fault, the benchmark manager


ENTITY_BITS = 40
