"""Keys of model files and addresses of figures that the documentation names: each is one of a shipped model."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from vftsim.spec import Spec, list_shipped
from vftsim.study.figures.names import catalogue, find
from vftsim.study.runs.model import load_model

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "calibration").rglob("*.md")])
CODE = re.compile(r"`([^`\n]+)`|--(?:set|grid) ['\"]?([^\n'\"]+)")
KEY = re.compile(r"(?<![\w./-])(?:hosts|networks|domains|workloads|measure|measured)(?:\.[a-z*][\w*-]*)+")
FILES = re.compile(r"\.(?:py|json|md|yaml|csv)$")


def keys() -> dict[str, str]:
    """Keys and a page that names each."""
    found: dict[str, str] = {}
    for page in PAGES:
        for code in CODE.finditer(page.read_text(encoding="utf-8")):
            text = code[1] or code[2]
            for each in KEY.finditer(text):
                key = each[0]
                is_made = key.count(".") == 1 and text.startswith("={", each.end())  # a domain that the command adds
                if not FILES.search(key) and not is_made:
                    found.setdefault(key.removesuffix(".*"), str(page.relative_to(ROOT)))
    return found


def below(node: Any, key: str) -> Iterator[Any]:
    if isinstance(node, Mapping):
        yield from node.values() if key == "*" else [node[key]] if key in node else []
    elif isinstance(node, Spec) and key in type(node).model_fields:
        yield getattr(node, key)


def has(node: Any, path: list[str]) -> bool:
    return not path or any(has(each, path[1:]) for each in below(node, path[0]))


@pytest.fixture(scope="module")
def specs() -> list[Any]:
    return [load_model(name).spec for name in list_shipped("models")]


@pytest.mark.parametrize(("key", "page"), list(keys().items()), ids=list(keys()))
def test_key_is_one_of_a_shipped_model(key: str, page: str, specs: list[Any]) -> None:
    is_known = any(has(spec, key.split(".")) for spec in specs) or any(find(key, catalogue(spec)) for spec in specs)
    assert is_known, f"{page}: no shipped model has '{key}'"


def test_documentation_names_keys() -> None:
    assert len(keys()) >= 40
