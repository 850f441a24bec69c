"""Models that extend another."""

from pathlib import Path

import pytest
from cases import BASE, place, refused
from small_model import CreditSpec, DomainSpec, Model, RtdsSpec

from vftsim.spec import load, read_document


def test_merge_rules(write):
    write(BASE, "base.yaml")
    path = write(
        "extends: base\nname: child\nlatency: null\nscheduler: {kind: credit}\n"
        "domains:\n  sut: {weight: 100}\n  new: {memory: 1 B}\nphases: [3 s]\n"
    )
    model = load(path, Model)
    assert model.name == "child"
    assert model.latency == 0
    assert model.arrivals == 50.0
    assert model.scheduler == CreditSpec()
    assert model.domains["sut"] == DomainSpec(weight=100, memory=2**32, pinned=(1, 2))
    assert list(model.domains) == ["dom0", "sut", "new"]
    assert model.phases == (3_000_000_000,)


def test_same_kind_merges(write):
    write(BASE, "base.yaml")
    path = write("extends: base\nname: x\nscheduler: {kind: rtds, budget: 5 ms}\n")
    assert load(path, Model).scheduler == RtdsSpec(period=10_000_000, budget=5_000_000)


def test_what_tells_of_one_system_is_not_inherited(write):
    """Name, description and measured values of the extended file say nothing true of another system."""
    base = BASE + "description: measured in a lab\nmeasured: {capacity: 139 /s}\n"
    write(base, "base.yaml")
    document = read_document(write("extends: base\nname: own\nlatency: 2 ms\n")).plain()
    assert (document["name"], document["latency"], document["arrivals"]) == ("own", "2 ms", "50 /s")
    assert not {"description", "measured"} & set(document)
    write("extends: base\nmeasured: {capacity: 100 /s}\n", "middle.yaml")
    assert "measured" not in read_document(write("extends: middle\n")).plain()
    assert read_document(write(base)).plain()["measured"] == {"capacity": "139 /s"}


def test_null_is_an_ordinary_value_where_nothing_is_inherited(write):
    assert load(write(BASE + "other: null\n"), Model).other is None


def test_relative_path_is_relative_to_the_extending_file(write, monkeypatch):
    write(BASE, "deep/er/base.yaml")
    write("extends: er/base.yaml\nname: middle\n", "deep/middle.yaml")
    path = write("extends: deep/middle\nname: own\n")
    monkeypatch.chdir("/")
    assert load(path, Model).latency == 10**6
    assert [p.name for p in read_document(path).files] == ["model.yaml", "middle.yaml", "base.yaml"]


def test_a_name_goes_to_the_search_but_never_to_the_file_itself(write):
    shipped = write(BASE, "shipped/lab.yaml")
    lab_path = write("extends: lab\nname: own\n", "lab.yaml")
    assert load(lab_path, Model, search=lambda name: shipped if name == "lab" else Path(name)).latency == 10**6


def test_a_fault_is_reported_in_the_file_that_holds_it(write):
    write(BASE.replace("weight: 512", "weight: 0"), "base.yaml")
    error = refused(write("extends: base\nname: x\ndomains:\n  dom0: {weight: 5}\n"))
    assert place(error) == ("base.yaml", 11, "domains.sut.weight")
    assert place(refused(write("extends: base\nname: x\ndomains:\n  dom0: {weight: x}\n"))) == (
        "model.yaml",
        4,
        "domains.dom0.weight",
    )


def test_cycle_names_the_chain(write):
    write("extends: b.yaml\n", "a.yaml")
    write("extends: a.yaml\n", "b.yaml")
    error = refused(write("extends: a.yaml\n"))
    assert place(error) == ("b.yaml", 1, "extends")
    assert [Path(p).name for p in error.message.split(": ")[1].split(";")[0].split(" -> ")] == [
        "model.yaml",
        "a.yaml",
        "b.yaml",
        "a.yaml",
    ]


@pytest.mark.parametrize(("links", "works"), [(8, True), (9, False)])
def test_depth(write, links, works):
    write(BASE, f"m{links}.yaml")
    for i in range(links):
        write(f"extends: m{i + 1}\n", f"m{i}.yaml")
    path = write("extends: m1\nname: first\n", "m0.yaml")
    if works:
        assert load(path, Model).latency == 10**6
    else:
        assert "more than 8 files extend one another" in refused(path).message


def test_missing_base(write):
    write(BASE, "base.yaml")
    error = refused(write("name: x\nextends: bsae.yaml\n"))
    assert place(error) == ("model.yaml", 2, "extends")
    assert "no file 'bsae.yaml' beside model.yaml; did you mean 'base.yaml'?" in error.message
    error = refused(write("extends: bsae\n"))
    assert "beside model.yaml: base" in error.message
