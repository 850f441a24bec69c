"""What the page answers, and what it refuses."""

import html
import json
import random
import shlex
import shutil
import time

import pytest
import uvicorn

import vftsim
from tests.ui.conftest import ASKED, LONGEST_S, MODEL
from tests.ui.requests_at_random import run
from vftsim.cli.main import main
from vftsim.errors import UsageError
from vftsim.study.runs.workers import Interrupted
from vftsim.study.store.lock import LOCK, DirectoryLock

VARIANT = f"{ASKED}&1.domains.sut.cpu_inflation=1.2"
KNOB = "domains.sut.cpu_inflation"
PAGES = """\
hosts: {host: {}}
networks: {lan: {}}
domains: {vm: {interfaces: {eth0: {path: {kind: moderated}}}, applications: {web: {kind: service}}}}
workloads: {u: {kind: open_requests, to: vm, rate: 50 /s, timeout: 100 ms}}
measure: {warm_up: 1 s, duration: 20 s}
"""


def records(folder):
    return [record.to_dict() for _, record in vftsim.open(folder).records]


@pytest.mark.thorough
def test_an_address_is_answered_by_its_command_and_then_from_disk(opened, tmp_path):
    """Also when the page is closed while the command runs, and opened again."""
    first = opened()
    assert first.post("/begin", VARIANT).headers["location"] == f"/?{VARIANT}"
    first.until("running")
    with pytest.raises(UsageError, match="in use"):
        opened()
    first.desk.runs.close()
    page = opened()
    page.until("done", VARIANT)
    text = page.get(VARIANT).text
    values = '<td data-of="today" class="t">1.0</td><td data-of="variant 1" class="t">1.2</td>'
    assert f'<th scope="row" class="t">{KNOB}</th>{values}' in text  # what differs
    assert text.count("<svg ") >= 2
    times_ns = [each.study.folder.joinpath("stderr.txt").stat().st_mtime_ns for each in page.posed(VARIANT)]
    assert page.post("/begin", VARIANT).status_code == 303
    page.until("done", VARIANT)
    assert times_ns == [each.study.folder.joinpath("stderr.txt").stat().st_mtime_ns for each in page.posed(VARIANT)]
    _, variant = page.posed(VARIANT)
    program, *words = shlex.split(page.commands(VARIANT)[1])
    assert (program, *words[-2:]) == ("vftsim", "-o", str(variant.study.result))
    assert main([*words[:-1], str(tmp_path / "again"), "-q"]) == 0
    assert records(tmp_path / "again") == records(variant.study.result)
    assert page.get(VARIANT, "/report").text.startswith("<!doctype html>")
    assert [state.word for _, state in page.desk.runs.past()] == ["done", "done"]
    assert "vftsim run tiny.yaml" in page.client.get("/studies").text


def test_what_waits_or_runs_can_be_stopped_and_goes_on(page, idle):
    page.post("/begin", VARIANT)
    page.until("running")
    assert [each.state.word for each in page.posed(VARIANT)] == ["running", "waiting"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page.desk.runs, "_interrupt", lambda: None)  # as one that takes its time
        assert page.post("/stop", VARIANT).status_code == 303
        (state, _) = (each.state for each in page.posed(VARIANT))
        assert (state.word, state.last_line[:9]) == ("running", "stopping:")
    assert page.post("/stop", VARIANT).status_code == 303
    page.until("stopped", VARIANT)
    page.post("/begin", VARIANT)
    page.until("running")
    assert len(idle) == 2
    assert page.get(VARIANT, "/progress").json()["studies"][1]["word"] == "waiting"


def test_processes_are_given_arguments_and_nothing_else(page, idle):
    page.post("/begin", f"{ASKED}&0.{KNOB}=1.5")
    page.until("running", f"{ASKED}&0.{KNOB}=1.5")
    (words,) = idle
    assert words[1:8] == ["-m", "vftsim", "run", "tiny.yaml", "-n", "1", "--seed"]
    assert words[words.index("--set") + 1] == f"{KNOB}=1.5"


