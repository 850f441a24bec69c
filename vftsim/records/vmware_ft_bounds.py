"""What a segment of bulk TCP puts on the log and costs, and the largest rates that follow, in closed form.

Receiving, the guest logs each segment with its data, and each acknowledgement it sends is an output; transmitting, each
segment is an output, and each acknowledgement that comes is logged.  ``acks`` is how many there are for a segment: 1,
or 1/2 (every second segment, RFC 5681, 4.2).
"""

from __future__ import annotations

from dataclasses import dataclass

from vftsim.platform.protection._lockstep_records import OWN_LATENCY_NS, OWN_RATE_BITS_PER_S
from vftsim.platform.protection.lockstep import LockstepSpec
from vftsim.workloads.tcp.parameters import HEADER_BYTES

MSS = 1448
FRAME_BYTES = MSS + HEADER_BYTES
RECEIVE, TRANSMIT = "receive", "transmit"
_S = 1e9


@dataclass(frozen=True, slots=True)
class GuestCosts:
    """What a segment and an acknowledgement cost the guest without protection, ns, and its interrupts, a share."""

    segment_ns: float
    ack_ns: float
    interrupts: float


def log_bytes(spec: LockstepSpec, direction: str, acks: float, with_outputs: bool = False) -> float:
    """Return the bytes on the logging channel for a segment; ``with_outputs``: wrong, the log holds their data too."""
    log = spec.log
    data, ack = float(FRAME_BYTES), float(HEADER_BYTES)
    received, sent = (data, acks * ack) if direction == RECEIVE else (acks * ack, data)
    inputs, outputs = (1.0, acks) if direction == RECEIVE else (acks, 1.0)
    own = inputs * log.packet_entry + received + outputs * log.output_entry
    return (own + (sent if with_outputs else 0.0)) * log.transport_overhead


def timer_mbit_per_s(spec: LockstepSpec) -> float:
    """Return what timer interrupts put on the log."""
    return spec.log.timer_rate * spec.log.timer_entry * spec.log.transport_overhead * 8e-6


def other_rate(spec: LockstepSpec, stated_mbit_per_s: float, acks: float, with_outputs: bool = False) -> float:
    """Return the log of transmitting, Mbit/s, at the payload at which receiving logs so much."""
    timers = timer_mbit_per_s(spec)
    a_segment = log_bytes(spec, TRANSMIT, acks, with_outputs) / log_bytes(spec, RECEIVE, acks, with_outputs)
    return (stated_mbit_per_s - timers) * a_segment + timers


def recording_ns(spec: LockstepSpec, direction: str, acks: float) -> float:
    """Return what recording a segment costs, when all entries join batches under way."""
    cost = spec.cost
    inputs, outputs, data = (1.0, acks, FRAME_BYTES) if direction == RECEIVE else (acks, 1.0, acks * HEADER_BYTES)
    return inputs * cost.entry + outputs * cost.output + cost.kibibyte * data / 1024


def bounds(
    spec: LockstepSpec, guest: GuestCosts, direction: str, acks: float, line_bits_per_s: float, window: int
) -> dict[str, float]:
    """Return the largest payload rate in Mbit/s that each of the things allows that can bind."""
    rate = float(spec.channel.rate or OWN_RATE_BITS_PER_S)
    latency_ns = OWN_LATENCY_NS if spec.channel.latency is None else spec.channel.latency
    plain_ns = guest.segment_ns + acks * guest.ack_ns
    timers = spec.log.timer_rate * spec.cost.timer / _S
    second = spec.secondary
    replay_ns = plain_ns * second.factor + second.entry_cost * (1.0 + acks)
    hold_ns = 2 * latency_ns + 8 * (spec.channel.ack + spec.log.output_entry * spec.log.transport_overhead) / rate * _S
    bits = 8.0 * MSS
    return {
        "line": line_bits_per_s * MSS / FRAME_BYTES * 1e-6,
        "CPU": (1.0 - guest.interrupts - timers) * bits / (plain_ns + recording_ns(spec, direction, acks)) * 1e3,
        "log bytes": rate * MSS / log_bytes(spec, direction, acks) * 1e-6,
        "replay": bits / replay_ns * 1e3,
        "acknowledgement of outputs": window // MSS * bits / hold_ns * 1e3,
    }


def binding(found: dict[str, float]) -> str:
    """Return what allows least."""
    return min(found, key=lambda name: found[name])
