"""Where shipped files lie and what is said when a name is wrong."""

import pytest

import vftsim.spec
from vftsim.errors import UsageError
from vftsim.spec import find, list_shipped, shipped, shipped_dir
from vftsim.spec.shipped import file_or_shipped


@pytest.fixture
def rooms(tmp_path, monkeypatch):
    """A source checkout with two models."""
    (tmp_path / "vftsim").mkdir()
    (tmp_path / "models" / "xen-media").mkdir(parents=True)
    for name in ("lab-virtual.yaml", "xen-media/mixed-d.yaml", "README.md"):
        (tmp_path / "models" / name).write_text("name: x\n")
    monkeypatch.setattr(shipped, "PACKAGE", tmp_path / "vftsim")
    return tmp_path


def test_this_installation_has_its_rooms():
    for room in ("models", "calibration", "experiments"):
        assert shipped_dir(room).is_dir()


def test_lists_names_without_suffix(rooms):
    assert list_shipped("models") == ("lab-virtual", "xen-media/mixed-d")


@pytest.mark.parametrize("name", ["lab-virtual", "lab-virtual.yaml", "xen-media/mixed-d"])
def test_finds_names(rooms, name):
    assert find("models", name) == rooms / "models" / (name.removesuffix(".yaml") + ".yaml")


def test_a_path_comes_before_a_name(rooms, monkeypatch):
    model_path = rooms / "lab-virtual.yaml"
    model_path.write_text("name: own\n")
    monkeypatch.chdir(rooms)
    assert find("models", "lab-virtual.yaml").resolve() == model_path
    assert find("models", "lab-virtual") == rooms / "models" / "lab-virtual.yaml"
    assert find("models", str(model_path)) == model_path


def test_an_installed_wheel_comes_before_a_checkout(rooms):
    installed = rooms / "vftsim" / "_shipped" / "models"
    installed.mkdir(parents=True)
    assert shipped_dir("models") == installed


@pytest.mark.parametrize("name", ["lab-virtul", "", "../models/lab-virtual", "a\0b", "x" * 5000])
def test_an_unknown_name_lists_what_there_is(rooms, name):
    with pytest.raises(UsageError, match="shipped models: lab-virtual, xen-media/mixed-d") as caught:
        find("models", name)
    assert ("did you mean 'lab-virtual'?" in str(caught.value)) == (name in ("lab-virtul", "../models/lab-virtual"))


def test_a_name_of_a_file_without_its_suffix_is_told_the_file(rooms, monkeypatch):
    (rooms / "shop.yaml").write_text("name: shop\n")
    monkeypatch.chdir(rooms)
    with pytest.raises(UsageError, match=r"no file 'shop' and none shipped by that name; did you mean 'shop\.yaml'\?$"):
        find("models", "shop")
    with pytest.raises(UsageError, match="'vftsim' is a directory or a pipe; name a file"):
        find("models", "vftsim")


def test_a_file_comes_before_a_shipped_name_of_any_kind(rooms):
    own, shipped = rooms / "own.yaml", rooms / "models" / "lab-virtual.yaml"
    own.write_text("name: own\n")
    assert file_or_shipped(str(own), {"lab": shipped}, "study") == own
    assert file_or_shipped("lab", {"lab": shipped}, "study") == shipped
    with pytest.raises(UsageError, match=r"no file 'lap' and no shipped study of that name; did you mean 'lab'\?"):
        file_or_shipped("lap", {"lab": shipped}, "study")


def test_a_missing_room(rooms):
    with pytest.raises(UsageError, match="lacks its 'calibration' files"):
        shipped_dir("calibration")


def test_public_names_are_there_once():
    assert len(vftsim.spec.__all__) == len(set(vftsim.spec.__all__))
    assert all(hasattr(vftsim.spec, name) for name in vftsim.spec.__all__)
