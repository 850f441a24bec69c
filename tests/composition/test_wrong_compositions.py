"""What does not fit together is refused with the key and what would fit."""

import re
from contextlib import nullcontext

import pytest
from pydantic import ValidationError

from vftsim.composition.keys import with_values
from vftsim.composition.model import WITH_HOSTS, ModelSpec
from vftsim.composition.run import run_model
from vftsim.errors import ModelFileError, UsageError
from vftsim.study.runs.model import load_model

from .composed import BENCH, interface, media_model, relay, server, sip_model, streams

CRASH = {"kind": "pause", "at": "1 s", "duration": "1 s"}
TWO_HOSTS = {"a": {"scheduler": {"kind": "credit"}}, "b": {"scheduler": {"kind": "credit"}}}
BEHIND_DRIVER = {"interfaces": interface("paravirtual"), "applications": {"relay": {"kind": "media_relay"}}}


def protected(vcpus):
    return sip_model(domains={"sut": server(vcpus=vcpus, protection={"kind": "lockstep"})})


BOUND = {"kind": "disk_bound"}
PERIODIC = {"kind": "periodic_load", "busy": "6 ms", "period": "10 ms"}
ASKS_BY_BACK = {"kind": "service", "calls": [{"to": "b", "via": "back"}]}
FARM = {"kind": "farm_server", "demand": "5 us"}


def farm(message="500 B", **servers):
    """Servers of a farm, each as it is named; calls begin at ``front``."""
    domains = {
        name: {"interfaces": interface("moderated"), "applications": {"sip": {**FARM, **server}}}
        for name, server in servers.items()
    }
    calls = {"kind": "farm_calls", "to": "front", "rate": "100 /s", "message_size": message}
    return {"hosts": {"host": {"pcpus": 3}}, "domains": domains, "workloads": {"calls": calls}}


def passes(to):
    return {"passes_to": to}


def behind_a_balancer(queue):
    """A balancer on two networks, and the server that it passes calls on to on one, with a short queue."""
    made = {**farm(front=passes("back"), back={}), "networks": {"outside": {}, "inside": {"queue": queue}}}
    inside = {"inside": {"network": "inside", "path": {"kind": "moderated"}}}
    outside = {"outside": {"network": "outside", "path": {"kind": "moderated"}}}
    made["domains"]["front"]["interfaces"] = outside | inside
    made["domains"]["back"]["interfaces"] = inside
    return made