def test_a_model_that_is_changed_is_another_study(page, idle, tmp_path):
    before = page.posed()[0].study
    page.post("/begin", f"{ASKED}&seed=2")
    page.post("/begin", ASKED)
    (tmp_path / "tiny.yaml").write_text(MODEL.replace("touch_cost: 4 ms", "touch_cost: 3 ms", 1))
    assert page.posed()[0].study.folder != before.folder
    first = next(study for study, state in page.desk.runs.past() if state.word == "running")
    page.desk.runs.stop(first)
    end = time.monotonic() + LONGEST_S
    while (state := page.desk.runs.state(before)).word in ("waiting", "running") and time.monotonic() < end:
        time.sleep(0.01)
    assert (state.word, "the model's file was changed since" in state.last_line) == ("refused", True)
    assert len(idle) == 1


def test_words_that_somebody_wrote_into_the_store_are_not_run(opened, idle, tmp_path):
    """A store can come from somebody else: what it says was asked must be what its address asks."""
    first = opened()
    first.post("/begin", ASKED)
    first.until("running")
    first.desk.runs.close()
    study = first.posed()[0].study
    asked = json.loads((study.folder / "asked.json").read_text())
    overwritten = tmp_path / "notes.html"
    asked["words"] += ["--report", str(overwritten)]
    (study.folder / "asked.json").write_text(json.dumps(asked))
    begun_before = len(idle)
    page = opened()
    page.until("refused")
    assert "the store's" in page.posed()[0].state.last_line
    assert len(idle) == begun_before
    page.post("/begin", ASKED)
    page.until("running")
    assert str(overwritten) not in idle[-1]


def test_a_process_here_with_the_number_of_one_elsewhere_is_let_live(page, idle, monkeypatch):
    """A store on NFS: another host writes the result, and a process of this host may have its number."""
    killed = []
    monkeypatch.setattr("vftsim.ui.runs.os.kill", lambda *asked: killed.append(asked))
    result = page.posed()[0].study.result
    result.mkdir(parents=True)
    lock = DirectoryLock(result)
    lock.acquire()
    holder = {"pid": 4711, "host": "elsewhere", "command": "vftsim run", "since": "now"}
    (result / LOCK).write_text(json.dumps(holder))
    page.post("/begin", ASKED)
    page.until("running")
    page.post("/stop", ASKED)
    page.until("stopped")
    lock.release()
    assert (killed, len(idle)) == ([], 1)  # the command itself says who is there


def test_a_model_that_is_none_any_more_and_a_store_that_is_gone_are_mistakes(page, idle, tmp_path):
    shutil.rmtree(page.desk.store)
    refused = page.post("/begin", ASKED)
    assert (refused.status_code, "cannot write in" in refused.text) == (400, True)
    (tmp_path / "tiny.yaml").write_text("name: [")
    for query in ("", ASKED):
        answer = page.get(query)
        assert (answer.status_code, "tiny.yaml" in answer.text) == (400, True)
    (tmp_path / "tiny.yaml").unlink()
    assert page.get(ASKED).status_code == 400
    assert page.client.get("/studies").status_code == 200
    assert not idle


def test_only_so_many_may_wait(page, idle, monkeypatch):
    monkeypatch.setattr("vftsim.ui.runs.MOST_WAITING", 2)
    for seed in (2, 3, 4):
        assert page.post("/begin", f"{ASKED}&seed={seed}").status_code == 303
        page.until("running", f"{ASKED}&seed=2")
    refused = page.post("/begin", f"{ASKED}&seed=5")
    assert refused.status_code == 400
    assert "2 studies wait already" in refused.text
    assert len(idle) == 1


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "localhost:8765@evil.example"])
def test_a_foreign_host_is_refused(page, host):
    assert page.client.get("/", headers={"host": host}).status_code == 400


@pytest.mark.parametrize("token", ["", "x", "ü", "0" * 32])
def test_nothing_is_changed_without_the_token(page, idle, token):
    for path in ("/begin", "/stop"):
        assert page.post(path, ASKED, token=token).status_code == 403
        assert page.client.get(f"{path}?{ASKED}&token={page.desk.token}").status_code == 405
        assert page.client.post(path, content=ASKED).status_code == 403
    assert not idle
    assert not [*page.desk.store.glob("[0-9a-f]*")]


