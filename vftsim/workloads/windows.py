"""Messages over TCP in windows: slow start.

Rule (RFC 5681, 3.1 and 4.1; constants of Linux):

* A connection sends ``initial_window`` segments of 1460 bytes (10: RFC 6928), and the next window when these are
  acknowledged: twice as much.  The window grows by what is acknowledged if half of it was under way (Linux,
  ``tcp_is_cwnd_limited``), up to :data:`LARGEST_WINDOW_BYTES` that the receiver takes.
* A connection that is kept open keeps its window, and begins with the first one again when it has been idle for
  longer than the time-out of retransmission, since the last of it left.  So it does after a time-out (simplification:
  RFC 5681, 3.1, has one segment then).  Calls of a service go by the one that was used last (Go, ``net/http``);
  assumption: each of those that overlap has one with that window.
* Each window passes the port of its guest, and a guard holds it as any output; so it does acknowledgements by a guest.
  Where each round trip waits for a state, so does each window.
* Where the next window keeps the line busy for as long as the last round trip took, acknowledgements come while it
  is sent: the line is the limit from there on, and the rest of a message follows at once.

A message is one packet all the time.  It carries a window, comes back as its acknowledgement, and carries the next;
the last is the message to whom it is for.  Where it is lost, be it as an acknowledgement that finds no host, so is what
is left, and whoever waits asks again; where a backup issues a copy of it, what is left follows that.

Simplifications: a window is one packet to host and guest, and its acknowledgements are one; that of the window's first
segment counts, which a client sends while the rest arrives.  It cannot come before the rest has: a window that takes
longer than the network's latency is followed so much later, once.  Assumption: the CPU time of later windows and of
acknowledgements in the guest's TCP is within that of the message.  Left out: losses by slow start itself (a line's
queue that is full lets messages wait), congestion avoidance, delayed acknowledgements.
"""

from vftsim.kernel import Record, Sim
from vftsim.platform.io.host_cards import cards, return_to_host, send_to_host
from vftsim.platform.io.link import backlog_ns, links, transmission_ns
from vftsim.platform.io.packet import FULL_FRAME_BYTES, Packet, flows, packets, ports, window_bytes
from vftsim.platform.io.ring import wait_for_slot
from vftsim.platform.protection.guard import put_out

LARGEST_WINDOW_BYTES = 3 << 20
"""Of a receiver: half of its buffer (Linux: ``tcp_rmem`` of 6 MiB at most, ``tcp_adv_win_scale`` 1)."""

IDLE_NS = 200_000_000
"""By which the time-out is longer than a round trip that does not vary (Linux, ``TCP_RTO_MIN``)."""

ACKNOWLEDGEMENT_BYTES = 90
"""On the wire: 20 IP, 32 TCP with time stamp, 18 Ethernet, 20 preamble and gap."""


class Window(Record):
    """What one end of a connection that is kept open may send at once.

    It used it last at ``used_ns``, and hears ``round_ns`` later that this has come.
    """

    size_bytes: int
    used_ns: int
    round_ns: int


def open_bytes(sim: Sim, window: Window) -> int:
    """Return how much may leave at once; 0: the first window."""
    return open_at(window, sim.now_ns)


def open_at(window: Window, time_ns: int) -> int:
    """Return how much what leaves at an instant may be; 0: the first window."""
    return window.size_bytes if time_ns - window.used_ns <= window.round_ns + IDLE_NS else 0


def forget_window(window: Window) -> None:
    """Begin with the first window again: a message was lost."""
    window.size_bytes = 0


def widen_sender(sim: Sim, window: Window, packet: int, round_ns: int, is_guest: bool) -> None:
    """Let a packet that is about to leave a client, or a guest for another one, use its sender's window.

    That hears of it after the line's time and latency, or after ``round_ns`` as of what went before, if that is longer.
    What waits at its sender because the line's queue is full is taken as if that let it leave.
    """
    packet_record = packets(sim)[packet]
    port = ports(sim)[packet_record.port]
    if port.first_window_bytes == 0:
        return
    card = cards(sim)[port.card]
    link = links(sim)[card.from_host if is_guest else card.to_host]
    # Between guests there are two links each way.
    ways_ns = (4 if is_guest else 2) * link.latency_ns
    path_ns = backlog_ns(sim, link) + transmission_ns(link, packet_record.size_bytes) + ways_ns
    widen(sim, window, packet, max(round_ns, path_ns))


