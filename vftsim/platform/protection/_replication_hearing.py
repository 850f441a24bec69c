"""What backup and primary hear of each other under mechanisms that send states."""

from vftsim.kernel import Sim, part
from vftsim.platform.protection import state_stream
from vftsim.platform.protection._replication_records import Replication, replications
from vftsim.platform.protection.channel import channels
from vftsim.platform.protection.detection import last_heard_ns
from vftsim.platform.protection.guard import Guard
from vftsim.platform.protection.state_stream import state_streams


@part
def has_come_back(sim: Sim, guard: Guard, replication: Replication) -> bool:
    """Tell whether the acknowledgement that is due now has come through; a dead backup may have sent it before."""
    lost_ns = state_streams(sim)[guard.row].lost_ns
    if replication.is_backup_dead:
        return state_stream.arrival_ns(sim, guard) <= lost_ns
    return sim.now_ns <= lost_ns


@part
def heard_ns(sim: Sim, guard: Guard) -> int:
    """Return when the backup hears of the primary for the last time if nothing leaves it from now on."""
    replication = replications(sim)[guard.row]
    if replication.heartbeat_ns == 0:
        return state_stream.last_byte_ns(sim, guard)
    sent_ns = min(sim.now_ns, state_streams(sim)[guard.row].lost_ns)
    return last_heard_ns(sent_ns, replication.heartbeat_ns, 0) + channels(sim)[guard.row].latency_ns
