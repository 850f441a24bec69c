"""Any key of a model turned until runs no longer meet what is asked, on a system whose answers are arithmetic.

One CPU works 1 ms a request; each client asks, waits for the answer and 20 ms more.  With N clients a round takes
21 ms until the CPU is full, and N ms beyond, so that 21 clients are the most that all wait no longer than 1 ms; the
answer's delay beyond is N - 20 ms.
"""

import json
import math
import re
from dataclasses import replace

import pytest

import vftsim
from vftsim.cli.main import main
from vftsim.composition.run import run_model
from vftsim.errors import UsageError
from vftsim.report.blocks import Answer, Note, Table
from vftsim.study.designs.axes import knob_of, written
from vftsim.study.designs.capacity import at_knob, knob_capacity
from vftsim.study.designs.capacity_answer import CapacityStudy
from vftsim.study.designs.capacity_by_search import level_blocks
from vftsim.study.designs.capacity_search import CapacityRequest
from vftsim.study.designs.resources import limit_in_words
from vftsim.study.execution import Execution
from vftsim.study.figures.names import Objective, at_any_count, one_figure, read_objective
from vftsim.study.figures.summary import Summary
from vftsim.study.runs.model import load_model, shipped_models
from vftsim.study.runs.progress import Progress

SERVER = """\
format: 2
hosts: {host: {pcpus: 1, scheduler: {kind: native}, nics: {eth0: {}}}}
networks: {lan: {latency: 10 us}}
domains:
  server:
    vcpus: 1
    interfaces: {eth0: {path: {kind: native, event_cost: 0, driver_receive_cost: 0, driver_transmit_cost: 0}}}
    applications: {app: {kind: service, demand: 1 ms}}
workloads:
  load: {kind: request_response, to: server, clients: 15, turn_around: 20 ms}
measure: {duration: 100 ms, warm_up: 100 ms}
"""
EVENLY = SERVER.replace(
    "request_response, to: server, clients: 15, turn_around: 20 ms",
    "open_requests, to: server, rate: 100 /s, gap_cv: 0",
).replace("duration: 100 ms", "duration: 1 s")
ASKED = CapacityRequest(probability=0.5, resolution=1.0, budget=60)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    path = tmp_path_factory.mktemp("server") / "server.yaml"
    path.write_text(SERVER)
    return load_model(path)


def turned(model, request):
    (found,) = knob_capacity(model, request, Execution(1, 1)).searches.values()
    return found


def asking(**more):
    return replace(ASKED, **more)


@pytest.mark.thorough
def test_the_declared_load_is_turned_until_the_cpu_is_full(server):
    """A p95 of at most 5.5 ms: 25 clients wait 5 ms, 26 wait 6."""
    found = turned(server, asking(objectives=("latency_p95_ms <= 5.5",)))
    assert found.names.key == "workloads.load.clients"
    assert (found.result.estimate.low, found.result.estimate.high) == (25.0, 26.0)
    curve = found.curve().set_index("workloads.load.clients")
    assert curve["workloads.load.latency.p95_mean"][26.0] == pytest.approx(6.0, rel=0.05)
    assert found.resources.iloc[0]["resource"] == "1 pCPU"


@pytest.mark.thorough
def test_any_key_can_be_turned(server):
    """15 clients and 20 ms: the answer comes in 5.5 ms as long as a request takes no more than about 25.5/15 ms."""
    found = turned(
        server,
        asking(
            vary="domains.server.applications.app.demand", resolution=0.1, objectives=("load.latency_p95_ms <= 5.5",)
        ),
    )
    assert found.names.details["unit"] == "ms"
    assert found.result.estimate.low <= 25.5 / 15 <= found.result.estimate.high + 0.1


