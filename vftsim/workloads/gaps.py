"""When what comes at a rate comes: gaps drawn or even, and a rate that rises and falls over time.

Rule of a load that is not the same all day (:class:`StretchSpec`): stretches of time follow one another, each with a
share of the usual rate, and begin anew after the last.  A gap lasts until as much of the load has come as comes in it
at the usual rate (inversion of the cumulated rate: Cinlar, Introduction to Stochastic Processes, 1975).  With
exponential gaps that is the Poisson process of that rate; others keep their coefficient of variation within a stretch.
Draws are those of the usual rate.

Left out: shares that change within a stretch; several short ones in a row come close.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import fsum
from typing import Annotated

from pydantic import Field

from vftsim.kernel import Engine, Record, Sim, Table, part
from vftsim.kernel.inputs import draw
from vftsim.platform.arithmetic import LARGEST
from vftsim.spec.base import Spec
from vftsim.spec.units import PERCENT, PeriodNs


class StretchSpec(Spec):
    """A stretch of time with a load of its own."""

    duration: PeriodNs = Field(description="How long it lasts.")
    rate: Annotated[float, replace(PERCENT, upper=100_000, example="300 %")] = Field(
        description="Share of the workload's `rate` that comes in it; 0: nothing."
    )


class Stretch(Record):
    """A stretch of a load profile and the next one's row; in a ns of it comes what comes in ``share`` ns else."""

    duration_ns: int
    share: float
    next_row: int


class Gaps(Record):
    """Times between what a client begins at a rate: drawn ones of a feed, or ``whole_ns`` and ``rest`` of a ns each.

    ``owed`` is what rests have added up to; whoever is not the first of its kind begins ``phase_ns`` later.
    A load that has a profile is in ``stretch``, which ends at ``stretch_end_ns``; what is due up to ``come_ns`` and
    ``part_ns`` of a ns has come.  The whole profile lasts ``profile_ns``, and has the load of ``profile_load_ns`` else.
    """

    drawn: int
    whole_ns: int
    rest: float
    owed: float
    phase_ns: int
    stretch: int
    stretch_end_ns: int
    come_ns: int
    part_ns: float
    profile_ns: int
    profile_load_ns: float


stretches = Table("stretches", Stretch, 1 << 16, "let load profiles have fewer stretches")


@part
def next_gap_ns(sim: Sim, gaps: Gaps) -> int:
    """Return the time to the next; of gaps that do not vary those of a part of a ns come up to whole ones."""
    gap_ns = 0
    if gaps.drawn > 0:
        gap_ns = draw(sim, gaps.drawn)
    else:
        gaps.owed += gaps.rest
        more_ns = int(gaps.owed)
        gaps.owed -= more_ns
        gap_ns = gaps.whole_ns + more_ns
    return gap_ns if gaps.stretch == 0 else in_profile_ns(sim, gaps, gap_ns)


@part
def in_profile_ns(sim: Sim, gaps: Gaps, gap_ns: int) -> int:
    """Return how long it takes until as much has come as comes in a gap at the usual rate."""
    before_ns = gaps.come_ns
    left_ns = float(gap_ns)
    # Whole profiles at once, as far as there is an instant that they end at.
    profiles = int(left_ns / gaps.profile_load_ns)
    if profiles > (LARGEST - gaps.stretch_end_ns) // gaps.profile_ns:
        return LARGEST - sim.now_ns
    left_ns = max(0.0, left_ns - profiles * gaps.profile_load_ns)
    gaps.come_ns += profiles * gaps.profile_ns
    gaps.stretch_end_ns += profiles * gaps.profile_ns
    room_ns = (gaps.stretch_end_ns - gaps.come_ns) * stretches(sim)[gaps.stretch].share
    while left_ns >= room_ns:
        left_ns -= room_ns
        gaps.come_ns = gaps.stretch_end_ns
        gaps.stretch = stretches(sim)[gaps.stretch].next_row
        gaps.stretch_end_ns += stretches(sim)[gaps.stretch].duration_ns
        room_ns = stretches(sim)[gaps.stretch].duration_ns * stretches(sim)[gaps.stretch].share
    gaps.part_ns += left_ns / stretches(sim)[gaps.stretch].share
    whole_ns = int(gaps.part_ns)
    gaps.part_ns -= whole_ns
    gaps.come_ns += whole_ns
    return gaps.come_ns - before_ns


def set_load_profile(engine: Engine, gaps: Gaps, profile: Sequence[StretchSpec]) -> None:
    """Let the load have a profile; without stretches it is the same at all times."""
    if not profile:
        return
    rows = [engine.add(stretches, duration_ns=each.duration, share=each.rate / 100.0)[0] for each in profile]
    for row, next_row in zip(rows, [*rows[1:], rows[0]], strict=True):
        engine.rows(stretches)[row].next_row = next_row
    gaps.stretch, gaps.stretch_end_ns = rows[0], profile[0].duration
    gaps.profile_ns = sum(each.duration for each in profile)
    gaps.profile_load_ns = mean_share(profile) * gaps.profile_ns


def mean_share(profile: Sequence[StretchSpec]) -> float:
    """Return the mean rate of a load profile as a share of the usual one; 1 without stretches."""
    if not profile:
        return 1.0
    return fsum(each.duration * each.rate for each in profile) / (100.0 * sum(each.duration for each in profile))
