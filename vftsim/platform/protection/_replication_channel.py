"""What becomes of a state on the wire when the channel gets another rate or latency."""

from vftsim.kernel import EventKind, Sim, at, part
from vftsim.platform.protection import state_stream
from vftsim.platform.protection._replication_records import PROTECTED, replications
from vftsim.platform.protection.channel import change, channels
from vftsim.platform.protection.guard import Guard
from vftsim.platform.protection.replication import ENTITY, on_acknowledgement, watch
from vftsim.platform.protection.state_stream import state_streams


@part
def change_state_channel(sim: Sim, guard: Guard, rate_bits_per_s: int, latency_ns: int) -> None:
    """Go on over a channel that has another rate and latency, with what is left of a state on the wire."""
    replication = replications(sim)[guard.row]
    stream = state_streams(sim)[guard.row]
    is_sending = stream.is_open and stream.is_sent and stream.depart_ns > sim.now_ns
    rate_before = channels(sim)[guard.row].rate_bits_per_s
    change(channels(sim)[guard.row], rate_bits_per_s, latency_ns)
    state_stream.send_on(sim, guard, rate_before)
    if replication.state == PROTECTED and is_sending:
        ack_ns = state_stream.ack_arrival_ns(sim, guard)
        replication.step = at(sim, ack_ns, EventKind.CHANNEL, ENTITY, on_acknowledgement, guard.row)
        if not replication.is_cut:
            watch(sim, guard, replication)
