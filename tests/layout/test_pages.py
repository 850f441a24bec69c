"""The pages under docs say what the code does: tables from the specs, names of files that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from parameter_tables import DOCS, pages, rendered, shown, table

from vftsim.composition import hosts, model
from vftsim.platform.cpu.parameters import schedulers
from vftsim.platform.cpu.scheduler import scheduler
from vftsim.platform.io import packet
from vftsim.platform.io.parameters import io_paths
from vftsim.platform.protection.faults import FAULTS
from vftsim.platform.protection.guard import protection
from vftsim.platform.protection.mechanism import protections
from vftsim.workloads.parts import APPLICATIONS, WORKLOADS

_ROOT = Path(__file__).parents[2]
_PAGES = sorted(DOCS.rglob("*.md"))
_BASE = (
    model.MeasureSpec,
    model.MeasuredSpec,
    model.CalibratedSpec,
    model.ModelSpec,
    hosts.DomainSpec,
    hosts.HostNicSpec,
    hosts.HostSpec,
    hosts.InterfaceSpec,
    hosts.NetworkSpec,
)
_REGISTRIES = (schedulers(), io_paths(), protections(), FAULTS, APPLICATIONS, WORKLOADS)
_SPECS = [*_BASE, *(spec for registry in _REGISTRIES for spec in registry.values())]


_ASKED = {
    "add-a-scheduler": (scheduler, "platform.cpu.scheduler"),
    "add-a-path": (packet.path, "platform.io.packet"),
    "add-an-application": (packet.application, "platform.io.packet", "platform.io.disk"),
    "add-a-workload": (packet.workload, "platform.io.packet"),
    "add-a-protection-mechanism": (protection, "platform.protection.guard", "platform.protection.mechanism"),
}
"""Of each page on a part of one's own its sort, and where stands what any of them may be asked."""


@pytest.mark.parametrize("page", _ASKED)
def test_what_a_part_is_asked_stands_on_its_page(page: str) -> None:
    sort, *modules = _ASKED[page]
    asked = [slot.__name__ for slot in sort.slots if slot.__module__.removeprefix("vftsim.") in modules]
    text = (DOCS / "extend" / f"{page}.md").read_text(encoding="utf-8")
    assert asked
    assert [name for name in asked if not re.search(rf"`{name}[(`]", text)] == []


def _name(page: Path) -> str:
    return str(page.relative_to(DOCS))


@pytest.mark.parametrize("page", pages(), ids=_name)
def test_parameter_tables_are_those_of_the_specs(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert rendered(text) == text, "run: python tests/layout/parameter_tables.py"


def test_a_list_that_may_be_left_out_is_a_list() -> None:
    assert "| `affinity` | list | none |" in table(hosts.DomainSpec)


@pytest.mark.parametrize("spec", [f"{spec.__module__}.{spec.__name__}" for spec in _SPECS])
def test_everything_that_a_model_file_can_say_has_its_table(spec: str) -> None:
    assert spec in shown(), f"a page needs '<!-- parameters: {spec} -->', which parameter_tables.py beside this fills"


@pytest.mark.parametrize("page", _PAGES, ids=_name)
def test_files_that_are_named_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for name in re.findall(r"`((?:tests|vftsim|experiments)/[\w/]+\.py)`", text):
        assert (_ROOT / name).is_file(), name
