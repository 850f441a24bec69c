"""An oracle of the output-commit promise that knows nothing of the mechanism's computations.

It watches a guarded machine from outside: what enters it, what its program sends, what is seen on the wire.  From the
sizes of log entries and the channel's rate and latency it works out what bytes have reached the backup at any instant,
and from those what the backup can know.

Of a log of packets' data and outputs, byte for byte, of a guest that uses no CPU time.
"""

from dataclasses import dataclass, field

S = 1_000_000_000
OUTPUT_BYTES = 32
ACK_BYTES = 64


@dataclass(frozen=True)
class Rules:
    """What the oracle is told of the system: its wires and clocks."""

    rate_bits_per_s: int
    latency_ns: int
    entry_cost_ns: int
    go_live_ns: int


@dataclass
class Entry:
    """Something that must be logged; outputs have numbers, inputs 0."""

    time_ns: int
    size_bytes: int
    output: int
    departs_ns: int = 0
    arrives_ns: int = 0
    replayed_ns: int = 0


@dataclass
class Oracle:
    """What entered the machine, what its program sent, and what left, as (instant, number)."""

    rules: Rules
    entries: list[Entry] = field(default_factory=list)

    def input(self, time_ns: int, size_bytes: int) -> None:
        """A packet was handed to the guest."""
        self._write(Entry(time_ns, size_bytes, 0))

    def output(self, time_ns: int, number: int) -> None:
        """The guest's program has sent a packet."""
        self._write(Entry(time_ns, OUTPUT_BYTES, number))

    def _write(self, entry: Entry) -> None:
        before = self.entries[-1] if self.entries else Entry(0, 0, 0)
        rules = self.rules
        start_ns = max(before.departs_ns, entry.time_ns)
        entry.departs_ns = start_ns + entry.size_bytes * 8 * S // rules.rate_bits_per_s
        entry.arrives_ns = entry.departs_ns + rules.latency_ns
        entry.replayed_ns = max(before.replayed_ns, entry.arrives_ns) + rules.entry_cost_ns
        self.entries.append(entry)

    def acknowledged_ns(self, entry: Entry) -> int:
        """When the primary can have heard that the backup holds an entry."""
        return entry.arrives_ns + self.rules.latency_ns + ACK_BYTES * 8 * S // self.rules.rate_bits_per_s

    def early(self, seen: list[tuple[int, int]], until_ns: int) -> list[int]:
        """Outputs that the primary, alive until then, let go before it can have known that the backup holds them."""
        due_ns = {entry.output: self.acknowledged_ns(entry) for entry in self.entries if entry.output}
        return [number for time_ns, number in seen if time_ns <= until_ns and time_ns < due_ns.get(number, 0)]

    def after_primary_crash(self, seen: list[tuple[int, int]], crash_ns: int) -> list[str]:
        """What is wrong with what was seen, of a crash of the primary at an instant."""
        wrong = [f"{number} left too early" for number in self.early(seen, crash_ns)]
        numbers = {number for _, number in seen}
        lost = False
        replayed_ns = 0
        for entry in self.entries:
            held = entry.departs_ns <= crash_ns
            replayed_ns = entry.replayed_ns if held else replayed_ns
            if not entry.output:
                lost = lost or not held
            elif held and entry.output not in numbers:
                wrong.append(f"{entry.output} is known to the backup and never issued")
            elif lost and entry.output in numbers:
                wrong.append(f"{entry.output} was seen, and an input before it is lost")
        live_ns = max(crash_ns, replayed_ns) + self.rules.go_live_ns
        wrong += [f"{n} issued before replay ended" for time_ns, n in seen if crash_ns < time_ns < live_ns]
        return wrong

    def after_backup_crash(self, seen: list[tuple[int, int]], crash_ns: int, alone_ns: int) -> list[str]:
        """What is wrong with what was seen, of a crash of the backup and a primary that goes on alone at an instant."""
        wrong = [f"{number} left too early" for number in self.early(seen, alone_ns - 1)]
        times = {number: time_ns for time_ns, number in reversed(seen)}
        for entry in self.entries:
            if entry.output and entry.output not in times:
                wrong.append(f"{entry.output} never left")
            elif entry.output and entry.arrives_ns <= crash_ns and times[entry.output] > self.acknowledged_ns(entry):
                wrong.append(f"{entry.output} waited although its acknowledgement was on the way")
        return wrong
