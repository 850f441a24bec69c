"""The channel between the hosts as a model sets it, for every mechanism that has one."""

from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator

from vftsim.kernel import Engine
from vftsim.platform.protection import channel
from vftsim.platform.protection.mechanism import ProtectionSpec
from vftsim.spec.base import Spec
from vftsim.spec.units import BitRate, ByteCount, DurationNs


class ChannelSpec(Spec):
    """The channel on which states or log entries travel."""

    network: str | None = Field(
        None,
        description="Network of the model that carries it; where the host has other traffic there they share its link. "
        "Not given: a card of its own.",
    )
    rate: Annotated[BitRate, Field(gt=0)] | None = Field(
        None,
        description="Rate of a card of its own; 1 Gbit/s if not given, with `hypervisor_epoch` 10 Mbit/s. "
        "Not beside `network`.",
    )
    latency: DurationNs | None = Field(
        None,
        description="One way. Not given: the network's; of a card of its own 74.5 us, which with the acknowledgement "
        "makes a round trip of 150 us at 1 Gbit/s (S2); with `hypervisor_epoch` 200 us.",
    )
    ack: ByteCount = Field(64, description="Bytes of an acknowledgement.")

    @model_validator(mode="after")
    def _one_rate(self) -> "ChannelSpec":
        if self.network is not None and self.rate is not None:
            raise ValueError("rate: the network has one; change it there, or give the channel no network")
        return self


class ChannelFields(ProtectionSpec):
    """Parameters of every mechanism that has a channel to a backup."""

    card_rate_bits_per_s: ClassVar[int] = 1_000_000_000
    """Rate of a channel with a card of its own, if the model gives none."""
    card_latency_ns: ClassVar[int] = 74_500
    """Its latency one way; with the acknowledgement a round trip of 150 us (Scales et al. 2010)."""

    channel: ChannelSpec = Field(default_factory=ChannelSpec, description="Channel between the hosts.")

    @property
    def channel_network(self) -> str | None:
        """Network that carries it."""
        return self.channel.network

    @property
    def channel_rate_bits_per_s(self) -> int:
        """Rate of its card, where no network carries it."""
        return self.card_rate_bits_per_s if self.channel.rate is None else self.channel.rate

    def on_network(self, rate_bits_per_s: int, latency_ns: int) -> Self:
        """Return these parameters with the channel's rate, and its latency if none is given, those of the network."""
        own_ns = self.channel.latency
        update = {"rate": rate_bits_per_s, "latency": latency_ns if own_ns is None else own_ns}
        return self.model_copy(update={"channel": self.channel.model_copy(update=update)})

    def install_channel(self, engine: Engine, guard: int, shared_link: int) -> None:
        """Write the channel into the records of a guard; ``shared_link`` carries it, 0: a card of its own."""
        latency_ns = self.card_latency_ns if self.channel.latency is None else self.channel.latency
        channel.install(engine, guard, self.channel_rate_bits_per_s, latency_ns, self.channel.ack, shared_link)
