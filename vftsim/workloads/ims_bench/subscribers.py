"""Pools of subscribers: registered, unregistered, and those busy in an attempt.

A subscriber in an attempt is in neither pool; drawing one takes it out, :func:`put_back` returns it.
Memory is one machine word for each subscriber and pool.
"""

from typing import Annotated

import numpy as np

from vftsim.kernel import Engine, Record, Sim, Table
from vftsim.kernel.columns import write_columns
from vftsim.workloads.ims_bench.attempt import Bench, Pool

BLOCK = 1024


class Block(Record):
    """A stretch of a pool."""

    users: Annotated[list[int], BLOCK]


blocks = Table("subscriber_blocks", Block, 1 << 15, "provision fewer subscribers")


def fill_pools(engine: Engine, bench: Bench, count: int, registered: int) -> None:
    """Provision ``count`` subscribers, of whom the first ``registered`` are registered."""
    _fill(engine, bench.registered, count, range(registered))
    _fill(engine, bench.unregistered, count, range(count - 1, registered - 1, -1))


def _fill(engine: Engine, pool: Pool, most: int, users: range) -> None:
    pool.count = len(users)
    count = -(-most // BLOCK)
    pool.first_block, *_ = [engine.add(blocks)[0] for _ in range(count)]
    held = np.zeros((count, BLOCK), np.int64)
    held.flat[: len(users)] = np.arange(users.start, users.stop, users.step)
    write_columns(engine, blocks, {"users": held}, pool.first_block)


def take_subscriber(sim: Sim, pool: Pool, choice: float) -> int:
    """Take a free subscriber; ``choice`` in [0, 1) picks it.  Returns -1 if there is none."""
    if pool.count == 0:
        return -1
    position = int(choice * pool.count)
    pool.count -= 1
    chosen = blocks(sim)[pool.first_block + position // BLOCK]
    last = blocks(sim)[pool.first_block + pool.count // BLOCK].users[pool.count % BLOCK]
    user = chosen.users[position % BLOCK]
    chosen.users[position % BLOCK] = last
    return user


def put_back(sim: Sim, pool: Pool, user: int) -> None:
    """Return a subscriber to a pool."""
    blocks(sim)[pool.first_block + pool.count // BLOCK].users[pool.count % BLOCK] = user
    pool.count += 1
