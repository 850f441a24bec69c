"""What receivers of media streams make of a list of packets, written a second time from RFC 3550 and ITU-T G.107.

It shares nothing with the package.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import NamedTuple

from tests.reference_clock import MS


class Sent(NamedTuple):
    """``end_ns`` is when it came back, or was lost."""

    sent_ns: int
    stream: int
    end_ns: int
    is_lost: bool
    wire_ns: int

    @property
    def delay_ns(self) -> int:
        return self.end_ns - self.sent_ns + self.wire_ns


@dataclass
class Receiver:
    """A packet with a delay above ``playout_ns`` is too late; ``interval_ns`` is between packets of a stream."""

    packets: list[Sent]
    interval_ns: int
    playout_ns: int

    @property
    def come(self) -> list[Sent]:
        return sorted((each for each in self.packets if not each.is_lost), key=lambda each: each.end_ns)

    @property
    def lost(self) -> list[Sent]:
        return [each for each in self.packets if each.is_lost]

    @property
    def late(self) -> int:
        return sum(each.delay_ns > self.playout_ns for each in self.come)

    @property
    def jitter_ns(self) -> float:
        """RFC 3550, 6.4.1: D of successive packets of a source, in the order in which they arrive; mean of |D|."""
        differences, last = [], {}
        for each in self.come:
            if each.stream in last:
                differences.append(abs(each.delay_ns - last[each.stream]))
            last[each.stream] = each.delay_ns
        return math.fsum(differences) / len(differences) if differences else 0.0

    @property
    def events(self) -> int:
        """Losses less than a packet interval apart, of whatever stream, are one."""
        times_ns = sorted(each.end_ns for each in self.lost)
        return sum(n == 0 or time_ns - times_ns[n - 1] >= self.interval_ns for n, time_ns in enumerate(times_ns))

    @property
    def bursts(self) -> int:
        """Rows of packets of a stream, one after the other as they were sent, that were lost or late."""
        streams = defaultdict(list)
        for each in sorted(self.packets):
            if each.is_lost or each.delay_ns > self.playout_ns:
                streams[each.stream].append(each.sent_ns)
        rows = streams.values()
        return sum(n == 0 or row[n] - row[n - 1] > 1.5 * self.interval_ns for row in rows for n in range(len(row)))

    def rating(self, ie: float, bpl: float, look_ahead_ns: int) -> float:
        """R of G.107; not a number beyond its table 2."""
        gone, known = len(self.lost) + self.late, len(self.packets)
        share = gone / known if known else 1.0
        delay_ms = (self.interval_ns + self.playout_ns + look_ahead_ns) / MS
        if delay_ms > 500 or share > 0.2:
            return math.nan
        burst_ratio = gone / self.bursts * (1 - share) if gone else 1.0
        return r_factor(delay_ms, 100 * share, ie, bpl, max(1.0, burst_ratio))


def r_factor(t: float, ppl: float, ie: float, bpl: float, burst_r: float) -> float:
    """G.107 (06/2015), equations 7-1 to 7-29, with the defaults of table 2; one-way delay ``t`` in ms."""
    slr, rlr, stmr, lstr, ds, telr, wepl, nc, nfor, ps, pr = 8, 2, 15, 18, 3, 65, 110, -70, -64, 35, 35
    olr = slr + rlr
    pre = pr + 10 * math.log10(1 + 10 ** ((10 - lstr) / 10))
    nos = ps - slr - ds - 100 + 0.004 * (ps - olr - ds - 14) ** 2
    nor = rlr - 121 + pre + 0.008 * (pre - 35) ** 2
    no = 10 * math.log10(sum(10 ** (n / 10) for n in (nc, nos, nor, nfor + rlr)))
    ro = 15 - 1.5 * (slr + no)
    x = olr + 0.2 * (64 + no - rlr)
    iolr = 20 * ((1 + (x / 8) ** 8) ** (1 / 8) - x / 8)
    stmro = -10 * math.log10(10 ** (-stmr / 10) + math.exp(-t / 4) * 10 ** (-telr / 10))
    ist = 12 * (1 + ((stmro - 13) / 6) ** 8) ** (1 / 8) - 28 * (1 + ((stmro + 1) / 19.4) ** 35) ** (1 / 35)
    ist += -13 * (1 + ((stmro - 3) / 33) ** 13) ** (1 / 13) + 29
    g = 1.07 + 0.258 * 37 + 0.0602 * 37**2
    iq = 15 * math.log10(1 + 10 ** ((ro - 100) / 15 + 46 / 8.4 - g / 9) + 10 ** (46 / 30 - g / 40))
    terv = telr - 40 * math.log10((1 + t / 10) / (1 + t / 150)) + 6 * math.exp(-0.3 * t**2)
    roe, re = -1.5 * (no - rlr), 80 + 2.5 * (terv - 14)
    idte = ((roe - re) / 2 + math.sqrt((roe - re) ** 2 / 4 + 100) - 1) * (1 - math.exp(-t)) if t >= 1 else 0
    rle = 10.5 * (wepl + 7) * (2 * t + 1) ** -0.25
    idle = (ro - rle) / 2 + math.sqrt((ro - rle) ** 2 / 4 + 169)
    x = math.log(t / 100) / math.log(2) if t > 100 else 0
    idd = 25 * ((1 + x**6) ** (1 / 6) - 3 * (1 + (x / 3) ** 6) ** (1 / 6) + 2) if t > 100 else 0
    ie_eff = ie + (95 - ie) * ppl / (ppl / burst_r + bpl)
    return ro - (iolr + ist + iq) - (idte + idle + idd) - ie_eff


def mos(r: float) -> float:
    """G.107, annex B."""
    if r <= 0 or r >= 100:
        return 1.0 if r <= 0 else 4.5
    # In this order what is not a number stays so.
    return max(1 + 0.035 * r + r * (r - 60) * (100 - r) * 7e-6, 1.0)