CASES = {
    "a server that passes calls on to itself": (
        farm(front=passes("front")),
        "domains.front.applications.sip: front.sip -> front.sip is a circle; one of them must answer by itself",
    ),
    "servers that pass calls on to each other": (
        farm(front=passes("middle"), middle=passes("back.sip"), back=passes("front")),
        "domains.front.applications.sip: "
        "front.sip -> middle.sip -> back.sip -> front.sip is a circle; one of them must answer by itself",
    ),
    "a balancer behind a balancer, which chooses once for a call": (
        farm(front=passes("middle"), middle=passes("back"), back={}),
        "domains.front.applications.sip: 'middle' passes on to 'back' itself; name the servers that answer",
    ),
    "calls whose longest message no queue takes": (
        sip_model(networks={"lan": {"queue": "1099 B"}}),
        "workloads.calls.to: a SIP message: 1100 B are one packet here, which never fits into the network's queue of",
    ),
    "calls through a farm whose messages no queue takes": (
        {**farm(message="8 kB", front={}), "networks": {"lan": {"queue": "7999 B"}}},
        "workloads.calls.message_size: 8 kB are one packet here, which never fits into the network's queue of 7999 B",
    ),
    "calls through a balancer that no queue behind it takes": (
        behind_a_balancer("499 B"),
        "workloads.calls.message_size: 500 B are one packet here, which never fits into the network's queue of 499 B "
        "(network 'inside')",
    ),
    "a stream of more than the line carries": (
        media_model(workloads={"media": {**streams("media", 1), "interval": "1 us"}}),
        "workloads.media.interval: 1 us between packets of a stream, but a frame of 238 bytes takes 1.904 us",
    ),
    "domain of to": (
        media_model(workloads={"media": streams("medai")}),
        "workloads.media.to: 'medai' names no domain; did you mean 'media'?",
    ),
    "application of to": (
        sip_model(workloads={"calls": {**BENCH, "to": "sut.prox"}}),
        "workloads.calls.to: 'sut.prox' must be one application that takes sip traffic; sut has proxy (sip_server)",
    ),
    "application of another protocol": (
        media_model(workloads={"calls": {**BENCH, "to": "media"}}),
        "workloads.calls.to: 'media' must be one application that takes sip traffic; media has relay (media_relay)",
    ),
    "no interface": (
        sip_model(domains={"sut": {"applications": {"proxy": {"kind": "sip_server"}}}}),
        "workloads.calls.to: domain 'sut' has no interface by which the traffic could reach it",
    ),
    "network of a workload": (
        media_model(workloads={"media": {**streams("media"), "via": "wan"}}),
        "workloads.media.via 'wan' is none of those that 'media' has interfaces to: lan",
    ),
    "domain of the agents": (
        sip_model(workloads={"calls": {**BENCH, "agents_in": "usc"}}, domains={"sut": server(), "uac": {}}),
        "workloads.calls: no domain 'usc'; did you mean 'uac'?",
    ),
    "several domains of agents": (
        sip_model(workloads={"calls": {**BENCH, "agents_in": "uac"}}, domains={"sut": server(), "uac": {"count": 2}}),
        "workloads.calls: 'uac' stands for 2 domains; the agents run in one: count: 1",
    ),
    "network of an interface": (
        media_model(domains={"media": relay(interfaces=interface("direct", network="wan"))}),
        "domains.media.interfaces.eth0.network 'wan' is none of lan",
    ),
    "nic of an interface": (
        media_model(domains={"media": relay(interfaces=interface("direct", nic="nic7"))}),
        "domains.media.interfaces.eth0.nic 'nic7' is none of the host's: nic0",
    ),
    "nic on another network": (
        media_model(
            networks={"lan": {}, "san": {}},
            domains={"media": relay(interfaces=interface("direct", nic="nic0", network="san"))},
        ),
        "domains.media.interfaces.eth0.nic 'nic0' is plugged into 'lan', not into 'san'",
    ),
    "network of a nic": (
        media_model(hosts={"host": {"scheduler": {"kind": "credit"}, "nics": {"nic0": {"network": "wan"}}}}),
        "hosts.host.nics.nic0.network 'wan' is none of lan",
    ),
    "a host's interface with the name of a network that it is not plugged into": (
        {
            **media_model(hosts={"host": {"scheduler": {"kind": "credit"}, "nics": {"back": {}}}}),
            "networks": {"lan": {}, "back": {}},
        },
        "hosts.host.nics.back is plugged into 'lan' and has another network's name; rename it, or plug it in there "
        "(network: back)",
    ),
    "two owners of a nic": (
        media_model(domains={"media": relay(), "other": relay()}),
        "NIC 'nic0' belongs to both 'media' and 'other', and each needs one for itself: plug another into the network "
        "(hosts.host.nics), or take a path that guests share (moderated)",
    ),
    "path without driver domain": (
        media_model(domains={"media": BEHIND_DRIVER}),
        "domains.media.interfaces.eth0.path needs a driver domain on host 'host': give one of its domains a `driver` "
        "(Xen's domain 0; under KVM one that stands for the host, as in net-kvm)",
    ),
    "two driver domains": (
        media_model(domains={"d0": {"driver": {}}, "d1": {"driver": {}}, "media": BEHIND_DRIVER}),
        "host 'host' has several driver domains: d0, d1; one at most",
    ),
    "several of a driver domain": (
        media_model(domains={"dom0": {"driver": {}, "count": 2}, "media": BEHIND_DRIVER}),
        "host 'host' has several driver domains: dom0-1, dom0-2; one at most",
    ),
    "two workloads with phases": (
        sip_model(workloads={"calls": BENCH, "more": BENCH}),
        "workloads calls, more: one with phases of its own at most",
    ),
    "phases in several domains": (
        sip_model(domains={"sut": server(count=3)}),
        "workloads.calls.to: 'sut.proxy' is in 3 domains; a workload with phases of its own is directed at one: "
        "count: 1",
    ),
    "lockstep of two vCPUs": (
        protected(2),
        "domains.sut.protection: this protection mechanism handles 1 vCPU at most, not 2",
    ),
    "a driver domain that is protected": (
        sip_model(domains={"sut": server(), "dom0": {"driver": {}, "protection": {"kind": "checkpoint"}}}),
        "domains.dom0.protection: a driver domain stays with its host's cards; protect its guests",
    ),
    "network of a channel": (
        sip_model(domains={"sut": server(protection={"kind": "lockstep", "channel": {"network": "ft"}})}),
        "domains.sut.protection: its network 'ft' is none of lan",
    ),
    "a channel that is too long for the backup's patience": (
        sip_model(
            networks={"lan": {}, "far": {"latency": "600 ms"}},
            domains={"sut": server(protection={"kind": "checkpoint", "channel": {"network": "far"}})},
        ),
        "domains.sut.protection.failover.detection.timeout (1 s) must be above the 1200.6 ms for which the backup",
    ),
    "a fault that could strike several": (
        sip_model(domains={"sut": server(), "other": server()}, faults=[CRASH]),
        "a fault must say its `domain`: the model has several that it could strike",
    ),
    "a fault of an unknown domain": (
        sip_model(faults=[{**CRASH, "domain": "sit"}]),
        "domain 'sit' of a fault is none of sut",
    ),
    "a fault of one that is several": (
        media_model(
            domains={"dom0": {"driver": {}}, "media": {**BEHIND_DRIVER, "count": 2}},
            faults=[{**CRASH, "domain": "media"}],
        ),
        "domain 'media' of a fault is none of dom0, media-1, media-2",
    ),
    "a fault of a backup that is not there": (
        sip_model(faults=[{"kind": "backup_crash", "at": "1 s"}]),
        "a fault of the backup or its channel needs a mechanism that has them",
    ),
    "a phase without phases": (
        media_model(faults=[{**CRASH, "at": "step 1"}]),
        "no workload of the model has such a phase; say the time of the run: '20 s'",
    ),
    "a call by a network that only one of them is on": (
        {
            "networks": {"lan": {}, "back": {}},
            "domains": {
                "a": {"interfaces": interface("moderated"), "applications": {"s": ASKS_BY_BACK}},
                "b": {"interfaces": interface("moderated"), "applications": {"s": {"kind": "service"}}},
            },
        },
        "domains.a.applications.s: via 'back' is no network of both it and 'b': lan",
    ),
    "periodic work that the hypervisor makes longer than its period": (
        {"domains": {"a": {"cpu_inflation": 2.0, "applications": {"j": PERIODIC}}}},
        "domains.a.applications.j: a factor of 2 (cpu_inflation) makes its work longer than its period",
    ),
    "a disk that the domain has not": (
        {"domains": {"a": {"applications": {"j": BOUND | {"disk": "zz"}}, "disks": {"root": {"kind": "local"}}}}},
        "domains.a.applications.j.disk 'zz' is none of root",
    ),
    "a domain without any disk": (
        {"domains": {"a": {"applications": {"j": BOUND}}}},
        "domains.a.applications.j: it uses a disk, and its domain has none; give it one under `disks`",
    ),
    "a disk for nothing": (
        media_model(domains={"media": relay(disks={"root": {"kind": "local"}})}),
        "domains.media.disks: no program of the domain uses disks; leave them out",
    ),
    "affinity outside": (
        media_model(domains={"media": relay(affinity=[0, 2])}),
        "domains.media.affinity must name pCPUs 0 to 1 of its host",
    ),
    "empty affinity": (
        media_model(domains={"media": relay(affinity=[])}),
        "domains.media.affinity must name pCPUs 0 to 1 of its host",
    ),
    "no host where there are two": (
        media_model(hosts=TWO_HOSTS),
        "domains.media must say its host: a, b",
    ),
    "unknown host": (
        media_model(hosts=TWO_HOSTS, domains={"media": relay(host="c")}),
        "domains.media.host 'c' is none of a, b",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_wrong_composition_is_told_with_key_and_remedy(case):
    model, message = CASES[case]
    with pytest.raises(ValidationError) as caught:
        ModelSpec.model_validate(model)
    assert message in str(caught.value)


def test_what_the_cases_change_is_right_without_the_change():
    for model in (media_model(), sip_model(), protected(1)):
        ModelSpec.model_validate(model)


def test_names_of_copies_are_not_those_of_others():
    """Such a domain was lost without a word: the copy had its place."""
    copies = {"count": 2, "interfaces": interface("moderated"), "applications": {"s": {"kind": "service"}}}
    domains, load = {"a": copies, "a-1": {}}, {"kind": "open_requests", "to": "a", "rate": "5 /s"}
    with pytest.raises(ValidationError, match=r"domains\.a\.count: 'a-1' is one of it, and another domain"):
        ModelSpec.model_validate({"domains": domains})
    with pytest.raises(ValidationError, match=r"workloads\.w: 'w-2' is its part for a copy of 'a', and another one"):
        ModelSpec.model_validate({"domains": {"a": copies}, "workloads": {"w": load, "w-2": load}})
    stub = {**copies, "interfaces": interface("stub_domain")}
    with pytest.raises(ValidationError, match=r"domains\.a: 'a-2-stub' is its stub domain, and another domain has"):
        ModelSpec.model_validate({"domains": {"dom0": {"driver": {}}, "a": stub, "a-2-stub": {}}})


@pytest.mark.parametrize(
    ("second", "domain", "message"),
    [
        ({"scheduler": {"kind": "sedf"}}, {"slice": "6 ms", "period": "10 ms"}, "sedf slices of 120 % of a pCPU"),
        ({"scheduler": {"kind": "esxi"}}, {"reservation": "60 %"}, "reservations of 120 % of a pCPU exceed the host's"),
        ({"pcpus": 3}, {"vcpus": 2}, "each of the 4 vCPUs needs a pCPU of its own, and the host has 3"),
        ({"scheduler": {"kind": "sedf"}}, {"slice": "6 ms", "period": "10 ms", "affinity": [0]}, "fit on pCPU 0"),
    ],
)
def test_a_host_that_cannot_have_its_domains_is_refused_by_name_when_the_model_is_read(second, domain, message):
    """Two of them, of which each alone would do."""
    model = {"hosts": {"first": {}, "second": second}, "domains": {"a": {"host": "second", "count": 2, **domain}}}
    with pytest.raises(ValidationError) as caught:
        ModelSpec.model_validate(model, context=WITH_HOSTS)
    assert "hosts.second: " in str(caught.value)
    assert message in str(caught.value)
    with pytest.raises(UsageError, match=r"hosts\.second: "):
        run_model(ModelSpec.model_validate(model), 1, 0)
    model["domains"]["a"]["count"] = 1
    ModelSpec.model_validate(model, context=WITH_HOSTS)


@pytest.mark.parametrize(
    ("scheduler", "domain", "message"),
    [
        ("rtds", {"budget": "20 ms"}, "budget <= period, got a budget of 20 ms and a period of 10 ms"),
        ("rtds", {"budget": "5 us"}, "10 us <= budget <= period, got a budget of 5 us"),
        ("esxi", {"reservation": "50 %", "limit": "20 %"}, "limit of 20 % of a pCPU is below its reservation of 50 %"),
        ("sedf", {"extratime": False}, "with slice 0 and without extratime it would never run; give it a slice"),
    ],
)
def test_a_domain_that_contradicts_itself_is_refused_when_its_file_is_read(scheduler, domain, message):
    """The scheduler that reads it refuses it, no other."""

    def model(kind):
        return {"hosts": {"host": {"scheduler": {"kind": kind}}}, "domains": {"a": {}, "b": domain}}

    with pytest.raises(ValidationError, match=f"domains.b: .*{message}"):
        ModelSpec.model_validate(model(scheduler))
    ModelSpec.model_validate(model("credit"))


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("networks={}", "'networks' must have at least 1, got 0"),
        ("calibrated={by: me, loads: [10 /s]}", "'loads' must have at least 2, got 1"),
        ("calibrated={by: me, loads: [1 /s, 2 /s, 3 /s]}", "'loads' must have at most 2, got 3"),
    ],
)
def test_too_few_and_too_many_are_told_in_the_words_of_all_messages(assignment, message):
    with pytest.raises(ModelFileError) as refused:
        load_model("lab-native", [assignment])
    assert str(refused.value).endswith(message)


