"""One clear message out of a pydantic ``ValidationError``: file, line, key, cause, remedy."""

import re
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from pydantic import BaseModel, ValidationError

from vftsim.errors import ModelFileError
from vftsim.spec.extends import KEY as EXTENDS
from vftsim.spec.overrides import ORIGIN
from vftsim.spec.registry import TAG
from vftsim.spec.shape import Key, Spot, locate
from vftsim.spec.suggest import close_match, did_you_mean, instead, listing, shown
from vftsim.spec.yaml_source import Node

_MOST_NAMED = 3
_EXPECTED = {
    "mapping": "a mapping (lines 'key: value')",
    "list": "a list",
    "string": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
}
_KINDS_OF_TYPE = {
    "model_type": "mapping",
    "model_attributes_type": "mapping",
    "dict_type": "mapping",
    "mapping_type": "mapping",
    "list_type": "list",
    "tuple_type": "list",
    "string_type": "string",
    "int_type": "int",
    "int_from_float": "int",
    "int_parsing": "int",
    "float_type": "float",
    "float_parsing": "float",
    "bool_type": "bool",
    "bool_parsing": "bool",
}
_BOUNDS = {
    "greater_than": ("gt", ">"),
    "greater_than_equal": ("ge", ">="),
    "less_than": ("lt", "<"),
    "less_than_equal": ("le", "<="),
}
_SAID = {"extra_forbidden": "unknown key ", "missing": "missing key "}


def explain(
    error: ValidationError,
    root: type[BaseModel],
    tree: Node,
    files: Sequence[str],
    assignments: Sequence[str],
    spoilt_by: str = "",
) -> ModelFileError:
    """Return the first problem in the order of the files, and how many more there are.

    The tree is the merged document with its places, whose data were no root model; the files are those of the extends
    chain, the named one first.  Problems of the overrides (``assignments``) come before those of the
    files.  ``spoilt_by`` is the override without which the document is right.
    """
    data = tree.plain()
    ranks = {label: rank for rank, label in enumerate((ORIGIN, *files))}
    raw = error.errors(include_url=False)
    unknown = [locate(root, details["loc"], data) for details in raw if details["type"] == "extra_forbidden"]
    typos = {(spot.keys[:-1], str(spot.keys[-1])) for spot in unknown}
    problems: list[tuple[tuple[int, int], str, ModelFileError]] = []
    for details in raw:
        spot = locate(root, details["loc"], data)
        kind = details["type"]
        if kind == "missing" and _has_typo(spot, typos):
            continue
        depth = len(details["loc"])
        if kind == "too_short" and any(o["loc"][:depth] == details["loc"] != o["loc"] for o in raw):
            continue  # only because its wrong items do not count
        keys = _keys_to_blame(kind, spot, details)
        node = tree.at(*keys)
        order = ranks.get(node.file, len(ranks)), node.line
        node = node if keys else tree.at(*_path_said(details))
        is_override = node.file == ORIGIN
        key, line = (assignments[node.line - 1], 0) if is_override else (".".join(map(str, keys)), node.line)
        problems.append((order, kind, ModelFileError(_message(details, spot), node.file, line, key)))
    (_, _, first), *others = sorted(problems, key=itemgetter(0))
    causes = [(_SAID.get(kind, ""), each) for _, kind, each in others if each.file != ORIGIN and each.key != first.key]
    causes.sort(key=lambda each: not each[0])  # about keys themselves first
    named = list(dict.fromkeys(f"{word}'{each.key}'" for word, each in causes))[:_MOST_NAMED]
    more = f" (and {len(others)} more{': ' + ', '.join(named) if named else ''})" if others else ""
    if spoilt_by and first.file != ORIGIN:
        prefix = f"{first.key}: " if first.key else ""
        return ModelFileError(f"{prefix}{first.message}{more}", ORIGIN, 0, spoilt_by)
    return ModelFileError(first.message + more, first.file, first.line, first.key)


def first_mistake(error: ValidationError) -> str:
    """Return where and what the first mistake is, of a file that users do not write themselves."""
    first = error.errors(include_url=False, include_input=False)[0]
    return ": ".join(filter(None, (".".join(map(str, first["loc"])), first["msg"])))


def _has_typo(spot: Spot, typos: set[tuple[tuple[Key, ...], str]]) -> bool:
    """Whether a missing key is there under a mistyped name, so that naming the typo says it all."""
    names = [name for parent, name in typos if parent == spot.keys[:-1]]
    return any(close_match(name, [str(spot.keys[-1])]) for name in names)


def _keys_to_blame(kind: str, spot: Spot, details: Any) -> tuple[Key, ...]:
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        return (*spot.keys, TAG)
    cause = details.get("ctx", {}).get("error")
    if isinstance(cause, ModelFileError) and cause.key:
        return (*spot.keys, *(int(k) if k.isdigit() else k for k in cause.key.split(".")))
    return spot.keys


def _path_said(details: Any) -> tuple[Key, ...]:
    """Return the path that a message of a check across the model begins with: ``domains.sut.affinity must ...``."""
    path = re.match(r"[\w.-]*\w", str(details.get("ctx", {}).get("error", "")))
    return tuple(int(key) if key.isdigit() else key for key in path[0].split(".")) if path else ()


