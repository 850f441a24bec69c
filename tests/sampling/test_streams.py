"""Streams: what a draw depends on, and what it must not depend on."""

import subprocess
import sys
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest

from vftsim.errors import UsageError
from vftsim.sampling import Streams

SAMPLE = "sip.ring_time"


SHOW = "[*s.uniforms('a', 11, start=5, count=3).tolist(), int(s.generator('a', 11).integers(2**62))]"


def test_same_key_gives_same_numbers_in_another_process():
    """Another process, with another hash seed, sees the same stream."""
    code = f"from vftsim.sampling import Streams; s = Streams(7, 3); print({SHOW})"
    path = ":".join(filter(None, sys.path))
    answers = {
        subprocess.run(
            [sys.executable, "-c", code],
            check=True,
            capture_output=True,
            text=True,
            env={"PYTHONPATH": path, "PYTHONHASHSEED": seed},
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert answers == {str(eval(SHOW, {"s": Streams(7, 3)}))}


def test_values_of_the_scheme_are_pinned():
    """A change of these numbers is a change of STREAM_SCHEME."""
    assert Streams(1, 0).uniforms("a", count=2).tolist() == [0.05648756799280974, 0.660474480447916]


@pytest.mark.parametrize(
    ("other", "name", "entity"),
    [
        (Streams(2, 0), SAMPLE, 0),
        (Streams(1, 1), SAMPLE, 0),
        (Streams(1, 0), "sip.hold_time", 0),
        (Streams(1, 0), SAMPLE, 1),
        (Streams(1, 0), SAMPLE, 2**32),
        (Streams(1 + 2**32, 0), SAMPLE, 0),
    ],
)
def test_every_part_of_the_key_counts(other, name, entity):
    """The streams of different keys are uncorrelated: |r| * sqrt(n) is standard normal."""
    n = 10_000
    a = Streams(1, 0).uniforms(SAMPLE, count=n)
    b = other.uniforms(name, entity, count=n)
    assert abs(np.corrcoef(a, b)[0, 1]) * np.sqrt(n) <= 3.5


def test_a_branch_has_streams_of_its_own_and_0_is_the_replication():
    streams, n = Streams(1, 0), 10_000
    drawn = streams.uniforms(SAMPLE, count=n)
    found = [drawn]
    for branch in (1, 2, 2**32, 2**32 + 1):
        streams.branch_off(branch)
        found.append(streams.uniforms(SAMPLE, count=n))
    assert (np.abs(np.corrcoef(found)[np.triu_indices(len(found), 1)]) * np.sqrt(n) <= 4.0).all()
    streams.branch_off(2)
    assert streams.uniforms(SAMPLE, count=n).tolist() == found[2].tolist()
    streams.branch_off(0)
    assert streams.uniforms(SAMPLE, count=n).tolist() == drawn.tolist()
    with pytest.raises(ValueError, match="branch"):
        streams.branch_off(-1)


def test_generator_and_uniforms_of_one_key_are_different_streams():
    bits = Streams(1, 0).generator(SAMPLE).bit_generator.random_raw(1000)
    uniforms = Streams(1, 0).uniforms(SAMPLE, count=1000)
    assert not np.any((bits >> np.uint64(12)) == np.floor(uniforms * 2.0**52).astype(np.uint64))


def test_uniforms_do_not_depend_on_how_the_sequence_is_cut():
    streams = Streams(5, 2)
    whole = streams.uniforms(SAMPLE, 9, count=1000)
    pieces = [streams.uniforms(SAMPLE, 9, start=a, count=b - a) for a, b in ((0, 1), (1, 640), (640, 1000))]
    assert np.array_equal(whole, np.concatenate(pieces))


def test_uniforms_are_uniform():
    """Mean 1/2 with sd sqrt(1/12 n), mean square 1/3 with sd sqrt(4/45 n); open interval."""
    n = 200_000
    u = Streams(3, 0).uniforms("u", count=n)
    assert abs(u.mean() - 1 / 2) <= 3.5 * np.sqrt(1 / 12 / n)
    assert abs((u**2).mean() - 1 / 3) <= 3.5 * np.sqrt(4 / 45 / n)
    assert u.min() > 0.0
    assert u.max() < 1.0


class Words:
    """A bit generator that gives what the test wants."""

    given: ClassVar[list[int]] = []

    def __init__(self, seed):
        assert isinstance(seed, np.random.SeedSequence)

    def random_raw(self, count):
        return np.array(self.given[:count], dtype=np.uint64)


def test_ends_of_the_open_interval_survive_rounding(monkeypatch):
    """The words with no bit and with every bit set give 2**-53 and 1 - 2**-53: neither 0 nor 1."""
    monkeypatch.setattr(np.random, "PCG64DXSM", Words)
    monkeypatch.setattr(Words, "given", [0, 2**64 - 1, 2**63])
    lowest, highest, middle = Streams(1, 0).uniforms("any", count=3).tolist()
    assert (lowest.hex(), highest.hex()) == ("0x1.0000000000000p-53", "0x1.fffffffffffffp-1")
    assert 0.5 < middle <= 0.5 + 2.0**-52


def test_a_uniform_is_its_word_as_a_fraction(monkeypatch):
    """Exactly the middle of the 2**52 equal cells of (0, 1) that holds word / 2**64, and never another cell."""
    words = [int(word) for word in np.random.PCG64DXSM(5).random_raw(500)] + [k << 12 for k in (1, 2, 3, 2**51)]
    monkeypatch.setattr(np.random, "PCG64DXSM", Words)
    monkeypatch.setattr(Words, "given", words)
    for word, u in zip(words, Streams(1, 0).uniforms("any", count=len(words)).tolist(), strict=True):
        cell = Fraction(word, 2**64) // Fraction(1, 2**52)
        assert Fraction(u) == Fraction(2 * cell + 1, 2**53)


def test_global_generator_is_not_used(monkeypatch):
    def poisoned(*args, **kwargs):
        raise AssertionError("the global NumPy generator was used")

    for name in (
        "random",
        "random_sample",
        "rand",
        "uniform",
        "exponential",
        "seed",
        "get_state",
        "default_rng",
    ):
        monkeypatch.setattr(np.random, name, poisoned)
    streams = Streams(1, 0)
    streams.uniforms(SAMPLE, count=10)
    streams.generator(SAMPLE).random(10)


@pytest.mark.parametrize(("seed", "replication"), [(-1, 0), (2**128, 0), (0, -1), (0, 2**32)])
def test_impossible_seed_is_the_users_mistake(seed, replication):
    with pytest.raises(UsageError, match="outside"):
        Streams(seed, replication)


def test_impossible_entity_and_range_are_refused():
    with pytest.raises(ValueError, match="entity"):
        Streams(1, 0).generator("a", -1)
    with pytest.raises(ValueError, match="entity"):
        Streams(1, 0).generator("a", 2**64)
    with pytest.raises(ValueError, match="negative"):
        Streams(1, 0).uniforms("a", start=-1, count=1)
