"""Who is in which pool of subscribers, read from a benchmark's tables."""

from vftsim.errors import ConservationError
from vftsim.kernel import Engine
from vftsim.workloads.ims_bench.attempt import Bench, Pool, attempts
from vftsim.workloads.ims_bench.subscribers import BLOCK, blocks
from vftsim.workloads.sip.messages import streams


def members(engine: Engine, pool: Pool) -> list[int]:
    """Return who is in a pool, in order."""
    rows = engine.rows(blocks)
    return [int(rows[pool.first_block + n // BLOCK].users[n % BLOCK]) for n in range(pool.count)]


def check_subscribers(engine: Engine, bench: Bench, count: int) -> None:
    """Raise :class:`ConservationError` unless every subscriber is in exactly one place."""
    under_way = [engine.rows(attempts)[row] for row in range(1, engine.used(streams) + 1)]
    busy = [int(who) for one in under_way if not one.ended for who in (one.user, one.destination) if who >= 0]
    if sorted([*members(engine, bench.registered), *members(engine, bench.unregistered), *busy]) != list(range(count)):
        raise ConservationError("a subscriber is lost or in two places")