def test_every_answer_says_that_nothing_else_may_use_it(page):
    for path, status in (("/", 200), ("/studies", 200), ("/page.js", 200), ("/none", 404), (f"/?{'x' * 9000}", 414)):
        answer = page.client.get(path)
        assert answer.status_code == status
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'; script-src 'self';" in policy
        assert (answer.headers["x-content-type-options"], answer.headers["cache-control"]) == ("nosniff", "no-store")


@pytest.mark.parametrize("model", ["lab-virtual", "net-kvm", "xen-media"])
def test_the_load_of_every_kind_of_model_can_be_asked(opened, monkeypatch, capsys, model):
    """A ramp is played as often as is asked; a search of a knob or of streams takes no number of runs."""

    def begin(*_, **__):
        raise Interrupted("it has begun")

    for name in ("execution.Replications.run", "designs.capacity.searched"):
        monkeypatch.setattr(f"vftsim.study.{name}", begin)
    (posed,) = opened(models=[model]).posed(f"model={model}&ask=capacity&n=2")
    assert ("-n" in posed.study.words) is (model == "lab-virtual")
    assert main([*posed.study.words, "-j", "1", "-q"]) == 3
    assert "it has begun" in capsys.readouterr().err


def test_a_load_is_asked_by_an_objective_where_a_model_declares_none(opened, monkeypatch, capsys):
    """Without one the command refuses; the page hands on what its field says."""

    def begin(model, _, execution, *__, **___):
        raise Interrupted("it has begun")

    monkeypatch.setattr("vftsim.study.designs.capacity.searched", begin)
    page = opened(models=["three-tier"])
    (bare,) = page.posed("model=three-tier&ask=capacity")
    assert main([*bare.study.words, "-j", "1", "-q"]) == 2
    assert "say what a run must achieve" in capsys.readouterr().err
    (judged,) = page.posed("model=three-tier&ask=capacity&objective=users.latency.p95+<=+100+ms")
    assert page.posed(judged.study.address)[0].study == judged.study
    assert main([*judged.study.words, "-j", "1", "-q"]) == 3
    assert "it has begun" in capsys.readouterr().err


def test_how_much_a_model_carries_is_asked_only_where_a_load_can_be_raised(opened, idle):
    page = opened(models=["job-compile", "net-kvm"])
    assert 'value="capacity"' in page.get("model=net-kvm").text
    answer = page.get("model=job-compile")
    assert 'value="capacity"' not in answer.text
    assert 'value="run" checked' in answer.text
    refused = page.get("model=job-compile&ask=capacity")
    assert refused.status_code == 400
    assert "today: the model has no load that could be raised" in refused.text


@pytest.mark.parametrize("ask", ["run", "protection"])
def test_variants_of_a_first_look_are_measured_for_the_same_time(opened, tmp_path, ask):
    """Of clients that wait for 100, 200 and 400 ms 1.2 s are needed, and 7.5 s of those that wait for 1, 2 and 4 s."""
    (tmp_path / "pages.yaml").write_text(PAGES)
    page = opened(models=["pages.yaml"])
    query = f"model=pages.yaml&ask={ask}&n=1&1.workloads.u.timeout=1+s"
    today, variant = page.posed(query)
    assert today.study.words[-2:] == ("--set", "measure.duration=7.5 s")
    assert ("--quick" in today.study.words, "--quick" in variant.study.words) == (False, True)
    assert today.model.spec.measure.duration == variant.model.spec.measure.duration == 7_500_000_000
    # By its own address it is the same study, which a page that is opened again goes on with.
    for each in (today, variant):
        assert page.posed(each.study.address)[0].study == each.study
    (alone,) = page.posed(f"model=pages.yaml&ask={ask}&n=1")
    assert "--quick" in alone.study.words


