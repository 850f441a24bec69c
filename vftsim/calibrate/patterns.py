"""Names of runs and quantities by pattern."""

from fnmatch import fnmatchcase


def matches(name: str, pattern: str) -> bool:
    """Whether a name has a pattern's parts, in which ``*`` stands for anything but a slash."""
    parts, patterns = name.split("/"), pattern.split("/")
    return len(parts) == len(patterns) and all(map(fnmatchcase, parts, patterns))
