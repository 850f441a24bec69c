"""What a run measures: figures declared beside the records that hold them, and how replications are put together.

A record of what somebody measured in a phase is an :class:`Outcome`.  Its class declares each figure once: name, unit,
estimator, label.  Everything above (tables, searches, files, plots) follows from that declaration and knows no kind of
workload, mechanism or host.
"""

from vftsim.outcome.declare import Entry, Figure
from vftsim.outcome.outcome import Outcome, Phase, attribute

__all__ = ["Entry", "Figure", "Outcome", "Phase", "attribute"]