def test_loads_of_a_first_look_are_searched_with_runs_of_the_same_time(opened, tmp_path, monkeypatch, capsys):
    """The command of each says how long, and stays a first look: of coarser levels, and fewer runs."""
    (tmp_path / "pages.yaml").write_text(PAGES)
    page = opened(models=["pages.yaml"])
    today, variant = page.posed("model=pages.yaml&ask=capacity&1.workloads.u.timeout=1+s")
    assert [each.study.words[-2:] for each in (today, variant)] == [
        ("--at-least", "7.5 s"),
        ("--set", "workloads.u.timeout=1 s"),
    ]
    assert all("--quick" in each.study.words for each in (today, variant))
    assert today.model.spec.measure.duration == variant.model.spec.measure.duration == 7_500_000_000
    for each in (today, variant):
        assert page.posed(each.study.address)[0].study == each.study
    (alone,) = page.posed("model=pages.yaml&ask=capacity")
    assert "--at-least" not in alone.study.words

    def begin(model, *_, **__):
        raise Interrupted(f"runs of {model.spec.measure.duration / 1e9:g} s")

    monkeypatch.setattr("vftsim.study.designs.capacity.searched", begin)
    for each in (today, variant):
        assert main([*each.study.words, "-j", "1", "-q"]) == 3
        assert "runs of 7.5 s" in capsys.readouterr().err
    assert main(["capacity", "pages.yaml", "--at-least", "1 s"]) == 2
    assert "give --quick too" in capsys.readouterr().err


def test_a_mistake_is_said_where_it_was_made(page):
    answer = page.get(f"{ASKED}&1.{KNOB}=0.5")
    assert answer.status_code == 400
    assert "variant 1: " in answer.text
    assert "must be &gt;= 1" in answer.text
    assert answer.text.index('role="alert"') < answer.text.index("<form"), "seen first, on a phone too"
    assert 'value="0.5"' in answer.text
    assert page.client.post("/begin", content="x" * 40_000).status_code == 413


@pytest.mark.parametrize("wrong", ["n=51", "seed=-1", "objective=nonsense"])
def test_a_mistake_leaves_the_rest_of_a_form_as_it_was_typed(page, idle, wrong):
    typed = f"model=lab-virtual&ask=failover&seed=7&1.{KNOB}=1.25&{wrong}"
    for answer in (page.post("/begin", typed), page.get(typed)):
        assert answer.status_code == 400
        assert html.escape(wrong.partition("=")[2]) in answer.text
        for kept in ("<option selected>lab-virtual", 'value="failover" checked', 'value="7"', 'value="1.25"'):
            assert kept in answer.text
    assert not idle


def test_what_somebody_says_is_escaped(page):
    evil = '"><script>alert(1)</script>'
    for query in (f"{ASKED}&0.{KNOB}={evil}", f"{ASKED}&objective={evil}", f"model={evil}", f"{evil}=1"):
        answer = page.client.get("/", params=query.replace("<", "%3C").replace(">", "%3E").replace('"', "%22"))
        assert answer.status_code == 400
        assert "<script>" not in answer.text
        assert html.escape("<script>alert") in answer.text


def test_requests_at_random_are_answered_and_begin_nothing(page, idle, tmp_path):
    """Run with more of them by ``python -m tests.ui.requests_at_random``."""
    (tmp_path / "secret.yaml").write_text("name: secret-of-mine")
    seen = run(page.client, 400, random.Random(1))
    assert max(seen) < 500
    assert {200, 303, 400, 403, 404, 405} <= {*seen}
    assert not idle
    assert not [*page.desk.store.glob("[0-9a-f]*")]


def test_ctrl_c_says_where_studies_are(monkeypatch, capsys, tmp_path):
    """It is how the page is ended; to say that nothing had finished would be wrong after many a study."""

    def struck(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(uvicorn.Server, "run", struck)
    assert main(["ui", "--port", "0", "-o", str(tmp_path / "asked")]) == 3
    printed = capsys.readouterr().err
    assert "nothing had finished" not in printed
    assert f"studies are kept in '{tmp_path / 'asked'}'" in printed
