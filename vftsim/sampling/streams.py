"""Random streams that do not depend on the configuration under test.

Two designs see the same traffic (common random numbers) when a stream is named by *what* it decides
and never by *where* the experiment stands: the key is (root seed, replication, stream name, entity)
and leaves the design point out.  Call 17 then owns the same ring time under every scheduler.

The key goes through ``numpy.random.SeedSequence(entropy=root seed, spawn_key=...)``.  ``SeedSequence``
cuts every integer of the spawn key into as many 32-bit words as it needs, so a large entity could
collide with a smaller one followed by something else; here each part has a fixed number of words:
purpose (1), replication (1), BLAKE2b-128 of the name (4), entity (2).  The root seed is limited to
128 bits, the pool size of ``SeedSequence``, for the same reason.  Streams of a branch of the replication (a
continuation with fresh numbers, :meth:`Streams.branch_off`) have purposes of their own, and the branch (2) behind.

Bit generator: PCG64DXSM (O'Neill 2014 with the DXSM output function; NumPy's announced default).  It
jumps ahead in O(log n), which is what lets :meth:`Streams.uniforms` hand out any piece of a stream.
Uniforms are made here from raw 64-bit words, not by ``Generator.random``: NumPy guarantees the words
of a bit generator for ever, but not the stream of a distribution.

Left out: antithetic streams (the uniforms are symmetric, so ``1 - u`` is exact where wanted).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from vftsim.errors import UsageError

STREAM_SCHEME = "1:PCG64DXSM:blake2b-128"
"""Version of the key layout, bit generator and name hash; written into every result."""

_WORD = 0xFFFF_FFFF
_GENERATOR, _UNIFORMS = 0, 1
_OF_BRANCH = 2
"""Added to the purpose: the key ends with the number of a branch."""
_MANTISSA_SHIFT = np.uint64(12)
_STEP = 2.0**-52


@lru_cache(maxsize=1024)
def _name_words(stream_name: str) -> tuple[int, ...]:
    digest = hashlib.blake2b(stream_name.encode(), digest_size=16).digest()
    return tuple(int.from_bytes(digest[i : i + 4], "little") for i in range(0, 16, 4))


@dataclass(slots=True)
class Streams:
    """All random streams of one replication."""

    root_seed: int
    """Seed of the study, 0 to 2**128 - 1."""
    replication: int
    """Number of the replication, 0 to 2**32 - 1."""
    branch: int = 0
    """Number of the branch of the replication; 0: the replication itself."""

    def __post_init__(self) -> None:
        if not 0 <= self.root_seed < 2**128:
            raise UsageError(f"root seed {self.root_seed} is outside 0 .. 2**128 - 1")
        if not 0 <= self.replication < 2**32:
            raise UsageError(f"replication {self.replication} is outside 0 .. 2**32 - 1")

    def branch_off(self, number: int) -> None:
        """From now on hand out the streams of a branch, 0 to 2**64 - 1, to everybody who draws from this object."""
        if not 0 <= number < 2**64:
            raise ValueError(f"branch {number} is outside 0 .. 2**64 - 1")
        self.branch = number

    def generator(self, stream_name: str, entity: int = 0) -> np.random.Generator:
        """Return the generator of one stream, at its start: the same call gives the same numbers.

        Parameters
        ----------
        stream_name : str
            What the numbers decide, such as ``"sip.ring_time"``.
        entity : int
            Whose numbers they are (call, user, vCPU), 0 to 2**64 - 1.
        """
        return np.random.Generator(self._bit_generator(_GENERATOR, stream_name, entity))

    def uniforms(self, stream_name: str, entity: int = 0, *, start: int = 0, count: int) -> NDArray[np.float64]:
        """Return elements ``start`` to ``start + count - 1`` of the stream's endless uniform sequence.

        The values lie strictly between 0 and 1 and do not depend on how the sequence is cut up.
        They are independent of those of :meth:`generator` for the same name and entity.
        """
        if start < 0 or count < 0:
            raise ValueError(f"start {start} and count {count} must not be negative")
        return next_uniforms(self.words(stream_name, entity, start), count)

    def phase_ns(self, stream_name: str, entity: int, period_ns: float) -> int:
        """Return a random instant of a period: what recurs alike begins there, so that it does not keep step."""
        return int(self.uniforms(stream_name, entity, count=1)[0] * period_ns)

    def words(self, stream_name: str, entity: int = 0, start: int = 0) -> np.random.PCG64DXSM:
        """Return what gives the words of :meth:`uniforms` from element ``start`` on, to be read with no new start."""
        bits = self._bit_generator(_UNIFORMS, stream_name, entity)
        if start:
            bits.advance(start)
        return bits

    def _bit_generator(self, purpose: int, stream_name: str, entity: int) -> np.random.PCG64DXSM:
        if not 0 <= entity < 2**64:
            raise ValueError(f"entity {entity} is outside 0 .. 2**64 - 1")
        key = (purpose, self.replication, *_name_words(stream_name), entity & _WORD, entity >> 32)
        if self.branch:
            key = (purpose + _OF_BRANCH, *key[1:], self.branch & _WORD, self.branch >> 32)
        return np.random.PCG64DXSM(np.random.SeedSequence(entropy=self.root_seed, spawn_key=key))


def next_uniforms(words: np.random.PCG64DXSM, count: int) -> NDArray[np.float64]:
    """Return as many further values of a uniform sequence."""
    taken: NDArray[np.uint64] = np.asarray(words.random_raw(count), dtype=np.uint64)
    # 52 bits and a half step: exact in a double, and neither 0 nor 1 can come out.
    result: NDArray[np.float64] = ((taken >> _MANTISSA_SHIFT).astype(np.float64) + 0.5) * _STEP
    return result
