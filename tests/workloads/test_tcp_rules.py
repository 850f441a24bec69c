"""The sender of bulk TCP against the text of its RFCs, in segments: what halves, what grows, what is waited for."""

from types import SimpleNamespace

import pytest

from vftsim.workloads.tcp import connection as tcp

MS = 1_000_000
BULK = SimpleNamespace(
    window_segments=1000,
    initial_window=10,
    first_rto_ns=1000 * MS,
    min_rto_ns=1,
    most_segments=1,
    delayed_ack_ns=40 * MS,
)
SIM = SimpleNamespace(now_ns=0)


def connection(**values):
    """A sender with 20 segments under way, which knows no round trip."""
    made = SimpleNamespace(
        una=100,
        nxt=120,
        window=20,
        threshold=1000,
        credit=0,
        duplicates=0,
        is_recovering=False,
        is_backing_off=False,
        recover=0,
        resend=-1,
        rtt_ns=0,
        deviation_ns=0,
        rto_ns=1000 * MS,
        due_ns=0,
        timer=0,
        timeouts=0,
        recoveries=0,
        retransmitted=0,
        end_ns=1 << 60,
    )
    made.__dict__.update(values)
    return made


def duplicate(client, count=1):
    for _ in range(count):
        tcp.take_acknowledgement(SIM, BULK, client, client.una, -1, 0)


def acknowledge(client, count, sent=0):
    """So many more segments have arrived, and so many more were sent before; no round trip is measured."""
    client.nxt += sent
    tcp.acknowledged(SIM, client, client.una + count, -1, BULK)


def test_the_third_duplicate_acknowledgement_sends_again():
    """RFC 5681, 3.2, 2 to 4: not the second; half of what is under way, and the three that have left the network."""
    client = connection()
    duplicate(client, 2)
    assert (client.is_recovering, client.resend, client.window) == (False, -1, 20)
    duplicate(client)
    assert (client.is_recovering, client.resend, client.recoveries) == (True, 100, 1)
    assert (client.threshold, client.window) == (10, 13)
    duplicate(client, 4)
    assert client.window == 17, "each further one inflates by a segment"


@pytest.mark.parametrize(("under_way", "threshold"), [(1, 2), (3, 2), (4, 2), (6, 3), (7, 3), (40, 20)])
def test_the_threshold_is_half_of_what_was_under_way_and_two_at_least(under_way: int, threshold: int):
    """RFC 5681, (4): ssthresh = max(FlightSize / 2, 2 SMSS), after a loss and after a time-out."""
    lost, late = connection(nxt=100 + under_way), connection(nxt=100 + under_way, due_ns=1)
    duplicate(lost, 3)
    assert lost.threshold == threshold
    late_sim = SimpleNamespace(now_ns=5)
    assert tcp.is_timed_out(late_sim, late, 0)
    assert (late.threshold, late.window, late.nxt) == (threshold, 1, 100)


@pytest.mark.parametrize(("sent", "window"), [(120, 2), (121, 2), (125, 6), (140, 10)])
def test_recovery_ends_at_the_threshold_when_all_is_acknowledged(sent: int, window: int):
    """RFC 6582, 3.2: a partial acknowledgement sends the next missing one, the full one deflates.

    To min(ssthresh, max(FlightSize, SMSS) + SMSS): one segment alone would wait for a delayed acknowledgement.
    """
    client = connection()
    duplicate(client, 3)
    acknowledge(client, 5)
    assert (client.is_recovering, client.resend, client.window) == (True, 105, 13 - 5 + 1)
    client.nxt = sent
    acknowledge(client, 15)
    assert client.is_recovering is False
    assert client.window == window


def test_below_the_threshold_the_window_grows_by_what_is_acknowledged_and_above_by_one_a_window():
    """RFC 5681, 3.1 (2), with the count of RFC 3465: 4 + 4 = 8 at the threshold, then nine in 8 and ten in 9."""
    client = connection(window=4, threshold=8, nxt=10_000)
    sizes = []
    for _ in range(4 + 8 + 9):
        acknowledge(client, 1)
        sizes.append(client.window)
    assert sizes == [5, 6, 7, 8, *[8] * 7, 9, *[9] * 8, 10]


def test_a_window_that_crosses_the_threshold_in_one_step_counts_the_rest():
    client = connection(window=6, threshold=8, nxt=10_000)
    acknowledge(client, 5)
    assert (client.window, client.credit) == (8, 3)