BULK = {"kind": "bulk_tcp", "to": "a", "duration": "20 ms", "network": {"switched": True, "flow_control": True}}
SHARED = {**BULK, "network": {}}
DATAGRAMS = {"kind": "bulk_udp", "to": "a", "duration": "20 ms", "rate": "100 Mbit/s", "network": {"switched": True}}
TOO_SHORT = {
    "a client's queue": ("workloads.load.network.queue", 1538, BULK, "network.queue: 1537 B is shorter"),
    "a client's queue, datagrams": ("workloads.load.network.queue", 1536, DATAGRAMS, "network.queue: 1535 B is"),
    "a switch that holds back": ("networks.lan.queue", 1538, BULK, "hold back for ever"),
    "clients on the link to the host": ("networks.lan.queue", 2 * 1538, SHARED, "which wait for half of it"),
    "a window": ("workloads.load.window", 2_000, {**BULK, "mss": 2_000}, ""),
}


@pytest.mark.parametrize("case", TOO_SHORT)
def test_a_queue_or_window_that_no_frame_fits_is_refused(case):
    """A client behind one waited for ever at one instant, and the run with it; with one byte more it sends."""
    key, least, workload, text = TOO_SHORT[case]
    sink = {"kind": "tcp_sink" if workload["kind"] == "bulk_tcp" else "udp_sink"}
    domain = {"interfaces": {"eth0": {"path": {"kind": "moderated"}}}, "applications": {"sink": sink}}
    model = {"networks": {"lan": {}}, "domains": {"a": domain}, "workloads": {"load": workload}}
    plain = ModelSpec.model_validate({**model, "measure": {"warm_up": "0 s", "duration": "100 ms"}})
    record = run_model(with_values(plain, {key: least}), 1, 0)
    assert record.whole.outcomes["networks.lan.to_host"].sent_bytes > least
    if text:
        with pytest.raises(ValidationError, match=text):
            ModelSpec.model_validate(with_values(plain, {key: least - 1}).model_dump())


