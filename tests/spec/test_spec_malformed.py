"""Every malformed file gives one ModelFileError with file and message, and never anything else."""

import pytest
from mutations import Mutation, mutations, removals, to_yaml
from small_model import GOOD, Model

from vftsim.errors import ModelFileError
from vftsim.spec import load

MUTATIONS = list(mutations(GOOD))


def refusal(mutation: Mutation, folder) -> ModelFileError:
    path = mutation.write(folder)
    with pytest.raises(ModelFileError) as caught:
        load(path, Model)
    return caught.value


def test_there_are_many():
    assert len(MUTATIONS) >= 100
    assert len({m.name for m in MUTATIONS}) == len(MUTATIONS)


def test_the_good_document_is_good(tmp_path):
    path = Mutation("good", to_yaml(GOOD)).write(tmp_path)
    assert load(path, Model).latency == 100


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda m: m.name)
def test_mutation_is_refused(mutation, tmp_path):
    error = refusal(mutation, tmp_path)
    assert type(error) is ModelFileError
    assert len(error.message) > 10
    assert len(error.message) < 1200
    assert "\n" not in error.message
    assert str(tmp_path) in error.file
    assert error.__cause__ is None


def test_removing_a_key_is_refused_exactly_where_it_is_required(tmp_path):
    """The required keys of the small model, counted by hand."""
    refused, messages = set(), []
    for mutation in removals(GOOD):
        path = mutation.write(tmp_path)
        try:
            load(path, Model)
        except ModelFileError as error:
            refused.add(mutation.name.removeprefix("removed: "))
            messages.append(error.message)
    assert all(messages)
    assert refused == {
        "name",
        "arrivals",
        "scheduler.kind",
        "scheduler.period",
        "other.kind",
        "domains",
        "domains.dom0",
        "domains.dom0.memory",
        "domains.sut.memory",
    }
