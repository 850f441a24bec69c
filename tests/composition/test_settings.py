"""Every setting of every shipped model has an effect on a result, or is refused, or has a stated reason.

Each number, quantity and choice between yes and no of a resolved model is changed, to several values until a short run
comes out otherwise.  What no value changes must be named by :func:`without_effect`, or be of the kinds in ``REASONS``:
settings of what does not happen in a short run without faults, overload and loss.
"""

import fnmatch
import json
import re
from collections.abc import Iterator
from copy import deepcopy
from functools import partial

import pytest
from pydantic import ValidationError
from ruamel.yaml import YAML

from vftsim.composition.model import ModelSpec
from vftsim.composition.run import run_model
from vftsim.composition.without_effect import remarks, without_effect
from vftsim.errors import ModelFileError, RunFailure, UsageError
from vftsim.platform.cpu import schedulers as scheduler_files
from vftsim.platform.cpu.parameters import DomainScheduling, schedulers
from vftsim.study.runs.model import load_model, shipped_models

QUANTITY = re.compile(r"([0-9.]+(?:e[+-]?\d+)?)\s*(\D.*)")
SHORT = {
    "lab": [
        "workloads.calls.steps.most=2",
        "workloads.calls.steps.transient=2 s",
        "workloads.calls.steps.duration=6 s",
        "workloads.calls.pre_registration.duration=4 s",
        "workloads.calls.pre_registration.transient=1 s",
        "workloads.calls.stir.duration=2 s",
        "workloads.calls.steps.initial=60/s",
    ],
    "xen": ["measure.duration=200 ms", "measure.warm_up=100 ms"],
    "sip": [
        "measure.warm_up=50 ms",
        "measure.duration=200 ms",
        "workloads.calls.rate=100 /s",
        "workloads.calls.hold=100 ms",
        "faults=[]",
    ],
    "two": ["measure.warm_up=100 ms", "measure.duration=400 ms"],
    "net": [
        "measure.duration=2 s",
        "measure.warm_up=100 ms",
        "workloads.tcp.duration=400 ms",
        "workloads.udp.duration=400 ms",
        "workloads.web.connections=20",
    ],
}
NEVER = "neither loss, overload nor a repetition in a short run at low load"
NO_FAULT = "no fault in the run"
REASONS = {
    "*.retransmission_cost": NEVER,
    "*.t2": NEVER,
    "*_retransmissions": NEVER,
    "*.socket_buffer": NEVER,
    "*.reply_timeout": NEVER,
    "*.stop_above_ihs": NEVER,
    "*.fails_on_second_challenge": NEVER,
    "*.min_rto": NEVER,
    "*.receive_buffer_bytes": NEVER,
    "*.packet_charge_bytes": NEVER,
    "*.accept_queue": NEVER,
    "*.queue": NEVER,
    "*.receive_ring_packets": NEVER,
    "*.ring": NEVER,
    "*.ring_packets": NEVER,
    "*_buffer_packets": NEVER,
    "*.abort_when_closed": NEVER,
    "*.m*_spare": NEVER,
    "*.max_clients": NEVER,
    "*.nonces_good_once": NEVER,
    "*.swap.memory": "the processes fit in memory",
    "*.memory_available": "the programs fit in memory",
    "*.flush_*": "no flush",
    "*.timers_wait_for_flush": "no flush",
    "*.quantum": "no process computes for a whole quantum",
    "*.counts_anew": "nobody has had more or less than a share by a whole slice",
    "*.protection.log.disk_read_size": "the guest reads no disk",
    "*.protection.log.disk_reads": "the guest reads no disk",
    "*.protection.log.event_entry": "no clock reads are logged apart",
    "*.protection.log.buffer": NEVER,
    "*.protection.secondary.buffer": NEVER,
    "*.protection.throttle.*": "the secondary keeps up",
    "*.protection.failover.*": NO_FAULT,
    "*.protection.reprotection.*": NO_FAULT,
    "*.shared_buffer": "one flow has the buffer to itself",
    "domains.*.on_every_host": NO_FAULT,
    "domains.*.weight": "its CPU is never contended",
    "domains.*.cap": "it never reaches its cap",
    "domains.*.shares": "its CPU is never contended",
    "domains.*.threads": "one thread is never busy twice",
    "domains.*.count": "copies of it would not fit",
    "domains.*.vcpus": "one vCPU has all there is to do",
    "networks.vmnic*.*": "nothing but the log of a protected guest crosses it",
    "*.budget_packets": "no batch of the driver domain is that long",
    "workloads.tcp.window": "the window is larger than what is under way",
    "workloads.*.network.flow_control": "one client does not fill the switch",
    "*.udp.receive_buffer": NEVER,
    "workloads.tcp.reaction": "the server is what acknowledgements wait for",
    "domains.*.reservation": "its CPU is never contended",
    "domains.*.limit": "it never reaches its limit",
    "domains.*.relative_share": "its CPU is never contended",
    "domains.*.absolute_share": "its CPU is never contended",
    "domains.*.backlog": NEVER,
    "domains.*.repeat_share": NEVER,
    "domains.*.retry": NEVER,
    "workloads.calls.retransmits": NEVER,
    "workloads.web.linear_retries": NEVER,
    "domains.*.calls.*.retries": NEVER,
    "domains.*.calls.*.max_fails": NEVER,
    "domains.*.calls.*.fail_timeout": NEVER,
    "workloads.pages.retries": NEVER,
    "domains.*.cache_entries": "no boot empties the cache",
    "hosts.front.switch_cost": "its domain has the host to itself",
    "hosts.back.switch_cost": "its domain has the host to itself",
    "domains.*.cluster.demand": "operations name all its messages",
    "domains.*.nfsd.demand": "operations name all its messages",
    "domains.*.interfaces.inside.path.moderation": "packets come more seldom than interrupts may",
}
SAID_ONLY = {"measured": "shown beside figures", "calibrated": "marks figures, and is in no run"}
PARTS = frozenset({"kind", "name", "description", "format"})


