"""A stream of SIP messages that belong together: one scenario attempt, as messages under way know it.

It is kept as long as anything refers to it: one of its ends, a message under way, or a timer.
"""

from typing import Annotated

from vftsim.kernel import Record, Sim, Table, part
from vftsim.workloads.sip.messages import DEMANDS_PER_ATTEMPT


class Stream(Record):
    """What a stream's messages ask of a server.

    ``number`` counts streams from 1 and orders what happens to them at one instant; ``demands`` are the relative CPU
    demands of the messages that the server will receive; ``uses`` counts what refers to the stream.
    """

    number: int
    uses: int
    demands: Annotated[list[float], DEMANDS_PER_ATTEMPT]


streams = Table("sip_streams", Stream, 1 << 19, "lower the load, or let user agents give up earlier")


@part
def keep(sim: Sim, stream: int) -> None:
    """Refer to a stream."""
    streams(sim)[stream].uses += 1


@part
def let_go(sim: Sim, stream: int) -> None:
    """Refer to a stream no longer; it is freed when nothing does."""
    stream_record = streams(sim)[stream]
    stream_record.uses -= 1
    if stream_record.uses == 0:
        streams.free(sim, stream)
