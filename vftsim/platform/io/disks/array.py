"""An array of disks behind one queue: as many requests at once as it has disks, and a cache before them.

A request takes ``service`` on a disk, whatever its size; one that the cache has takes ``hit_time`` and no disk.  Writes
are like reads: the array acknowledges them when they are on a disk, or at once into its cache.

Which requests the cache has is drawn, each by itself.  Simplification: whichever disk is free serves (a request for a
busy disk would wait for that one, which matters near the array's limit only).  A crash of the domain loses what waits
for it; what is in the cache is safe (battery).  Left out: channels, the controller's limit.
"""

from collections.abc import Mapping
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from vftsim.kernel import BESIDE, Chain, Engine, EventKind, Fifo, Record, Sim, Table, at, event
from vftsim.kernel.inputs import Feeder, draw
from vftsim.outcome import declare
from vftsim.platform.io.disk import (
    DISKS,
    Disk,
    DiskSpec,
    DiskUse,
    begin_read,
    begin_write,
    count_requests,
    count_served,
    disk,
    disks,
    end_transfer,
    forget,
    reached,
    replica_reads,
    use_of,
)
from vftsim.platform.rows import fill_row
from vftsim.sampling import Draws, Streams
from vftsim.spec.units import DurationNs, Percent

array = disk.kind("array")

ENTITY = 1 << 21
"""Orders arrays behind network interfaces and single disks among devices at one instant."""

_AT_ONCE = 2048
"""Requests that may come at one instant, as of the threads of a service that was stopped."""


class ArrayUse(DiskUse):
    """An array of disks, and its cache."""

    hits: int = declare.total(label="reads and writes served by the cache")
    cache_hits = declare.ratio(hits, DiskUse.served, unit="%", label="served by the cache")


@DISKS.register
class ArrayDiskSpec(DiskSpec):
    """An array of disks."""

    kind: Literal["array"] = "array"
    outcome: ClassVar[type[DiskUse]] = ArrayUse
    disks: int = Field(8, ge=1, le=100_000, description="Disks. Assumption: to be taken from the system.")
    service: DurationNs = Field(6_000_000, description="Time of a request on a disk. Default: 167 requests a second.")
    hits: Percent = Field(0.0, ge=0.0, le=100.0, description="Requests that the cache serves. Default: none.")
    hit_time: DurationNs = Field(500_000, description="Time of such a request. Assumption.")

    def without_effect(self) -> Mapping[str, str]:
        return {} if self.hits else {"hit_time": "with hits 0 its cache serves nothing"}

    def unread(self, is_logged: bool) -> Mapping[str, str]:
        """Say that no flush waits; sizes count for who logs what is read, only."""
        flushes = {"flush_every": "what an array has acknowledged is safe: no flush waits"}
        whatever = "an array takes its time for a request, whatever its size"
        return flushes if is_logged else flushes | dict.fromkeys(("size", "transfer_size"), whatever)

    def install(self, engine: Engine, row: int) -> None:
        fill_row(engine, disk_arrays, row, self, hits=0, has_all=self.hits == 100.0, hit_ns=self.hit_time)

    def draw(self, engine: Engine, row: int, feeder: Feeder, streams: Streams) -> None:
        """Draw which requests are hits."""
        if 0.0 < self.hits < 100.0:
            are_hits = Draws(streams, "array.hit", row, lambda u: (u < self.hits / 100.0).astype(np.int64))
            engine.rows(disk_arrays)[row].hits = feeder.add(are_hits, at_once=_AT_ONCE)

    def measured(self, engine: Engine, row: int) -> DiskUse:
        return ArrayUse(**use_of(engine, row), disks=self.disks, hits=int(engine.rows(disk_arrays)[row].hit))


class DiskArray(Record):
    """The queue of an array and what it has done; ``hits`` is the feed of hits, 0: the cache ``has_all`` or nothing."""

    disks: int
    service_ns: int
    hits: int
    has_all: bool
    hit_ns: int
    queue: Fifo
    hit: int
    boots: int


class ArrayRequest(Record):
    """A request of an array; nobody waits for it if the domain was booted since (``boots``)."""

    link: int
    array: int
    program: int
    tag: int
    boots: int
    size_bytes: int
    asked_ns: int
    is_read: bool
    is_hit: bool
    replica_ns: int


disk_arrays = Table("disk_arrays", DiskArray, beside=disks)
array_requests = Table("array_requests", ArrayRequest, 1 << 20, "lower the load of the disks")
array_list = Chain(array_requests, "link")