def tiers(answer="128 B", size="512 B", inner="128 B", request="128 B"):
    """One client of a service that asks another one."""
    path = {"interfaces": interface("moderated")}
    front = {"kind": "service", "answer_size": answer, "calls": [{"to": "b", "size": size}]}
    return {
        "hosts": {"host": {"pcpus": 2}},
        "domains": {
            "a": {**path, "applications": {"web": front}},
            "b": {**path, "applications": {"data": {"kind": "service", "answer_size": inner}}},
        },
        "workloads": {"u": {"kind": "request_response", "to": "a", "request_size": request}},
    }


WEB = {
    "domains": {"a": {"interfaces": interface("moderated"), "applications": {"web": {"kind": "prefork_web_server"}}}},
    "workloads": {"u": {"kind": "httperf", "to": "a", "rate": "20 /s"}},
}
LOOKUPS = {"invite": {"demand": "1 us", "asks": [{"to": "back", "message": "update"}, {"to": "back", "size": "7 kB"}]}}
MESSAGES = {
    "a request": tiers(request="3 kB"),
    "an answer": tiers(answer="4 kB"),
    "a call": tiers(size="5 kB"),
    "the answer to a call": tiers(inner="6 kB"),
    "a reply": WEB,
    "a lookup": farm(front={"operations": LOOKUPS}, back={}),
}


