"""Notes on the costs of protection for every result: which of them nobody has calibrated."""

from collections.abc import Iterable, Sequence

from vftsim.composition.hosts import DomainSpec
from vftsim.composition.model import FEWEST_CYCLES, LONGEST_NS, ModelSpec
from vftsim.composition.record import RunRecord
from vftsim.composition.views import protection_of
from vftsim.platform.protection.account import DECLARED, WORDS
from vftsim.platform.protection.mechanism import ProtectionSpec
from vftsim.platform.protection.outcome import Protection, named_breach
from vftsim.spec import format_duration
from vftsim.spec.suggest import listing
from vftsim.spec.units import format_rate

_FULL = 0.95
"""Share of the time for which a full channel is busy: between two states it may wait for an acknowledgement."""


def cost_notes(spec: ModelSpec) -> list[str]:
    """Return a line for each entry of a model that is protected: what its costs rest on."""
    notes = []
    for name, domain in spec.domains.items():
        if text := cost_note(domain):
            notes.append(f"{domain.protection.kind} ({name}): {text}")  # type: ignore[attr-defined]
    return notes


def cost_note(domain: DomainSpec) -> str:
    """Return what the costs of a domain's protection rest on; nothing without protection."""
    protection = domain.protection
    if not protection.protects:
        return ""
    if protection.calibrated_costs:
        exits = f"; {uncounted_exits(domain)}" if protection.counts_exits else ""
        return f"{protection.calibrated_costs}{exits}"
    settings = "" if protection == type(protection)() else "; but for what the model gives"
    pages = f"; {pages_of_requests(domain, protection.pages_a_packet)}" if protection.sends_pages else ""
    return f"{protection.uncalibrated}{settings}{pages}"


def own_channel(domain: DomainSpec, original: DomainSpec) -> str:
    """Return that a mechanism at its defaults has a channel to itself, where the model's own is on a network."""
    network, protection = original.protection.channel_network, domain.protection
    rate = getattr(protection, "channel_rate_bits_per_s", None)
    if network is None or protection.channel_network is not None or rate is None or not protection.has_backup:
        return ""
    return f"its channel, {format_rate(rate)} for each guest, is its default; it shares nothing with networks.{network}"


def pages_of_requests(domain: DomainSpec, every: float | None) -> str:
    """Say how many pages a packet of each application is taken to dirty, ``every`` one alike unless that is None.

    Names are as in the model file.
    """
    if every is not None:
        return f"each packet received dirties {every:g} pages"
    pages_by_application = {key: each.pages_a_packet for key, each in domain.applications.items()}
    counts = [f"{pages:g} ({key})" for key, pages in pages_by_application.items() if pages is not None]
    take_any = any(each.speaks for each in domain.applications.values())
    none = "packets received dirty no pages" if take_any else "no application takes packets"
    counted = f"each packet received dirties {listing(counts)} pages" if counts else none
    free = [key for key, pages in pages_by_application.items() if pages is None]
    return f"{counted}; {listing(free)}: what computing touches and transactions write" if free else counted


def uncounted_exits(domain: DomainSpec) -> str:
    """Say whose exits to the hypervisor nobody counts; names are as in the model file."""
    free = [key for key, each in domain.applications.items() if not hasattr(each, "relay_cost")]
    free += [key for key, each in domain.interfaces.items() if not hasattr(each.path, "accesses_receive")]
    return f"exits of {listing(free)} are not counted, so free" if free else "exits are counted everywhere"


def of_runs(spec: ModelSpec, records: Sequence[tuple[int, RunRecord]]) -> list[str]:
    """Return what must be known of the mechanisms in runs of a model, beside what their costs rest on."""
    few = filter(None, (_few_cycles(spec, name) for name in spec.domains))
    full = full_channels(spec, records)
    slow = slow_disks(spec, records)
    return [*few, *full, *slow, *broken_promises(spec, records), *needless_takeovers(spec, records)]


def _few_cycles(spec: ModelSpec, name: str) -> str:
    """Return how few cycles of a domain's mechanism are measured."""
    cycle_ns, measured_ns = protection_of(spec, spec.domains[name]).cycle_ns, spec.measure.duration
    needed_ns = min(FEWEST_CYCLES * cycle_ns, LONGEST_NS)
    if spec.phased or measured_ns >= needed_ns:
        return ""
    return (
        f"domains.{name}.protection: a cycle takes up to {format_duration(cycle_ns)}, and "
        f"{format_duration(measured_ns)} are measured: figures depend on where in a cycle that begins and ends; "
        f"'measure.duration={-(-needed_ns // 100_000_000) / 10:g} s' holds {FEWEST_CYCLES}"
    )


