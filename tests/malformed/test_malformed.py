"""Inputs that once failed, and some new ones: each gets one message, and nothing is touched."""

import itertools
import json
import os
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
FOLDER = HERE.parents[1] / "experiments" / "malformed"
CORPUS = sorted((HERE / "corpus").glob("*.json"))
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="gives each input to a child of its own")


@pytest.fixture(scope="module")
def experiment():
    from matplotlib.figure import Figure

    from vftsim.calibrate import run, validate

    # What prepare() replaces: later tests of this process must run for real.
    replaced = [(run, "search_for"), (validate, "played"), (Figure, "savefig")]
    originals = [getattr(owner, name) for owner, name in replaced]
    sys.path.insert(0, str(FOLDER))
    try:
        import malformed

        malformed.prepare()
        yield malformed
    finally:
        for (owner, name), original in zip(replaced, originals, strict=True):
            setattr(owner, name, original)
        sys.path.remove(str(FOLDER))
        for name in ("malformed", "inputs", "kinds", "texts"):
            sys.modules.pop(name, None)


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_what_once_failed_is_answered(experiment, path):
    assert experiment.answer(experiment.Input.from_data(json.loads(path.read_text()))).defects == []


@pytest.mark.slow
def test_what_is_changed_is_accepted_unchanged(experiment):
    from kinds import valid

    seen = set()
    for one in valid():
        one.words = [word.replace("500 ms", "100 ms") for word in one.words]
        found = experiment.answer(one)
        assert found.code in (0, 3), (one.kind, one.words, found.errors)
        seen.add(one.kind)
    assert seen | {"result directory"} == set(experiment.KINDS), "whose bases are those of stores"


@pytest.mark.thorough
def test_inputs_of_every_kind_are_answered(experiment):
    from kinds import inputs

    codes = set()
    for one in itertools.islice(inputs(31), 5 * len(experiment.KINDS)):
        found = experiment.answer(one)
        assert found.defects == [], (one.kind, one.words)
        codes.add(found.code)
    assert {0, 2} <= codes


def test_the_same_seed_gives_the_same_inputs(experiment):
    from kinds import inputs

    first, second = (list(itertools.islice(inputs(3), 60)) for _ in range(2))
    assert [one.as_data() for one in first] == [one.as_data() for one in second]


def test_a_defect_would_be_seen(experiment, monkeypatch):
    one = experiment.Input("options", ["models", "{}/model.yaml"], {"model.yaml": b"a: 1\n"})

    def breaks(*_, **__):
        raise ZeroDivisionError

    monkeypatch.setattr("vftsim.study.runs.model.load_model", breaks)
    assert experiment.answer(one).defects[0].startswith("traceback")
