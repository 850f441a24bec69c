"""What the schedulers with one run queue for all pCPUs have in common.

Such a scheduler says in which order waiting vCPUs run (:func:`urgency`), which may run at all, for how long, and when a
newcomer pre-empts; :func:`share_one_queue` gives it the rest.  A newcomer goes to an idle pCPU of its affinity if
there is one, its last one first, then lowest number; else it may pre-empt the least urgent vCPU that runs on a pCPU it
may use.  A vCPU that was pre-empted looks for a place in the same way.

The queue stands in the order in which vCPUs joined it, so of equally urgent ones the first is taken.
"""

from vftsim.kernel import BESIDE, Chain, Fifo, Kind, Record, Sim, Table
from vftsim.platform.cpu import scheduler
from vftsim.platform.cpu.host import request_reschedule, sync
from vftsim.platform.cpu.records import Host, Pcpu, Vcpu, hosts, pcpus, vcpus


class QueueHost(Record):
    """The run queue of a host, in order of arrival, and the vCPUs that are being placed, most urgent first."""

    waiting: Fifo
    placing: Fifo


class QueuePcpu(Record):
    """A pCPU: the vCPU that the scheduler has chosen for it."""

    current: int


class QueueVcpu(Record):
    """What the queue knows of a vCPU.

    ``current_on`` is the pCPU it was chosen for.  ``held``: to be placed.  ``rank`` and ``level`` are its urgency when
    it was last looked at for placing.
    """

    is_waiting: bool
    held: bool
    current_on: int
    rank: int
    level: int
    next_waiting: int
    next_placing: int


queue_hosts = Table("queue_hosts", QueueHost, beside=hosts)
queue_pcpus = Table("queue_pcpus", QueuePcpu, beside=pcpus)
queue_vcpus = Table("queue_vcpus", QueueVcpu, beside=vcpus)
waiting_list = Chain(queue_vcpus, "next_waiting")
placing_list = Chain(queue_vcpus, "next_placing")


@scheduler.scheduler.slot
def urgency(sim: Sim, host: Host, vcpu: Vcpu) -> tuple[int, int]:
    """Return two numbers, compared in order, the smallest first; by default first in, first out."""
    return 0, 0


@scheduler.scheduler.slot
def longest_ns(sim: Sim, host: Host, vcpu: Vcpu) -> int:
    """Return the longest time until the pCPU that ``vcpu`` was chosen for chooses again."""
    return 0


@scheduler.scheduler.slot
def eligible(sim: Sim, host: Host, vcpu: Vcpu) -> bool:
    """Tell whether ``vcpu`` may run at all now."""
    return True


@scheduler.scheduler.slot
def allowed(sim: Sim, host: Host, vcpu: Vcpu, pcpu: Pcpu) -> bool:
    """Tell whether ``vcpu`` may run on ``pcpu``; by default its affinity says so."""
    return scheduler.may_run(sim, vcpu, pcpu)


@scheduler.scheduler.slot
def preempts(sim: Sim, host: Host, newcomer: Vcpu, running: Vcpu) -> bool:
    """Tell whether ``newcomer`` takes the pCPU of ``running`` at once; by default if it is more urgent."""
    return is_more_urgent(sim, host, newcomer, running)


@scheduler.scheduler.slot
def on_wake(sim: Sim, host: Host, vcpu: Vcpu) -> None:
    """Prepare ``vcpu``, which woke and is not in the queue yet."""


@scheduler.scheduler.slot
def on_chosen(sim: Sim, host: Host, vcpu: Vcpu) -> None:
    """Take note that ``vcpu`` is about to run; its pCPU knows already."""


def is_more_urgent(sim: Sim, host: Host, one: Vcpu, other: Vcpu) -> bool:
    """Compare the urgency of two vCPUs."""
    rank, level = urgency(sim, host, one)
    other_rank, other_level = urgency(sim, host, other)
    return rank < other_rank or (rank == other_rank and level < other_level)


