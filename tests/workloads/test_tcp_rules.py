"""The sender of bulk TCP against the text of its RFCs, in segments: what halves, what grows, what is waited for."""

from types import SimpleNamespace

import pytest

from vftsim.workloads.tcp import receiver, sender

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


def duplicate(own, count=1):
    for _ in range(count):
        sender.take_acknowledgement(SIM, BULK, own, own.una, -1, 0)


def acknowledge(own, count, sent=0):
    """So many more segments have arrived, and so many more were sent before; no round trip is measured."""
    own.nxt += sent
    sender.acknowledged(SIM, BULK, own, own.una + count, -1)


def test_the_third_duplicate_acknowledgement_sends_again():
    """RFC 5681, 3.2, 2 to 4: not the second; half of what is under way, and the three that have left the network."""
    own = connection()
    duplicate(own, 2)
    assert (own.is_recovering, own.resend, own.window) == (False, -1, 20)
    duplicate(own)
    assert (own.is_recovering, own.resend, own.recoveries) == (True, 100, 1)
    assert (own.threshold, own.window) == (10, 13)
    duplicate(own, 4)
    assert own.window == 17, "each further one inflates by a segment"


@pytest.mark.parametrize(("under_way", "threshold"), [(1, 2), (3, 2), (4, 2), (6, 3), (7, 3), (40, 20)])
def test_the_threshold_is_half_of_what_was_under_way_and_two_at_least(under_way: int, threshold: int):
    """RFC 5681, (4): ssthresh = max(FlightSize / 2, 2 SMSS), after a loss and after a time-out."""
    lost, late = connection(nxt=100 + under_way), connection(nxt=100 + under_way, due_ns=1)
    duplicate(lost, 3)
    assert lost.threshold == threshold
    late_sim = SimpleNamespace(now_ns=5)
    assert sender.is_timed_out(late_sim, late, 0)
    assert (late.threshold, late.window, late.nxt) == (threshold, 1, 100)


@pytest.mark.parametrize(("sent", "window"), [(120, 2), (121, 2), (125, 6), (140, 10)])
def test_recovery_ends_at_the_threshold_when_all_is_acknowledged(sent: int, window: int):
    """RFC 6582, 3.2: a partial acknowledgement sends the next missing one, the full one deflates.

    To min(ssthresh, max(FlightSize, SMSS) + SMSS): one segment alone would wait for a delayed acknowledgement.
    """
    own = connection()
    duplicate(own, 3)
    acknowledge(own, 5)
    assert (own.is_recovering, own.resend, own.window) == (True, 105, 13 - 5 + 1)
    own.nxt = sent
    acknowledge(own, 15)
    assert own.is_recovering is False
    assert own.window == window


def test_below_the_threshold_the_window_grows_by_what_is_acknowledged_and_above_by_one_a_window():
    """RFC 5681, 3.1 (2), with the count of RFC 3465: 4 + 4 = 8 at the threshold, then nine in 8 and ten in 9."""
    own = connection(window=4, threshold=8, nxt=10_000)
    sizes = []
    for _ in range(4 + 8 + 9):
        acknowledge(own, 1)
        sizes.append(own.window)
    assert sizes == [5, 6, 7, 8, *[8] * 7, 9, *[9] * 8, 10]


def test_a_window_that_crosses_the_threshold_in_one_step_counts_the_rest():
    own = connection(window=6, threshold=8, nxt=10_000)
    acknowledge(own, 5)
    assert (own.window, own.credit) == (8, 3)


