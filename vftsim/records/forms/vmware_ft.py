"""What a segment of bulk TCP puts on the log and costs, and the largest rates that follow, in closed form.

Receiving, the guest logs each segment with its data, and each acknowledgement it sends is an output; transmitting, each
segment is an output, and each acknowledgement that comes is logged.  ``acks`` is how many there are for a segment: 1,
or 1/2 (every second segment, RFC 5681, 4.2).  A model is that of ``calibration/vmware-ft/netperf.yaml``, its logging
channel the network ``logging``.
"""

from typing import Any

from vftsim.composition.model import ModelSpec

FLOWS = {"receive": "rx", "transmit": "tx"}
_S = 1e9


def log_bytes(model: ModelSpec, direction: str, acks: float, with_outputs: bool = False) -> float:
    """Return the bytes on the logging channel for a segment; ``with_outputs``: wrong, the log holds their data too."""
    log, (mss, header) = _protection(model).log, segment_bytes(model)
    data, ack = float(mss + header - log.framing), float(header - log.framing)
    received, sent = (data, acks * ack) if direction == "receive" else (acks * ack, data)
    inputs, outputs = (1.0, acks) if direction == "receive" else (acks, 1.0)
    segment_log = inputs * log.packet_entry + received + outputs * log.output_entry
    size_bytes: float = (segment_log + (sent if with_outputs else 0.0)) * log.transport_overhead
    return size_bytes


def timer_mbit_per_s(model: ModelSpec) -> float:
    """Return what timer interrupts put on the log."""
    log = _protection(model).log
    return float(log.timer_rate * log.timer_entry * log.transport_overhead * 8e-6)


def other_rate(model: ModelSpec, stated_mbit_per_s: float, acks: float, with_outputs: bool = False) -> float:
    """Return the log of transmitting, Mbit/s, at the payload at which receiving logs so much."""
    timers = timer_mbit_per_s(model)
    a_segment = log_bytes(model, "transmit", acks, with_outputs) / log_bytes(model, "receive", acks, with_outputs)
    return (stated_mbit_per_s - timers) * a_segment + timers


def recording_percent(model: ModelSpec, direction: str, acks: float, payload_mbit_per_s: float) -> float:
    """Return what recording takes of a CPU, in percent, at a payload."""
    segments_per_s = payload_mbit_per_s * 1e6 / 8 / segment_bytes(model)[0]
    return 100e-9 * segments_per_s * recording_ns(model, direction, acks)


def recording_ns(model: ModelSpec, direction: str, acks: float) -> float:
    """Return what recording a segment costs, when all entries join batches under way."""
    protection, (mss, header) = _protection(model), segment_bytes(model)
    cost, ack = protection.cost, header - protection.log.framing
    inputs, outputs, data = (1.0, acks, mss + ack) if direction == "receive" else (acks, 1.0, acks * ack)
    cpu_ns: float = inputs * cost.entry + outputs * cost.output + cost.kibibyte * data / 1024
    return cpu_ns


def timers_share(model: ModelSpec) -> float:
    """Return the share of a CPU that recording timer interrupts takes."""
    protection = _protection(model)
    return float(protection.log.timer_rate * protection.cost.timer / _S)


def bounds(model: ModelSpec, direction: str, acks: float) -> dict[str, float]:
    """Return the largest payload rate in Mbit/s that each of the things allows that can bind."""
    protection, wire = _protection(model), model.networks["logging"]
    flow: Any = model.workloads[FLOWS[direction]]
    rate = float(wire.rate)
    segment_ns, ack_ns, interrupts = guest_costs(model, direction)
    plain_ns = segment_ns + acks * ack_ns
    replay_ns = plain_ns * protection.secondary.factor + protection.secondary.entry_cost * (1.0 + acks)
    entry_bytes = protection.log.output_entry * protection.log.transport_overhead
    hold_ns = 2 * wire.latency + 8 * (protection.channel.ack + entry_bytes) / rate * _S
    mss, header = segment_bytes(model)
    bits = 8.0 * mss
    own_ns = plain_ns + recording_ns(model, direction, acks)
    return {
        "line": float(model.networks["lan"].rate) * mss / (mss + header) * 1e-6,
        "CPU": (1.0 - interrupts - timers_share(model)) * bits / own_ns * 1e3,
        "log bytes": rate * mss / log_bytes(model, direction, acks) * 1e-6,
        "replay": bits / replay_ns * 1e3,
        "acknowledgement of outputs": flow.window // mss * bits / hold_ns * 1e3,
    }


def binding(model: ModelSpec, direction: str, acks: float) -> tuple[str, float]:
    """Return what allows least, and how much."""
    return min(bounds(model, direction, acks).items(), key=lambda each: each[1])


def guest_costs(model: ModelSpec, direction: str) -> tuple[float, float, float]:
    """Return what a segment and an acknowledgement cost the guest unprotected, ns, and its interrupts, a share."""
    guest = model.domains["guest"]
    path: Any = guest.interfaces["eth0"].path
    program: Any = guest.applications["sink" if direction == "receive" else "source"]
    return (
        path.packet_cost + program.segment_cost + program.copy_cost * segment_bytes(model)[0] / 1024,
        path.packet_cost + program.ack_cost,
        path.interrupt_cost / path.moderation if path.moderation else 0.0,
    )


def segment_bytes(model: ModelSpec) -> tuple[int, int]:
    """Return the payload of a segment, and what it has beside that on the wire."""
    flow: Any = next(each for name, each in model.workloads.items() if name in FLOWS.values())
    return flow.mss, flow.header_bytes


def _protection(model: ModelSpec) -> Any:
    return model.domains["guest"].protection
