"""JSON Schema of model files, for editors (draft 2020-12).

A file without ``extends`` has to be complete.  One with ``extends`` may leave out what it inherits and may
say ``null`` to remove a key, so it is held to a second, partial form of every definition: nothing
required, null allowed, a part's ``kind`` optional.
"""

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from vftsim.spec.registry import TAG

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_EXTENDS = {
    "type": "string",
    "description": "The model that this one extends: a shipped name, or a path relative to this file.",
}
_REF = "#/$defs/"
_PARTIAL = "partial."


def json_schema(root: type[BaseModel], title: str | None = None) -> dict[str, Any]:
    """Return the schema that model files of a root model have to satisfy."""
    whole = root.model_json_schema(mode="validation", ref_template=_REF + "{model}", schema_generator=_WrittenDefaults)
    definitions: dict[str, Any] = whole.pop("$defs", {})
    for part in _parts([whole, definitions]):
        schema = definitions[part]
        schema["required"] = sorted({TAG, *schema.get("required", ())})
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


class _WrittenDefaults(GenerateJsonSchema):
    """Shows defaults as a file writes them, ``25 ms`` and not 25000000."""

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        result = super().default_schema(schema)
        if isinstance(result.get("default"), (int, float, list)):
            result["default"] = _written(schema["schema"], result["default"])
        return result


def _written(schema: Any, value: Any) -> Any:
    serializer = schema.get("serialization", {})
    if serializer.get("type") == "function-plain":
        return serializer["function"](value)
    items = schema.get("items_schema")
    if isinstance(value, list) and items:
        schemas = items if isinstance(items, list) else [items]
        return [_written(schemas[min(i, len(schemas) - 1)], item) for i, item in enumerate(value)]
    return _written(schema["schema"], value) if isinstance(schema.get("schema"), dict) else value


def _parts(schema: Any) -> set[str]:
    """Return the definitions that a ``kind`` chooses from: for them it is no option to leave it out."""
    if isinstance(schema, list):
        return set().union(*map(_parts, schema))
    if not isinstance(schema, dict):
        return set()
    chosen = schema.get("discriminator")
    mapping = chosen.get("mapping", {}) if isinstance(chosen, dict) else {}
    return {ref.removeprefix(_REF) for ref in mapping.values()}.union(*map(_parts, schema.values()))


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
