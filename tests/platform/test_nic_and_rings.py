"""Receive ring, interrupt coalescing, rings that notify on request, rings served in turn: by hand, in both engines."""

import pytest

from vftsim.platform.io import nic as nic_module
from vftsim.platform.io.stage import stages

from .io_lab import LOST, TAKEN, WENT_ON, IoLab, deliver_one


@pytest.fixture(params=["simpy", "compiled"])
def engine(request):
    return request.param


def test_interrupt_for_every_packet_and_polling_while_busy(engine):
    lab = IoLab(engine, 50).with_nic([100, 130, 200, 500]).run(10_000)
    assert lab.batches() == [(100, [100]), (150, [130]), (200, [200]), (500, [500])]
    assert lab.interrupts() == 2  # 130 and 200 are found by polling


def test_coalescing_after_time_or_count(engine):
    """Time 40: 100 waits to 140 and takes 130 along; 300, 310, 320 reach the count of 3 at 320."""
    lab = IoLab(engine, 1)
    lab.with_nic([100, 130, 300, 310, 320, 400], coalescing_time=40, coalescing_packets=3).run(10_000)
    assert lab.batches() == [(140, [100, 130]), (320, [300, 310, 320]), (440, [400])]
    assert lab.interrupts() == 3


def test_full_ring_drops_in_order_of_arrival(engine):
    """Two descriptors, held until 200: 110 fits, 120 and 130 do not; fresh ones serve 210."""
    lab = IoLab(engine, 100).with_nic([100, 110, 120, 130, 210], receive_ring_packets=2).run(10_000)
    assert [sent_ns for _, _, sent_ns in lab.noted(LOST)] == [120, 130]
    assert lab.batches() == [(100, [100]), (200, [110]), (300, [210])]
    assert lab.engine.rows(nic_module.nics)[lab.nic].admitted == 5
    assert lab.dropped()["eth0", "receive ring full"] == 2


def test_sources_are_merged_by_time_and_ties_go_to_the_first(engine):
    lab = IoLab(engine, 1).with_nic([10, 20, 20, 20, 30], [], [5, 20, 40]).run(10_000)
    assert [sent_ns for _, sent in lab.batches() for sent_ns in sent] == [5, 10, 20, 20, 20, 20, 30, 40]
    # Streams count within what a source returns at once, three of a kind at most: 10, 20, 20 | 20, 30.
    taken = lab.noted(TAKEN)
    assert [stream for time_ns, stream, sent_ns in taken if sent_ns == 20] == [1, 2, 0, 1]


def test_packets_that_a_network_delivers_raise_interrupts_too(engine):
    """Coalescing time 40, count 2: delivered at 100 and 110 -> interrupt at 110; at 300 alone -> 340."""
    lab = IoLab(engine, 1).with_nic(coalescing_time=40, coalescing_packets=2)
    lab.io.start()
    for time_ns in (100, 110, 300):
        lab.engine.run(time_ns)
        lab.engine.call(deliver_one, lab.nic)
    lab.engine.run(1_000)
    assert lab.batches() == [(110, [100, 110]), (340, [300])]
    assert lab.interrupts() == 2


def test_a_nic_that_nobody_looks_at_takes_in_all_that_comes(engine):
    """The first packet keeps the driver busy for longer than a feed of arrivals lasts."""
    count = 3 * nic_module.COMING
    lab = IoLab(engine, 10 * count).with_nic(range(count), receive_ring_packets=4)
    lab.run(10 * count - 1)
    assert lab.engine.rows(nic_module.nics)[lab.nic].admitted == count
    assert lab.dropped()["eth0", "receive ring full"] == count - 4


def test_ring_notifies_only_when_asked(engine):
    lab = IoLab(engine, 10).with_rings(3)
    lab.io.start()
    assert [lab.send(0, n) for n in range(4)] == [True, True, True, False]
    assert lab.stage_batches() == 1, "one event; the other packets are found by polling"
    assert lab.occupied() == [3], "slots stay taken until the batch is released"
    lab.engine.run(15)
    assert lab.noted(WENT_ON) == [(10, lab.rings[0], 3)]
    assert lab.batches() == [(0, [0]), (10, [1, 2, 3])]
    lab.engine.run(100)
    assert lab.occupied() == [0]


def test_rings_are_served_in_turn(engine):
    lab = IoLab(engine, 10).with_rings(8, 8, budget=4)
    for ring, number in ((0, 0), (0, 1), (0, 2), (1, 0)):
        assert lab.send(ring, number)
    lab.io.start()
    assert lab.send(1, 1), "the stage asked for an event: this is it"
    taken = [(stream - lab.rings[0], number) for _, stream, number in lab.noted(TAKEN)]
    assert taken == [(0, 0), (1, 0), (0, 1), (1, 1)]
    lab.engine.run(41)
    assert lab.occupied() == [1, 0]


def test_a_stage_of_many_rings_looks_no_further_than_at_the_last_packet():
    """A driver domain of two hundred guests would look at most of its rings for nothing."""
    lab = IoLab("simpy", 10).with_rings(*40 * [8], budget=4)
    looked, names = [], lab.engine._namespace
    pop = names["rings_next_ring__pop"]
    names["rings_next_ring__pop"] = lambda *arguments: looked.append(1) or pop(*arguments)
    lab.io.start()
    for ring in (0, 1, 3, 0, 2):
        assert lab.send(ring, ring)
    lab.engine.run(20_000)
    assert [stream - lab.rings[0] for _, stream, _ in lab.noted(TAKEN)] == [0, 1, 2, 3, 0]
    assert lab.engine.rows(stages)[lab.stage].waiting == 0
    assert len(looked) == 4 + 37, "to ring 3 for a batch, on to ring 0 for the last packet, not once round for nothing"