@pytest.mark.slow
def test_a_load_is_raised_no_higher_than_the_model_can_have(server, capsys):
    """A workload has 10,000 clients at most; beside an answer a second they all pass."""
    words = ["--objective", "load.rate >= 1", "--set", "workloads.load.clients=6000", "--probability", "0.5"]
    assert main(["capacity", server.label, *words, "-q", "-j", "1"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "at least 10000 (workloads.load.clients), no load failed, and the model can have no higher one" in printed


CAPACITY = ["capacity", "-q", "-j", "1", "--probability", "0.5", "--vary", "domains.server.vcpus"]


def test_a_value_is_raised_no_higher_than_the_host_can_have(server, capsys):
    """Without a hypervisor each vCPU needs a pCPU of its own, and there are three; each value does what is asked."""
    words = ["--objective", "load.rate >= 1", "--set", "hosts.host.pcpus=3"]
    assert main([*CAPACITY, server.label, *words]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "at least 3 (domains.server.vcpus), no load failed, and the model can have no higher one" in printed


@pytest.mark.parametrize("vcpus", [1, 8])
def test_of_cpus_the_fewest_that_do_are_found(server, vcpus):
    """60 clients that ask each 21 ms for 1 ms fill 2.9 CPUs: two are behind for ever, three are never full."""
    values = ["hosts.host.pcpus=8", "workloads.load.clients=60", "domains.server.applications.app.threads=60"]
    model = load_model(server.label, [*values, f"domains.server.vcpus={vcpus}"])
    asked = asking(vary="domains.server.vcpus", resolution=None, objectives=("load.latency.p95 <= 5",))
    found = turned(model, asked)
    assert (found.result.estimate.low, found.result.estimate.high, found.result.eases) == (2.0, 3.0, True)
    answer = next(block.text for block in level_blocks(found) if isinstance(block, Answer))
    assert answer == "3 (domains.server.vcpus); 2 falls short"


@pytest.mark.thorough
def test_a_range_that_does_between_values_that_do_not_is_found(server):
    """13 clients ask 600 times a second, 21 wait for nobody; 200 fail, and so does each of their halves: 25, 12."""
    model = load_model(server.label, ["workloads.load.clients=200"])
    found = turned(model, asking(objectives=("load.rate >= 600", "load.latency.p95 <= 1.05"), budget=200))
    assert (found.result.estimate.low, found.result.estimate.high) == (21.0, 22.0)
    warned = " ".join(block.text for block in level_blocks(found) if isinstance(block, Note))
    assert "a higher load passed more often than a lower one; this is the upper end of those that pass" in warned


def test_it_is_said_that_no_value_does(server, capsys):
    words = ["--objective", "load.latency.p95 <= 0.5", "--set", "hosts.host.pcpus=3"]
    assert main([*CAPACITY, server.label, *words]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "below 1 (domains.server.vcpus), no load passed" in printed
    assert (
        "not even one passes; single runs at larger ones, a quarter of a doubling apart and more, failed too" in printed
    )
    assert "(not seen: what passes between two of them)" in printed


def test_a_load_far_below_1_is_searched_as_finely_as_any_other(tmp_path):
    """A request of 10 s each 20 s is half a CPU: 0.082 a second are 82 %."""
    path = tmp_path / "slow.yaml"
    load = "load: {kind: open_requests, to: server, rate: 0.05 /s, gap_cv: 0, timeout: 10 min}"
    text = SERVER.replace("load: {kind: request_response, to: server, clients: 15, turn_around: 20 ms}", load)
    path.write_text(text.replace("demand: 1 ms", "demand: 10 s").replace("duration: 100 ms", "duration: 30 min"))
    found = turned(load_model(path), asking(resolution=None, objectives=("server.cpu <= 82",)))
    assert found.result.answer == "between"
    assert found.result.estimate.low == pytest.approx(0.082, abs=0.005)
    assert found.result.estimate.high == pytest.approx(0.082, abs=0.005)


@pytest.mark.thorough
def test_several_objectives_must_all_hold(server):
    both = turned(server, asking(objectives=("load.latency.p95 <= 5.5", "server.cpu < 90")))
    assert both.result.estimate.high <= 20.0, "19 clients of 1 ms in 21 ms fill 0.9 of the CPU"
    assert len(both.judged) == 2


@pytest.mark.thorough
def test_the_command_prints_the_answer_and_writes_json(server, capsys):
    words = ["capacity", server.label, "--objective", "latency_p95_ms <= 5.5", "--probability", "0.5", "--budget", "60"]
    assert main([*words, "--resolution", "1", "-j", "1", "-q"]) == 0
    out = capsys.readouterr().out
    assert "Capacity: 26 (workloads.load.clients), in [25, 26]" in out
    assert "50 % of runs have workloads.load.latency.p95 <= 5.5" in out
    assert main([*words, "--resolution", "1", "-j", "1", "-q", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["capacity"][0]["capacity"] == "workloads.load.clients"
    assert printed["workloads.load.clients"]["objectives"] == [
        {"figure": "workloads.load.latency.p95", "relation": "<=", "value": 5.5, "unit": "ms"}
    ]


def test_requests_at_a_rate_are_carried_up_to_a_full_cpu(tmp_path):
    """1 ms of CPU a request is 1000 answers a second, 95 % of 1053 evenly spaced requests.

    In three seconds beyond it no client has given up: that takes 7 s.  The workload has the name of the application
    that it asks.
    """
    path = tmp_path / "open.yaml"
    load = "app: {kind: open_requests, to: server, rate: 500 /s, gap_cv: 0}"
    text = SERVER.replace("load: {kind: request_response, to: server, clients: 15, turn_around: 20 ms}", load)
    path.write_text(text.replace("duration: 100 ms", "duration: 3 s"))
    found = turned(load_model(path), ASKED)
    assert found.names.key == "workloads.app.rate"
    assert found.result.estimate.low <= 1000 / 0.95 <= found.result.estimate.high
    assert found.result.estimate.half_width < 10
    curve = found.curve().set_index("workloads.app.rate")
    assert curve["workloads.app.failed_mean"].max() == 0.0


@pytest.mark.parametrize("rate", [20, 100, 6000])
def test_a_search_begins_where_single_runs_change_and_is_as_fine_as_loads_there_are(tmp_path, rate):
    """Every 1/r s comes 1 ms of work: after t s the queue is (1 - 1000/r) t s long, at 0.6 s 50 ms if r is 1091.

    From 20/s that is five doublings up, from 6000/s three halves down; no load far away takes 51 runs.
    """
    path = tmp_path / "server.yaml"
    path.write_text(EVENLY.replace("100 /s", f"{rate} /s"))
    asked = CapacityRequest(quick=True, objectives=("load.latency.p50 <= 50 ms",))
    found = turned(load_model(path), asked)
    assert found.result.answer == "between"
    assert found.result.estimate.low <= 1091 <= found.result.estimate.high <= 1200
    assert all(probe.runs <= 10 for probe in found.result.probes if not 700 <= probe.level <= 1400)


def test_an_objective_turns_the_load_of_its_own_workload_and_single_runs_are_told(tmp_path):
    """The first workload's clients were raised until the second one's rate was missed; no line told of these runs."""
    path = tmp_path / "two.yaml"
    path.write_text(SERVER.replace("measure", "  more: {kind: open_requests, to: server, rate: 20 /s}\nmeasure"))
    told = list[str]()
    progress = type("Told", (Progress,), {"advance": lambda _, text="": told.append(text)})()
    asked = asking(objectives=("workloads.more.latency.p95 <= 1 s",), resolution=500.0)
    (found,) = knob_capacity(load_model(path), asked, Execution(1, 1, progress=progress)).searches.values()
    assert found.names.key == "workloads.more.rate"
    assert told[0] == "one run at 500 /s (workloads.more.rate)"


def test_each_copy_of_a_domain_has_to_carry_the_load(tmp_path):
    """Two servers of 1 ms a request, each with clients of its own: 1000 answers a second each."""
    path = tmp_path / "open.yaml"
    load = "app: {kind: open_requests, to: server, rate: 500 /s, gap_cv: 0}"
    text = SERVER.replace("load: {kind: request_response, to: server, clients: 15, turn_around: 20 ms}", load)
    native = "{kind: native, event_cost: 0, driver_receive_cost: 0, driver_transmit_cost: 0}"
    text = text.replace(native, "{kind: moderated}").replace("pcpus: 1", "pcpus: 2")
    path.write_text(text.replace("duration: 100 ms", "duration: 3 s").replace("    vcpus: 1\n", "    count: 2\n"))
    found = turned(load_model(path), ASKED)
    assert found.result.estimate.low <= 1000 / 0.95 <= found.result.estimate.high
    assert found.names.unit == "/s (workloads.app.rate, to each of 2 copies)"
    judged = {"workloads.app-1.behind_mean", "workloads.app-2.behind_mean"}
    assert judged <= set(found.curve().columns)


@pytest.mark.parametrize(
    ("name", "there", "meant"),
    [
        ("load", ("load-1", "load-2", "load-10"), ["load-1", "load-2"]),
        ("load-1", ("load",), ["load"]),
        ("load-2", ("load",), []),
        ("load-2", ("load-1", "load-2"), ["load-2"]),
    ],
)
def test_a_name_means_the_same_copies_whatever_their_number(name, there, meant):
    known = [f"workloads.{each}.rate" for each in there]
    assert at_any_count(f"workloads.{name}.rate", known.__contains__) == [f"workloads.{each}.rate" for each in meant]


@pytest.mark.parametrize(("count", "objective"), [(1, "load.latency.mean <= 19 ms"), (2, "load-2.rate >= 900")])
def test_copies_are_added_until_they_share_a_processor(tmp_path, count, objective):
    """Busy servers of 1 ms a request on two pCPUs: two answer 1000 a second each, three 667 each.

    Each of its 15 clients waits for the others: 15 ms, and 22.5 ms.
    """
    path, text = tmp_path / "copies.yaml", SERVER.replace("    vcpus: 1\n", f"    count: {count}\n")
    text = text.replace("pcpus: 1, scheduler: {kind: native}", "pcpus: 2, scheduler: {kind: credit2}")
    free = "{kind: moderated, moderation: 0 us}"
    text = text.replace("{kind: native, event_cost: 0, driver_receive_cost: 0, driver_transmit_cost: 0}", free)
    path.write_text(text.replace("turn_around: 20 ms", "turn_around: 1 us"))
    found = turned(load_model(path), asking(vary="domains.server.count", objectives=(objective,)))
    assert (found.result.estimate.low, found.result.estimate.high) == (2.0, 3.0)


@pytest.mark.parametrize("name", shipped_models())
def test_what_clients_ask_for_is_one_figure_of_every_shipped_model(name):
    spec = load_model(name).spec
    for workload_name, workload in spec.workloads.items():
        for objective in workload.objectives:
            asked = read_objective(f"workloads.{workload_name}.{objective}")
            assert one_figure(asked.figure, spec) == asked.figure


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({}, "say what a run must achieve.*workloads.load.latency.p50"),
        ({"objectives": ("latency_p95_ms",)}, "is not of the form"),
        ({"objectives": ("latency_p95_ms <= 1.2.3",)}, "is not of the form"),
        ({"objectives": ("latency_p59_ms <= 3",)}, "there is no figure 'latency_p59_ms'; nearest: "),
        ({"vary": "load.clients"}, r"no 'load' in 'the model'; did you mean 'workloads\.load\.clients'\?$"),
        ({"vary": "workloads.load.client"}, "no 'client' in 'workloads.load'; did you mean 'clients'"),
        ({"vary": "workloads.load.kind"}, "'request_response' is no number that could be turned"),
        ({"vary": "workloads.load.clients.more"}, "nothing below 'workloads.load.clients'"),
        ({"objectives": ("load.dropped <= 0",), "method": "ramp"}, "--method ramp"),
        ({"objectives": ("load.dropped <= 0",), "loss_limit_percent": 1.0}, "--loss-limit: the limit is said with"),
    ],
)
def test_what_cannot_be_answered_is_said(server, change, message):
    with pytest.raises(UsageError, match=message):
        knob_capacity(server, asking(**change), Execution(1, 1))


def test_a_model_without_a_load_names_the_option(server):
    spec = server.spec.model_copy(update={"workloads": {}})
    with pytest.raises(UsageError, match="--vary names a key"):
        knob_capacity(type(server)("empty", spec), ASKED, Execution(1, 1))


def test_levels_are_written_in_the_keys_own_unit(server):
    spec = load_model("net-kvm").spec
    rate, window = knob_of(spec, "workloads.udp.rate"), knob_of(spec, "workloads.tcp.window")
    texts = [written(level, knob.unit, knob.is_whole) for level, knob in ((1.05, rate), (100.3, window))]
    assert (*texts, rate.value) == ("1.05 Gbit/s", "102707 B", 1.0)
    assert knob_of(spec, "workloads.web.rate").at(spec, 20.5).workloads["web"].rate == 20.5
    with pytest.raises(UsageError, match="the model cannot have"):
        knob_of(server.spec, "hosts.host.pcpus").at(server.spec, 1e9)


def test_an_objective_without_a_figure_in_a_run_fails():
    assert not Objective("a", "<=", 1.0).holds(float("nan"))
    assert not Objective("a", ">=", 1.0).holds(float("nan"))
    assert Objective("a", ">=", 1.0).holds(1.0)
    assert read_objective(" a.b c  >= -1e2 ") == Objective("a.b c", ">=", -100.0)


def behind(tmp_path, disk, back, rate):
    """A front that has time to spare asks one behind it, which reads from its disk."""
    path = tmp_path / "tiers.yaml"
    path.write_text(
        f"""\
format: 2
hosts: {{front: {{pcpus: 1, scheduler: {{kind: native}}}}, back: {{pcpus: 1, scheduler: {{kind: native}}}}}}
networks: {{lan: {{latency: 10 us}}}}
domains:
  front:
    host: front
    interfaces: {{eth0: {{path: {{kind: native}}}}}}
    applications: {{pages: {{kind: service, threads: 500, demand: 100 us, calls: [{{to: back}}]}}}}
  back:
    host: back
    interfaces: {{eth0: {{path: {{kind: native}}}}}}
    disks: {{data: {{kind: array, service: 10 ms, interrupt: 0 ns, {disk}}}}}
    applications: {{rows: {{kind: service, reads: 1, {back}}}}}
workloads: {{pages: {{kind: open_requests, to: front, rate: 100 /s, gap_cv: 0}}}}
measure: {{warm_up: 500 ms, duration: 1 s}}
"""
    )
    (found,) = knob_capacity(load_model(path), ASKED, Execution(1, 1)).searches.values()
    return found.result.estimate, limit_in_words(found.resources)


@pytest.mark.parametrize(
    ("disk", "back", "most_per_s", "limit"),
    [
        ("disks: 100", "threads: 50, demand: 4 ms", 250, r"back: 1 (pCPU|vCPU), .* busy"),
        ("disks: 100", "threads: 4, demand: 10 us", 400, r"back\.rows: 4 threads, \d+(\.\d)? % of them busy"),
        ("disks: 2", "threads: 50, demand: 10 us", 200, r"back: disk data, .* busy"),
    ],
    ids=["CPU", "threads", "disk"],
)
def test_what_limits_is_named_where_it_is(tmp_path, disk, back, most_per_s, limit):
    """4 ms of CPU, four threads that wait 10 ms each, two disks of 10 ms; all behind a front that has time to spare.

    A run counts whole requests in a second.
    """
    carried, words = behind(tmp_path, disk, back, most_per_s // 2)
    assert carried.low - 1.0 <= most_per_s / 0.95 <= carried.high + 1.0
    assert carried.half_width <= 0.05 * most_per_s
    assert re.fullmatch(limit, words.partition(";")[0]), words


def test_a_pool_limits_also_where_its_backlog_overflows(tmp_path):
    _, words = behind(tmp_path, "disks: 100", "threads: 4, backlog: 16, demand: 10 us", 200)
    limit, _, lost = words.partition("; ")
    assert limit.startswith("back.rows: 4 threads, ")
    assert lost.startswith("packets are lost in back.rows")


def test_a_crash_that_rolls_the_guest_back_is_played_in_passes(tmp_path):
    """States each 50 ms, a crash in the measured time: the load that passes is found all the same."""
    path = tmp_path / "crash.yaml"
    load = "app: {kind: open_requests, to: server, rate: 200 /s, gap_cv: 0}"
    text = SERVER.replace("load: {kind: request_response, to: server, clients: 15, turn_around: 20 ms}", load)
    text = text.replace("    vcpus: 1\n", "    vcpus: 1\n    protection: {kind: checkpoint, interval: 50 ms}\n")
    path.write_text(text + "faults: [{kind: primary_crash, at: 150 ms}]\n")
    found = turned(load_model(path), asking(objectives=("server.cpu <= 200",), budget=20))
    assert found.result.estimate.low >= 200
    assert not found.resources.empty


def test_a_load_that_each_of_several_clients_has_is_said_to_be_each_ones(tmp_path):
    """Two that share a line of 1470 B in 1536: 478.5 Mbit/s each of a gigabit."""
    path = tmp_path / "udp.yaml"
    load = "load: {kind: bulk_udp, to: server, rate: 400 Mbit/s, clients: 2, duration: 100 ms}"
    text = SERVER.replace("load: {kind: request_response, to: server, clients: 15, turn_around: 20 ms}", load)
    path.write_text(text.replace("kind: service, demand: 1 ms", "kind: udp_sink, read_cost: 0"))
    ways = ["workloads.load.network={switched: true}", "networks.lan.queue=16 KiB"]
    found = turned(load_model(path, ways), asking(resolution=10.0))
    assert found.names.unit == "Mbit/s (workloads.load.rate, of each of 2 clients)"
    assert found.result.estimate.low <= 1000 * 1470 / 1536 / 2 <= found.result.estimate.high


WEB = """\
format: 2
hosts: {host: {pcpus: 2}}
networks: {lan: {rate: 100 Mbit/s}}
domains:
  server:
    vcpus: 2
    interfaces: {eth0: {path: {kind: moderated}}}
    applications: {web: {kind: prefork_web_server, script: 1 ms, reply_size: 50 kB}}
workloads:
  web: {kind: httperf, to: server, rate: 150 /s, connections: 40}
"""


def test_a_test_of_so_many_connections_is_judged_by_replies_that_keep_pace(tmp_path):
    """35 segments of 90 bytes beside their load, and a SYN ACK: the line carries 234.8 replies a second.

    Without a time-out each of 40 connections is answered, however fast they come.
    """
    (tmp_path / "web.yaml").write_text(WEB)
    most_per_s = 100e6 / 8 / (50_000 + 36 * 90)
    found = turned(load_model(tmp_path / "web.yaml"), asking(resolution=10.0))
    assert found.result.estimate.low <= most_per_s / 0.95 <= found.result.estimate.high + 10.0
    assert found.resources.iloc[0]["resource"] == "link of lan from host"
    assert found.resources.iloc[0]["estimate"] > 97.0


def test_a_load_that_rises_and_falls_is_judged_by_as_many(tmp_path):
    """200 a second in half of the time: 2,000 requests come in 20 s."""
    path = tmp_path / "load.yaml"
    ways = "load_profile: [{duration: 1 s, rate: 100 %}, {duration: 1 s, rate: 0 %}]"
    asked = f"open_requests, to: server, rate: 9 /s, {ways}"
    path.write_text(SERVER.replace("request_response, to: server, clients: 15, turn_around: 20 ms", asked))
    spec = load_model(path).spec
    knob = knob_of(spec, "workloads.load.rate")
    assert at_knob(spec, 200.0, knob=knob, objectives=(), workload="load").measure.duration == 20_000_000_000


def test_what_lasts_longer_than_a_short_test_is_judged_by_a_longer_one(tmp_path):
    """800 ms there and back: what comes in 30 s at 100 a second, and the time that the last of them take."""
    (tmp_path / "web.yaml").write_text(WEB)
    spec = load_model(tmp_path / "web.yaml", ["measure.duration=30 s", "networks.lan.latency=400 ms"]).spec
    turned = at_knob(spec, 100.0, knob=knob_of(spec, "workloads.web.rate"), objectives=(), workload="web")
    assert turned.workloads["web"].connections == 3000
    record = run_model(turned, 1, 0)
    assert record.whole.outcomes["workloads.web"].answered == 100
    assert record.whole.outcomes["workloads.web"].behind == 0


def test_replies_out_of_pace_are_said(tmp_path, capsys):
    """Of 1,000 a second the line answers 234.8; of 150 each one."""
    (tmp_path / "web.yaml").write_text(WEB)
    words = ["run", str(tmp_path / "web.yaml"), "-n", "1", "-q", "--set", "workloads.web.connections=200"]
    assert main(words) == 0
    assert "out of pace" not in capsys.readouterr().out
    assert main([*words, "--set", "workloads.web.rate=1000 /s"]) == 0
    assert "Replies out of pace" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("step", "message"), [("1", "not even one passes"), ("2", "a lower --resolution tries lower ones")]
)
def test_a_count_of_which_even_the_least_is_too_much_asks_for_no_more_runs(server, capsys, step, message):
    """A request takes 1 ms, so that even one client alone waits longer than 0.5 ms."""
    words = ["--objective", "latency_p95_ms <= 0.5", "--probability", "0.5", "--budget", "200", "--resolution", step]
    assert main(["capacity", server.label, *words, "-q", "-j", "1"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert f"Capacity: below {step} " in printed
    assert message in printed
    assert "--budget" not in printed


SELDOM = """\
format: 2
domains:
  vm: {interfaces: {eth0: {path: {kind: native}}}, applications: {app: {kind: service, demand: 3 ms}}}
workloads:
  users: {kind: open_requests, to: vm, rate: 0.7 /s}
measure: {duration: 1 s, warm_up: 500 ms}
"""


def test_runs_without_the_figure_of_an_objective_are_said_to_count_as_beyond(tmp_path):
    """A request is answered in 3 ms; at 0.7 a second half of all seconds have none, and no delay either."""
    (tmp_path / "seldom.yaml").write_text(SELDOM)
    model = load_model(tmp_path / "seldom.yaml")
    found = turned(model, asking(resolution=0.2, objectives=("users.latency.p95 <= 400",)))
    without = {
        probe.level: sum(math.isnan(value) for value in found.figures[probe.level]["workloads.users.latency.p95"])
        for probe in found.result.probes
    }
    assert without == {probe.level: probe.beyond for probe in found.result.probes}, "3 ms are never above 400"
    level, count = next((level, count) for level, count in without.items() if count)
    runs = len(found.figures[level]["workloads.users.latency.p95"])
    ran = vftsim.run(load_model(model.label, [f"workloads.users.rate={level:g} /s"]), runs)
    assert runs - Summary(ran.records).estimate("workloads.users.latency.p95").n == count
    blocks = level_blocks(found)
    (note,) = (block.text for block in blocks if isinstance(block, Note) and "each counts as beyond" in block.text)
    lacking = [probe for probe in found.result.probes if probe.beyond]
    assert note.startswith(f"{sum(without.values())} of {sum(probe.runs for probe in lacking)} runs at ")
    heads = next(block.columns for block in blocks if isinstance(block, Table))
    assert (heads[0], heads[3]) == ("workloads.users.rate (/s)", "workloads.users.latency.p95 (ms)")
    assert CapacityStudy({}, searches={"rate": found}).to_pandas()["unit"].tolist() == ["/s"]
