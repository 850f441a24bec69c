"""Where one packet's delay went: its waits, one after the other, summing to the total.

Between two boundaries a packet either waits in a ring or is in the hands of a stage.  There, the CPU
time of its batch is work, and the rest is waiting: where the stage is bound to a vCPU, either for that
vCPU (other work of its own, a switch) or for a pCPU; where any vCPU will do, for a CPU.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from vftsim.tracing.trace import PacketTrace, Trace


@dataclass(frozen=True, slots=True)
class Part:
    """One piece of a delay."""

    name: str
    length_ns: int


def explain(packet: PacketTrace, trace: Trace) -> list[Part]:
    """Decompose the delay of a traced packet, in order of time."""
    parts = [Part("wire, there and back", packet.wire_ns)]
    before_ns = packet.marks[0][1]
    for mark, now_ns, spent_ns in packet.marks[1:]:
        stage, _, what = mark.rpartition(" ")
        length_ns = now_ns - before_ns
        if what == "taken":
            parts.append(Part(f"waits for {stage}", length_ns))
        else:
            parts += _in_hands(stage, trace, packet.domain, (before_ns, now_ns), spent_ns)
        before_ns = now_ns
    parts.append(Part("leaves the host", packet.delivered_ns - before_ns))
    return [part for part in parts if part.length_ns or part.name.startswith("wire")]


def total_ns(parts: Iterable[Part]) -> int:
    """Sum of the parts."""
    return sum(part.length_ns for part in parts)


def _in_hands(stage: str, trace: Trace, domain: str, between_ns: tuple[int, int], spent_ns: int) -> list[Part]:
    length_ns = between_ns[1] - between_ns[0]
    vcpu = trace.vcpu_of_stage.get((domain, stage), trace.vcpu_of_stage.get(("", stage)))
    parts = [Part(f"{stage}: works", spent_ns)]
    if vcpu is None:
        return [*parts, Part(f"{stage}: waits for a CPU", length_ns - spent_ns)]
    running_ns = trace.running_ns(vcpu, *between_ns)
    return [
        *parts,
        Part(f"{stage}: {trace.vcpu_names[vcpu]} does other work", running_ns - spent_ns),
        Part(f"{stage}: {trace.vcpu_names[vcpu]} waits for a pCPU", length_ns - running_ns),
    ]


def format_parts(packet: PacketTrace, parts: Iterable[Part]) -> str:
    """Return a table for people."""
    parts = list(parts)
    width = max(len(part.name) for part in parts)
    lines = [f"{packet.flow} stream {packet.stream}: {packet.delay_ns / 1e6:.4f} ms"]
    lines += [f"  {part.name:<{width}}  {part.length_ns / 1e6:9.4f} ms" for part in parts]
    lines.append(f"  {'total':<{width}}  {total_ns(parts) / 1e6:9.4f} ms")
    return "\n".join(lines)
