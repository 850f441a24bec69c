"""Prices of a checkpoint's pause from two published points: Remus (NSDI 2008), kernel compile.

    python experiments/remus-prices/derive.py

The compile took 31 % longer at 10 checkpoints a second and 103 % longer at 40.  By the rule of docs/protection/
checkpoint.md the guest runs E of each period P, and P / E is the slowdown: E = P / (1 + overhead), pause P - E.  The
pause is s + c D(E), so two points give s and c once D, the pages dirtied in E of CPU time, is stated.  D here: a
compile that writes 20,000 pages in 1.5 s (the mix ``kernel_compile``) and a working set as the mechanism's defaults
have it.  The sum is fitted to the points: it predicts neither.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence

POINTS = ((0.1, 0.31), (0.025, 1.03))
"""Period in s, and by how much longer the compile took."""
PAGES_PER_S = 20_000 / 1.5
WORKING_SET, TOUCH_RATE = 2_000, 10_000.0
PAGE_BITS, FIXED_BITS, RATE, ROUND_TRIP_S = 8 * 4104, 8 * 65_536, 1e9, 150e-6


def dirty(run_s: float, pages_per_s: float = PAGES_PER_S) -> float:
    """Return the pages dirtied in so much CPU time."""
    return WORKING_SET * (1.0 - math.exp(-TOUCH_RATE * run_s / WORKING_SET)) + pages_per_s * run_s


def derived(pages_per_s: float = PAGES_PER_S) -> tuple[float, float]:
    """Return the fixed part of the pause and the part of a page, in s."""
    (run_1, pause_1), (run_2, pause_2) = ((p / (1 + o), p - p / (1 + o)) for p, o in POINTS)
    page_s = (pause_1 - pause_2) / (dirty(run_1, pages_per_s) - dirty(run_2, pages_per_s))
    return pause_1 - page_s * dirty(run_1, pages_per_s), page_s


def fits(period_s: float, overhead: float) -> bool:
    """Tell whether pause, transmission and acknowledgement fit into the period, as the rule takes for granted."""
    run_s = period_s / (1 + overhead)
    sent_s = (FIXED_BITS + PAGE_BITS * dirty(run_s)) / RATE
    return period_s - run_s + sent_s + ROUND_TRIP_S <= period_s


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the prices, with half and twice the pages."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    rows = []
    for factor in (1.0, 0.5, 2.0):
        fixed_s, page_s = derived(factor * PAGES_PER_S)
        rows.append({"pages_per_s": round(factor * PAGES_PER_S), "fixed_ms": 1e3 * fixed_s, "page_us": 1e6 * page_s})
    if parser.parse_args(arguments).json:
        print(json.dumps({"prices": rows, "fits": [fits(*point) for point in POINTS]}))
        return 0
    for row in rows:
        print(
            "{pages_per_s} pages/s of the job: pause.fixed {fixed_ms:.1f} ms, pause.page {page_us:.1f} us".format(**row)
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