def first_in_order(sim: Sim, host: Host, pcpu: Pcpu) -> int:
    """Return the most urgent waiting vCPU that may run on ``pcpu`` now, 0 for none."""
    best = 0
    best_rank = 0
    best_level = 0
    for vcpu in vcpus.listed(sim, waiting_list, queue_hosts(sim)[host.row].waiting):
        if allowed(sim, host, vcpu, pcpu) and eligible(sim, host, vcpu):
            rank, level = urgency(sim, host, vcpu)
            if best == 0 or rank < best_rank or (rank == best_rank and level < best_level):
                best, best_rank, best_level = vcpu.row, rank, level
    return best


def wake(sim: Sim, host: Host, vcpu: Vcpu) -> None:
    """Queue it and find it a pCPU."""
    # Before it is queued: a scheduler places it relative to those that wait, and it is not one of them yet.
    on_wake(sim, host, vcpu)
    enqueue(sim, host, vcpu)
    pcpu = find_pcpu(sim, host, vcpu)
    if pcpu != 0:
        request_reschedule(sim, pcpus(sim)[pcpu])


def block(sim: Sim, host: Host, vcpu: Vcpu) -> None:
    """Free its pCPU."""
    # By the last one: the host has taken the vCPU off its pCPU already.
    queue_pcpus(sim)[vcpu.last_pcpu].current = 0
    queue_vcpus(sim)[vcpu.row].current_on = 0


def choose(sim: Sim, host: Host, pcpu: Pcpu) -> int:
    """Run the most urgent waiting vCPU that may run here."""
    before = queue_pcpus(sim)[pcpu.row].current
    if before != 0:
        # It competes from behind its equals: one that waits and is as urgent goes first.
        enqueue(sim, host, vcpus(sim)[before])
    chosen = first_in_order(sim, host, pcpu)
    hand_over(sim, host, pcpu, before, chosen)
    # After the hand-over: this pCPU is taken when another is looked for.
    if before not in (0, chosen):
        other = find_pcpu(sim, host, vcpus(sim)[before])
        if other != 0:
            request_reschedule(sim, pcpus(sim)[other])
    if chosen != 0:
        # Placing has brought accounts up to date, so what is left to run is known now only.
        pcpu.slice_ns = longest_ns(sim, host, vcpus(sim)[chosen])
    return chosen


def hand_over(sim: Sim, host: Host, pcpu: Pcpu, before: int, chosen: int) -> None:
    """Give a pCPU to the vCPU ``chosen`` (0: nobody) instead of ``before``, which stands in the queue if it is one."""
    if before != 0:
        queue_vcpus(sim)[before].current_on = 0
    queue_pcpus(sim)[pcpu.row].current = chosen
    if chosen == 0:
        return
    queue_vcpu = queue_vcpus(sim)[chosen]
    queue_vcpu.current_on = pcpu.row
    waiting_list.remove(sim, queue_hosts(sim)[host.row].waiting, chosen)
    queue_vcpu.is_waiting = False
    # Last: the records say by now where it runs and that it waits no more.
    on_chosen(sim, host, vcpus(sim)[chosen])


def enqueue(sim: Sim, host: Host, vcpu: Vcpu) -> None:
    """Put a vCPU behind all its equals."""
    waiting_list.push(sim, queue_hosts(sim)[host.row].waiting, vcpu.row)
    queue_vcpus(sim)[vcpu.row].is_waiting = True


def find_pcpu(sim: Sim, host: Host, vcpu: Vcpu) -> int:
    """Return the pCPU that should choose again so that ``vcpu`` may run, 0 if there is none.

    Charges what runs on the pCPUs it may use, unless one of them is idle.
    """
    return place_for(sim, host, vcpu) if eligible(sim, host, vcpu) else 0


def place_for(sim: Sim, host: Host, vcpu: Vcpu) -> int:
    """Return an idle pCPU for ``vcpu``, else one whose vCPU it pre-empts, 0 if there is none; it may run now or not."""
    idle = idle_place(sim, host, vcpu)
    return idle if idle != 0 else place_of_another(sim, host, vcpu)


def is_open(sim: Sim, host: Host, vcpu: Vcpu, row: int) -> bool:
    """Tell whether ``vcpu`` may run on the pCPU, which is not about to choose anyway: another was placed there."""
    # A request that is pending marks the pCPU, so that vCPUs placed one after the other find different ones.
    return pcpus(sim)[row].choice == 0 and allowed(sim, host, vcpu, pcpus(sim)[row])


