"""When what comes at a rate comes: gaps drawn or even, and a rate that rises and falls over time.

Rule of a load that is not the same all day (:class:`StretchSpec`): stretches of time follow one another, each with a
share of the usual rate, and begin anew after the last.  A gap lasts until as much of the load has come as comes in it
at the usual rate (inversion of the cumulated rate: Cinlar, Introduction to Stochastic Processes, 1975).  With
exponential gaps that is the Poisson process of that rate; others keep their coefficient of variation within a stretch.
Draws are those of the usual rate.

Left out: shares that change within a stretch; several short ones in a row come close.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, pairwise, takewhile
from typing import Annotated, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from vftsim.kernel import Engine, Record, Sim, Table
from vftsim.kernel.inputs import draw
from vftsim.platform.arithmetic import LARGEST
from vftsim.spec.base import Items, Spec
from vftsim.spec.units import PERCENT, PeriodNs


class StretchSpec(Spec):
    """A stretch of time with a load of its own."""

    duration: PeriodNs = Field(description="How long it lasts.")
    rate: Annotated[float, replace(PERCENT, upper=100_000, example="300 %")] = Field(
        description="Share of the workload's usual rate that comes in it; 0: nothing."
    )


class Stretch(Record):
    """A stretch of a load profile and the next one's row; in a ns of it comes what comes in ``share`` ns else."""

    duration_ns: int
    share: float
    next_row: int


class Gaps(Record):
    """Times between what a client begins at a rate: drawn ones of a feed, or ``whole_ns`` and ``rest`` of a ns each.

    ``owed`` is what rests have added up to; whoever is not the first of its kind begins ``phase_ns`` of the usual
    rate later.
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


def begins_ns(sim: Sim, gaps: Gaps) -> int:
    """Return when a client begins, counted from the start: when the load of its phase has come."""
    return gaps.phase_ns if gaps.stretch == 0 else in_profile_ns(sim, gaps, gaps.phase_ns)


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


class LoadProfileSpec(Spec):
    """The same of workloads whose rate may rise and fall over time."""

    load_profile: Items[StretchSpec] = Field(
        (),
        max_length=1000,
        description="How the rate rises and falls: stretches from the start of the load (or step) on, and then anew. "
        "The same at all times if not given.",
    )

    @model_validator(mode="after")
    def _comes(self) -> Self:
        if self.mean_share == 0.0:
            raise ValueError("load_profile: in none of its stretches anything comes; let one have a rate above 0 %")
        return self

    @property
    def profile_ns(self) -> int:
        """How long the profile lasts; 0 without one."""
        return sum(stretch.duration for stretch in self.load_profile)

    @property
    def idle_ns(self) -> int:
        """How long nothing comes at first."""
        return sum(stretch.duration for stretch in takewhile(lambda each: each.rate == 0.0, self.load_profile))

    @property
    def mean_share(self) -> float:
        """The mean rate as a share of the usual one."""
        if not self.load_profile:
            return 1.0
        return math.fsum(stretch.duration * stretch.rate for stretch in self.load_profile) / (100.0 * self.profile_ns)

    @property
    def highest_share(self) -> float:
        """The highest rate as a share of the usual one."""
        return max((stretch.rate / 100.0 for stretch in self.load_profile), default=1.0)

    def counted_ns(self, begin_ns: int, end_ns: int) -> tuple[int, int]:
        """Return from and to when its figures are, counted from where it begins, if a run is measured so."""
        return begin_ns, end_ns

    def unseen_peak(self, begin_ns: int, end_ns: int) -> StretchSpec | None:
        """Return the stretch with the highest rate if it is not between two instants; None: as much comes there."""
        if end_ns - begin_ns >= self.profile_ns:
            return None
        twice = (*self.load_profile, *self.load_profile)
        ends_ns = accumulate((stretch.duration for stretch in twice), initial=begin_ns - begin_ns % self.profile_ns)
        rates = [
            stretch.rate
            for stretch, (from_ns, to_ns) in zip(twice, pairwise(ends_ns), strict=True)
            if from_ns < end_ns and to_ns > begin_ns
        ]
        peak = max(self.load_profile, key=lambda stretch: stretch.rate)
        return peak if peak.rate > max(rates) else None

    def due_ns(self, load_ns: float) -> float:
        """Return when as much has come as comes in ``load_ns`` at the usual rate."""
        if not self.load_profile:
            return load_ns
        whole, left_ns = divmod(load_ns, self.mean_share * self.profile_ns)
        due_ns = whole * self.profile_ns
        for stretch in self.load_profile:
            room_ns = stretch.duration * stretch.rate / 100.0
            if left_ns <= room_ns:
                return due_ns + (left_ns * 100.0 / stretch.rate if left_ns else 0.0)
            left_ns -= room_ns
            due_ns += stretch.duration
        return due_ns

    def all_due_ns(self, loads_ns: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return :meth:`due_ns` of each."""
        if not self.load_profile:
            return loads_ns
        wholes, left_ns = np.divmod(loads_ns, self.mean_share * self.profile_ns)
        ends_ns = [*accumulate((stretch.duration for stretch in self.load_profile), initial=0)]
        come_ns = [*map(self.load_ns, ends_ns[:-1]), self.mean_share * self.profile_ns]
        due_ns: NDArray[np.float64] = wholes * self.profile_ns + np.interp(left_ns, come_ns, ends_ns)
        return due_ns

    def share_of_last(self, mean_ns: int) -> float:
        """Return the share of the usual number under way at the start, of what lasts an exponential time."""
        if not self.load_profile:
            return 1.0
        shares, age = [], 0.0
        for stretch in reversed(self.load_profile):
            lasts = stretch.duration / mean_ns
            shares.append(math.exp(-age) * -math.expm1(-lasts) * stretch.rate / 100.0)
            age += lasts
        return math.fsum(shares) / -math.expm1(-age)

    def load_ns(self, end_ns: int) -> float:
        """Return in what time at the usual rate as much comes as from the start to ``end_ns``; below 0 before it."""
        if not self.load_profile:
            return end_ns
        whole, left_ns = divmod(end_ns, self.profile_ns)
        loads_ns = [whole * self.mean_share * self.profile_ns]
        for stretch in self.load_profile:
            loads_ns.append(min(left_ns, stretch.duration) * stretch.rate / 100.0)
            left_ns -= min(left_ns, stretch.duration)
        return math.fsum(loads_ns)

    def add_profile(self, engine: Engine) -> list[int]:
        """Add the stretches; return their rows."""
        rows = [
            engine.add(stretches, duration_ns=stretch.duration, share=stretch.rate / 100.0)[0]
            for stretch in self.load_profile
        ]
        for row, next_row in zip(rows, [*rows[1:], *rows[:1]], strict=True):
            engine.rows(stretches)[row].next_row = next_row
        return rows

    def begin_profile(self, gaps: Gaps, rows: Sequence[int], begin_ns: int = 0) -> None:
        """Let gaps follow the profile in these rows, from ``begin_ns`` of it on (below 0: of the one before)."""
        if not rows:
            return
        gaps.profile_ns, gaps.profile_load_ns = self.profile_ns, self.mean_share * self.profile_ns
        gaps.come_ns, gaps.part_ns = 0, 0.0
        gaps.stretch_end_ns = -(begin_ns % self.profile_ns)
        for row, stretch in zip(rows, self.load_profile, strict=True):
            gaps.stretch = row
            gaps.stretch_end_ns += stretch.duration
            if gaps.stretch_end_ns > 0:
                break
