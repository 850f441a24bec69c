"""JSON Schema of model files, for editors (draft 2020-12).

A file without ``extends`` has to be complete.  One with ``extends`` may leave out what it inherits and may
say ``null`` to remove a key, so it is held to a second, partial form of every definition: nothing
required, null allowed, a part's ``kind`` optional.
"""

from typing import Any

from pydantic import BaseModel

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_EXTENDS = {
    "type": "string",
    "description": "The model that this one extends: a shipped name, or a path relative to this file.",
}
_REF = "#/$defs/"
_PARTIAL = "partial."


def json_schema(root: type[BaseModel], title: str | None = None) -> dict[str, Any]:
    """Return the schema that model files of a root model have to satisfy."""
    whole = root.model_json_schema(mode="validation", ref_template=_REF + "{model}")
    definitions: dict[str, Any] = whole.pop("$defs", {})
    if "$ref" not in whole:
        definitions[root.__name__] = whole
    start = whole.get("$ref", _REF + root.__name__).removeprefix(_REF)
    partials = {_PARTIAL + name: _partial(schema) for name, schema in definitions.items()}
    extending = partials[_PARTIAL + start]
    extending["properties"] = {"extends": _EXTENDS, **extending.get("properties", {})}
    return {
        "$schema": DIALECT,
        "title": title or whole.get("title", root.__name__),
        "type": "object",
        "if": {"required": ["extends"]},
        "then": {"$ref": _REF + _PARTIAL + start},
        "else": {"$ref": _REF + start},
        "$defs": {**definitions, **partials},
    }


def _partial(schema: Any) -> Any:
    """Return a schema relaxed to what an extending file may leave to its base."""
    if isinstance(schema, list):
        return [_partial(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    relaxed = {}
    for key, value in schema.items():
        if key in ("required", "discriminator", "minProperties", "default"):
            continue
        if key == "$ref":
            relaxed[key] = value.replace(_REF, _REF + _PARTIAL)
        elif key in ("properties", "patternProperties"):
            relaxed[key] = {name: _nullable(_partial(item)) for name, item in value.items()}
        elif key == "additionalProperties" and isinstance(value, dict):
            relaxed[key] = _nullable(_partial(value))
        elif key in ("enum", "const", "examples"):
            relaxed[key] = value
        else:
            relaxed["anyOf" if key == "oneOf" else key] = _partial(value)
    return relaxed


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}