@pytest.mark.parametrize(
    ("trips_ms", "srtt_ms", "rttvar_ms"),
    [((80,), 80, 40), ((80, 80), 80, 30), ((80, 160), 90, 50), ((80, 16), 72, 46), ((80, 160, 80), 88.75, 40)],
)
def test_the_time_out_follows_round_trips_and_their_deviation(trips_ms, srtt_ms, rttvar_ms):
    """RFC 6298, 2.2 and 2.3: R, R/2; then RTTVAR by 1/4 against the SRTT before, SRTT by 1/8; RTO = SRTT + 4 RTTVAR."""
    own = connection()
    for trip_ms in trips_ms:
        sender.measure(BULK, own, trip_ms * MS)
    assert own.rtt_ns == srtt_ms * MS
    assert own.deviation_ns == rttvar_ms * MS
    assert own.rto_ns == (srtt_ms + 4 * rttvar_ms) * MS


def test_a_time_out_that_has_become_shorter_is_noticed_when_it_is_due(monkeypatch):
    """RFC 6298, 5.3: each acknowledgement restarts the timer with the present time-out, and that of 1 s is no more."""
    planned_ns = []
    monkeypatch.setattr(sender, "at", lambda sim, due_ns, *what: planned_ns.append(due_ns) or len(planned_ns))
    own = connection(row=1, look_ns=0)
    for rto_ms in (1000, 200, 400):
        own.rto_ns = rto_ms * MS
        sender.set_timer(SIM, own, 0)
    # The last is looked for by the event of the second, which comes early.
    assert planned_ns == [1000 * MS, 200 * MS]
    assert (own.timer, own.due_ns) == (2, 400 * MS)


def test_the_time_out_has_a_least_and_a_longest_value_and_doubles():
    """RFC 6298, 2.4, 2.5 and 5.5."""
    own = connection()
    sender.measure(SimpleNamespace(min_rto_ns=200 * MS), own, MS)
    assert own.rto_ns == 200 * MS
    waits_ms = []
    for _ in range(10):
        own.due_ns = own.nxt = 1
        assert sender.is_timed_out(SimpleNamespace(now_ns=5), own, 0)
        waits_ms.append(own.rto_ns // MS)
    assert waits_ms == [400, 800, 1600, 3200, 6400, 12_800, 25_600, 51_200, 60_000, 60_000]
    sender.measure(BULK, own := connection(), 50_000 * MS)
    assert own.rto_ns == 60_000 * MS


def test_further_time_outs_of_a_segment_leave_the_threshold():
    """RFC 5681, 3.1: held constant when the timer has sent the segment again already; halved for another one."""
    own, late = connection(), SimpleNamespace(now_ns=5)
    for _ in range(3):
        own.due_ns, own.nxt = 1, max(own.nxt, own.una + 1)
        assert sender.is_timed_out(late, own, 0)
        assert (own.threshold, own.window) == (10, 1)
    acknowledge(own, 6, sent=6)
    own.due_ns, own.nxt = 1, own.una + 8
    assert sender.is_timed_out(late, own, 0)
    assert own.threshold == 4


def test_a_loss_within_what_a_time_out_sends_again_is_no_second_loss():
    """RFC 6582, 3.2, 2 and 4: duplicates of what was sent before the time-out do not halve the window once more."""
    own = connection(due_ns=1)
    sender.is_timed_out(SimpleNamespace(now_ns=5), own, 0)
    assert own.recover == 120
    own.nxt = 102
    duplicate(own, 3)
    assert own.is_recovering is False
    assert own.resend == -1


def data(own, first, count=1):
    return receiver.take_data(SIM, BULK, own, first * 256 + count, 0)


def test_every_second_segment_is_acknowledged_and_what_is_out_of_order_at_once():
    """RFC 5681, 4.2: at least every second full segment; at once above a gap, and when the gap is filled."""
    own = SimpleNamespace(expected=0, beyond=[0] * 128, beyond_count=0, pending=0, echo_ns=0)
    assert [data(own, 0)] == [False]
    assert data(own, 1) is True
    own.pending = 0
    assert data(own, 3) is True
    assert (own.expected, own.beyond_count) == (2, 1)
    assert data(own, 2) is True
    assert (own.expected, own.beyond_count) == (4, 0)
    assert data(own, 1) is True, "what has come already is acknowledged at once"
