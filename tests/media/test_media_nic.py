"""Receive ring and interrupt coalescing, by hand."""

from vftsim.engine import Clock, EventKind
from vftsim.net.nic import Nic, NicSpec
from vftsim.net.rings import DropLog, Packet, Ring, RingSet


class Sink:
    def __init__(self):
        self.dropped_at = []

    def dropped(self, packet, now_ns):
        self.dropped_at.append(packet.sent_ns)


class Poller:
    """Takes everything at each kick and holds it for ``hold_ns``."""

    def __init__(self, clock, nic, hold_ns):
        self.clock, self.nic, self.hold_ns = clock, nic, hold_ns
        self.log = []

    def kick(self):
        batch = self.nic.take(64)
        self.log.append((self.clock.now_ns, [p.sent_ns for p in batch]))
        self.clock.after(self.hold_ns, EventKind.CPU, 0, self.finish, batch)

    def finish(self, batch):
        self.nic.release(batch)
        following = self.nic.take(64)
        if following:
            self.log.append((self.clock.now_ns, [p.sent_ns for p in following]))
            self.clock.after(self.hold_ns, EventKind.CPU, 0, self.finish, following)
        else:
            self.nic.arm(self)


def run(arrivals, hold_ns, **spec):
    clock, sink = Clock(), Sink()
    nic = Nic(clock, "eth0", NicSpec(**spec), 0, DropLog(clock))
    nic.attach([iter([Packet(sink, None, None, 0, t) for t in arrivals])])
    poller = Poller(clock, nic, hold_ns)
    nic.arm(poller)
    clock.run(10_000)
    nic.catch_up()
    return poller.log, nic, sink


def test_interrupt_for_every_packet_and_polling_while_busy():
    log, nic, _ = run([100, 130, 200, 500], hold_ns=50)
    assert log == [(100, [100]), (150, [130]), (200, [200]), (500, [500])]
    assert nic.interrupts == 2  # 130 and 200 are found by polling


def test_coalescing_after_time_or_count():
    """Time 40: 100 waits to 140 and takes 130 along; 300, 310, 320 reach the count of 3 at 320."""
    log, nic, _ = run([100, 130, 300, 310, 320, 400], 1, coalescing_time_ns=40, coalescing_packets=3)
    assert log == [(140, [100, 130]), (320, [300, 310, 320]), (440, [400])]
    assert nic.interrupts == 3


def test_full_ring_drops_in_order_of_arrival():
    """Two descriptors, held until 200: 110 fits, 120 and 130 do not; fresh ones serve 210."""
    log, nic, sink = run([100, 110, 120, 130, 210], hold_ns=100, receive_ring_packets=2)
    assert sink.dropped_at == [120, 130]
    assert log == [(100, [100]), (200, [110]), (300, [210])]
    assert nic.admitted == 5
    assert nic.drops.counts == {("eth0", "receive ring full"): 2}


def test_ring_notifies_only_when_asked():
    class Counter:
        kicks = 0

        def kick(self):
            self.kicks += 1

    ring, consumer = Ring("r", 3), Counter()
    packets = [Packet(None, None, None, 0, n) for n in range(5)]
    ring.arm(consumer)
    assert [ring.push(p) for p in packets[:4]] == [True, True, True, False]
    assert consumer.kicks == 1
    batch = ring.take(2)
    assert not ring.push(packets[4]), "slots stay taken until the batch is released"
    woken = []
    ring.waiting.append(lambda: woken.append(ring.push(packets[4])))
    ring.release(batch)
    assert woken == [True]
    assert ring.occupied == 2


def test_ring_set_serves_in_turn():
    class Port:
        def __init__(self, ring):
            self.transmit_ring = ring

    rings = [Ring("a", 8), Ring("b", 8)]
    both = RingSet()
    for ring in rings:
        both.add(ring)
    for n, ring in enumerate(rings):
        for k in range(3 - n):
            ring.push(Packet(None, Port(ring), None, n, k))
    batch = both.take(4)
    assert [(p.stream, p.sent_ns) for p in batch] == [(0, 0), (1, 0), (0, 1), (1, 1)]
    both.release(batch)
    assert [ring.occupied for ring in rings] == [1, 0]