@pytest.mark.parametrize("case", MESSAGES)
def test_a_message_that_no_queue_takes_is_refused_but_over_tcp(case):
    """A datagram would be dropped each time it is sent, and nobody answered; TCP feeds the queue as it empties."""
    model = MESSAGES[case] | {"measure": {"warm_up": "0 s", "duration": "300 ms"}}
    text = "domains.front.applications.sip.operations.invite.asks.1.size: 7 kB are"
    with pytest.raises(ValidationError, match=text) if case == "a lookup" else nullcontext():
        ModelSpec.model_validate(model | {"networks": {"lan": {"queue": "2 kB"}}})
    queue = "7 kB" if case == "a lookup" else "2 kB"
    outcomes = run_model(ModelSpec.model_validate(model | {"networks": {"lan": {"queue": queue}}}), 1, 0).whole.outcomes
    (seen,) = (outcomes[f"workloads.{clients}"] for clients in model["workloads"])
    assert getattr(seen, "answers", None) or seen.response.count


@pytest.mark.parametrize(
    ("domain", "program"), [("web.example", "p"), ("web", "shop.v2")], ids=["a domain", "an application"]
)
def test_a_name_with_a_dot_is_refused(domain, program):
    """``web.example`` as the end of calls would be application ``example`` of ``web``."""
    settings = {domain: {"applications": {program: {"kind": "batch"}}}}
    bad = domain if "." in domain else program
    with pytest.raises(ValidationError, match=f"'{re.escape(bad)}' has a dot.*name it '{bad.replace('.', '-')}'"):
        ModelSpec.model_validate({"domains": settings})


@pytest.mark.parametrize("place", ["hosts", "networks", "workloads", "applications"])
@pytest.mark.parametrize(
    ("name", "why"), [("=1+1", "as a formula"), ("@x", "as a formula"), ("a\tb", "control"), ("a.b", "a dot")]
)
def test_a_name_that_is_a_path_of_keys_or_a_formula_is_refused(place, name, why):
    """Of a workload ``a.b`` no load was found, nor any key for --set; ``=1+1`` was 2 in a spreadsheet."""
    workload = {"kind": "open_requests", "to": "vm", "rate": "1 /s"}
    model = {
        "hosts": {"h" if place != "hosts" else name: {}},
        "networks": {"n" if place != "networks" else name: {}},
        "domains": {"vm": {"applications": {"p" if place != "applications" else name: {"kind": "service"}}}},
        "workloads": {"w" if place != "workloads" else name: workload},
    }
    with pytest.raises(ValidationError, match=why):
        ModelSpec.model_validate(model)
