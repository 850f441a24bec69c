"""A system all of whose times are twice as long is the same system: its delays are twice as long, its rates half.

An oracle beside both engines: a constant in ns that no setting names, a rate taken for a time, a unit lost between a
file and a record, each breaks it.  What a rule fixes in ns (Xen's credit, the E-model) has no place here, and a setting
that is not given (the rate of a channel) is given.
"""

import re
from decimal import Decimal

import pytest

import vftsim
from vftsim.composition.model import ModelSpec
from vftsim.study.runs.model import Model

POWERS = {"ns": 1, "ms": 1, "s": 1, "": 0, "count": 0, "%": 0, "B": 0, "MB": 0}
"""Of time, by the unit of a figure; a rate is one less, and a variance has twice that of its samples."""
WITHIN = 0.02
"""Percentiles are read from a histogram whose classes are 1.4 % wide, and rounding to ns may move a loss or two."""
NUMBER = r"([0-9.]+(?:e[+-]?[0-9]+)?)"
TIMES = re.compile(rf"{NUMBER} (ns|us|ms|s|min|h|d)\b")
RATES = re.compile(rf"{NUMBER} ([kMGT]?bit/s|/s)")
CHANNEL = ("channel.rate=1 Gbit/s", "channel.latency=50 us")
SIP = (
    "workloads.calls.steps.duration=20 s",
    "workloads.calls.steps.transient=4 s",
    "workloads.calls.steps.most=2",
    "workloads.calls.pre_registration.duration=20 s",
    "workloads.calls.hold_time=3 s",  # a run waits two minutes for the last calls, whatever they last
)
TWO_TIER = ("domains.server.vcpus=1", "workloads.pages.rate=100 /s", "measure.warm_up=1 s", "measure.duration=7 s")


def protected(domain, kind, *others):
    return [f"domains.{domain}.protection.{each}" for each in (f"kind={kind}", *CHANNEL)] + list(others)


def fault(kind, more=""):
    return f"faults=[{{kind: {kind}, domain: server, at: 3 s{more}}}]"


CASES = {
    "lockstep, a channel that gets worse": (
        "two-tier",
        protected("server", "lockstep", *TWO_TIER, fault("channel_degradation", ", duration: 1 s, loss: 1 %")),
    ),
    "checkpoints, a crash": ("two-tier", protected("server", "checkpoint", *TWO_TIER, fault("primary_crash"))),
    "micro checkpoints, an error of the guest": (
        "two-tier",
        protected("server", "micro_checkpoint", *TWO_TIER, fault("guest_error")),
    ),
    "epochs, a backup lost": ("two-tier", protected("server", "hypervisor_epoch", *TWO_TIER, fault("backup_crash"))),
    "restart": ("two-tier", ["domains.server.protection.kind=ha_restart", *TWO_TIER, fault("primary_crash")]),
    "SIP beside coarse lockstep": ("lab-virtual", protected("sut", "coarse_lockstep", *SIP)),
    "a farm whose front end fails": ("sip-farm-lockstep", [*protected("front", "lockstep"), "measure.duration=5 s"]),
    "TCP that loses": (
        "net-bare",
        [
            "workloads.udp=null",
            "workloads.web=null",
            "workloads.tcp.duration=200 ms",
            "workloads.tcp.network={switched: true, rate: 2 Gbit/s}",
            "networks.lan.queue=20 KiB",
        ],
    ),
    "web in a KVM guest": ("net-kvm", ["workloads.tcp=null", "workloads.udp=null"]),
    # A window begins anew after 200 ms (Linux, TCP_RTO_MIN), whatever the times of a model.
    "disks": (
        "three-tier",
        protected("app", "lockstep", "measure.warm_up=1 s", "measure.duration=5 s")
        + [f"networks.{network}.initial_window=0" for network in ("outside", "inside")],
    ),
}


BY_NIGHT = {"micro checkpoints, an error of the guest", "restart", "web in a KVM guest", "TCP that loses", "disks"}
"""Cases of mechanisms and paths that others have in part."""


def in_longer_times(value, factor):
    """Return settings as they are written, all times ``factor`` times as long."""
    if isinstance(value, dict):
        return {key: in_longer_times(each, factor) for key, each in value.items()}
    if isinstance(value, list):
        return [in_longer_times(each, factor) for each in value]
    if not isinstance(value, str):
        return value
    if rate := RATES.fullmatch(value):
        return f"{Decimal(rate[1]) / factor} {rate[2]}"
    return TIMES.sub(lambda time: f"{Decimal(time[1]) * factor} {time[2]}", value)


def figures(spec):
    summary = vftsim.run(Model("scaled", spec), replications=1).for_machines()["summary"]
    return [(re.sub(r"\.at_[0-9_]+", "", each["figure"]), each["unit"], each["estimate"]) for each in summary]


def power_of_time(unit):
    if square := re.fullmatch(r"\((.*)\)\^2", unit):
        return 2 * power_of_time(square[1])
    return -1 if unit.endswith("/s") else POWERS[unit]


@pytest.mark.thorough
@pytest.mark.parametrize("case", [pytest.param(c, marks=[pytest.mark.slow] if c in BY_NIGHT else []) for c in CASES])
def test_twice_the_times_are_twice_the_delays(case):
    name, settings = CASES[case]
    spec = vftsim.load(name, settings).spec
    longer = ModelSpec.model_validate(in_longer_times(spec.model_dump(mode="json"), 2))
    of_one, of_other = figures(spec), figures(longer)
    assert len(of_one) > 20
    for (figure, unit, one), (same, _, other) in zip(of_one, of_other, strict=True):
        assert figure == same
        if figure == "workloads.web.sampled":  # httperf counts replies in 5 s, whatever the test
            continue
        power = 1 if figure.endswith("_ns") else power_of_time(unit)
        assert other == (one and pytest.approx(one * 2.0**power, rel=WITHIN)), figure
