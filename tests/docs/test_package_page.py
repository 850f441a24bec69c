"""The package page: what the built metadata has as long description, whose links must lead somewhere."""

import email
import re
from pathlib import Path

import pytest
from hatchling.build import prepare_metadata_for_build_wheel

from hatch_build import package_page

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"\]\(([^)]+)\)")


def targets(text):
    return [target for target in LINK.findall(text) if not target.startswith("#")]


def test_the_long_description_has_no_relative_link(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    folder = prepare_metadata_for_build_wheel(str(tmp_path))
    built = email.message_from_string((tmp_path / folder / "METADATA").read_text(encoding="utf-8"))
    page = built.get_payload()
    assert built["Description-Content-Type"] == "text/markdown"
    assert "vftsim compare" in page
    assert [target for target in targets(page) if not re.match("https?://", target)] == []


@pytest.mark.parametrize("source", ["https://forge.example/vftsim", "https://forge.example/vftsim/"])
def test_with_a_source_every_link_leads_there(source):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    found = targets(package_page(readme, source))
    assert len(found) == len(targets(readme)) > 10
    start = r"https://forge\.example/vftsim/(blob|raw)/HEAD/"
    assert all((ROOT / re.sub(start, "", target).partition("#")[0]).exists() for target in found)
    assert "](https://forge.example/vftsim/raw/HEAD/docs/images/report-run.png)" in package_page(readme, source)


def test_links_elsewhere_stay():
    assert package_page("[a](https://b.example) [c](#d) [e](f.md)") == "[a](https://b.example) [c](#d) e"