def _message(details: Any, spot: Spot) -> str:
    kind, value = details["type"], details["input"]
    context: Mapping[str, Any] = details.get("ctx", {})
    special = _SPECIAL.get(kind)
    if special is not None:
        return special(spot, context, value)
    name = _subject(spot)
    if kind in _KINDS_OF_TYPE:
        expected = _EXPECTED[_KINDS_OF_TYPE[kind]]
        return f"{name}must be {expected}, got {shown(value)}{_hint(kind, value, spot)}"
    if kind in _BOUNDS:
        entry, sign = _BOUNDS[kind]
        quantity = spot.shape.quantity if spot.shape else None
        limit = quantity.format(context[entry]) if quantity else context[entry]
        return f"{name}must be {sign} {limit}, got {shown(_as_written(spot, value))}"
    text = details["msg"].removeprefix("Input ").removeprefix("Value ")
    return f"{name}{text[:1].lower()}{text[1:]}, got {shown(value)}"


def _subject(spot: Spot) -> str:
    """Return what a message is about, with a space behind it: ``'weight' ``, ``item 2 of 'pinned' ``."""
    if not spot.keys:
        return ""
    last = spot.keys[-1]
    if isinstance(last, int):
        return f"item {last} of '{spot.keys[-2]}' " if len(spot.keys) > 1 else f"item {last} "
    return f"'{last}' "


def _as_written(spot: Spot, value: Any) -> Any:
    data = spot.owner_data
    if isinstance(data, Mapping):
        return data.get(spot.keys[-1], value) if spot.keys else value
    return value


def _hint(kind: str, value: Any, spot: Spot) -> str:
    expected = _KINDS_OF_TYPE[kind]
    if value is None:
        return "; give a value or leave the key out where it has a default"
    if expected in ("int", "float") and isinstance(value, str):
        return " as text; write it as a plain number, without quotes or unit"
    if expected == "string" and not isinstance(value, (dict, list)):
        return "; put it in quotes if text is meant"
    keys = spot.shape.fields({}) if expected == "mapping" and spot.shape else ()
    return f"; keys: {listing(keys)}" if keys else ""


def _unknown_key(spot: Spot, context: Mapping[str, Any], value: Any) -> str:
    key = str(spot.keys[-1]) if spot.keys else ""
    allowed = list(spot.owner.fields(spot.owner_data)) if spot.owner else []
    if len(spot.keys) == 1 and key == EXTENDS:
        return f"'{EXTENDS}' is a key of a file, and names the one that it changes; here name that one itself"
    if len(spot.keys) == 1:
        allowed.append(EXTENDS)
    return f"unknown key {shown(key)}{instead(key, allowed, 'allowed:')}"


def _missing(spot: Spot, context: Mapping[str, Any], value: Any) -> str:
    key = spot.keys[-1] if spot.keys else "?"
    quantity = spot.shape.quantity if spot.shape else None
    example = f", e.g. '{key}: {quantity.example}'" if quantity else ""
    return f"required key '{key}' is missing{_meaning(spot)}; add it{example}"


def _no_match(spot: Spot, context: Mapping[str, Any], value: Any) -> str:
    return f"{_subject(spot)}must be of the form {context['pattern']}{_meaning(spot)}, got {shown(value)}"


def _meaning(spot: Spot) -> str:
    field = spot.shape.field if spot.shape else None
    return f" ({field.description.rstrip('.')})" if field and field.description else ""


def _unknown_kind(spot: Spot, context: Mapping[str, Any], value: Any) -> str:
    registry = spot.shape.registry if spot.shape else None
    kinds = list(registry) if registry else str(context.get("expected_tags", "")).replace("'", "").split(", ")
    family = registry.family if registry else str(spot.keys[-1]) if spot.keys else "part"
    tag = str(context.get("tag", ""))
    hint = registry.did_you_mean(tag) if registry else did_you_mean(tag, kinds)
    return f"unknown {family} kind {shown(tag)}{hint or ';'} kinds: {listing(kinds)}"


def _missing_kind(spot: Spot, context: Mapping[str, Any], value: Any) -> str:
    registry = spot.shape.registry if spot.shape else None
    family = registry.family if registry else "part"
    return f"'kind' of the {family} is missing or no text; kinds: {listing(registry or ())}"


def _not_allowed(spot: Spot, context: Mapping[str, Any], value: Any) -> str:
    expected = str(context.get("expected", ""))
    choices = [c.strip("'") for c in expected.replace(" or ", ", ").split(", ")]
    name = _subject(spot)
    hint = did_you_mean(value, choices) if isinstance(value, str) else ""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and "'" in expected:
        # YAML reads 4.10 as 4.1: only quotes keep what was written.
        hint = "; that is a number, and these are texts: put it in quotes, '\"...\"'"
    return f"{name}must be one of {listing(choices)}, got {shown(value)}{hint}"


def _count(spot: Spot, bound: str, limit: int, length: int) -> str:
    return f"{_subject(spot)}must have at {bound} {limit}, got {length}"


_SPECIAL: dict[str, Callable[[Spot, Mapping[str, Any], Any], str]] = {
    "extra_forbidden": _unknown_key,
    "missing": _missing,
    "union_tag_invalid": _unknown_kind,
    "union_tag_not_found": _missing_kind,
    "too_short": lambda spot, context, _: _count(spot, "least", context["min_length"], context["actual_length"]),
    "too_long": lambda spot, context, given: _count(spot, "most", context["max_length"], len(given)),
    "string_pattern_mismatch": _no_match,
    "literal_error": _not_allowed,
    "enum": _not_allowed,
    "value_error": lambda _, context, __: getattr(context["error"], "message", None) or str(context["error"]),
    "assertion_error": lambda _, context, __: str(context["error"]),
    "quantity": lambda spot, context, _: f"{_subject(spot)}{context['why']}",
}
