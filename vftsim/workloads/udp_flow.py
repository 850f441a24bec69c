"""A flow of numbered datagrams as both its ends see it: the client that sends, and the receiver's statistics.

The receiver counts as iperf 2's server does (``reporter_handle_packet``), when it reads:

* **jitter** (RFC 1889, 6.3.1): J += (|D| - J) / 16, D the difference of the transit times of successive datagrams;
* **loss**: numbers that were skipped, less datagrams that come late (out of order); **total**: the highest number.
"""

from vftsim.kernel import Chain, Fifo, Record, Sim, Table, part


class UdpFlow(Record):
    """One client's datagrams.

    Sender: ``due_ns`` is when the next datagram should go; it may be behind.  Receiver: statistics of what was read;
    ``difference_ns`` is the sum of all |D|.  Socket at the server: datagrams in ``socket``, the one being read in
    ``packet``; ``link`` chains the flows of a program, ``dropped`` counts for want of room in the socket.
    """

    row: int
    bulk: int
    station: int
    link: int
    first_ns: int
    end_ns: int
    due_ns: int
    sent: int
    program: int
    socket: Fifo
    packet: int
    dropped: int
    received: int
    highest: int
    skipped: int
    late: int
    transit_ns: int
    jitter_ns: float
    difference_ns: int
    first_read_ns: int
    last_read_ns: int


udp_flows = Table("udp_flows", UdpFlow, 1 << 14, "use fewer clients")
flow_list = Chain(udp_flows, "link")


@part
def note_read(sim: Sim, flow: UdpFlow, number: int, sent_ns: int) -> None:
    """Take a datagram into the receiver's statistics."""
    transit_ns = sim.now_ns - sent_ns
    if flow.received > 0:
        difference_ns = abs(transit_ns - flow.transit_ns)
        flow.difference_ns += difference_ns
        flow.jitter_ns += (difference_ns - flow.jitter_ns) / 16.0
    else:
        flow.first_read_ns = sim.now_ns
    flow.transit_ns = transit_ns
    flow.last_read_ns = sim.now_ns
    flow.received += 1
    if number > flow.highest:
        flow.skipped += number - flow.highest - 1
        flow.highest = number
    else:
        flow.late += 1
