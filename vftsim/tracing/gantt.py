"""The schedule as a Gantt chart: a row a pCPU, a colour a domain.

A slice at BOOST priority stands taller; what is shorter than a few tenths of a pixel is drawn all the same, so a
busy window shows as a texture, not as a gap.  Idle pCPUs stay white.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from matplotlib.colors import to_rgb

from vftsim.tracing.schedule import Slice
from vftsim.tracing.trace import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Color = tuple[float, ...]
_COLORS = ("#1b6ca8", "#c8553d", "#3a7d44", "#d9a441", "#7b4b94", "#0f8b8d", "#a4243b", "#555555")
_SHADES = ((0.0, 0.0), (0.0, 0.45), (1.0, 0.45))
"""What the colours of the next eight domains, and of those after them, go towards (black, white), and how far."""
_HEIGHT, _BOOSTED_HEIGHT = 0.62, 0.88
_NAMES_ACROSS, _HANDLE = 150, 9
"""Letters of a legend that have room beside each other, and what a colour and the gap to the next name take of it."""


def draw_gantt(trace: Trace, ax: Axes) -> None:
    """Draw who ran where; names stand in slices that have room for them."""
    domains = list(dict.fromkeys(_domain(trace, s) for s in trace.slices))
    order = [d for d in dict.fromkeys(name.rpartition(".")[0] for name in trace.vcpu_names) if d in domains]
    span_ms = (trace.end_ns - trace.start_ns) / 1e6
    for number, domain in enumerate(order):
        color = _color(number)
        of_domain = [s for s in trace.slices if _domain(trace, s) == domain]
        label: str | None = domain
        for boosted in (False, True):
            slices = [s for s in of_domain if (s.priority == "BOOST") == boosted]
            label = _bars(trace, slices, ax, color, _BOOSTED_HEIGHT if boosted else _HEIGHT, label)
    for s in trace.slices:
        if (s.end_ns - s.start_ns) / 1e6 > 0.06 * span_ms:
            middle_ms = ((s.start_ns + s.end_ns) / 2 - trace.start_ns) / 1e6
            text = f"{trace.vcpu_names[s.vcpu]}\n{s.priority}" if s.priority else trace.vcpu_names[s.vcpu]
            ax.text(middle_ms, s.pcpu, text, ha="center", va="center", fontsize=7, color="white")
    ax.set_yticks(range(trace.pcpus), trace.pcpu_names)
    ax.set_ylim(trace.pcpus - 0.4, -0.6)
    ax.set_xlim(0.0, span_ms)
    ax.set_xlabel(f"ms after {trace.start_ns / 1e6:g} ms")
    ax.spines[["top", "right"]].set_visible(False)
    title = "domains; taller: at BOOST priority" if any(s.priority == "BOOST" for s in trace.slices) else "domains"
    if order:
        ax.legend(
            ncols=max(1, _NAMES_ACROSS // (_HANDLE + max(map(len, order)))),
            fontsize="small",
            frameon=False,
            loc="lower center",
            bbox_to_anchor=(0.5, 1.0),
            title=title,
            title_fontsize="small",
        )


def _color(number: int) -> Color:
    """Return the colour of a domain: one that no other of the first 24 has."""
    cycle, index = divmod(number, len(_COLORS))
    towards, share = _SHADES[cycle % len(_SHADES)]
    return tuple(x + share * (towards - x) for x in to_rgb(_COLORS[index]))


def _domain(trace: Trace, piece: Slice) -> str:
    return trace.vcpu_names[piece.vcpu].rpartition(".")[0]


def _bars(
    trace: Trace, slices: Sequence[Slice], ax: Axes, color: Color, height: float, label: str | None
) -> str | None:
    """Draw slices of one height; return the label if none has taken it yet."""
    for pcpu in range(trace.pcpus):
        bars = [((s.start_ns - trace.start_ns) / 1e6, (s.end_ns - s.start_ns) / 1e6) for s in slices if s.pcpu == pcpu]
        if not bars:
            continue
        ax.broken_barh(
            bars, (pcpu - height / 2, height), facecolors=color, edgecolors=color, linewidth=0.2, label=label
        )
        label = None
    return label
