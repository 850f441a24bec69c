"""Models that extend another: ``extends: lab-virtual`` or ``extends: ../base.yaml``.

Rules of the merge: mappings merge key by key and the extending file wins; a list or a value replaces
what it extends; ``null`` removes an inherited key (its default then applies), and is an ordinary value
where nothing is inherited; a mapping that changes its ``kind`` replaces the inherited one, because the
other part's keys mean nothing to it.  Name, description and measured values of the extended file stay there: they
tell of another system.

A name with a suffix is a path from the extending file's folder.  Without a suffix it is a file in that
folder, other than the extending file itself, or else what the caller's search finds.
"""

from collections.abc import Callable
from pathlib import Path

from vftsim.errors import UsageError
from vftsim.spec.shipped import is_file
from vftsim.spec.suggest import did_you_mean, listing, shown
from vftsim.spec.yaml_source import Node, read_yaml

KEY = "extends"
NOT_INHERITED = ("name", "description", "measured")
"""What tells of one system and would be false of another: its name, its description, what was measured of it."""
MAX_CHAIN = 8
SUFFIX = ".yaml"

Search = Callable[[str], Path]


def read_chain(path: Path, search: Search) -> tuple[Node, tuple[Path, ...]]:
    """Read a file and all it extends; return the merged tree and the files, the named one first."""
    layers: list[Node] = []
    files: list[Path] = []
    following: Path | None = path
    while following is not None:
        whole = read_yaml(following)
        entries = dict(_mapping(whole))
        files.append(following)
        base = entries.pop(KEY, None)
        if layers:
            for key in NOT_INHERITED:
                entries.pop(key, None)
        layers.append(Node(entries, whole.file, whole.line))
        following = None if base is None else _base_path(base, files, search)
    tree = layers[-1]
    for layer in reversed(layers[:-1]):
        tree = merge(tree, layer)
    return tree, tuple(files)


def merge(base: Node, child: Node) -> Node:
    """Return `base` as changed by `child`; neither is altered."""
    if not isinstance(base.value, dict) or not isinstance(child.value, dict):
        return child
    if changes_kind(base.value, child.value.get("kind")):
        return child
    merged = dict(base.value)
    for key, node in child.value.items():
        if key not in merged:
            merged[key] = node
        elif node.value is None:
            del merged[key]
        else:
            merged[key] = merge(merged[key], node)
    return Node(merged, child.file, child.line)


def changes_kind(base: dict[str, Node], kind: Node | None) -> bool:
    """Return whether `kind` makes another part of the mapping `base`."""
    return kind is not None and "kind" in base and kind.value is not None and base["kind"].value != kind.value


def _mapping(node: Node) -> dict[str, Node]:
    if node.value is None:
        raise node.error("is empty; a model file is a mapping of keys")
    if not isinstance(node.value, dict):
        raise node.error(f"must be a mapping (lines 'key: value'), got {shown(node.plain())}")
    return node.value


def _base_path(node: Node, files: list[Path], search: Search) -> Path:
    name = node.value
    if not isinstance(name, str) or not name.strip():
        raise node.error(f"must be the name or path of one model file, got {shown(node.plain())}", KEY)
    path = _find_base(name, node, files[-1], search)
    chain = " -> ".join(str(p) for p in (*files, path))
    if any(path.resolve() == file.resolve() for file in files):
        raise node.error(f"leads in a circle: {chain}; remove one of the links", KEY)
    if len(files) > MAX_CHAIN:
        raise node.error(f"more than {MAX_CHAIN} files extend one another: {chain}", KEY)
    return path


def _find_base(name: str, node: Node, extending: Path, search: Search) -> Path:
    folder = extending.parent
    if Path(name).suffix in (SUFFIX, ".yml"):
        if is_file(folder / name):
            return folder / name
        siblings = _names_in((folder / name).parent, extending)
        raise node.error(f"no file {shown(name)} beside {extending.name}{did_you_mean(Path(name).name, siblings)}", KEY)
    sibling = folder / (name + SUFFIX)
    if is_file(sibling) and sibling.resolve() != extending.resolve():
        return sibling
    try:
        return search(name)
    except UsageError as error:
        stems = sorted(p.stem for p in folder.glob("*" + SUFFIX) if p != extending)
        beside = f"; beside {extending.name}: {listing(stems)}" if stems else ""
        raise node.error(f"{error}{beside}", KEY) from None


def _names_in(folder: Path, extending: Path) -> list[str]:
    try:
        return sorted(path.name for path in folder.glob("*" + SUFFIX) if path != extending)
    except OSError:  # a path that is too long, or a folder that cannot be read
        return []