@pytest.mark.parametrize(
    ("trips_ms", "srtt_ms", "rttvar_ms"),
    [((80,), 80, 40), ((80, 80), 80, 30), ((80, 160), 90, 50), ((80, 16), 72, 46), ((80, 160, 80), 88.75, 40)],
)
def test_the_time_out_follows_round_trips_and_their_deviation(trips_ms, srtt_ms, rttvar_ms):
    """RFC 6298, 2.2 and 2.3: R, R/2; then RTTVAR by 1/4 against the SRTT before, SRTT by 1/8; RTO = SRTT + 4 RTTVAR."""
    client = connection()
    for trip_ms in trips_ms:
        tcp.measure(BULK, client, trip_ms * MS)
    assert client.rtt_ns == srtt_ms * MS
    assert client.deviation_ns == rttvar_ms * MS
    assert client.rto_ns == (srtt_ms + 4 * rttvar_ms) * MS


def test_a_time_out_that_has_become_shorter_is_noticed_when_it_is_due(monkeypatch):
    """RFC 6298, 5.3: each acknowledgement restarts the timer with the present time-out, and that of 1 s is no more."""
    planned_ns = []
    monkeypatch.setattr(tcp, "at", lambda sim, due_ns, *what: planned_ns.append(due_ns) or len(planned_ns))
    client = connection(row=1, look_ns=0)
    for rto_ms in (1000, 200, 400):
        client.rto_ns = rto_ms * MS
        tcp.set_timer(SIM, client, 0)
    # The last is looked for by the event of the second, which comes early.
    assert planned_ns == [1000 * MS, 200 * MS]
    assert (client.timer, client.due_ns) == (2, 400 * MS)


def test_the_time_out_has_a_least_and_a_longest_value_and_doubles():
    """RFC 6298, 2.4, 2.5 and 5.5."""
    client = connection()
    tcp.measure(SimpleNamespace(min_rto_ns=200 * MS), client, MS)
    assert client.rto_ns == 200 * MS
    waits_ms = []
    for _ in range(10):
        client.due_ns = client.nxt = 1
        assert tcp.is_timed_out(SimpleNamespace(now_ns=5), client, 0)
        waits_ms.append(client.rto_ns // MS)
    assert waits_ms == [400, 800, 1600, 3200, 6400, 12_800, 25_600, 51_200, 60_000, 60_000]
    tcp.measure(BULK, client := connection(), 50_000 * MS)
    assert client.rto_ns == 60_000 * MS


def test_further_time_outs_of_a_segment_leave_the_threshold():
    """RFC 5681, 3.1: held constant when the timer has sent the segment again already; halved for another one."""
    client, late = connection(), SimpleNamespace(now_ns=5)
    for _ in range(3):
        client.due_ns, client.nxt = 1, max(client.nxt, client.una + 1)
        assert tcp.is_timed_out(late, client, 0)
        assert (client.threshold, client.window) == (10, 1)
    acknowledge(client, 6, sent=6)
    client.due_ns, client.nxt = 1, client.una + 8
    assert tcp.is_timed_out(late, client, 0)
    assert client.threshold == 4


def test_a_loss_within_what_a_time_out_sends_again_is_no_second_loss():
    """RFC 6582, 3.2, 2 and 4: duplicates of what was sent before the time-out do not halve the window once more."""
    client = connection(due_ns=1)
    tcp.is_timed_out(SimpleNamespace(now_ns=5), client, 0)
    assert client.recover == 120
    client.nxt = 102
    duplicate(client, 3)
    assert client.is_recovering is False
    assert client.resend == -1


def data(client, first, count=1, stamp_ns=0):
    return tcp.take_data(SIM, client, first * 256 + count, stamp_ns, BULK)


def test_the_stamp_of_what_begins_up_to_the_last_acknowledgement_is_echoed():
    """RFC 7323, 4.3: of the first of two that wait, not of one above a gap, and of one that a time-out sends again."""
    client = SimpleNamespace(expected=10, beyond=[0] * 128, beyond_count=0, pending=0, echo_ns=0)
    echoed = []
    for first, stamp_ns, acknowledges in ((10, 5, False), (11, 6, True), (14, 7, True), (12, 8, True), (10, 9, True)):
        data(client, first, stamp_ns=stamp_ns)
        echoed.append(client.echo_ns)
        client.pending *= not acknowledges
    assert echoed == [5, 5, 5, 8, 9]
    data(client, 11, stamp_ns=4)
    assert client.echo_ns == 9, "a stamp that was overtaken is older than what is known"


def test_every_second_segment_is_acknowledged_and_what_is_out_of_order_at_once():
    """RFC 5681, 4.2: at least every second full segment; at once above a gap, and when the gap is filled."""
    client = SimpleNamespace(expected=0, beyond=[0] * 128, beyond_count=0, pending=0, echo_ns=0)
    assert [data(client, 0)] == [False]
    assert data(client, 1) is True
    client.pending = 0
    assert data(client, 3) is True
    assert (client.expected, client.beyond_count) == (2, 1)
    assert data(client, 2) is True
    assert (client.expected, client.beyond_count) == (4, 0)
    assert data(client, 1) is True, "what has come already is acknowledged at once"