def widen(sim: Sim, window: Window, packet: int, round_ns: int) -> None:
    """Take note that a packet uses a window, which grows by it: nothing else is sent before it is acknowledged."""
    packet_record = packets(sim)[packet]
    first_bytes = ports(sim)[packet_record.port].first_window_bytes
    # Most connections never send more than the first window.
    if first_bytes == 0 or (window.size_bytes == 0 and 2 * packet_record.size_bytes <= first_bytes):
        return
    # A receiver takes note when the packet has come, on a slow line long after it left.
    present_bytes = max(open_at(window, packet_record.sent_ns), first_bytes)
    if 2 * packet_record.size_bytes > present_bytes:
        present_bytes = min(present_bytes + packet_record.size_bytes, LARGEST_WINDOW_BYTES)
    window.size_bytes = present_bytes
    window.used_ns = sim.now_ns
    window.round_ns = round_ns


def begin_answer(sim: Sim, packet: int) -> None:
    """Let the packet of a message to a client be its first window."""
    answer = packets(sim)[packet]
    answer.sent_ns = sim.now_ns
    if 0 < ports(sim)[answer.port].first_window_bytes < answer.size_bytes:
        begin_message(sim, packet, window_bytes(sim, flows(sim)[answer.flow], packet))


def begin_message(sim: Sim, packet: int, present_bytes: int) -> None:
    """Let the packet of a message be its first window: ``present_bytes``, 0 on a new connection."""
    message = packets(sim)[packet]
    first_bytes = ports(sim)[message.port].first_window_bytes
    if 0 < first_bytes < message.size_bytes:
        message.left_bytes = message.size_bytes
        carry(sim, message, max(present_bytes, first_bytes))


def carry(sim: Sim, message: Packet, most_bytes: int) -> None:
    """Let a packet carry so much of what is left of its message."""
    message.size_bytes = min(message.left_bytes, most_bytes)
    message.left_bytes -= message.size_bytes
    message.acked_bytes = 0
    message.sent_ns = sim.now_ns


def carry_next(sim: Sim, message: Packet) -> None:
    """Let the acknowledgement of a window carry the next, or all that is left where the line is the limit."""
    most_bytes = min(2 * message.acked_bytes, message.left_bytes)
    link = links(sim)[cards(sim)[ports(sim)[message.port].card].from_host]
    if transmission_ns(link, most_bytes) >= sim.now_ns - message.sent_ns:
        most_bytes = message.left_bytes
    carry(sim, message, most_bytes)


def acknowledge(message: Packet) -> None:
    """Let a packet acknowledge what it carries."""
    message.acked_bytes = message.size_bytes
    message.size_bytes = ACKNOWLEDGEMENT_BYTES


def acknowledge_to_host(sim: Sim, packet: int) -> None:
    """Let a client acknowledge a window: its first segment came before the rest."""
    message = packets(sim)[packet]
    link = links(sim)[cards(sim)[ports(sim)[message.port].card].from_host]
    ahead_ns = transmission_ns(link, message.size_bytes) - transmission_ns(link, FULL_FRAME_BYTES)
    acknowledge(message)
    return_to_host(sim, packet, ahead_ns)


def use_next(sim: Sim, window: Window, packet: int, is_guest: bool) -> None:
    """Let the acknowledgement of a window, about to go back to where it came from, carry the connection's next one."""
    message = packets(sim)[packet]
    # Read before the next one leaves.
    round_ns = sim.now_ns - message.sent_ns
    carry_next(sim, message)
    widen_sender(sim, window, packet, round_ns, is_guest)


def goes_on_at_client(sim: Sim, packet: int) -> bool:
    """Answer a window or an acknowledgement at a client; False if the packet is a message, as most are."""
    message = packets(sim)[packet]
    if message.acked_bytes > 0:
        carry_next(sim, message)
        send_to_host(sim, packet)
    elif message.left_bytes > 0:
        acknowledge_to_host(sim, packet)
    else:
        return False
    return True


def goes_on_in_guest(sim: Sim, packet: int) -> bool:
    """Answer a window or an acknowledgement in a guest; False if the packet is a message, as most are."""
    message = packets(sim)[packet]
    if message.acked_bytes > 0:
        carry_next(sim, message)
    elif message.left_bytes > 0:
        acknowledge(message)
    else:
        return False
    put_out_or_wait(sim, packet)
    return True


def put_out_or_wait(sim: Sim, packet: int) -> None:
    """Send a window or an acknowledgement from a guest, when there is room."""
    port = ports(sim)[packets(sim)[packet].port]
    if not put_out(sim, port, packet):
        wait_for_slot(sim, port, packet, 0)
