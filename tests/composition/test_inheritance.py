"""What a model file takes over from the one it extends."""

from vftsim.study.runs.model import load_model


def test_what_tells_of_one_system_stays_with_it(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("extends: lab-virtual\n")
    base, mine = load_model("lab-virtual").spec, load_model(path).spec
    assert base.name
    assert base.description
    assert base.measured.capacity == 100.0
    assert (mine.name, mine.description, mine.measured.capacity) == ("", "", None)
    assert load_model(path).name == str(path), "what the user called it"
    assert mine.domains == base.domains
    assert mine.workloads == base.workloads
