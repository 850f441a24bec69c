"""Endless sequences: the same element whatever was asked before, in bounded memory."""

from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vftsim.sampling import ChunkedDraws, Streams, exponential_ns, unit_exponential

STREAMS = Streams(4, 1)
LENGTH = 200
REFERENCE = exponential_ns(STREAMS.uniforms("gap", 3, count=LENGTH), 1e6).tolist()


def sequence(chunk_size: int = 16, kept_chunks: int = 2) -> ChunkedDraws[int]:
    return ChunkedDraws(
        STREAMS,
        "gap",
        lambda u: exponential_ns(u, 1e6),
        entity=3,
        chunk_size=chunk_size,
        kept_chunks=kept_chunks,
    )


@given(st.lists(st.integers(0, LENGTH - 1)), st.integers(1, 70), st.integers(1, 4))
def test_element_does_not_depend_on_access_order_or_chunks(order, chunk_size, kept_chunks):
    draws = sequence(chunk_size, kept_chunks)
    assert [draws[i] for i in order] == [REFERENCE[i] for i in order]


def test_iteration_starts_at_the_first_element():
    assert list(islice(sequence(), LENGTH)) == REFERENCE


def test_elements_are_python_numbers():
    assert type(sequence()[0]) is int
    assert type(ChunkedDraws(STREAMS, "x", unit_exponential)[0]) is float


def test_only_the_last_chunks_are_kept_and_drawn_once():
    """Chunks 0 0 1 2 0 with two kept: drawn are 0, 1, 2 and, forgotten, 0 again."""
    sizes = []

    def transform(u):
        sizes.append(len(u))
        return unit_exponential(u)

    draws = ChunkedDraws(STREAMS, "x", transform, chunk_size=8, kept_chunks=2)
    for index in (0, 7, 8, 16, 3):
        draws[index]
    assert sizes == [8] * 4
    assert draws[16] > 0
    assert sizes == [8] * 4


def test_negative_index_and_sizes_are_refused():
    draws = sequence()
    with pytest.raises(IndexError):
        draws[-1]
    draws[0]
    with pytest.raises(IndexError):
        draws[-1]
    with pytest.raises(ValueError, match="at least 1"):
        sequence(chunk_size=0)
