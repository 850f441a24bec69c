"""Parameters of the IMS benchmark."""

from typing import Literal, Self

from pydantic import Field, model_validator

from vftsim.spec import DurationNs, Items, Percent, PeriodNs, PositiveDurationNs, RatePerSecond, Spec
from vftsim.spec.units import MS, S
from vftsim.workloads.gaps import LoadProfileSpec
from vftsim.workloads.ramp import RampSpec
from vftsim.workloads.sip.messages import Scenario


class Thresholds(Spec):
    """Delays above which an attempt is inadequately handled.

    Inferred from the virtual environment's last step, where the shares of inadequately handled attempts
    meet the measured delay percentiles at these values; the benchmark's settings are not printed.
    """

    registration: PositiveDurationNs = Field(2 * S, description="REG1 and REG2: REGISTER to its answer.")
    reregistration: PositiveDurationNs = Field(2_250 * MS, description="REG4: a whole re-registration.")
    session_setup: PositiveDurationNs = Field(4 * S, description="SES1: INVITE to ACK, ringing excluded.")
    release: PositiveDurationNs = Field(2 * S, description="REL1: BYE to 200.")
    message: PositiveDurationNs = Field(2 * S, description="PMM1: MESSAGE to 200.")


class Mix(Spec):
    """Shares of the scenarios among the attempts; must add up to 100 %."""

    ims_rereg: Percent = Field(15.0, description="Re-registrations.")
    ims_reg: Percent = Field(2.5, description="Initial registrations.")
    ims_uac: Percent = Field(50.0, description="Calls.")
    ims_dereg: Percent = Field(2.5, description="De-registrations.")
    ims_msgc: Percent = Field(30.0, description="Page messages.")

    @model_validator(mode="after")
    def _adds_up(self) -> "Mix":
        total = sum(self.shares())
        if abs(total - 100.0) > 0.01:
            raise ValueError(f"the shares of the mix must add up to 100 %, they add up to {total:g} %")
        return self

    def shares(self) -> list[float]:
        """Shares in the order of :class:`~vftsim.workloads.sip.messages.Scenario`, in percent."""
        return [float(getattr(self, scenario.label)) for scenario in Scenario]


class StepsSpec(LoadProfileSpec):
    """The measured ramp: constant load for a step, or one that follows a profile, then more."""

    initial: RatePerSecond = Field(50.0, gt=0, le=100_000, description="Load of the first step, attempts a second.")
    increment: RatePerSecond = Field(10.0, gt=0, le=100_000, description="Rise from step to step.")
    loads: Items[RatePerSecond] = Field(
        (), max_length=1000, description="Load of each step in turn; instead of initial and increment when given."
    )
    duration: PositiveDurationNs = Field(900 * S, description="Length of a step.")
    transient: DurationNs = Field(30 * S, description="First part of a step that is not counted.")
    most: int = Field(30, ge=1, le=1000, description="Most steps a run may have.")
    stop_above_ihs: Percent = Field(
        10.0,
        description="Stop after a step in which this share of a scenario's attempts is inadequately handled.",
    )

    @model_validator(mode="after")
    def _measures_something(self) -> "StepsSpec":
        if self.transient >= self.duration:
            raise ValueError("transient must be shorter than duration, or nothing is measured")
        if any(load <= 0 for load in self.loads):
            raise ValueError("every load must be above 0")
        return self

    @property
    def count(self) -> int:
        """Most steps a run may have."""
        return min(self.most, len(self.loads)) if self.loads else self.most

    def counted_ns(self, begin_ns: int, end_ns: int) -> tuple[int, int]:
        """A step is measured from its transient on."""
        return self.transient, self.duration

    def load_of(self, step: int) -> float:
        """Load of a step, counted from 0, in attempts a second."""
        return self.loads[step] if self.loads else self.initial + step * self.increment


class PreRegistrationSpec(Spec):
    """Registration of subscribers before the ramp, at a constant rate."""

    rate: RatePerSecond = Field(50.0, gt=0, le=100_000, description="Registrations a second, over all test systems.")
    duration: DurationNs = Field(120 * S, description="How long it is simulated; 0 skips it.")
    transient: DurationNs = Field(10 * S, description="First part that is not counted.")


class StirSpec(Spec):
    """Gradual rise to the first step's load, not measured."""

    duration: DurationNs = Field(60 * S, description="Length of the stir phase.")
    steps: int = Field(3, ge=1, le=100, description="Equal rises of the load in it.")


class BenchParameters(RampSpec):
    """What a model says of a benchmark."""

    kind: Literal["ims_bench"] = "ims_bench"
    to: str = Field(description="Application that is tested: `domain.application`, or its domain.")
    test_systems: int = Field(
        10,
        ge=1,
        le=1000,
        description="User agent hosts; pre-registration starts one user on each at the same time.",
    )
    subscribers: int = Field(100_000, ge=10, le=10_000_000, description="Provisioned subscribers.")
    registered: Percent = Field(20.0, description="Share of the subscribers that is registered when the ramp begins.")
    mix: Mix = Field(default_factory=Mix, description="Scenario mix.")
    ring_time: DurationNs = Field(5 * S, description="Mean ringing time of a call; 0: answered at once.")
    hold_time: DurationNs = Field(30 * S, description="Mean holding time of a call; 0: released at once.")
    time_cv: float = Field(
        1.0,
        ge=0.0,
        le=5.0,
        description="Coefficient of variation of ringing and holding times (gamma; 1 is exponential, 0 constant).",
    )
    gap_cv: float = Field(
        1.0,
        ge=0.0,
        le=5.0,
        description="Coefficient of variation of the gaps between attempts (gamma). Default 1, Poisson, the "
        "benchmark's (ETSI TS 186 008); above 1 they come in bursts, with 0 evenly.",
    )
    reaction_time: DurationNs = Field(
        0, description="Time that a user agent takes to answer a message (reply, ACK, credentials)."
    )
    pre_registration: PreRegistrationSpec = Field(default_factory=PreRegistrationSpec, description="First phase.")
    stir: StirSpec = Field(default_factory=StirSpec, description="Second phase.")
    steps: StepsSpec = Field(default_factory=StepsSpec, description="Measured phase.")
    thresholds: Thresholds = Field(default_factory=Thresholds, description="Limits of adequate handling.")
    t1: PositiveDurationNs = Field(500 * MS, description="Retransmission timer T1 of the user agents.")
    t2: PositiveDurationNs = Field(4 * S, description="Retransmission ceiling T2, not for INVITE.")
    invite_retransmissions: int = Field(5, ge=0, le=32, description="Retransmissions of an INVITE (SIPp: 5).")
    request_retransmissions: int = Field(9, ge=0, le=32, description="Retransmissions of other messages (SIPp: 9).")
    fails_on_second_challenge: bool = Field(
        False,
        description="Whether an attempt fails when a second 401 comes, as any unexpected message does in SIPp "
        "(`call.cpp`: every 401 has another nonce, so it is no repetition).",
    )
    sample_period: PeriodNs = Field(S, description="Interval of the CPU, load and memory series.")
    agents_in: str | None = Field(
        None, description="Domain in which the user agents run; on machines of their own if not given."
    )
    message_cost: DurationNs = Field(
        0, description="CPU time for each SIP message received or sent by user agents that run in a domain."
    )

    @model_validator(mode="after")
    def _agents_that_cost(self) -> Self:
        if self.message_cost and self.agents_in is None:
            raise ValueError("message_cost is CPU time of a domain of the model: say which with agents_in")
        return self
