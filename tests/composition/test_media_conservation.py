"""No packet and no CPU time is lost track of, whatever the configuration."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vftsim.composition.run import Run
from vftsim.errors import ConservationError
from vftsim.platform.io.nic import nics
from vftsim.workloads.flow import FlowResult

from .media_systems import MS, host, measured_for, run

PATHS = st.sampled_from(["paravirtual", "emulated", "stub_domain", "direct", "native"])
SCHEDULERS = st.sampled_from(
    [{"kind": "credit", "version": "3.2"}, {"kind": "credit"}, {"kind": "round_robin", "quantum": 5 * MS}]
)


SYSTEMS = given(
    kind=PATHS,
    scheduler=SCHEDULERS,
    pcpus=st.integers(1, 4),
    streams=st.integers(0, 900),
    calls=st.sampled_from([0.0, 50.0, 3000.0]),
    placement=st.sampled_from(["spread", "one", "any"]),
    ring=st.integers(1, 300),
    cap=st.sampled_from([0.0, 1.0, 40.0]),
    coalescing=st.sampled_from([(0, 1), (40_000, 3)]),
)


@pytest.mark.thorough
@settings(max_examples=12, deadline=None)
@SYSTEMS
def test_sent_is_delivered_dropped_or_on_its_way(**drawn):
    check_system(**drawn)


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@SYSTEMS
def test_sent_is_delivered_dropped_or_on_its_way_in_many_systems(**drawn):
    check_system(**drawn)


def check_system(kind, scheduler, pcpus, streams, calls, placement, ring, cap, coalescing):
    nic = {
        "receive_ring_packets": ring,
        "coalescing_time": coalescing[0],
        "coalescing_packets": coalescing[1],
    }
    system = host(
        {"kind": kind} | ({"ring_packets": ring} if kind == "paravirtual" else {}),
        streams=streams,
        calls_per_s=calls,
        scheduler=scheduler,
        pcpus=pcpus,
        media={"cap": cap, "vcpus": 2},
        switch_cost=2_000,
        driver={"placement": placement},
        nics={"eth0": nic},
    )
    whole = Run(measured_for(system, 70 * MS), 3, 0)
    result = whole.run()
    found = {owner.partition(".")[2]: each for _, owner, each in result.of_kind(FlowResult)}
    sent = sum(whole.engine.rows(nics)[row].admitted for row in whole.built.hosts["host"].io.nics.values())
    ended = sum(flow.delivered + flow.dropped for flow in found.values())
    assert sent == ended + result.in_flight
    assert found["media"].delivered + found["media"].dropped <= 4 * streams
    assert sum(result.drops.values()) == sum(flow.dropped for flow in found.values())


def test_the_check_sees_a_lost_packet():
    whole = Run(measured_for(host({"kind": "native"}, streams=10), 50 * MS), 3, 0)
    whole.built.drivers["media"].record.all_delivered -= 1
    with pytest.raises(ConservationError, match="delivered"):
        whole.run()


@pytest.mark.thorough
def test_same_key_same_result_and_other_key_another():
    system = host({"kind": "paravirtual"}, streams=300, scheduler={"kind": "credit", "version": "3.2"}, pcpus=2)
    first, again, other = (run(system, 9, r, 100 * MS) for r in (0, 0, 1))
    assert first == again
    assert first.whole.outcomes["workloads.media"].delay != other.whole.outcomes["workloads.media"].delay
