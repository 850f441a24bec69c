"""Traces of models with several hosts, and of requests one after the other."""

import pytest

import vftsim
from vftsim.tracing.explain import exchanges, explain_exchange

TIERS = """\
hosts:
  n1: {pcpus: 2, scheduler: {kind: FIRST}}
  n2: {pcpus: 1, scheduler: {kind: credit}}
networks: {lan: {}}
domains:
  web:
    host: n1
    interfaces: {eth0: {path: {kind: PATH}}}
    applications: {s: {kind: service, threads: 4, demand: 1 ms, calls: [{to: db}]}}
  db:
    host: n2
    interfaces: {eth0: {path: {kind: PATH}}}
    applications: {s: {kind: service, threads: 4, demand: 2 ms}}
"""
LOAD = "workloads: {u: {kind: open_requests, to: web, rate: 50 /s}}\n"
HOG = "  h: {host: n2, applications: {w: {kind: batch, processes: 2, demand: 10 ms}}}\n"
DRIVERS = "".join(f"  d{n}: {{host: n{n}, driver: {{placement: one}}}}\n" for n in (1, 2))
ONE_EACH = TIERS.replace("FIRST", "credit").replace("pcpus: 2", "pcpus: 1")
TWO_DRIVERS = ONE_EACH.replace("PATH", "paravirtual") + DRIVERS + LOAD
TWO_SCHEDULERS = TIERS.replace("FIRST", "sedf").replace("PATH", "direct") + HOG + LOAD


def traced(tmp_path, text):
    path = tmp_path / "model.yaml"
    path.write_text(text)
    return vftsim.trace(path, 0.5, 0.5)


def test_priorities_are_those_of_the_hosts_own_scheduler(tmp_path):
    trace = traced(tmp_path, TWO_SCHEDULERS)
    named = {trace.vcpu_names[each.vcpu]: set() for each in trace.slices}
    for each in trace.slices:
        named[trace.vcpu_names[each.vcpu]].add(each.priority)
    assert named["db.0"] | named["h.0"] <= {"BOOST", "UNDER", "OVER", "IDLE"}
    assert not named["web.0"] & {"BOOST", "UNDER", "OVER"}


def test_a_driver_domains_part_is_that_of_the_packets_own_host(tmp_path):
    trace = traced(tmp_path, TWO_DRIVERS)
    for one in exchanges(trace):
        parts = explain_exchange(one, trace)
        assert sum(part.length_ns for part in parts) == one.delay_ns
        assert all(part.length_ns > 0 for part in parts)
        assert not any("d2" in part.name for part in parts)


def test_a_device_model_in_a_stub_domain_is_on_the_host_of_its_guest(tmp_path):
    """Its vCPU is among those of the trace, and its work among the parts of a request's time, which sum to it."""
    trace = traced(tmp_path, TWO_DRIVERS.replace("paravirtual", "stub_domain"))
    assert {"web-stub.0", "db-stub.0"} <= {trace.vcpu_names[each.vcpu] for each in trace.slices}
    for exchange in exchanges(trace):
        parts = explain_exchange(exchange, trace)
        assert sum(part.length_ns for part in parts) == exchange.delay_ns
        assert any(part.name.endswith("device model receive: works") for part in parts)


@pytest.mark.parametrize(("model", "window_s"), [("two-tier", 0.2), ("three-tier", 0.7)])
def test_an_exchange_is_one_request(model, window_s):
    """A client's requests one after the other are as many exchanges, none with a pause of the client in it.

    Answers of 20 kB are two windows: the request and the first, the client's acknowledgement, the second.  They are one
    where a user asks again within 200 ms, as few of three tiers do after 2 s in the mean.
    """
    found = exchanges(vftsim.trace(model, 2.0, window_s))
    assert len(found) > 50
    in_one = sum(len(one.chain) == 1 for one in found)
    assert all(len(one.chain) == 3 for one in found if len(one.chain) > 1)
    assert in_one == 0 if model == "two-tier" else 0 < in_one < len(found) / 5


def test_streams_beside_requests_are_no_exchanges(tmp_path):
    """They wait for no answer: of five packets of a stream, 20 ms apart, one exchange of 80 ms was made."""
    relay = "  m: {host: n1, interfaces: {eth0: {path: {kind: moderated}}}, applications: {r: {kind: media_relay}}}\n"
    media = "  v: {kind: rtp, to: m, streams: 3}\n"
    load = LOAD.replace("{u:", "\n  u:").replace("}}\n", "}\n") + media
    trace = traced(tmp_path, TIERS.replace("FIRST", "credit").replace("PATH", "moderated") + relay + load)
    assert any(packet.flow == "v" for packet in trace.packets)
    assert {one.chain[0].flow for one in exchanges(trace)} == {"u"}
    held = tmp_path / "held.yaml"
    held.write_text(
        TIERS.replace("FIRST", "credit").replace("PATH", "moderated") + "    protection: {kind: checkpoint}\n" + LOAD
    )
    assert vftsim.explain(held, "output").title.startswith("db stream "), "what it sends to another program"


def test_a_pcpu_says_whose_it_is(tmp_path):
    trace = traced(tmp_path, TWO_SCHEDULERS)
    assert trace.pcpu_names == ["n1 pCPU 0", "n1 pCPU 1", "n2 pCPU 0"]
    hosts = {(trace.vcpu_names[each.vcpu], trace.pcpu_names[each.pcpu][:2]) for each in trace.slices}
    assert hosts == {("web.0", "n1"), ("db.0", "n2"), ("h.0", "n2")}


def test_a_connection_that_the_end_of_the_window_cuts_is_no_exchange():
    """At 8 a second replies queue: of those that began in a second most have their SYN answered, and no reply."""
    alone = ["workloads.tcp=null", "workloads.udp=null", "workloads.web.rate=8 /s"]
    trace = vftsim.trace(vftsim.load("net-kvm", alone), 3.0, 1.0)
    found = exchanges(trace)
    assert {one.chain[-1].label for one in found} == {"reply, last piece"}
    assert len(found) < len({one.exchange for one in trace.packets if one.label == "SYN ACK"})
