"""Stages: pieces of code that run on the vCPUs of a domain and move packets on.

Every I/O path is a chain of stages, each of which takes packets out of a bounded ring in batches and puts
them into the next one.  A stage works in the style of NAPI: an event starts it, it takes what is there up to its
budget, works, and only when it finds its ring empty it asks for the next event.  Costs: ``event_ns`` once for each
start (interrupt or event channel upcall), and a cost for each packet.  A batch counts as taken when the stage is
started, that is before its vCPU gets a pCPU; it is passed on as a whole when it is done.

Notification is suppressed as in the Xen ring protocol (``req_event``/``rsp_event`` in
``xen/include/public/io/ring.h``): the producer sends an event only if the consumer asked for one,
which it does when it has found the ring empty.

Stages run as interrupt work on one vCPU (softirq, tasklet: not two at a time), or on any vCPU of the domain, whichever
is free first: before its programs, or, as a process such as a device model, among them.
"""

from vftsim.kernel import EventKind, Fifo, Record, Row, Sim, Sort, Table, at, entry, timer
from vftsim.platform.cpu.jobs import continue_with, raise_interrupt, raise_softirq, submit
from vftsim.platform.cpu.records import domains, vcpus, work_done
from vftsim.platform.io.marks import DONE, TAKEN, mark_logs
from vftsim.platform.io.nic import Nic, admit, catch_up, next_interrupt_ns, nics
from vftsim.platform.io.packet import REFUSED, mark, packet_list, packets
from vftsim.platform.io.ring import Ring, give_back, keep_slot, ring_list, rings

NAPI_BUDGET = 64
"""Packets a stage handles in one go: NAPI's default weight of a device (Linux 2.6)."""


class Stage(Row):
    """Code of one domain that moves packets from a source to the next place.

    ``task`` is its kind.  The source is ``nic`` or, if that is 0, ``rings``, several served in turn.  ``vcpu``
    pays as interrupt work; 0: any vCPU of the domain does, up to ``parallel`` batches at once, by jobs or, if the stage
    ``interrupts``, by softirqs.  ``waiting``
    packets are in all its ``rings`` together, so that it looks no further than at the last.  ``held`` packets are in
    its hands, in the batch ``in_hand`` if it works on one at a time.  While it ``is_masked`` it starts nothing;
    ``is_due``: its event came meanwhile.
    """

    task: int
    domain: int
    vcpu: int
    interrupts: bool
    nic: int
    rings: Fifo
    waiting: int
    is_armed: bool
    is_masked: bool
    is_due: bool
    in_hand: int
    event_ns: int
    packet_ns: int
    budget: int
    parallel: int
    active: int
    held: int
    batches: int


class Batch(Record):
    """Packets in the hands of a stage; ``taken`` slots of the source are theirs, those of dropped packets too."""

    stage: int
    packets: Fifo
    taken: int
    demand_ns: int


stages = Table("stages", Stage, 16_384)
batches = Table("batches", Batch, 1 << 18, "lower the load")

task = Sort("stage", by="task")


@task.slot
def price(sim: Sim, stage: Stage, packet: int) -> int:
    """Decide about a packet that has been taken; return its cost beyond ``packet_ns``.

    :data:`~vftsim.platform.io.packet.REFUSED` if it does not go on; it has then been dropped.
    """
    return 0


@task.slot
def deliver(sim: Sim, stage: Stage, packet: int) -> None:
    """Pass on a packet on which the work has been done."""


def put(sim: Sim, ring: Ring, packet: int) -> None:
    """Fill a slot that was kept; the consumer is notified if it asked for that."""
    packets(sim)[packet].ring = ring.row
    packet_list.push(sim, ring.packets, packet)
    stage = stages(sim)[ring.stage]
    # Counted before the stage may start, which looks no further than this.
    stage.waiting += 1
    if stage.is_armed:
        # Before the start, which takes this packet too; what comes during the batch is found at its end, without event.
        stage.is_armed = False
        kick(sim, stage)


def push(sim: Sim, ring: Ring, packet: int) -> bool:
    """Take a slot and fill it; False if the ring is full."""
    if not keep_slot(ring):
        return False
    put(sim, ring, packet)
    return True


def kick(sim: Sim, stage: Stage) -> None:
    """Start batches as long as there are packets and room for one more batch."""
    if stage.is_masked:
        stage.is_due = True
        return
    while stage.active < stage.parallel:
        row = batches.new(sim, stage=stage.row)
        batch = batches(sim)[row]
        take(sim, stage, batch.packets)
        if batch.packets.length == 0:
            batches.free(sim, row)
            arm(sim, stage)
            return
        stage.active += 1
        begin(sim, stage, row, stage.event_ns, False)


def take(sim: Sim, stage: Stage, into: Fifo) -> None:
    """Take up to a budget of packets, oldest first; their slots stay taken."""
    if stage.nic != 0:
        nic = nics(sim)[stage.nic]
        catch_up(sim, nic)
        move(sim, nic.packets, into, stage.budget)
    elif stage.rings.length == 1:
        before = into.length
        move(sim, rings(sim)[stage.rings.first].packets, into, stage.budget)
        stage.waiting -= into.length - before
    else:
        take_in_turn(sim, stage, into)


def move(sim: Sim, source: Fifo, into: Fifo, most: int) -> None:
    """Move packets from the front of one list to the end of another."""
    for _ in range(min(most, source.length)):
        packet_list.push(sim, into, packet_list.pop(sim, source))


