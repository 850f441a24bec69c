"""Every record: its file, what it ships, how statements are judged, and the command."""

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest

from vftsim.cli.main import main
from vftsim.errors import UsageError
from vftsim.records.definition import Judged, Statement
from vftsim.records.expressions import evaluate, write
from vftsim.records.judge import Judgement, compare, judge
from vftsim.records.runner import read, shipped_records
from vftsim.spec import shipped_dir
from vftsim.study.runs.progress import make_progress


def known(value):
    """Return what a file says, with nan where it says nothing."""
    if isinstance(value, dict):
        return {key: known(each) for key, each in value.items()}
    return [known(each) for each in value] if isinstance(value, list) else math.nan if value is None else value


def shipped(name):
    return json.loads((shipped_dir("calibration") / name / "record.json").read_text(encoding="utf-8"))


def shipped_judgement(name):
    """The shipped results of a record with all its models, judged again."""
    text, record = shipped(name), read(name)
    if record.spec.variants is None:
        return judge(record, text["results"])
    record, models = record.with_models(["all"]), text["models"]
    cases = {task: case for task, (_, case) in record.tasks().items()}
    return judge(record, {t: known(models[c["model"]]["results"][c["experiment"]]) for t, c in cases.items()})


@pytest.mark.parametrize(
    "name",
    # xen-media: 4,000 deals
    [pytest.param(each, marks=pytest.mark.slow) if each == "xen-media" else each for each in shipped_records()],
)
def test_a_shipped_record_says_what_its_results_say(name):
    judgement = shipped_judgement(name)
    again = json.loads(json.dumps(judgement.for_machines()))
    assert repr(known(shipped(name))) == repr(again)
    assert list(judgement.results) == list(judgement.record.tasks())
    written = (shipped_dir("calibration") / name / "record.md").read_text(encoding="utf-8")
    assert written == judgement.markdown()


@pytest.mark.parametrize("name", shipped_records())
def test_every_table_is_as_wide_as_its_head(name):
    for table in shipped_judgement(name).tables():
        assert {len(row) for row in table.rows} == {len(table.columns)}


@pytest.mark.parametrize(
    ("name", "not_held", "wrong_but_held"),
    [("vmware-ft", ["F1"], []), ("remus", ["R6"], []), ("kemari", ["K3"], []), ("epochs", [], [])],
)
def test_what_a_record_shows_is_what_its_page_names(name, not_held, wrong_but_held):
    groups = shipped_judgement(name).groups
    judged = [row for row in groups["stated"] if row.verdict not in ("input", "prediction")]
    assert [row.key for row in judged if row.verdict != "holds"] == not_held
    assert [row.key for row in groups["wrong"] if row.verdict == "holds"] == wrong_but_held


@pytest.mark.slow
@pytest.mark.parametrize("name", shipped_records())
def test_the_whole_record_runs(name):
    record = read(name).quick()
    with make_progress(f"record {name}", True) as progress:
        results = record.run(1, progress)
    assert set(results) == set(record.tasks())
    assert judge(record, results).markdown()


def verdict(value, **rule):
    """Judge one value by one rule, in a record that has nothing else."""
    statement = Statement(stated="", value=value, judged=Judged(**rule))
    spec = read("vmware-ft").spec.model_copy(update={"values": {}, "forms": None, "statements": {"one": (statement,)}})
    record = read("vmware-ft")
    return Judgement(type(record)("own", record.folder, spec, spec.budget), {}).groups["one"][0].verdict


@pytest.mark.parametrize(
    ("value", "rule", "holds"),
    [
        ("104.9", {"near": 100, "within": 0.05}, True),
        ("106", {"near": 100, "within": 0.05}, False),
        ("1.4", {"near": 1, "by": 0.5}, True),
        ("0.4", {"near": 1, "by": 0.5}, False),
        ("1.5", {"near": 1, "factor": 1.5}, True),
        ("0.6", {"near": 1, "factor": 1.5}, False),
        ("[2, 5]", {"covers": 5}, True),
        ("[2, 5]", {"covers": 5.1}, False),
        ("3", {"least": 3, "most": 4}, True),
        ("[3, 5]", {"least": 3, "most": 4}, False),
        ("3", {"above": 3}, False),
        ("2", {"below": 3}, True),
        ("1", {"so": "value == 1 and 2 < 1"}, False),
    ],
)
def test_a_rule_holds_up_to_its_margin(value, rule, holds):
    assert verdict(value, **rule) == ("holds" if holds else "missed")


