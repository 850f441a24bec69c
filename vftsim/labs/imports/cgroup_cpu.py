"""Samples of a control group's ``cpu.stat``: CPU of one core, share of periods throttled, time throttled.

The kernel keeps totals only, so samples are made by a loop; a line that is a bare number is the time in seconds::

    while sleep 1; do date +%s.%N; cat /sys/fs/cgroup/GROUP/cpu.stat; done > cpu.stat.txt

Version 2 has ``usage_usec`` (Linux, Documentation/admin-guide/cgroup-v2.rst, CPU Interface Files); with version 1 add
``echo usage_nsec $(cat .../cpuacct.usage)`` to the loop.
"""

import itertools
import re

from vftsim.labs.importing import Figure, Source, importer, of_share, of_values

_TOTALS_S = (
    ("cpu", "usage_usec", 1e-6),
    ("cpu", "usage_nsec", 1e-9),
    ("throttled", "throttled_usec", 1e-6),
    ("throttled", "throttled_time", 1e-9),
)
"""Metric, the key of its total, and the seconds of one of its units."""
_STAMP = re.compile(r"[0-9]{9,11}(\.[0-9]+)?")
_ENTRY = re.compile(r"(?P<key>[a-z_]+(?:\.[a-z_]+)*) (?P<value>\S+)")
_Sample = dict[str, tuple[float, int]]
_Step = tuple[tuple[float, _Sample], tuple[float, _Sample]]
"""A time and what it has, and the next."""


def _recognizes(text: str) -> bool:
    lines = text.split("\n", 3)
    return (
        len(lines) > 2 and _STAMP.fullmatch(lines[0].strip()) is not None and bool(_ENTRY.fullmatch(lines[1].strip()))
    )


@importer("cgroup-cpu", "samples of a control group's cpu.stat, each after its time", _recognizes)
def _read(source: Source) -> list[Figure]:
    stamped = _samples(source)
    if len(stamped) < 2:
        source.refuse(f"has {len(stamped)} samples; CPU use needs two at least")
    start = stamped[0][0]
    inside = [each for each in stamped if source.window.holds(each[0] - start, each[0] - start)]
    if len(inside) < 2:
        return []
    steps = list(itertools.pairwise(inside))
    counters = inside[0][1]
    figures = [_use(metric, source, steps, key, size) for metric, key, size in _TOTALS_S if key in counters]
    return figures + _throttled_periods(source, steps)


def _samples(source: Source) -> list[tuple[float, _Sample]]:
    samples: list[tuple[float, _Sample]] = []
    for line, text in enumerate(source.lines, start=1):
        word = text.strip()
        entry = _ENTRY.fullmatch(word)
        if _STAMP.fullmatch(word):
            at = float(word)
            if samples and at <= samples[-1][0]:
                source.refuse("is a time that is not after the one before", line)
            samples.append((at, {}))
        elif entry and samples:
            samples[-1][1][entry["key"]] = source.number(entry["value"], line, entry["key"]), line
        elif word:
            source.refuse("is neither a time in seconds nor a key and a number of cpu.stat", line)
    _check_same_keys(source, samples)
    return samples


def _check_same_keys(source: Source, samples: list[tuple[float, _Sample]]) -> None:
    for _, sample in samples[1:]:
        for key, (_, line) in samples[0][1].items():
            if key not in sample:
                source.refuse(f"a later sample lacks {key}; was the file cut?", line, key)


def _use(metric: str, source: Source, steps: list[_Step], key: str, size: float) -> Figure:
    shares = [100.0 * size * _grown(source, a[1], b[1], key) / (b[0] - a[0]) for a, b in steps]
    first, last = steps[0][0], steps[-1][1]
    mean = 100.0 * size * (last[1][key][0] - first[1][key][0]) / (last[0] - first[0])
    return of_values(metric, "%", shares, mean=mean)


def _throttled_periods(source: Source, steps: list[_Step]) -> list[Figure]:
    first, last = steps[0][0][1], steps[-1][1][1]
    if "nr_periods" not in first or "nr_throttled" not in first:
        return []
    periods = _grown(source, first, last, "nr_periods")
    return of_share("throttled_periods", _grown(source, first, last, "nr_throttled"), periods)


def _grown(source: Source, before: _Sample, after: _Sample, key: str) -> float:
    grown = after[key][0] - before[key][0]
    if grown < 0:
        source.refuse("is less than in the sample before; was the group made anew?", after[key][1], key)
    return grown
