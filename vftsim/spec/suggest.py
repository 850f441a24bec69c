"""Close matches for names that a user may have mistyped."""

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

MAX_LISTED = 20
_MOST_MEANT = 3
_MOST_TOGETHER = 4


def close_match(name: str, choices: Iterable[str]) -> str | None:
    """Return the choice most like `name`, or None if none is near."""
    by_folded = {choice.casefold(): choice for choice in choices}
    near = difflib.get_close_matches(name.casefold(), by_folded, n=1, cutoff=0.6)
    return by_folded[near[0]] if near else None


def did_you_mean(name: str, choices: Iterable[str]) -> str:
    """Return ``"; did you mean 'x'?"`` or the empty string."""
    match = close_match(name, choices)
    return f"; did you mean '{match}'?" if match is not None else ""


def instead(name: str, choices: Iterable[str], word: str) -> str:
    """Return the end of a message about a name that is none: the nearest one, and ``word`` all of them are."""
    names = list(choices)
    return f"{did_you_mean(name, names) or ';'} {word} {listing(names)}"


def or_below(words: Sequence[str], data: Any) -> str:
    """Return ``"; did you mean 'x.y'?"`` with keys below which words stand in their order, the last one at the end."""
    keys = [f"'{'.'.join(key)}'" for key in _keys_of(data) if key[-1] == words[-1] and _is_within(words, key)]
    return f"; did you mean {' or '.join(keys[:_MOST_MEANT])}?" if keys else ""


def _keys_of(data: Any) -> Iterator[tuple[str, ...]]:
    for key, below in data.items() if isinstance(data, Mapping) else ():
        yield (str(key),)
        yield from ((str(key), *further) for further in _keys_of(below))


def _is_within(words: Iterable[str], name: Iterable[str]) -> bool:
    """Return whether words stand in a name in their order."""
    letters = iter(name)
    return all(word in letters for word in words)


def counted(number: int, noun: str) -> str:
    """Return how many there are of something, of which the plural ends in s: ``1 run``, ``15 runs``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def together(names: Sequence[str]) -> str:
    """Return names as a title has them: ``a, b and c``, cut where there are more than a reader takes in."""
    first, left_out = names[:_MOST_TOGETHER], len(names) - _MOST_TOGETHER
    if left_out > 0:
        return f"{', '.join(first)} and {left_out} more"
    return " and ".join([", ".join(first[:-1]), first[-1]] if len(first) > 1 else first)


def listing(choices: Iterable[str]) -> str:
    """Return the choices for a message: ``a, b, c``, cut when there are very many."""
    names = list(choices)
    if not names:
        return "(none)"
    more = f", ... ({len(names) - MAX_LISTED} more)" if len(names) > MAX_LISTED else ""
    return ", ".join(names[:MAX_LISTED]) + more


def with_article(noun: str) -> str:
    """Return a word with its article, if it has one: ``a run``, ``an optimize``, ``simulated years``."""
    return noun if noun.endswith("years") else f"{'an' if noun[:1] in 'aeio' else 'a'} {noun}"


def shown(value: object, limit: int = 60) -> str:
    """Return a value as a message shows it: what the user wrote, kind of thing, never long."""
    if value is None:
        return "nothing (null)"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, (list, tuple)):
        return "a list"
    text = f"'{value}'" if isinstance(value, str) else str(value)
    text = "".join(c if c.isprintable() else "?" for c in text)
    return text if len(text) <= limit else text[: limit - 3] + "..."