@array.implements(begin_read)
def read_array(sim: Sim, disk: Disk, program: int, tag: int, size_bytes: int) -> None:
    enqueue(sim, disk, program, tag, size_bytes, True)


@array.implements(begin_write)
def write_array(sim: Sim, disk: Disk, program: int, tag: int, size_bytes: int) -> bool:
    enqueue(sim, disk, program, tag, size_bytes, False)
    return False


@array.implements(forget)
def forget_array(sim: Sim, disk: Disk, disk_array: DiskArray = BESIDE) -> None:
    """Lose what waits; what a disk works on, it ends, for the domain that was booted to ignore."""
    count_requests(sim, disk, -disk_array.queue.length, 0)
    while disk_array.queue.length > 0:
        array_requests.free(sim, array_list.pop(sim, disk_array.queue))
    disk_array.boots += 1


def enqueue(sim: Sim, disk: Disk, program: int, tag: int, size_bytes: int, is_read: bool) -> None:
    """Put a request to the cache, and if it is not there to a disk."""
    disk_array = disk_arrays(sim)[disk.row]
    row = array_requests.new(sim)
    request = array_requests(sim)[row]
    request.array = disk.row
    request.program = program
    request.tag = tag
    request.boots = disk_array.boots
    request.size_bytes = size_bytes
    request.asked_ns = sim.now_ns
    request.is_read = is_read
    request.replica_ns = replica_reads(sim, disk, size_bytes) if is_read else 0
    request.is_hit = not disk.is_away and is_in_cache(sim, disk_array)
    count_requests(sim, disk, 1, 0)
    if request.is_hit:
        at(sim, sim.now_ns + disk_array.hit_ns, EventKind.DEVICE, ENTITY + disk.row, on_served, row)
    else:
        array_list.push(sim, disk_array.queue, row)
        serve_next(sim, disk, disk_array)


def is_in_cache(sim: Sim, disk_array: DiskArray) -> bool:
    """Tell whether the cache has what is asked for now."""
    return disk_array.has_all if disk_array.hits == 0 else draw(sim, disk_array.hits) == 1


@array.implements(reached)
def serve_again(sim: Sim, disk: Disk, disk_array: DiskArray = BESIDE) -> None:
    """Let every free disk begin."""
    # Each call starts one request at most.
    for _ in range(min(disk_array.disks, disk_array.queue.length)):
        serve_next(sim, disk, disk_array)


def serve_next(sim: Sim, disk: Disk, disk_array: DiskArray) -> None:
    """Let a free disk begin, if the array can be reached."""
    if disk.is_away or disk.busy >= disk_array.disks or disk_array.queue.length == 0:
        return
    row = array_list.pop(sim, disk_array.queue)
    count_requests(sim, disk, 0, 1)
    at(
        sim,
        sim.now_ns + disk_array.service_ns,
        EventKind.DEVICE,
        ENTITY + array_requests(sim)[row].array,
        on_served,
        row,
    )


@event
def on_served(sim: Sim, array_request_row: int) -> None:
    """A request is done: let its program hear, and the disk begin with the next."""
    request = array_requests(sim)[array_request_row]
    disk = disks(sim)[request.array]
    disk_array = disk_arrays(sim)[disk.row]
    # Read before the row is free: a program that hears of the end may ask again, and get this very row.
    program, tag = request.program, request.tag
    size_bytes, is_read, replica_ns = request.size_bytes, request.is_read, request.replica_ns
    is_awaited = request.boots == disk_array.boots
    # One of before a boot is not repeated: nobody waits for it.
    if disk.is_away and is_awaited:
        ask_again(sim, disk, disk_array, array_request_row)
        return
    if request.is_hit:
        disk_array.hit += 1
    else:
        count_requests(sim, disk, 0, -1)
    count_served(sim, disk, request.asked_ns, is_awaited, 0 if is_read else size_bytes)
    array_requests.free(sim, array_request_row)
    serve_next(sim, disk, disk_array)
    if is_awaited:
        end_transfer(sim, disk, program, tag, size_bytes, is_read, replica_ns)


def ask_again(sim: Sim, disk: Disk, disk_array: DiskArray, row: int) -> None:
    """Keep a request whose answer does not get through; a disk serves it, before others, when the array is back."""
    if array_requests(sim)[row].is_hit:
        array_requests(sim)[row].is_hit = False
    else:
        count_requests(sim, disk, 0, -1)
    array_list.push_front(sim, disk_array.queue, row)