def take_in_turn(sim: Sim, stage: Stage, into: Fifo) -> None:
    """Take one packet of each ring in turn, as a back-end serves its guests; the next batch begins at the next ring."""
    while into.length < stage.budget and stage.waiting > 0:
        row = ring_list.pop(sim, stage.rings)
        # Even if it is empty: each ring has its turn.
        ring_list.push(sim, stage.rings, row)
        packet = packet_list.pop(sim, rings(sim)[row].packets)
        if packet != 0:
            packet_list.push(sim, into, packet)
            stage.waiting -= 1


def begin(sim: Sim, stage: Stage, row: int, event_ns: int, is_continued: bool) -> None:
    """Start the work on a batch that has been taken."""
    batch = batches(sim)[row]
    stage.batches += 1
    stage.in_hand = row
    batch.taken = batch.packets.length
    demand_ns = event_ns + price_all(sim, stage, batch)
    batch.demand_ns = demand_ns
    stage.held += batch.packets.length
    if mark_logs(sim)[1].is_on:
        mark_batch(sim, batch, TAKEN, 0)
    domain = domains(sim)[stage.domain]
    # Last of all: a vCPU that wakes here may be running before this returns.
    if stage.vcpu != 0:
        raise_interrupt(sim, domain, vcpus(sim)[stage.vcpu], demand_ns, on_batch_done, row, 0)
    elif stage.interrupts:
        raise_softirq(sim, domain, is_continued, demand_ns, on_batch_done, row, 0)
    elif is_continued:
        continue_with(sim, domain, demand_ns, on_batch_done, row, 0)
    else:
        submit(sim, domain, demand_ns, on_batch_done, row, 0)


def price_all(sim: Sim, stage: Stage, batch: Batch) -> int:
    """Keep the packets of a batch that go on; return what the batch costs."""
    demand_ns = 0
    for _ in range(batch.taken):
        # Each is popped before it is priced: one that is refused has been dropped, and its row may be another's.
        packet = packet_list.pop(sim, batch.packets)
        demand_ns += stage.packet_ns
        cost_ns = price(sim, stage, packet)
        if cost_ns != REFUSED:
            demand_ns += cost_ns
            packet_list.push(sim, batch.packets, packet)
    return demand_ns


def mark_batch(sim: Sim, batch: Batch, boundary: int, spent_ns: int) -> None:
    """Write that every packet of a batch passes a boundary."""
    for packet in packet_list.rows(sim, batch.packets):
        mark(sim, packet, boundary, batch.stage, sim.now_ns, spent_ns)


@work_done
def on_batch_done(sim: Sim, batch_row: int) -> None:
    """Pass a batch on: free its slots, then deliver it, then take the next or ask for an event.

    Each of these may start this very stage again, if it works on several batches at once.
    """
    batch = batches(sim)[batch_row]
    stage = stages(sim)[batch.stage]
    stage.held -= batch.packets.length
    if mark_logs(sim)[1].is_on:
        mark_batch(sim, batch, DONE, batch.demand_ns)
    # Slots first: a sender that slept for one fills it now, before what this batch causes asks for slots in turn.
    release(sim, stage, batch)
    while batch.packets.length > 0:
        deliver(sim, stage, packet_list.pop(sim, batch.packets))
    # What came meanwhile costs no event. Only an empty source is armed, else a packet could wait for an event for ever.
    take(sim, stage, batch.packets)
    if batch.packets.length > 0:
        begin(sim, stage, batch_row, 0, True)
    else:
        batches.free(sim, batch_row)
        stage.active -= 1
        arm(sim, stage)


def release(sim: Sim, stage: Stage, batch: Batch) -> None:
    """Free the slots of a finished batch."""
    if stage.nic != 0:
        nic = nics(sim)[stage.nic]
        catch_up(sim, nic)
        nic.occupied -= batch.taken
    elif stage.rings.length == 1:
        give_back(sim, rings(sim)[stage.rings.first], batch.taken)
    else:
        # Stages of several rings refuse nothing: each slot taken is that of a packet here.
        for packet in packet_list.rows(sim, batch.packets):
            give_back(sim, rings(sim)[packets(sim)[packet].ring], 1)


def arm(sim: Sim, stage: Stage) -> None:
    """Ask for an event when a packet comes."""
    if stage.nic == 0:
        stage.is_armed = True
        return
    nic = nics(sim)[stage.nic]
    nic.is_unmasked = True
    if nic.interrupt == 0:
        plan_interrupt(sim, nic, next_interrupt_ns(sim, nic))


start_stage = entry(arm)


def plan_interrupt(sim: Sim, nic: Nic, time_ns: int) -> None:
    """Plan the interrupt for the packets that wait or are known to come; none below 0."""
    if time_ns >= 0:
        # The token of one that was planned for later is overwritten: it comes to nothing.
        nic.interrupt_ns = time_ns
        nic.interrupt = at(sim, time_ns, EventKind.DEVICE, nic.number, on_interrupt, nic.row)


@timer(nics, "interrupt")
def on_interrupt(sim: Sim, nic: Nic) -> None:
    """Start the driver of a NIC."""
    # Masked before the driver starts, which unmasks when it finds nothing: at once, if a crash emptied the card.
    nic.is_unmasked = False
    nic.interrupts += 1
    kick(sim, stages(sim)[nic.stage])


def take_in(sim: Sim, nic: Nic, packet: int) -> None:
    """Take in a packet that a network delivers now."""
    catch_up(sim, nic)
    admit(sim, nic, packet, sim.now_ns)
    if nic.is_unmasked:
        time_ns = next_interrupt_ns(sim, nic)
        if nic.interrupt == 0 or time_ns < nic.interrupt_ns:
            plan_interrupt(sim, nic, time_ns)
