"""What a model file says about the servers of a farm and the calls through it."""

from typing import Literal, Self

from pydantic import Field, model_validator

from vftsim.spec.base import Items, Spec
from vftsim.spec.units import ByteCount, DurationNs, PositiveDurationNs, RatePerSecond

InsideMessage = Literal["lookup", "update", "file"]
ServedMessage = Literal["register", "invite", "ringing", "ok", "ack", "bye", "bye_ok", "lookup", "update", "file"]


class AskSpec(Spec):
    """A request that a server makes of another one before it goes on."""

    to: str = Field(description="Who is asked: `domain` or `domain.application`; copies of a domain take turns.")
    message: InsideMessage = Field("lookup", description="What is asked.")
    times: float = Field(
        1.0,
        ge=0.0,
        le=1000.0,
        description="Mean number of such requests, one after the other; 0.25 asks every fourth time. What a cache of "
        "the asker's own answers is taken off here.",
    )
    via: str | None = Field(None, description="Network of the request; the last that both are on if not given.")
    size: ByteCount = Field(512, ge=64, le=1 << 20, description="Request and answer on the wire. Assumption.")


class OperationSpec(Spec):
    """What a message makes a server do: compute, wait for its disk, ask others, then answer or send on."""

    demand: DurationNs = Field(description="CPU time of it.")
    disk_operations: float = Field(
        0.0, ge=0.0, le=1000.0, description="Mean number of operations on the domain's first disk, one after the other."
    )
    asks: Items[AskSpec] = Field((), description="Requests of other servers, in this order.")


class FarmServerSpec(Spec):
    """A server of a farm: balancer, front end, back end or storage server, by what it does with each message."""

    kind: Literal["farm_server"] = "farm_server"
    threads: int = Field(
        256, ge=1, le=100_000, description="Messages in work at once; a thread waits for disk and others. Assumption."
    )
    backlog: int = Field(1024, ge=1, le=1_000_000, description="Messages that wait in the socket. Assumption.")
    demand: DurationNs = Field(0, description="CPU time of a message that `operations` does not name.")
    demand_cv: float = Field(
        0.0, ge=0.0, le=5.0, description="Coefficient of variation of the CPU times (gamma); 0: always the same."
    )
    operations: dict[ServedMessage, OperationSpec] = Field(
        default_factory=dict, description="What single messages make it do."
    )
    passes_to: str | None = Field(
        None,
        description="Balancer: a call's messages go on to one of these servers, which take turns by call; they answer "
        "past the balancer (Linux Virtual Server, direct routing, round robin).",
    )
    repeat_share: float = Field(
        0.5, ge=0.0, le=1.0, description="Part of its CPU time that an INVITE costs which it has already. Assumption."
    )
    retry: PositiveDurationNs = Field(
        200_000_000, description="A request of another server that is lost is repeated after this (TCP_RTO_MIN)."
    )

    @property
    def peers(self) -> tuple[str, ...]:
        """Servers that it speaks to."""
        asked = [ask.to for operation in self.operations.values() for ask in operation.asks]
        return tuple(dict.fromkeys([*asked, *([] if self.passes_to is None else [self.passes_to])]))


class FarmCallsSpec(Spec):
    """Calls through a farm at a rate, whatever becomes of them."""

    kind: Literal["farm_calls"] = "farm_calls"
    rate: RatePerSecond = Field(gt=0, description="Calls begun a second.")
    gap_cv: float = Field(
        1.0,
        ge=0.0,
        le=5.0,
        description="Coefficient of variation of the gaps between calls (gamma). Default 1, Poisson: many generators "
        "beside one another; 0: one generator that keeps time.",
    )
    registered: bool = Field(False, description="The caller registers before each call, both have accounts.")
    hold: PositiveDurationNs = Field(
        60_000_000_000, description="From the answer to the BYE. Default: 60 s, the record's."
    )
    established: bool = Field(
        True, description="Calls begun before the run hang up in it, at the same rate: it begins in the steady state."
    )
    retransmits: bool = Field(True, description="User agents repeat what is not answered (RFC 3261, 17).")
    t1: PositiveDurationNs = Field(
        500_000_000, description="First repetition; then after twice as long each time. RFC 3261."
    )
    t2: PositiveDurationNs = Field(
        4_000_000_000, description="Longest wait between repetitions of all but INVITE. RFC 3261."
    )
    message_size: ByteCount = Field(500, ge=64, le=65_535, description="A message on the wire. Assumption.")
    agents_in: str | None = Field(
        None,
        description="Domain in which the user agents run; calls take turns on its copies, and the called one is on "
        "another than the caller, if there are two. On machines of their own if not given.",
    )
    message_cost: DurationNs = Field(
        0, description="CPU time of each message that user agents in a domain send or receive, its path included."
    )

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.t2 < self.t1:
            raise ValueError("t2 is the longest wait and cannot be below t1, the first")
        return self

    @model_validator(mode="after")
    def _agents_that_cost(self) -> Self:
        if self.message_cost and self.agents_in is None:
            raise ValueError("message_cost is CPU time of a domain of the model: say which with agents_in")
        return self