def test_a_page_names_the_command_that_gives_it_again():
    """A first look is not the record, nor is one without the rivals that were asked for."""
    assert read("epochs").command == "vftsim record epochs"
    assert read("epochs").quick().command == "vftsim record epochs --quick"
    rivals = read("xen-media").with_models(["no-boost", "one-vcpu"]).quick()
    assert rivals.command == "vftsim record xen-media --model no-boost --model one-vcpu --quick"


def test_a_rule_is_needed_and_a_margin_too():
    with pytest.raises(ValueError, match="judged by one of near"):
        Judged()
    with pytest.raises(ValueError, match="needs one of within"):
        Judged(near=3)


def test_comparisons_are_paired_and_tell_no_difference_from_not_known():
    other = [100.0, 200.0, 300.0, 400.0]
    more = [x + y for x, y in zip(other, (9.0, 11.0, 10.0, 10.0), strict=True)]
    assert compare("more_than", more, other, 0.0) == "holds"  # unpaired the spread would hide it
    assert compare("more_than", more, other, 0.1) == "within noise"  # 10 of 250 is less than a tenth, surely
    assert compare("less_than", more, other, 0.1) == "missed"
    assert compare("same_as", more, other, 0.1) == "holds"
    assert compare("same_as", more, other, 0.01) == "missed"
    assert compare("same_as", [90.0, 330.0, 240.0, 460.0], other, 0.1) == "undecided"


def test_expressions_work_numbers_out_and_reach_nothing_else():
    values_of = {"x": 3.0, "many": np.array([1.0, 2.0]), "text": "a", "min": min, "of": {"y": 2}}
    assert evaluate("100 * (1 - x / 4)", values_of) == 25.0
    assert list(evaluate("many / 2", values_of)) == [0.5, 1.0]
    assert evaluate("1 < x <= 3 and not x == 2", values_of)
    assert evaluate("of.y if text == 'a' else 0", values_of) == 2
    assert write("{x:.1f} of {many:g}, {{}}", values_of) == "3.0 of 1 and 2, {}"
    for bad in (
        "x.real",
        "(1).real",
        "text.upper()",
        "__import__('os')",
        "[y for y in many]",
        "lambda: 1",
        "x :=",
        "z",
        "f'{x}'",
        "1 / 0",
        "many[7]",
        "x" * 3000,
    ):
        with pytest.raises(UsageError):
            evaluate(bad, values_of)
    with pytest.raises(UsageError, match="did you mean 'text'"):
        evaluate("txt", values_of)
    with pytest.raises(UsageError, match="cannot be written"):
        write("{x:.1f", values_of)


