"""Media streams from outside.

A 172-byte UDP payload every 20 ms on each stream (12 bytes RTP header, 160 bytes G.711), at a
random phase.  The clocks of the client machines err by some ppm, so that packets slide slowly past the
10 ms ticks of the host; with perfect clocks the same packets would meet every tick, and a scheduler
that samples at ticks would charge the same vCPU for ever.  Sender and receiver of a
stream sit on one machine, so the measured delay is that of the way there and back (Patnaik 2009, 4).
With ``hold`` the streams are those of calls that come as a Poisson process and last for an exponential time, all
admitted: their number has a Poisson distribution (M/M/inf) whose mean, the offered traffic in erlang (ITU-T E.600), is
``streams``, also when the run begins.  With a load profile calls come as it says; of what came before a run those are
under way that last for so long.
With ``sending_grid`` the clients' timers fire on a common grid only, as those of a kernel with a tick
do; packets of one instant then follow each other on the wire.

Left out: losses and queues of the network (the lab's clients shared a fast LAN with the server), but for those of a
line that does not carry what is sent.
"""

import math
import struct
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from vftsim.errors import RunFailure
from vftsim.platform.io.link import BITS_NS
from vftsim.platform.io.packet import delivered, lost, workload
from vftsim.sampling import Streams
from vftsim.spec import Spec, format_duration
from vftsim.spec.units import MS, DurationNs, PositiveDurationNs
from vftsim.workloads.account import add_streams, count_delivered, count_lost
from vftsim.workloads.flow import FlowDriver, FlowResult
from vftsim.workloads.gaps import LoadProfileSpec
from vftsim.workloads.parts import WORKLOADS, ApplicationSpec, RunProfile, Target, WorkloadSpec
from vftsim.workloads.voice_quality import G711_CONCEALED_BPL, Codec
from vftsim.workloads.wire import Address, Wire, WirePacket

rtp_streams = workload.kind("rtp")
rtp_streams.implements(delivered)(count_delivered)
rtp_streams.implements(lost)(count_lost)

_STREAM_BITS = 17  # more than 100,000 streams, the most
_PACKETS = 4096
"""Packets drawn at once, if not more come in one interval."""