def leaves(data, path=()) -> Iterator[tuple[tuple, object]]:
    pairs = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else None
    if pairs is None:
        yield path, data
    for key, value in pairs or ():
        yield from leaves(value, (*path, key))


def others(value) -> list:
    """Return values to put in the place of one."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, (int, float)):
        found = (value * 2, value / 2, value * 1.2, value + 1, value - 1, 0, 1, value * 100, value / 100)
        return [made for x in found if (made := type(value)(x)) != value]
    match = QUANTITY.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return []
    number, unit = float(match[1]), match[2]
    factors = (2, 0.5, 100, 1.2, 0.01)
    return [f"{x:.12g} {unit}" for x in ((number * f for f in factors) if number else (1, 50, 100, 100_000))]


def changed(base, path, value):
    data = json.loads(json.dumps(base))
    holder = data
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    return ModelSpec.model_validate(data)


def outcome(spec) -> str:
    try:
        return json.dumps(run_model(spec, 1, 0).to_dict(), sort_keys=True, default=str)
    except RunFailure as failure:  # an effect, too: calls of a nanosecond are more than a run holds
        return str(failure)


def with_settings(data, settings) -> ModelSpec:
    """Return the model of ``data`` and of settings by their dotted keys."""
    for key, value in deepcopy(settings).items():
        *path, last = key.split(".")
        holder = data
        for each in path:
            holder = holder[each]
        holder[last] = value
    return ModelSpec.model_validate(data)


def check_named_where_idle(assignment, idle_and_needed, model) -> None:
    """Check that a setting is named where it changes nothing, to the last event, and not where it does."""
    key, _, text = assignment.partition("=")
    value = YAML(typ="safe").load(text)
    for settings, is_idle in zip(idle_and_needed, (True, False), strict=True):
        spec, plain = model({**settings, key: value}), model(settings)
        assert any(message.startswith(f"{key}: ") for message in without_effect(spec)) == is_idle
        assert (outcome(spec) == outcome(plain)) == is_idle


def idle(name: str, assignments=()) -> list[str]:
    """Return the settings of a model that no value changes anything of, and for which nobody gives a reason."""
    spec = load_model(name, [*SHORT[name.split("-", maxsplit=1)[0]], *assignments]).spec
    base, reference = spec.model_dump(mode="json"), outcome(spec)
    return [
        ".".join(map(str, path))
        for path, value in leaves(base)
        if path[0] not in SAID_ONLY
        and not PARTS & set(path)
        and not has_effect(base, path, value, reference)
        and not (path[-1] == "switch_cost" and is_alone(spec, path[1]))
    ]


def is_alone(spec, host) -> bool:
    """Whether each vCPU of a host is alone on its pCPU, so that none ever changes from one to another."""
    domains = [domain for domain in spec.expanded().values() if spec.host_of(domain) == host]
    pins = [pcpu for domain in domains for pcpu in domain.affinity or ()]
    return all(domain.vcpus == 1 for domain in domains) and (
        len(domains) == 1 or len(pins) == len({*pins}) == len(domains)
    )


def has_effect(base, path, value, reference) -> bool:
    key = ".".join(map(str, path))
    if any(fnmatch.fnmatch(key, pattern) for pattern in REASONS):
        return True
    is_accepted = False
    for other in others(value):
        try:
            spec = changed(base, path, other)
            if any(text.startswith(f"{key}: ") for text in without_effect(spec)):
                return True
            if outcome(spec) != reference:
                return True
            is_accepted = True
        except (ValidationError, UsageError):
            continue
    return not is_accepted


def chosen(name: str) -> bool:
    """Of the farms two that have all parts; in the others back end and inside network have nothing to do."""
    if name.startswith("sip-farm"):
        return name in ("sip-farm-r7", "sip-farm-ethernet")
    return name.split("-", maxsplit=1)[0] in SHORT


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in shipped_models() if chosen(name)])
def test_every_setting_of_a_shipped_model_has_an_effect_or_a_reason(name):
    assert idle(name) == []


@pytest.mark.thorough
def test_every_setting_of_a_small_server_has_an_effect_or_a_reason():
    assert (
        idle(
            "xen-media-native",
            ["workloads.media.streams=150", "measure.warm_up=20 ms", "measure.duration=100 ms"],
        )
        == []
    )


@pytest.mark.parametrize("kind", sorted(schedulers()))
def test_a_scheduler_says_what_it_reads(kind):
    """Compared with its source: attributes of the row of ``entitlements`` that it takes up."""
    spec = schedulers()[kind]
    folder = scheduler_files.__path__[0]
    files = {"credit": ["_credit_accounting.py"]}.get(kind, [f"{kind}.py"])
    read = set()
    for file in files:
        with open(f"{folder}/{file}", encoding="utf-8") as stream:
            read |= set(re.findall(r"(?:\bentitlement|entitlements\(sim\)\[[\w.]+\])\.([a-z_]+)", stream.read()))
    assert spec.reads == {key.removesuffix("_ns") for key in read}, "the spec's reads and what the file looks at"
    assert spec.reads <= set(DomainScheduling.model_fields)


def test_what_is_set_in_vain_is_named_with_its_reason():
    spec = load_model(
        "lab-native",
        ["domains.sut.cap=50 %", "domains.sut.interfaces.eth0.path.moderation=1 ms", "measure.warm_up=3 s"],
    ).spec
    cap, moderation, warm_up = without_effect(spec)
    assert cap == "domains.sut.cap: the scheduler native does not read it"
    assert moderation.startswith("domains.sut.interfaces.eth0.path.moderation: with interrupt_cost and packet_cost 0")
    assert warm_up == "measure.warm_up: workloads.calls has phases of its own, which say how long a run lasts"
    relay = "domains.sut.applications.relay={kind: media_relay}"
    media = "workloads.media={kind: rtp, to: sut.relay, streams: 1}"
    beside = load_model("lab-native", [relay, media, "measure.warm_up=3 s", "measure.duration=9 s"]).spec
    assert [each.partition(":")[0] for each in without_effect(beside)] == ["measure.duration"], "its figures leave 3 s"
    dear = load_model(
        "lab-native", ["domains.sut.interfaces.eth0.path={kind: moderated, moderation: 1 ms, packet_cost: 1 us}"]
    )
    assert without_effect(dear.spec) == []


BUSY = {name: {"kind": "cpu_bound", "duty": "60 %"} for name in "xyz"}
CREDIT = {"hosts.host.scheduler": {"kind": "credit"}}
FULL = {"hosts.host": {"scheduler": {"kind": "credit"}}}
SHORT_QUEUE = "networks.lan.queue=100 B"
O1 = {"domains.a.guest_scheduler": {"kind": "o1"}}
OTHERS_DECIDE = {
    "domains.a.period=30 ms": ("cfs", {}, {"domains.a.quota": "20 ms"}),
    "domains.a.nice=10": ("cfs", {"domains.a.shares": 700}, {}),
    "hosts.host.scheduler.bandwidth_slice=1 ms": ("cfs", {}, {"domains.a.quota": "20 ms"}),
    "domains.a.period=40 ms": ("sedf", {}, {"domains.a.slice": "20 ms"}),
    "domains.a.latency=5 ms": ("sedf", {}, {"domains.a.slice": "20 ms"}),
    "domains.a.weight=9": ("sedf", {"domains.a.slice": "20 ms", "domains.a.extratime": False}, {}),
    "domains.a.relative_share=700": ("zvm", {"domains.a.absolute_share": "20 %"}, {}),
    "domains.a.affinity=[2]": ("native", {}, CREDIT),
    "hosts.host.switch_cost=1 ms": ("native", {}, FULL),
    "hosts.host.scheduler.cap_period=30 ms": ("credit2", {}, {"domains.a.cap": "50 %"}),
    "hosts.host.scheduler.limit_period=30 ms": ("esxi", {}, {"domains.a.limit": "50 %"}),
    "domains.a.quantum=1 ms": ("native", O1, {}),
    "domains.c.quantum=1 ms": ("native", {}, {"domains.c.applications": BUSY}),
    "domains.c.guest_scheduler={kind: o1}": ("native", {}, {"domains.c.applications": BUSY}),
}


def small(scheduler, settings) -> ModelSpec:
    """Two guests whose processes share a vCPU, and one without programs, on a full host."""
    data = {
        "hosts": {"host": {"pcpus": 3 if scheduler == "native" else 1, "scheduler": {"kind": scheduler}}},
        "domains": {"a": {"applications": BUSY}, "b": {"applications": BUSY}, "c": {}},
        "measure": {"warm_up": "100 ms", "duration": "400 ms"},
    }
    return with_settings(data, settings)


@pytest.mark.parametrize("assignment", OTHERS_DECIDE)
def test_a_setting_that_another_one_makes_idle_is_named_and_no_other(assignment):
    scheduler, *settings = OTHERS_DECIDE[assignment]
    check_named_where_idle(assignment, settings, partial(small, scheduler))


def test_networks_that_nothing_uses_and_queues_in_which_nothing_waits_are_named():
    apart = {"networks": {"lan": {}, "san": {"latency": "7 ms"}}}
    assert without_effect(small("native", apart)) == ["networks.san.latency: nothing uses the network"]
    joined = {"domains.c.interfaces": {"eth0": {"network": "san", "path": {"kind": "native"}}}}
    assert without_effect(small("native", {**apart, **joined})) == []
    # Media packets are drawn beforehand: none of them is dropped, however short the queue.
    drawn, short = (load_model("xen-media-native", [*SHORT["xen"], *more]).spec for more in ((), (SHORT_QUEUE,)))
    assert without_effect(short) == ["networks.lan.queue: its link is not simulated packet by packet"]
    assert outcome(short) == outcome(drawn)


@pytest.mark.parametrize("switched", [False, True])
def test_links_of_clients_without_a_switch_are_named(switched):
    """A client sends at its own link's 10 Mbit/s, or at the host's gigabit where it has none."""
    settings = [*SHORT["net"], "workloads.udp=null", "workloads.web=null", "workloads.tcp.network.rate=10 Mbit/s"]
    spec = load_model("net-bare", [*settings, f"workloads.tcp.network.switched={str(switched).lower()}"]).spec
    named = [text.partition(":")[0] for text in without_effect(spec)]
    assert named == ([] if switched else ["workloads.tcp.network.rate", "workloads.tcp.network.flow_control"])
    sent_bits_per_s = run_model(spec, 1, 0).phases[0].outcomes["networks.lan.to_host"].sent_bytes * 8 / 0.4
    assert (sent_bits_per_s > 10_000_000 * 1.1) == (not switched)


def test_settings_of_an_application_that_need_another_one_are_named():
    proxy = "domains.sut.applications.proxy"
    spec = load_model("lab-native", [f"{proxy}.wakeup_idle=1 ms", f"{proxy}.script={{invite: 3, reply: 1}}"]).spec
    assert without_effect(spec) == [
        f"{proxy}.script.invite: with script.cost 0 the script costs nothing",
        f"{proxy}.script.reply: with script.cost 0 the script costs nothing",
        f"{proxy}.wakeup_idle: with wakeup_cost 0 nothing reads it",
    ]
    ft = load_model("lab-virtual-ft", ["domains.sut.protection.cost.clock_read=3 us"]).spec
    assert without_effect(ft) == ["domains.sut.protection.cost.clock_read: only costs in the form counted read it"]
    read = [f"{proxy}.wakeup_idle=1 ms", f"{proxy}.wakeup_cost=5 us", f"{proxy}.script={{invite: 3, cost: 2 us}}"]
    assert without_effect(load_model("lab-native", read).spec) == []


def test_the_time_slice_of_a_server_is_its_domains():
    """Jobs of 6 to 9 ms at half load: turns of 1 ms move the delays and no CPU time; the server has no slice itself."""
    proxy = "domains.sut.applications.proxy"
    with pytest.raises(ModelFileError, match="unknown key 'quantum'"):
        load_model("lab-native", [f"{proxy}.quantum=1 ms"])
    slow = [*SHORT["lab"], f"{proxy}.touch_cost=3 ms", "workloads.calls.steps.loads=[15 /s]"]
    whole, sliced = (
        run_model(load_model("lab-native", [*slow, f"domains.sut.quantum={quantum}"]).spec, 1, 0)
        for quantum in ("100 ms", "1 ms")
    )
    assert sliced.pcpus()["sut"] == pytest.approx(whole.pcpus()["sut"], rel=0.01)
    setups = [record.steps()[-1].delays["SES1"] for record in (whole, sliced)]
    assert setups[0].count == setups[1].count > 10
    assert setups[0].mean != setups[1].mean


def test_shipped_models_set_nothing_in_vain():
    in_vain = {name: text for name in shipped_models() if (text := without_effect(load_model(name).spec))}
    lab = in_vain.pop("linux-lab")
    assert in_vain == {}
    assert {text.split(":")[0].rsplit(".", 1)[1] for text in lab} == {"moderation", "ring"}
    stopped = ["faults=[{kind: pause, at: 1 s, duration: 5 ms}]"]
    assert without_effect(load_model("linux-lab", stopped).spec) == [], (
        "they are for the stops that its validation adds"
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["vcpus=2"], "no more than 1 can run at a time, because of affinity [0]; --set domains.sut.affinity=null"),
        (["vcpus=4", "affinity=null"], "no more than 2 can run at a time, because of hosts.host.pcpus 2; --set hosts."),
        (["vcpus=2", "affinity=null"], ""),
    ],
)
def test_vcpus_that_can_never_run_beside_the_others_are_named_with_the_remedy(settings, message):
    """The SIP lab's guest is pinned to one of its host's two pCPUs."""
    found = remarks(load_model("lab-virtual", [f"domains.sut.{text}" for text in settings]).spec)
    assert len(found) == bool(message)
    assert message in "".join(found)


@pytest.mark.parametrize(
    ("budget", "vcpus", "pcpus", "message"),
    [
        ("7 ms", 2, 1, ["hosts.host: rtds budgets of 140 % of a pCPU exceed the host's 100 %: some are not kept"]),
        ("5 ms", 2, 1, []),
        ("7 ms", 2, 2, []),
        (None, 3, 1, []),  # nobody asked for the default 40 %
    ],
)
def test_budgets_that_cannot_all_be_kept_are_said(budget, vcpus, pcpus, message):
    """Xen admits any; two budgets of 70 % of a pCPU cannot both be had on it."""
    host = {"pcpus": pcpus, "scheduler": {"kind": "rtds"}}
    domain = {"budget": budget, "period": "10 ms", "vcpus": vcpus}
    told = remarks(ModelSpec.model_validate({"hosts": {"host": host}, "domains": {"vm": domain}}))
    assert [line for line in told if "budgets" in line] == message


@pytest.mark.parametrize(
    ("scheduler", "domain", "message"),
    [
        (
            "credit",
            {"cap": "150 %"},
            ["domains.sut.cap: 150 % bounds nothing, as its vCPUs can use no more than 100 %"],
        ),
        ("credit", {"cap": "100 %"}, []),
        ("credit2", {"cap": "150 %", "vcpus": 2}, []),
        (
            "esxi",
            {"limit": "150 %"},
            ["domains.sut.limit: 150 % bounds nothing, as its vCPUs can use no more than 100 %"],
        ),
        ("esxi", {"cap": "150 %"}, []),
    ],
)
def test_a_bound_that_a_domain_can_never_reach_is_said(scheduler, domain, message):
    """Of what its scheduler does not read another remark tells."""
    text = [f"hosts.host={{pcpus: 2, scheduler: {{kind: {scheduler}}}}}", "domains.sut.affinity=null"]
    text += [f"domains.sut.{key}={value}" for key, value in domain.items()]
    assert remarks(load_model("lab-virtual", text).spec) == message


@pytest.mark.parametrize(("period", "message"), [("1 ms", False), ("700 us", True)])
def test_background_traffic_of_more_than_the_line_is_said(period, message):
    """Bursts of 10 kB through 100 Mbit/s: 80 Mbit/s, or 114.3."""
    lan = {"rate": "100 Mbit/s", "background": {"storage": {"burst": "10 kB", "period": period}}}
    found = remarks(small("native", {"networks": {"lan": lan}}))
    assert found == ["networks.lan.background asks for 114.3 Mbit/s, and networks.lan.rate is 100 Mbit/s"] * message


@pytest.mark.parametrize(("latency", "is_late"), [("29 ms", False), ("30 ms", True)])
def test_streams_that_the_network_makes_too_late_are_said(latency, is_late):
    """A play-out delay of 60 ms, and a latency each way."""
    spec = load_model("xen-media", [f"networks.lan.latency={latency}"]).spec
    told = "workloads.media.playout: each packet comes after the 60 ms, as networks.lan.latency is 60 ms there and back"
    assert [text.startswith(told) for text in remarks(spec)] == [True] * is_late


@pytest.mark.parametrize(("spread", "is_said"), [("100 ms", False), ("2 s", True)])
def test_clients_that_do_not_send_at_the_same_time_are_said(spread, is_said):
    """Three of 2 s on a gigabit, which carries 941.5 Mbit/s: what each has to itself is more in all."""
    alone = ["workloads.udp=null", "workloads.web=null", "workloads.tcp.clients=3", "workloads.tcp.duration=2 s"]
    spec = load_model("net-bare", [*alone, f"workloads.tcp.spread={spread}", "measure.duration=4 s"]).spec
    told = "workloads.tcp.spread: its clients begin within 2 s and send for 2 s each, not all at the same time"
    assert [text.startswith(told) for text in remarks(spec) if "spread" in text] == [True] * is_said
    mbit_per_s = sum(run_model(spec, 1, 0).whole.outcomes["workloads.tcp"].throughput.values())
    assert (mbit_per_s > 1.2 * 941.5) == is_said


@pytest.mark.parametrize(("burst", "is_lost"), [("10 kB", False), ("11 kB", True)])
def test_background_traffic_that_no_queue_takes_is_named(burst, is_lost):
    """Bursts of 10 kB every 10 ms through a queue of 10 kB; the link sends one in 0.8 ms."""
    lan = {"rate": "100 Mbit/s", "queue": "10 kB", "background": {"storage": {"burst": burst, "period": "10 ms"}}}
    spec = small("native", {"networks": {"lan": lan}})
    text = "networks.lan.background.storage: a burst of 11 kB never fits into networks.lan.queue, 10 kB, and is dropped"
    assert [each.removesuffix(" as a whole") for each in remarks(spec)] == [text] * is_lost
    sent_bytes = run_model(spec, 1, 0).phases[0].outcomes["networks.lan.from_host"].sent_bytes
    assert sent_bytes == 0 if is_lost else sent_bytes >= 390_000


def test_an_affinity_that_nothing_reads_holds_no_vcpu():
    """Bare metal: two vCPUs with an affinity for one pCPU use two."""
    spec = small("native", {"hosts.host.pcpus": 4, "domains.a.vcpus": 2, "domains.a.affinity": [0]})
    assert remarks(spec) == []
    phase = run_model(spec, 1, 0).phases[0]
    assert phase.outcomes["domains.a"].cpu_ns > 1.5 * (phase.end_ns - phase.begin_ns)


@pytest.mark.parametrize("name", shipped_models())
def test_the_shipped_models_leave_no_vcpu_idle_and_cut_no_test(name):
    """The networks' three tests are written to be run one at a time: together the longest decides what is measured."""
    found = [each for each in remarks(load_model(name).spec) if " alone: " not in each]
    assert [each for each in found if "means up to 24.94 s" not in each] == []
    assert len(found) == (2 if name.startswith("net-") else 0)
