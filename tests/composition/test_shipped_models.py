"""Every shipped model loads and runs."""

import pytest

from vftsim.composition.run import Run
from vftsim.platform.outcomes import HostUse
from vftsim.study.runs.model import load_model, shipped_models
from vftsim.workloads.batch import BatchWork
from vftsim.workloads.service.application import ServiceWork

SHORT_STEPS = [
    "workloads.calls.pre_registration.duration=0 s",
    "workloads.calls.stir.duration=1 s",
    "workloads.calls.stir.steps=1",
    "workloads.calls.steps.initial=10 /s",
    "workloads.calls.steps.duration=4 s",
    "workloads.calls.steps.transient=1 s",
    "workloads.calls.steps.most=1",
]
SHORT_NETWORKS = [
    "measure.duration=2 s",
    "workloads.tcp.duration=20 ms",
    "workloads.tcp.interval=20 ms",
    "workloads.udp.duration=500 ms",
    "workloads.udp.rate=10 Mbit/s",
    "workloads.web.rate=5 /s",
    "workloads.web.connections=5",
]
SHORT_STREAMS = ["measure.warm_up=20 ms", "measure.duration=100 ms", "workloads.media.streams=20"]
SHORT_JOB = ["measure.warm_up=100 ms", "measure.duration=10 s"]
SHORT_TIERS = ["measure.warm_up=1 s", "measure.duration=1 s"]
SHORT_FARM = ["measure.warm_up=100 ms", "measure.duration=300 ms", "workloads.calls.rate=100 /s", "faults=[]"]


@pytest.mark.parametrize("name", shipped_models())
def test_a_shipped_model_runs_conserves_and_carries_a_light_load(name):
    short = SHORT_STEPS if load_model(name).spec.ramp is not None else SHORT_STREAMS
    if name.startswith("net-"):
        short = SHORT_NETWORKS
    if name.startswith("sip-farm-"):
        short = SHORT_FARM
    if name.startswith("job-"):
        short = SHORT_JOB
    if name.endswith("-tier"):
        short = SHORT_TIERS
    run = Run(load_model(name, short).spec, 1, 0)
    record = run.run()
    run.check_conservation()
    if short is SHORT_STEPS:
        (step,) = record.played()
        assert sum(step.attempts) > 10
        assert sum(step.inadequate) == 0
    elif short is SHORT_NETWORKS:
        tcp, udp, web = (record.whole.outcomes[f"workloads.{test}"].columns() for test in ("tcp", "udp", "web"))
        assert tcp["mbit_per_s"] > 1.0
        assert udp["client_1_received_mbit_per_s"] > 9
        assert web["answered_percent"] == 100.0
    elif short is SHORT_JOB:
        (work,) = record.of_kind(BatchWork)
        assert work[-1].transactions > 0
    elif short is SHORT_TIERS:
        tiers = [tier for _, _, tier in record.of_kind(ServiceWork)]
        assert len(tiers) > 1
        assert all(each.requests > 0 and each.failed == 0 for each in tiers)
    elif short is SHORT_FARM:
        found = record.whole.outcomes["workloads.calls"].columns()
        assert found["calls_per_s"] == pytest.approx(100, rel=0.5)
        assert found["failed"] == found["dropped"] == found["retransmissions_percent"] == 0
    else:
        # Twenty streams of a packet every 20 ms, 100 ms: a hundred, but for those on the way at either end.
        assert 80 <= record.of("workloads.media").delivered <= 120
    for _, _, host in record.of_kind(HostUse):
        assert all(0.0 <= busy_ns <= host.seconds * 1e9 + 1 for busy_ns in host.busy_ns.values())