class RtpSource:
    """The packets of all streams in order of arrival, but for what arrives after ``end_ns``.

    ``flow`` is the row of their flow, ``number`` that of the workload among those of its kind.  Frames follow each
    other on the link into the host at ``link_bits_per_s``; None: it is simulated, and has a queue.
    """

    def __init__(
        self, spec: "RtpSpec", streams: Streams, flow: int, end_ns: int, link_bits_per_s: int | None, number: int = 0
    ) -> None:
        self.flow = flow
        self._spec = spec
        self._end_ns = end_ns
        self._begins_ns, self._ends_ns = calls(spec, streams, end_ns, number)
        count = self._begins_ns.size
        self._phases_ns, self._errors = senders(spec, streams, number, count)
        self._bits_per_s = link_bits_per_s or 1
        self._frame_ns, self._frame_rest = (
            (0, 0) if link_bits_per_s is None else divmod(spec.frame_bytes * BITS_NS, link_bits_per_s)
        )
        self._numbers = np.arange(count, dtype=np.int64)
        self._held = np.empty(0, np.int64), np.empty(0, np.int64)
        self._cycle = 0
        self._free_ns = 0
        self._is_over = count == 0

    def more(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return times in ns and stream numbers of the next packets; empty at the end."""
        if self._is_over:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        times_ns, numbers = self._sent()
        while times_ns.size == 0:
            self._is_over = self._cycle * self._spec.interval > self._end_ns
            if self._is_over:
                return times_ns, numbers
            times_ns, numbers = self._sent()
        # Each frame takes its time on the wire: the k-th of a busy stretch leaves k frames after the first.
        before = np.arange(times_ns.size, dtype=np.int64)
        lead_ns = self._frame_ns * before + self._frame_rest * before // self._bits_per_s
        times_ns -= lead_ns
        times_ns[0] = max(times_ns[0], self._free_ns)
        times_ns = np.maximum.accumulate(times_ns) + lead_ns
        self._free_ns = int(times_ns[-1]) + self._frame_ns
        self._is_over = self._free_ns > self._end_ns
        count = int(np.searchsorted(times_ns, self._end_ns, side="right"))
        return times_ns[:count], numbers[:count]

    def _sent(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return when clients send next, in order of time, and which stream; hold what the fastest may overtake."""
        cycles = max(1, _PACKETS // self._spec.streams)
        base_ns = (self._cycle + np.arange(cycles + 1, dtype=np.int64)) * self._spec.interval
        self._cycle += cycles
        near = self._near(int(base_ns[0]), int(base_ns[-1]))
        drift_ns = np.rint(base_ns.astype(np.float64)[:, None] * self._errors[near]).astype(np.int64)
        # What comes after the end is cut, which leaves room for the stream's number beside the time.
        offsets_ns = np.minimum(self._phases_ns[near] + drift_ns[:-1], self._end_ns + 1)
        keys = (offsets_ns << _STREAM_BITS) | self._numbers[near]
        keys.sort(axis=1)
        times_ns = ((keys >> _STREAM_BITS) + base_ns[:-1, None]).ravel()
        numbers = (keys & (2**_STREAM_BITS - 1)).ravel()
        if self._spec.hold:
            lasts = (times_ns >= self._begins_ns[numbers]) & (times_ns < self._ends_ns[numbers])
            times_ns, numbers = times_ns[lasts], numbers[lasts]
        times_ns, numbers = np.concatenate((self._held[0], times_ns)), np.concatenate((self._held[1], numbers))
        return self._in_order(times_ns, numbers, int(base_ns[-1] + np.rint(base_ns[-1] * self._errors.min())))

    def _near(self, from_ns: int, until_ns: int) -> slice | NDArray[np.int64]:
        """Return the streams that may send in cycles which begin between two instants, of whatever clock."""
        if not self._spec.hold:
            return slice(None)
        error_ns = math.ceil(until_ns * self._spec.clock_error_ppm * 1e-6)
        until_ns += self._spec.interval + error_ns
        return np.flatnonzero((self._begins_ns <= until_ns) & (self._ends_ns >= from_ns - error_ns))

    def _in_order(
        self, times_ns: NDArray[np.int64], numbers: NDArray[np.int64], next_ns: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Sort across cycles: clocks drift apart without end; what is not before the next cycle's first is held."""
        order = np.argsort(times_ns, kind="stable")
        times_ns, numbers = times_ns[order], numbers[order]
        count = int(np.searchsorted(times_ns, next_ns))
        self._held = times_ns[count:], numbers[count:]
        return times_ns[:count], numbers[:count]


def calls(
    spec: "RtpSpec", streams: Streams, end_ns: int, number: int = 0
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return when each stream of a run begins and ends, in ns."""
    if not spec.hold:
        return np.zeros(spec.streams, np.int64), np.full(spec.streams, end_ns + 1, np.int64)
    # As many come in that part of a holding time as are under way at first, which go on for as long as new ones.
    part = spec.share_of_last(spec.hold)
    come = spec.streams * (part + spec.load_ns(end_ns) / spec.hold)
    most = math.ceil(come + 10 * math.sqrt(come))
    if most >= 2**_STREAM_BITS:
        raise RunFailure(f"about {come:.0f} calls come in the run; let fewer come, or last longer (streams, hold)")
    gaps = -np.log(streams.uniforms("media.call", number, count=most)) / max(spec.streams, 1)
    begins_ns = np.clip(spec.all_due_ns((np.cumsum(gaps) - part) * spec.hold), 0, end_ns + 1).astype(np.int64)
    lasts_ns = -np.log(streams.uniforms("media.hold", number, count=most)) * spec.hold
    count = int(np.searchsorted(begins_ns, end_ns, side="right"))
    return begins_ns[:count], (begins_ns + lasts_ns.astype(np.int64))[:count]


def senders(
    spec: "RtpSpec", streams: Streams, number: int = 0, count: int | None = None
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return phase in ns and clock error of each stream of a workload, by its number among those of its kind."""
    count = spec.streams if count is None else count
    phases_ns = (streams.uniforms("media.phase", number, count=count) * spec.interval).astype(np.int64)
    if spec.sending_grid:
        phases_ns -= phases_ns % spec.sending_grid
    machines = -(-spec.streams // spec.streams_per_client)
    errors = (2.0 * streams.uniforms("media.clock", number, count=machines) - 1.0) * spec.clock_error_ppm * 1e-6
    return phases_ns, errors[np.arange(count) // spec.streams_per_client % machines]


@dataclass(frozen=True)
class RtpWire(Wire):
    """An RTP header (RFC 3550, 5.1): G.711, so 8000 Hz; a stream's number is its source."""

    interval_ns: int
    port = 5004
    _HZ, _PCMU = 8000, 0

    def contents(self, packet: WirePacket, source: Address) -> bytes:
        """Return the header alone."""
        stamp = packet.number * self.interval_ns * self._HZ // 1_000_000_000
        return struct.pack("!BBHII", 0x80, self._PCMU, packet.number & 0xFFFF, stamp & 0xFFFFFFFF, 1 + packet.stream)


class CodecSpec(Spec):
    """What the codec does to speech; rates and sizes are the stream's."""

    impairment: float = Field(0.0, ge=0.0, le=95.0, description="Ie (G.113, appendix I). Default: G.711.")
    robustness: float = Field(
        G711_CONCEALED_BPL,
        gt=0.0,
        le=1000.0,
        description="Bpl, against lost packets (G.113, appendix I). Default: G.711 with concealment.",
    )
    look_ahead: DurationNs = Field(0, description="Speech that the coder waits for beyond a packet's own.")


@WORKLOADS.register
class RtpSpec(LoadProfileSpec, WorkloadSpec):
    """Media streams from outside."""

    speaks = "rtp"
    load_key = "streams"
    objectives = ("loss <= 0.1",)
    packet_drawing_ns = 100.0
    """Many at once."""
    entries = (add_streams,)
    outcomes = (FlowResult,)

    kind: Literal["rtp"] = "rtp"
    to: str = Field("media", description="Application that relays them: `domain.application`, or its domain.")
    streams: int = Field(800, ge=0, le=100_000, description="Streams. Default: Patnaik 2009, 6.3.")
    hold: DurationNs = Field(
        0,
        description="Mean time that a stream lasts: `streams` is then their mean number, the traffic in erlang. "
        "0: as long as the run.",
    )
    interval: PositiveDurationNs = Field(20 * MS, description="Between packets of a stream.")
    frame_bytes: int = Field(
        238,
        ge=64,
        le=9018,
        description="On the wire: 172 payload, 28 UDP/IP, 38 Ethernet with preamble and gap.",
    )
    sending_grid: DurationNs = Field(
        0, description="Clients send at multiples of this only (their kernel's timer tick); 0: any time."
    )
    streams_per_client: int = Field(200, ge=1, le=100_000, description="Streams of one machine (Patnaik 2009, 4).")
    clock_error_ppm: float = Field(
        50.0,
        ge=0.0,
        le=1000.0,
        description="Clocks of client machines err by up to this. Default: usual crystals.",
    )
    playout: PositiveDurationNs = Field(
        60 * MS, description="Play-out delay; later packets count as lost for voice quality."
    )
    codec: CodecSpec = Field(default_factory=CodecSpec, description="Codec, for voice quality.")

    @model_validator(mode="after")
    def _holds_with_a_profile(self) -> Self:
        if self.load_profile and not self.hold:
            raise ValueError("load_profile: streams that last as long as the run come at no rate; give their hold")
        return self

    def wire(self, application: ApplicationSpec) -> Wire:
        """RTP over UDP."""
        return RtpWire(self.interval)

    def incompatibility(self, application: ApplicationSpec, rate_bits_per_s: int, queue_bytes: int) -> str:
        """A stream cannot send more than the line carries."""
        frame_ns = self.frame_bytes * BITS_NS // rate_bits_per_s
        if self.interval >= frame_ns:
            return ""
        return (
            f"interval: {format_duration(self.interval)} between packets of a stream, but a frame of "
            f"{self.frame_bytes} bytes takes {format_duration(frame_ns)} on the clients' line; make it at least as long"
        )

    @property
    def playout_ns(self) -> int:
        return self.playout

    @property
    def wire_bits_per_s(self) -> float:
        """Frames of all streams."""
        return self.streams * self.mean_share * self.frame_bytes * 8e9 / self.interval

    def packets(self, profile: RunProfile) -> float:
        """One of each stream in an interval."""
        return self.streams * self.load_ns(profile.length_ns) / self.interval

    def in_flight(self, profile: RunProfile) -> float:
        """Packets drawn ahead."""
        return max(self.streams, _PACKETS) / 20

    def install(self, target: Target) -> FlowDriver:
        """Add the streams."""
        driver = FlowDriver(
            target,
            self,
            size_bytes=self.frame_bytes,
            streams=calls(self, target.streams, target.end_ns, target.number)[0].size,
            late_ns=self.playout,
            interval_ns=self.interval,
            codec=Codec(self.codec.impairment, self.codec.robustness, self.codec.look_ahead / MS),
        )
        line = None if target.is_linked else target.rate_bits_per_s
        source = RtpSource(self, target.streams, driver.flow, target.end_ns, line, target.number)
        driver.sends(source)
        return driver
