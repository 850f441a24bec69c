"""One run of a SIP lab at one load: whether the server handles it, and whether it comes back after a stop.

The registration phase is left out (subscribers are registered to begin with), the stir phase rises to the
load, and one step is measured after its transient.  The random numbers depend on seed and replication
only, so a replication is the same traffic, only denser, at a higher load.

After a stop: in the middle of the steady state, when the transient is over, the guest stands still for a
given time and its network card fills, as in a pause or a failover without loss of state.  Clients repeat
what is not answered (RFC 3261).  A window later the server has recovered if a further stretch of
attempts is handled within the IHS limit.  It is a matter of the traffic of the day, hence a probability.
"""

from dataclasses import dataclass
from functools import partial

from vftsim.composition.model import ModelSpec
from vftsim.composition.record import RunRecord
from vftsim.composition.views import ramp_of, with_domain, with_ramp
from vftsim.platform.protection.faults import Pause
from vftsim.platform.protection.when import Instant
from vftsim.spec.units import S
from vftsim.study.designs.capacity_search import JudgedLoad


@dataclass(frozen=True, slots=True)
class Stop:
    """A stop of the server and how its end is judged."""

    length_ns: int
    window_ns: int = 60 * S
    """Time it has to recover."""
    observed_ns: int = 20 * S
    """Stretch after the window whose attempts are judged."""


def constant_load(spec: ModelSpec, seed: int, limit_percent: float, stop: Stop | None = None) -> JudgedLoad:
    """Return what tells whether a replication at a load stays within the limit, after the stop if there is one.

    The limit is the allowed share of inadequately handled attempts, of any scenario and of all.
    """
    judged = partial(within_ihs, limit_percent=limit_percent)
    return JudgedLoad(spec, seed, partial(at_load, stop=stop), judged, (spec.phased or "",))


def within_ihs(record: RunRecord, limit_percent: float) -> tuple[dict[str, float], bool]:
    """Judge the step of a run by an IHS limit: no figure of it is shown, and whether it was within the limit."""
    return {}, record.steps()[0].ended_within(limit_percent)


def protected_from_start(spec: ModelSpec, *domains: str) -> ModelSpec:
    """Return the spec with the protection of domains on from the start, the first copy made."""
    for domain in domains:
        protection = spec.domains[domain].protection
        fields = {"active_from": None, "initial_copy": False}
        update = {name: value for name, value in fields.items() if getattr(protection, name, value) != value}
        if update:
            spec = with_domain(spec, domain, protection=protection.model_copy(update=update))
    return spec


def at_load(spec: ModelSpec, saps: float, stop: Stop | None = None) -> ModelSpec:
    """Return the spec with one step at a load; a stop and its window are put before the measured part.

    The model's faults belong to its own ramp and are left out; its protection is on from the start.
    """
    ramp = ramp_of(spec)
    domain = spec.target_of(ramp)[0]
    faults: tuple[Pause, ...] = ()
    transient_ns, measured_ns = ramp.transient_ns, ramp.step_ns()
    if stop is not None:
        faults = (Pause(at=Instant("step 1", transient_ns), duration=stop.length_ns, domain=domain),)
        transient_ns += stop.length_ns + stop.window_ns
        measured_ns = stop.observed_ns
    spec = protected_from_start(spec, domain)
    ramp = ramp.at_load(saps).with_times(transient_ns, measured_ns)
    return with_ramp(spec, ramp).model_copy(update={"faults": faults})
