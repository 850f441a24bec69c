"""The record of a run, the same for every model: phases of outcomes, drops, timelines."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self, TypeVar

from vftsim.outcome import Outcome, Phase
from vftsim.platform.outcomes import DomainUse
from vftsim.workloads.offer import Offer
from vftsim.workloads.ramp import StepOutcome

OutcomeT = TypeVar("OutcomeT", bound=Outcome)


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What one replication leaves behind."""

    phases: tuple[Phase, ...]
    """The steps of a workload that has phases of its own, in their order; last the whole run or, without such, the
    measured time."""
    drops: dict[tuple[str, str], int]
    """Packets by (place, cause), from the start of the run."""
    in_flight: int
    """Packets on their way at the end."""
    events: int
    """Events of the engine."""
    timelines: dict[str, list[tuple[int, str]]]
    """By guarded domain: (instant in ns, what happened)."""
    offers: dict[str, Offer]
    """What each workload was asked to send and sent, of those that may send less."""
    copies: dict[str, list[str]] = field(default_factory=dict)
    """Owners of outcomes of several copies together, and of each."""

    @property
    def whole(self) -> Phase:
        """The whole run, or its measured time."""
        return self.phases[-1]

    @property
    def of_copies(self) -> set[str]:
        """Owners of outcomes of one of several copies, of which another outcome tells all together."""
        return {copy for copies in self.copies.values() for copy in copies}

    @property
    def last_measured(self) -> Phase:
        """The last phase in which use of resources was measured: the last step of a ramp."""
        return self.phases[-2] if len(self.phases) > 1 else self.phases[-1]

    def of(self, owner: str) -> Any:
        """Return what an owner measured in the whole run, whatever that is; a KeyError for nothing."""
        return self.whole.outcomes[owner]

    def of_kind(self, kind: type[OutcomeT]) -> Iterator[tuple[Phase, str, OutcomeT]]:
        """Yield every outcome of a kind, with its phase and its owner."""
        for phase in self.phases:
            for owner, outcome in phase.outcomes.items():
                if isinstance(outcome, kind):
                    yield phase, owner, outcome

    def pcpus(self) -> dict[str, float]:
        """Return the CPU time of each domain in the last measured phase, in pCPUs; of copies, of each."""
        return {
            owner.removeprefix("domains."): outcome.cpu_ns / round(outcome.seconds * 1e9)
            for owner, outcome in self.last_measured.outcomes.items()
            if isinstance(outcome, DomainUse)
        }

    def played(self) -> list[StepOutcome]:
        """Return what a ramp measured in each of its phases; nothing without a ramp."""
        return [outcome for _, _, outcome in self.of_kind(StepOutcome)]

    def steps(self) -> list[StepOutcome]:
        return [outcome for outcome in self.played() if outcome.index > 0]

    def to_dict(self) -> dict[str, Any]:
        return {
            "phases": [phase.to_dict() for phase in self.phases],
            "drops": [[place, cause, count] for (place, cause), count in self.drops.items()],
            "in_flight": self.in_flight,
            "events": self.events,
            "timelines": {name: [list(moment) for moment in moments] for name, moments in self.timelines.items()},
            "offers": {name: asdict(offer) for name, offer in self.offers.items()},
            "copies": self.copies,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        return cls(
            phases=tuple(Phase.from_dict(phase) for phase in data["phases"]),
            drops={(place, cause): count for place, cause, count in data["drops"]},
            in_flight=data["in_flight"],
            events=data["events"],
            timelines={name: [(ns, event) for ns, event in moments] for name, moments in data["timelines"].items()},
            offers={name: Offer(**offer) for name, offer in data["offers"].items()},
            copies=data.get("copies", {}),
        )
