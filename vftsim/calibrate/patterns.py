"""Names of runs and quantities by pattern."""

from collections.abc import Iterable
from fnmatch import fnmatchcase

from vftsim.spec.suggest import instead, shown
from vftsim.spec.yaml_source import Node


def matches(name: str, pattern: str) -> bool:
    """Whether a name has a pattern's parts, in which ``*`` stands for anything but a slash."""
    parts, patterns = name.split("/"), pattern.split("/")
    return len(parts) == len(patterns) and all(map(fnmatchcase, parts, patterns))


def check_measured(node: Node, patterns: Iterable[str], measured: Iterable[str], runs: Iterable[str] = ()) -> None:
    """Refuse a pattern that fits nothing that was measured, so that a slip of the pen compares nothing unnoticed.

    The patterns stand at the node, and may begin with a phase or run.  The message has the quantities there are, the
    nearest first.
    """
    names, runs = list(measured), list(runs)
    every = [*names, *(f"{run}/{name}" for run in runs for name in names)]
    for pattern in patterns:
        if not any(matches(name, pattern) for name in every):
            message = f"nothing called {shown(pattern)} was measured{instead(pattern, names, 'the dataset has')}"
            raise node.error(message, "quantities")
