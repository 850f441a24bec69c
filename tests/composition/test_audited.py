"""The auditor of the promise on models drawn from everything that a model file can say."""

import pytest

from tests.composition import audited, generated
from vftsim.composition import run


@pytest.mark.thorough
@pytest.mark.parametrize(("count", "least"), [(15, 100), pytest.param(300, 3000, marks=pytest.mark.slow)])
def test_it_is_silent_and_changes_nothing(count: int, least: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "linked_for", lambda spec: generated.everything())
    judged, wrong = audited.audited(count)
    assert judged >= least
    assert wrong == []
