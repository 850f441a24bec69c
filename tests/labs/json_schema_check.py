"""What of JSON Schema (draft 2020-12) the published schemas use, checked; nothing else is understood."""

import re

_TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
_NOTES = {"$schema", "$defs", "title", "description", "default", "examples", "discriminator"}


def mistakes(schema, value, root=None, where="$"):
    """Return what is wrong with a value, as lines that begin with its place."""
    root = root or schema
    found = []
    for keyword, rule in schema.items():
        if keyword in _NOTES or keyword in ("then", "else"):
            continue
        if keyword == "if":
            branch = "else" if mistakes(rule, value, root) else "then"
            found += mistakes(schema.get(branch, {}), value, root, where)
        else:
            found += [
                f"{where}{m}" if m.startswith((".", "[")) else f"{where}: {m}"
                for m in _RULES[keyword](rule, value, root, schema)
            ]
    return found


def _type(rule, value, *_):
    number = not isinstance(value, bool) and isinstance(value, int if rule == "integer" else (int, float))
    fits = number if rule in ("integer", "number") else isinstance(value, _TYPES[rule])
    return [] if fits else [f"no {rule}"]


def _properties(rules, value, root, _):
    inside = rules.items() if isinstance(value, dict) else ()
    return [m for name, rule in inside if name in value for m in mistakes(rule, value[name], root, f".{name}")]


def _additional(rule, value, root, schema):
    if not isinstance(value, dict):
        return []
    others = [name for name in value if name not in schema.get("properties", {})]
    if rule is False:
        return [f".{name}: unknown" for name in others]
    return [m for name in others for m in mistakes(rule if rule is not True else {}, value[name], root, f".{name}")]


def _any_of(rules, value, root, *_):
    tries = [mistakes(rule, value, root) for rule in rules]
    return [] if not all(tries) else [f"none of {len(rules)}: {tries}"]


def _one_of(rules, value, root, *_):
    fitting = sum(not mistakes(rule, value, root) for rule in rules)
    return [] if fitting == 1 else [f"{fitting} of {len(rules)} instead of one"]


def _holds(test, kind):
    return lambda rule, value, *_: [] if not isinstance(value, kind) or test(rule, value) else [f"breaks {rule}"]


_RULES = {
    "$ref": lambda rule, value, root, _: mistakes(root["$defs"][rule.removeprefix("#/$defs/")], value, root, ""),
    "type": _type,
    "properties": _properties,
    "additionalProperties": _additional,
    "propertyNames": lambda rule, value, root, _: [m for name in value for m in mistakes(rule, name, root)],
    "required": lambda rule, value, *_: [f"needs {k}" for k in rule if isinstance(value, dict) and k not in value],
    "dependentRequired": lambda rule, value, *_: [
        f"{k} needs {n}" for k, names in rule.items() if k in value for n in names if n not in value
    ],
    "items": lambda rule, value, root, _: (
        [m for one in value for m in mistakes(rule, one, root, "[]")] if isinstance(value, list) else []
    ),
    "anyOf": _any_of,
    "allOf": lambda rules, value, root, _: [m for rule in rules for m in mistakes(rule, value, root)],
    "oneOf": _one_of,
    "enum": lambda rule, value, *_: [] if value in rule else [f"none of {rule}"],
    "const": lambda rule, value, *_: [] if value == rule else [f"not {rule}"],
    "pattern": _holds(re.search, str),
    "minLength": _holds(lambda rule, value: len(value) >= rule, str),
    "maxLength": _holds(lambda rule, value: len(value) <= rule, str),
    "minItems": _holds(lambda rule, value: len(value) >= rule, list),
    "maxItems": _holds(lambda rule, value: len(value) <= rule, list),
    "minProperties": _holds(lambda rule, value: len(value) >= rule, dict),
    "minimum": _holds(lambda rule, value: value >= rule, (int, float)),
    "maximum": _holds(lambda rule, value: value <= rule, (int, float)),
    "exclusiveMinimum": _holds(lambda rule, value: value > rule, (int, float)),
    "exclusiveMaximum": _holds(lambda rule, value: value < rule, (int, float)),
}