def test_the_command_prints_writes_and_says_the_same(monkeypatch, tmp_path, capsys):
    results = shipped("vmware-ft")["results"]
    monkeypatch.setattr("vftsim.records.runner.Record.run", lambda self, jobs, progress: results)
    path = tmp_path / "record.md"
    assert main(["record", "vmware-ft", "-j", "1", "-q", "-o", str(path)]) == 0
    assert "Largest payload" in capsys.readouterr().out
    assert path.read_text(encoding="utf-8") == Judgement(read("vmware-ft"), results).markdown()
    assert main(["record", "vmware-ft", "-j", "1", "-q", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["results"] == results
    assert main(["record", "vmware-ft", "--model", "all"]) == 2
    assert "vmware-ft always shows its wrong models" in capsys.readouterr().err
    assert main(["record", "xen-media", "--model", "one-vcp"]) == 2
    assert "one-vcpu" in capsys.readouterr().err
    assert main(["record", "vmware-tf"]) == 2
    assert "did you mean 'vmware-ft'" in capsys.readouterr().err


OWN = """
title: Own
about: a study of one's own
budget: {seed: 1, replications: 2, ms: 200}
quick: {replications: 1}
ran: "{replications} replications of {ms} ms."
axes:
  guard:
    plain: {kind: none}
    protected: {kind: lockstep}
runs:
  - name: "{guard}"
    over: [guard]
    model: own
    set: ["measure.duration={ms} ms", "domains.vm.protection={{kind: {kind}}}"]
    figures: {cpu: domains.vm.cpu}
statements:
  all:
    - key: A
      stated: the compile keeps its CPU busy
      value: mean('protected', 'cpu')
      judged: {near: 100, within: 0.05}
      null: mean('plain', 'cpu')
tables:
  - {title: All, columns: [key, stated, found, verdict], statements: all}
"""


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('"{guard}"', "one", "two experiments are called 'one'"),
        ("domains.vm.cpu", "domains.vm.cpo", "'cpu': there is no figure 'domains.vm.cpo'; nearest: domains.vm.cpu"),
        ("near: 100", "near: 0", "the statement 'A' cannot be judged by its rule: float division by zero"),
        ("near: 100, within: 0.05", "covers: 100", "the statement 'A' cannot be judged by its rule"),
        ("near: 100", "near: hundred", "'hundred': there is no 'hundred'"),
        ("replications: 2", "replications: 0", "record.yaml:2: needs a budget with replications"),
        ("quick: {replications: 1}", "quick: {replications: 0.5}", "needs a budget with replications"),
        ("seed: 1, ", "", "needs a budget with a seed"),
        ("    model: own\n", "", "runs.0: an experiment needs a model"),
        ("title: Own", "title: Own\nforms: remus", "there are no forms 'remus'"),
        ("statements: all}", "statements: al}", "table 'All': no statements 'al'; did you mean 'all'?"),
    ],
)
def test_what_is_wrong_in_a_record_of_ones_own_is_said(tmp_path, capsys, old, new, told):
    path = own_record(tmp_path, OWN.replace(old, new))
    read.cache_clear()
    assert old in OWN
    assert main(["record", str(path), "-j", "1", "-q"]) == 2
    assert told in " ".join(capsys.readouterr().err.split())


def own_record(folder, text):
    (folder / "own.yaml").write_text(
        "format: 2\nextends: job-compile\nname: own\ndescription: x\nmeasure: {warm_up: 0 s, duration: 1 s}\n"
        "domains: {vm: {applications: {compile: {disk_operations: 0}}}}\n"
    )
    (folder / "record.yaml").write_text(text)
    return folder / "record.yaml"


def test_the_record_of_the_page_is_played(tmp_path, capsys):
    page = (Path(__file__).parents[2] / "docs" / "extend" / "add-a-record.md").read_text(encoding="utf-8")
    (tmp_path / "record.yaml").write_text(re.search(r"```yaml\n(.*?)```", page, re.DOTALL)[1], encoding="utf-8")
    assert main(["record", str(tmp_path / "record.yaml"), "-j", "1", "-q", "--quick", "--json"]) == 0
    (table,) = json.loads(capsys.readouterr().out)["tables"]
    assert table["rows"] == [["A", "as much CPU as without", "100", "holds"]]


def test_a_record_of_ones_own_is_played_by_its_file(tmp_path, capsys):
    path = own_record(tmp_path, OWN)
    assert main(["record", str(path), "-j", "1", "-q", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["tables"][0]["rows"] == [["A", "the compile keeps its CPU busy", "100", "holds"]]
    assert [len(values["cpu"]) for values in printed["results"].values()] == [2, 2]
    path.write_text(OWN[: OWN.index("tables:")])  # it shows its statements all the same
    read.cache_clear()
    assert main(["record", str(path), "-j", "1", "-q", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tables"] == [{**printed["tables"][0], "title": "all"}]
    path.write_text(OWN.replace("mean('plain', 'cpu')", "mean('plan', 'cpu')"))
    read.cache_clear()
    assert main(["record", str(path), "-j", "1", "-q", "--json"]) == 2
    assert "no experiment 'plan'" in capsys.readouterr().err
    path.write_text(OWN.replace("title: Own", "title: Own\nforms: ../../evil"))
    read.cache_clear()
    assert main(["record", str(path), "-j", "1", "-q", "--json"]) == 2
    assert "forms" in capsys.readouterr().err
    assert main(["record", str(tmp_path / "none.yaml")]) == 2
    assert "a file of your own" in capsys.readouterr().err