def idle_place(sim: Sim, host: Host, vcpu: Vcpu) -> int:
    """Return an idle pCPU for ``vcpu``: its last one, else that of the lowest number; 0 for none."""
    last = vcpu.last_pcpu
    if last != 0 and queue_pcpus(sim)[last].current == 0 and is_open(sim, host, vcpu, last):
        return last
    for row in range(host.first_pcpu, host.first_pcpu + host.pcpus):
        if queue_pcpus(sim)[row].current == 0 and is_open(sim, host, vcpu, row):
            return row
    return 0


@scheduler.scheduler.slot
def place_of_another(sim: Sim, host: Host, vcpu: Vcpu) -> int:
    """Return the pCPU of the least urgent vCPU that ``vcpu`` pre-empts, lowest number first; 0 for none.

    Every pCPU that ``vcpu`` may use runs something.
    """
    return place_by_urgency(sim, host, vcpu, True)


def place_by_urgency(sim: Sim, host: Host, vcpu: Vcpu, charges: bool) -> int:
    """Compare the urgency of what runs, after it has been charged or as it is."""
    best = 0
    best_rank = 0
    best_level = 0
    for row in range(host.first_pcpu, host.first_pcpu + host.pcpus):
        if not is_open(sim, host, vcpu, row):
            continue
        running = vcpus(sim)[queue_pcpus(sim)[row].current]
        # Charged first where its urgency depends on what it has run up to now.
        if charges:
            sync(sim, running)
        rank, level = urgency(sim, host, running)
        if preempts(sim, host, vcpu, running) and (
            best == 0 or rank > best_rank or (rank == best_rank and level > best_level)
        ):
            best, best_rank, best_level = row, rank, level
    return best


def hold(sim: Sim, vcpu: Vcpu) -> None:
    """Mark a waiting vCPU for :func:`place_held`."""
    queue_vcpus(sim)[vcpu.row].held = True


def place_held(sim: Sim, host: Host, queue_host: QueueHost = BESIDE) -> None:
    """Ask pCPUs to choose again for all that are held, most urgent first, each on another pCPU; none is held then."""
    for vcpu in vcpus.listed(sim, waiting_list, queue_host.waiting):
        if queue_vcpus(sim)[vcpu.row].held:
            queue_vcpus(sim)[vcpu.row].held = False
            # The walk may go on behind it: the queue that is walked does not change.
            line_up(sim, host, vcpu)
    while queue_host.placing.length > 0:
        pcpu = find_pcpu(sim, host, vcpus(sim)[placing_list.pop(sim, queue_host.placing)])
        if pcpu != 0:
            request_reschedule(sim, pcpus(sim)[pcpu])


def line_up(sim: Sim, host: Host, vcpu: Vcpu, queue_vcpu: QueueVcpu = BESIDE) -> None:
    """Put a vCPU among those to be placed, behind all that are as urgent.

    Its urgency is taken now: placing the first charges others, which must not change the order.
    """
    queue_vcpu.rank, queue_vcpu.level = urgency(sim, host, vcpu)
    # Behind all that are as urgent, as in the queue.
    before = 0
    row = queue_hosts(sim)[host.row].placing.first
    while row != 0 and not precedes(sim, vcpu.row, row):
        before = row
        row = queue_vcpus(sim)[row].next_placing
    placing_list.insert_after(sim, queue_hosts(sim)[host.row].placing, before, vcpu.row)


def precedes(sim: Sim, one: int, other: int) -> bool:
    """Compare two vCPUs that are to be placed."""
    first = queue_vcpus(sim)[one]
    second = queue_vcpus(sim)[other]
    return first.rank < second.rank or (first.rank == second.rank and first.level < second.level)


def share_one_queue(kind: Kind) -> Kind:
    """Give a kind of scheduler one run queue for all pCPUs; it may implement every slot of its own all the same."""
    kind.implements(scheduler.wake)(wake)
    kind.implements(scheduler.block)(block)
    kind.implements(scheduler.choose)(choose)
    return kind