def full_channels(spec: ModelSpec, records: Iterable[tuple[int, RunRecord]]) -> list[str]:
    """Return for each guarded domain whose channel has a card of its own that it is full, in all or in a step."""
    busiest: dict[str, float] = {}
    for _, record in records:
        for phase in (record.whole, *record.phases):
            for name, domain in spec.expanded().items():
                outcome = phase.outcomes.get(f"domains.{name}.protection")
                rate = own_rate_bits_per_s(domain)
                # Not a number where no time is measured: then it is not above anything.
                if isinstance(outcome, Protection) and rate > 0 and outcome.channel > _FULL * rate / 1e6:
                    share = 1e6 * outcome.channel / rate
                    busiest[spec.entry_of(name)] = max(share, busiest.get(spec.entry_of(name), 0.0))
    return [
        f"domains.{entry}.protection: its channel of {format_rate(own_rate_bits_per_s(spec.domains[entry]))} is "
        f"{min(100.0, 100.0 * share):.0f} % busy, and what goes over it waits"
        for entry, share in busiest.items()
    ]


def slow_disks(spec: ModelSpec, records: Iterable[tuple[int, RunRecord]]) -> list[str]:
    """Return for each guarded domain that its backup's disk takes less than is written to it."""
    most: dict[str, float] = {}
    for _, record in records:
        for name in spec.expanded():
            outcome = record.whole.outcomes.get(f"domains.{name}.protection")
            if isinstance(outcome, Protection):
                entry = spec.entry_of(name)
                most[entry] = max(most.get(entry, 0.0), outcome.backup_disk)
    slow = {entry: slow_disk(spec.domains[entry].protection, written) for entry, written in most.items()}
    return [f"domains.{entry}.protection: {text}" for entry, text in slow.items() if text]


def slow_disk(protection: ProtectionSpec, written_mb_per_s: float) -> str:
    """Return that the backup's disk takes less than is written, which grows what a takeover waits for; else nothing."""
    rate = protection.backup_disk_bytes_per_s / 1e6
    if rate <= 0.0 or not written_mb_per_s > rate:
        return ""
    return (
        f"{written_mb_per_s:.3g} MB/s are written to the backup's disk, which takes {rate:.3g} (disk.apply_rate): what "
        "it is behind grows, and so does, with the time until a crash, the outage by a takeover"
    )


def own_rate_bits_per_s(domain: DomainSpec) -> int:
    """Return the rate of a channel to a backup that has a card of its own; 0 without one."""
    protection = domain.protection
    if not protection.has_backup or protection.channel_network is not None:
        return 0
    return int(getattr(protection, "channel_rate_bits_per_s", 0))


def broken_promises(spec: ModelSpec, records: Iterable[tuple[int, RunRecord]]) -> list[str]:
    """Return for each guarded domain how many outputs broke the promise, and which was the first; for copies once."""
    by_entry: dict[str, list[tuple[int, str, Protection]]] = {}
    for number, record in records:
        for owner, outcome in record.whole.outcomes.items():
            if isinstance(outcome, Protection) and outcome.breaches:
                domain = owner.split(".")[1]
                by_entry.setdefault(spec.entry_of(domain), []).append((number, domain, outcome))
    texts = []
    for each in by_entry.values():
        breaches, judged = (sum(getattr(outcome, name) for *_, outcome in each) for name in ("breaches", "judged"))
        number, domain, first = each[0]
        others = len({name for _, name, _ in each}) - 1
        whose = f"domains.{domain}{f' and {others} more of its copies' if others else ''}"
        texts.append(
            f"{whose}: {breaches} of {judged} outputs left before a backup could take over from there; in replication "
            f"{number} {named_breach(first.first_breach or {})}"
        )
    return texts


def needless_takeovers(spec: ModelSpec, records: Iterable[tuple[int, RunRecord]]) -> list[str]:
    """Return for each guarded domain of a model without faults when its failure was declared all the same."""
    declared: dict[str, tuple[int, int]] = {}
    for number, record in () if spec.faults else records:
        for name, timeline in record.timelines.items():
            for time_ns, event in timeline:
                if event == WORDS[DECLARED]:
                    declared.setdefault(name, (number, time_ns))
    return [
        f"{name}: nothing failed, but in replication {number} its failure was declared after {time_ns / 1e9:.4g} s: a "
        "side was silent for longer than failover.detection allows; from then on figures are of what followed, without "
        "protection"
        for name, (number, time_ns) in declared.items()
    ]
