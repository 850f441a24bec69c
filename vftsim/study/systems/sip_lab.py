"""The SIP lab: a server under the IMS benchmark."""

# ruff: noqa: PLC0415 - imports wait until they are needed: --help stays fast

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from vftsim.sip.system import SipLabSpec
from vftsim.spec import format_duration
from vftsim.study.sip_records import SipRecord, from_dict, to_dict
from vftsim.study.system import Shortened

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from vftsim.kernel import Linked
    from vftsim.study.capacity_request import CapacityAnswer, CapacityRequest
    from vftsim.study.model import Model

_S = 1_000_000_000
_SHORTEST_NS = 2 * _S
_QUICK_NS = 60 * _S


class SipLabSystem:
    """Runs :class:`vftsim.sip.lab.SipLab` and makes the tables of the benchmark's report."""

    kind = "sip_lab"
    root = SipLabSpec

    def kernel(self, spec: SipLabSpec) -> Linked:
        """Return the kernel with the parts of this lab."""
        from vftsim.sip.build import linked_for

        return linked_for(spec)

    def simulate(self, spec: SipLabSpec, seed: int, replication: int) -> SipRecord:
        """Play the whole benchmark once."""
        from vftsim.sip.lab import SipLab

        return SipLab(spec, seed, replication).run()

    def to_dict(self, record: SipRecord) -> dict[str, Any]:
        """Return the phases of a replication as plain data."""
        return to_dict(record)

    def from_dict(self, data: Mapping[str, Any]) -> SipRecord:
        """Rebuild what :meth:`to_dict` returned."""
        return from_dict(data)

    def tables(self, name: str, spec: SipLabSpec, records: Sequence[tuple[int, SipRecord]]) -> dict[str, pd.DataFrame]:
        """Return the tables ``steps``, ``per_second``, ``delays``, ``percentiles`` and ``series``."""
        from vftsim.study import sip_tables as tables

        return {
            "steps": tables.steps_table(name, spec.workload.steps.stop_above_ihs, records),
            "per_second": tables.per_second_table(records),
            "delays": tables.delays_table(records),
            "percentiles": tables.percentiles_table(records),
            "series": tables.series_table(records, spec.workload.sample_period),
        }

    def summary(self, tables: Mapping[str, pd.DataFrame], confidence: float) -> pd.DataFrame:
        """Return all figures across replications, in long form."""
        from vftsim.study.sip_summary import summarize

        return summarize(tables, confidence)

    def figures(self, spec: SipLabSpec, records: Sequence[tuple[int, SipRecord]]) -> dict[str, Figure]:
        """Return the plots of the benchmark's report."""
        from vftsim.report.plots import sip_figures

        return sip_figures(spec, records)

    def shorten(self, spec: SipLabSpec, factor: float) -> Shortened:
        """Scale what is measured; transients stay, as they are as long as a call lasts, not as a test."""
        steps = spec.workload.steps
        return self._with_measured(spec, round((steps.duration - steps.transient) * factor), factor)

    def quick(self, spec: SipLabSpec) -> Shortened:
        """Measure a minute of each step at most."""
        steps = spec.workload.steps
        measured_ns = steps.duration - steps.transient
        return self._with_measured(spec, min(measured_ns, _QUICK_NS), min(1.0, _QUICK_NS / measured_ns))

    def capacity(self, model: Model, request: CapacityRequest) -> CapacityAnswer:
        """Run the lab's ramp, or search at constant load."""
        from vftsim.study.capacity import sip_capacity

        return sip_capacity(model, request)

    def _with_measured(self, spec: SipLabSpec, measured_ns: int, factor: float) -> Shortened:
        workload, steps, pre = spec.workload, spec.workload.steps, spec.workload.pre_registration
        before_ns = steps.duration - steps.transient
        if measured_ns == before_ns:
            return Shortened(spec, "")
        measured_ns = max(measured_ns, min(_SHORTEST_NS, before_ns))
        registering_ns = pre.transient + round((pre.duration - pre.transient) * factor)
        pre = pre.model_copy(update={"duration": registering_ns if pre.duration > pre.transient else pre.duration})
        steps = steps.model_copy(update={"duration": steps.transient + measured_ns})
        workload = workload.model_copy(update={"steps": steps, "pre_registration": pre})
        note = (
            f"steps measured for {format_duration(measured_ns)} instead of {format_duration(before_ns)} "
            f"(transient of {format_duration(steps.transient)} kept)"
        )
        if measured_ns < before_ns:
            note += "; a shorter step leaves an overload less time to build up, so capacity may come out higher"
        return Shortened(spec.model_copy(update={"workload": workload}), note)


SYSTEM = SipLabSystem()
