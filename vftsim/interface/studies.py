"""Runs and studies of models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from vftsim.interface.arguments import as_model, as_texts, as_variant, to_ns, to_ns_if_given
from vftsim.interface.plan import Plan, conducted

if TYPE_CHECKING:
    from vftsim.study.designs.availability import AvailabilityStudy
    from vftsim.study.designs.capacity_answer import CapacityStudy
    from vftsim.study.designs.compare import Comparison
    from vftsim.study.designs.decision import Decision
    from vftsim.study.designs.failover import FailoverStudy
    from vftsim.study.designs.run import RunResult
    from vftsim.study.designs.simulated_years import SimulatedYears
    from vftsim.study.designs.study import StudyResult
    from vftsim.study.designs.warm_up import WarmUpStudy
    from vftsim.study.runs.estimate import Needs
    from vftsim.study.runs.model import Model


@conducted
def run(
    model: Model | str | Path,
    replications: int | None = None,
    seed: int = 1,
    jobs: int | None = 1,
    *,
    overrides: Sequence[str] = (),
    precision_percent: float | None = None,
    figures: Sequence[str] = (),
    quick: bool = False,
    directory: str | Path | None = None,
    force: bool = False,
    resume: bool = False,
    progress: bool = False,
) -> Plan[RunResult]:
    """Run replications of a model; with ``directory``, keep the result there.

    Parameters
    ----------
    replications : --replications, -n
        Independent replications (default 10).
    precision_percent : --precision PERCENT
        Run until each --figure is known this well (95 % interval); --replications is then the most (default 200).
    figures : --figure NAME
        A figure to show, e.g. web.response.p95 or calls.step_1.cpu; repeatable (default: what leads). With
        --precision those that are to be known so well (default: one of the first workload's, of its first step).
    resume : --resume
        Go on with an interrupted result, or add replications to one.
    """
    from vftsim.errors import UsageError
    from vftsim.study.designs.run import precision_rule, run_study
    from vftsim.study.figures.names import check_names
    from vftsim.study.runs.estimate import total

    if force and resume:
        raise UsageError("--force discards an existing result and --resume continues it: choose one")
    chosen, count, rule = as_model(model, overrides, quick=quick), 10 if replications is None else replications, None
    if precision_percent is not None:
        most = 200 if replications is None else replications
        count, rule = 1, precision_rule(chosen, precision_percent, figures, most)
    else:
        check_names(figures, [chosen.spec])

    return Plan(
        "run",
        f"run {chosen.name}",
        [chosen],
        lambda: total([chosen.spec], count if rule is None else rule.budget),
        partial(run_study, chosen, count, rule=rule, figures=figures),
        "summary.csv, tables, charts.png, model.yaml, manifest.json, vftsim.sqlite",
        goes_on=resume,
    )


@conducted
def capacity(
    model: Model | str | Path,
    method: str | None = None,
    replications: int | None = None,
    seed: int = 1,
    jobs: int | None = 1,
    *,
    quick: bool = False,
    at_least_s: float | None = None,
    after_stop_s: float | None = None,
    window_s: float | None = None,
    ihs_limit_percent: float | None = None,
    loss_limit_percent: float | None = None,
    headroom_percent: float | None = None,
    labs: str | Path | None = None,
    probability: float | None = None,
    resolution: float | None = None,
    budget: int | None = None,
    vary: str | None = None,
    objectives: Sequence[str] = (),
    prices: bool = False,
    directory: str | Path | None = None,
    force: bool = False,
    progress: bool = False,
) -> Plan[CapacityStudy]:
    """Say what load a system carries, with an interval, and what limits it.

    Parameters
    ----------
    method : --method ramp|search
        ramp: the lab's procedure, step by step (default of a SIP lab); search: the largest constant load carried (the
        method of a media host).
    loss_limit_percent : --loss-limit PERCENT
        Media host: allowed loss of packets (default 0.1 %).
    ihs_limit_percent : --ihs-limit PERCENT
        Allowed inadequately handled share (default: stop rule).
    at_least_s : --at-least TIME
        With --quick: measure a run of a search at least this long, as what the answer stands beside needs.
    after_stop_s : --after-stop TIME
        Failover-safe capacity: the largest load that recovers from such a stop, e.g. 2s.
    window_s : --window TIME
        Time to recover after the stop (default 60 s).
    headroom_percent : --headroom PERCENT
        Ramp: share of the load that fills the CPU to leave free (default: as much as the most fragile measured system
        needed).
    labs : --labs FILE
        Ramp: systems of your own whose ramps were measured, beside the shipped ones.
    probability : --probability
        Search: share of runs that must stay within the limit (default 0.9).
    resolution : --resolution LOAD
        Search: difference of loads that does not matter, in the unit of the load.
    budget : --budget
        Search: most runs, of each with --after-stop (default 800 of a SIP lab, 300 of others, 160 with --quick).
    vary : --vary KEY
        Find the largest value of this key of the model that does, e.g. workloads.web.rate, or the smallest where larger
        ones make it easier, e.g. domains.server.vcpus; by default the load that its workload declares.
    objectives : --objective 'FIGURE <= NUMBER'
        What a run must achieve, e.g. 'web.answered >= 90' (repeatable: all of them).
    prices : --prices/--no-prices
        Play prices of the protection at both ends of their ranges, for a band.
    replications : --replications, -n
        Ramp: independent ramps (default 10).
    """
    from vftsim.errors import UsageError
    from vftsim.study.designs.capacity import capacity_takes, find_capacity
    from vftsim.study.designs.capacity_search import CapacityRequest

    if method not in (None, "ramp", "search"):
        raise UsageError(f"method '{method}' is neither 'ramp' nor 'search'")
    least_ns = to_ns_if_given(at_least_s, "--at-least")
    if least_ns is not None and not quick:
        raise UsageError("--at-least: is for a first look, which measures less; give --quick too")
    chosen = as_model(model, quick=quick, least_ns=least_ns or 0)
    request = CapacityRequest(
        quick=quick,
        method=method,
        replications=replications,
        ihs_limit_percent=ihs_limit_percent,
        loss_limit_percent=loss_limit_percent,
        after_stop_ns=to_ns_if_given(after_stop_s, "--after-stop"),
        window_ns=to_ns_if_given(window_s, "--window"),
        probability=probability,
        resolution=resolution,
        budget=budget,
        vary=vary,
        objectives=tuple(objectives),
        prices=prices,
        headroom_percent=headroom_percent,
        labs=None if labs is None else Path(labs),
    )
    return Plan(
        "capacity",
        f"capacity of {chosen.name}",
        [chosen],
        partial(capacity_takes, chosen, request),
        partial(find_capacity, chosen, request),
    )


@conducted
def compare(
    models: Sequence[Model | str | Path],
    replications: int = 10,
    seed: int = 1,
    jobs: int | None = 1,
    *,
    figures: Sequence[str] = (),
    quick: bool = False,
    directory: str | Path | None = None,
    force: bool = False,
    progress: bool = False,
) -> Plan[Comparison]:
    """Compare systems in any figures under common random numbers, with intervals of the differences to the first.

    Parameters
    ----------
    models : MODEL...
        Two or more models, the first is the reference; a variant is MODEL+KEY=VALUE+KEY=VALUE.
    figures : --figure NAME
        A figure to compare (repeat for several), e.g. web.response.p95, domains.sut.cpu, calls.at_50.ihs; those that
        lead if not given.
    """
    from vftsim.study.designs.compare import compare_study
    from vftsim.study.runs.estimate import total
    from vftsim.study.runs.model import first_look_ns

    chosen = [as_variant(each) for each in models]
    if quick:
        least_ns = first_look_ns(chosen)
        chosen = [each.quick(least_ns) for each in chosen]
    takes = partial(total, [each.spec for each in chosen], replications)
    return Plan("compare", "compare", chosen, takes, partial(compare_study, chosen, replications, figures=figures))


@conducted
def decide(
    model: Model | str | Path,
    protection: str = "all",
    objectives: Sequence[str] = (),
    replications: int = 10,
    seed: int = 1,
    jobs: int | None = 1,
    *,
    domain: str | None = None,
    mtbf_s: float = 31_536_000.0,
    restart_s: float = 77.0,
    common_cause: float = 0.0,
    prices: bool = True,
    crossovers: Sequence[str] = (),
    quick: bool = False,
    directory: str | Path | None = None,
    force: bool = False,
    progress: bool = False,
) -> Plan[Decision]:
    """Return what mechanisms give and cost one model, and who meets what is asked (``vftsim compare --protection``).

    Parameters
    ----------
    protection : --protection KIND,KIND
        Compare mechanisms on one model instead: a list, or 'all'.
    domain : --domain NAME
        Whose mechanisms they are (default: the one that is protected, or has traffic). With --protection.
    objectives : --objective 'FIGURE <= NUMBER'
        What a mechanism has to achieve (repeat for several), e.g. 'web.response.p95 <= 100 ms' or 'outage <= 3 s'. With
        --protection.
    mtbf_s : --mtbf TIME
        Mean time between failures of a host (default 365 d). With --protection.
    restart_s : --restart TIME
        Time in which somebody brings back what does not come back by itself (default 77 s). With --protection.
    common_cause : --common-cause PERCENT
        Share of a host's failures that strike the other host of a pair, too (default 0). With --protection.
    prices : --prices/--no-prices
        Play prices of mechanisms at both ends of their ranges, for bands. With --protection.
    crossovers : --crossovers SETTING[=VALUE,VALUE]
        Show where the order of mechanisms changes over a setting that they share (repeat for several):
        checkpoint_interval, dirty_rate, round_trip, load, or all; at values around their own, or at those given, e.g.
        'round_trip=100 us,1 ms,10 ms'. With --protection.
    """
    from vftsim.study.designs import decision as design
    from vftsim.study.designs.availability import HostFailures
    from vftsim.study.designs.decision_crossovers import DecisionRequest
    from vftsim.study.designs.protections import fitting, kinds_named, of_domain
    from vftsim.study.figures.names import read_objective
    from vftsim.study.runs.model import first_look_ns

    chosen, kinds = of_domain(as_model(model), domain), kinds_named(protection)
    if quick:
        chosen = chosen.quick(first_look_ns(fitting(chosen, kinds)[0].values()))
    read_objectives = tuple(read_objective(text) for text in objectives)
    failures = HostFailures(mtbf_s, restart_s, common_cause)
    request = DecisionRequest(read_objectives, failures, prices, tuple(crossovers))
    return Plan(
        "compare",
        "compare",
        [chosen],
        lambda: design.decision_takes(fitting(chosen, kinds)[0], replications, request),
        partial(design.decide, chosen, kinds, replications, request),
    )


@conducted
def sweep(
    model: str | Path | None = None,
    grid: Sequence[str] | Mapping[str, Sequence[object]] = (),
    scheduler: str | None = None,
    replications: int = 3,
    seed: int = 1,
    jobs: int | None = 1,
    *,
    overrides: Sequence[str] = (),
    figures: Sequence[str] = (),
    protection: str | None = None,
    quick: bool = False,
    directory: str | Path | None = None,
    force: bool = False,
    progress: bool = False,
) -> Plan[StudyResult]:
    """Run a model at every point of a grid, under the same traffic.

    Parameters
    ----------
    model : [MODEL]
        A model; without one, the shipped Xen media host.
    scheduler : --scheduler NAME
        CPU scheduler, several with commas, or 'all' (default: the model's).
    protection : --protection KIND,KIND
        Mechanism, several with commas, or 'all' (default: the model's).
    grid : --grid NAME=V,V
        Axis: weight, cap, streams, calls, a parameter of protection (checkpoint_interval, dirty_rate, bandwidth,
        round_trip, lag_limit) or a key of the model; repeatable. Replaces the default grid.
    figures : --figure NAME
        A figure to show, e.g. web.response.p95 or calls.step_1.cpu; repeatable (default: what leads).
    """
    from vftsim.study.designs.study import run_experiment
    from vftsim.study.designs.sweep import plan_sweep

    name = None if model is None else str(model)
    varied = scheduler, as_texts(grid), tuple(overrides), protection
    experiment = plan_sweep(name, *varied, figures=figures, replications=replications, quick=quick)
    points, study = experiment.points, partial(run_experiment, experiment)
    return Plan(
        "sweep",
        f"sweep of {points.bases[0].name}",
        points.some_models,
        experiment.takes,
        study,
        experiment.files,
        needs_store=True,
        bases=points.bases,
    )


@conducted
def failover(
    model: Model | str | Path,
    crashes: int | None = None,
    seed: int = 1,
    jobs: int | None = 1,
    *,
    load: float | None = None,
    domain: str | None = None,
    over_s: float = 1.0,
    after_s: float | None = None,
    protection: str | None = None,
    prices: bool = False,
    quick: bool = False,
    directory: str | Path | None = None,
    force: bool = False,
    progress: bool = False,
) -> Plan[FailoverStudy]:
    """Let the primary's host crash at many instants; show detection, takeover, outage, and what clients lost.

    Parameters
    ----------
    crashes : --crashes, -n
        How many crashes, spread over the span (default 20).
    load : --load SAPS
        Attempts a second (default: the benchmark's first step).
    domain : --domain NAME
        Whose host crashes (default: the one that is protected).
    over_s : --over TIME
        Stretch of time over which crashes are spread.
    after_s : --after TIME
        How long a run goes on after a crash and a restart (default: until queues have gone).
    protection : --protection KIND
        Protect the domain with this mechanism and its defaults.
    prices : --prices/--no-prices
        Play prices of the mechanism at both ends of their ranges, for bands.
    """
    from vftsim.study.designs.failover import DEFAULT_CRASHES, Crashes, failover_study
    from vftsim.study.designs.protections import of_domain, under
    from vftsim.study.execution import fewer_crashes

    quickened, count = fewer_crashes(as_model(model), crashes, DEFAULT_CRASHES, quick)
    chosen = quickened if protection is None else under(of_domain(quickened, domain), protection)
    spread = Crashes(count, load, domain, to_ns(over_s, "--over"), to_ns_if_given(after_s, "--after"))

    def takes() -> Needs:
        return spread.takes(chosen) + spread.bands_take(chosen) if prices else spread.takes(chosen)

    study = partial(failover_study, chosen, spread, prices=prices)
    return Plan("failover", f"failovers of {chosen.name}", [quickened], takes, study)


@conducted
def simulated_years(
    model: Model | str | Path,
    mtbf_s: float,
    years: int,
    protection: str = "none,ha_restart,lockstep,checkpoint",
    crashes: int = 10,
    seed: int = 1,
    jobs: int | None = 1,
    *,
    domain: str | None = None,
    restart_s: float = 77.0,
    common_cause: float = 0.0,
    directory: str | Path | None = None,
    force: bool = False,
    progress: bool = False,
) -> Plan[SimulatedYears]:
    """Return simulated years with faults of every kind, and their Markov chain (``vftsim availability --simulate``).

    Faults of the model with ``repeat: {mean: ...}`` come beside failures of both hosts; other parameters are those of
    :func:`availability`, whose ``crashes`` are of each kind of fault here.

    Parameters
    ----------
    years : --simulate YEARS
        Simulate so many years in which both hosts fail and the model's faults with 'repeat: {mean: ...}' come as often
        as they say, and put the Markov chain of all of them beside.
    """
    from vftsim.study.designs import simulated_years as design
    from vftsim.study.designs.availability import HostFailures
    from vftsim.study.designs.protections import kinds_named, of_domain

    chosen, kinds = of_domain(as_model(model), domain), kinds_named(protection)
    request = chosen, kinds, HostFailures(mtbf_s, restart_s, common_cause), years, crashes
    takes, study = partial(design.years_take, *request), partial(design.simulated_years, *request)
    return Plan("simulated years", f"years of {chosen.name}", [chosen], takes, study)


@conducted
def availability(
    model: Model | str | Path,
    mtbf_s: float,
    protection: str = "none,ha_restart,lockstep,checkpoint",
    crashes: int | None = None,
    seed: int = 1,
    jobs: int | None = 1,
    *,
    domain: str | None = None,
    restart_s: float = 77.0,
    common_cause: float = 0.0,
    after_s: float | None = None,
    quick: bool = False,
    directory: str | Path | None = None,
    force: bool = False,
    progress: bool = False,
) -> Plan[AvailabilityStudy]:
    """Return how long the service is down in a year with each mechanism, how long unprotected, what clients lose.

    Parameters
    ----------
    mtbf_s : --mtbf TIME
        Mean time between failures of a host, e.g. '8760 h'.
    protection : --protection KIND,KIND
        Mechanisms, or 'all'.
    domain : --domain NAME
        Whose mechanisms they are (default: the one that is protected, or has traffic).
    crashes : --crashes, -n
        Simulated failovers of each mechanism (default 10).
    restart_s : --restart TIME
        Length of an outage that no mechanism shortens.
    common_cause : --common-cause PERCENT
        Share of a host's failures that strike both hosts of a pair at once: power, a rack, a common defect.
    after_s : --after TIME
        How long a run goes on after a crash and a restart (default: until queues have gone).
    """
    from vftsim.study.designs.availability import DEFAULT_CRASHES, HostFailures, availability_study, year_takes
    from vftsim.study.designs.failover import Crashes
    from vftsim.study.designs.protections import kinds_named, of_domain
    from vftsim.study.execution import fewer_crashes

    chosen, count = fewer_crashes(of_domain(as_model(model), domain), crashes, DEFAULT_CRASHES, quick)
    kinds, spread = kinds_named(protection), Crashes(count, after_ns=to_ns_if_given(after_s, "--after"))

    takes = partial(year_takes, chosen, kinds, spread)
    study = partial(availability_study, chosen, kinds, HostFailures(mtbf_s, restart_s, common_cause), spread)
    return Plan("availability", f"failovers of {chosen.name}", [chosen], takes, study)


@conducted
def pilot(
    model: Model | str | Path,
    seed: int = 1,
    jobs: int | None = 1,
    *,
    load: float | None = None,
    quick: bool = False,
    directory: str | Path | None = None,
    force: bool = False,
    progress: bool = False,
) -> Plan[WarmUpStudy]:
    """Say whether the transient that a SIP lab leaves out of a step is long enough, from 20 pilots at one load.

    Parameters
    ----------
    load : --load SAPS
        Attempts a second (default: the model's first step).
    """
    from vftsim.study.designs.warm_up import pilots_take, warm_up_study

    chosen = as_model(model, quick=quick)
    takes, study = partial(pilots_take, chosen, load), partial(warm_up_study, chosen, load_saps=load)
    return Plan("pilot", f"pilots of {chosen.name}", [chosen], takes, study)
