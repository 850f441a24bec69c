"""The JSON Schema for editors."""

import json
import re

from small_model import GOOD, Model

from vftsim.spec import json_schema
from vftsim.spec.units import BIT_RATE, BYTE_COUNT, DURATION, FREQUENCY, PERCENT, RATE

SCHEMA = json_schema(Model)


def test_head():
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert SCHEMA["title"] == "Model"
    assert json_schema(Model, "A model")["title"] == "A model"
    assert json.loads(json.dumps(SCHEMA)) == SCHEMA


def test_every_reference_leads_somewhere():
    references = set(re.findall(r'"\$ref": "#/\$defs/([^"]+)"', json.dumps(SCHEMA)))
    assert references <= set(SCHEMA["$defs"])
    assert {"Model", "partial.Model", "CreditSpec", "partial.CreditSpec"} <= references


def test_a_part_is_one_of_its_kinds():
    assert SCHEMA["$defs"]["CreditSpec"]["required"] == ["kind"]
    assert SCHEMA["$defs"]["RtdsSpec"]["required"] == ["kind", "period"]
    assert SCHEMA["$defs"]["RtdsSpec"]["properties"]["budget"]["default"] == "4 ms"
    scheduler = SCHEMA["$defs"]["Model"]["properties"]["scheduler"]
    assert scheduler["discriminator"]["propertyName"] == "kind"
    assert {option["$ref"] for option in scheduler["oneOf"]} == {"#/$defs/CreditSpec", "#/$defs/RtdsSpec"}


def test_a_quantity_is_text_with_a_pattern():
    latency = SCHEMA["$defs"]["Model"]["properties"]["latency"]
    assert latency["type"] == "string"
    assert latency["examples"] == ["25 ms"]
    assert latency["default"] == "0 ns"
    assert "exclusiveMinimum" not in latency
    assert latency["description"] == "Latency of the link."
    assert re.search(latency["pattern"], GOOD["latency"])


def test_patterns_accept_what_reads_and_refuse_what_does_not():
    for quantity in (DURATION, BIT_RATE, BYTE_COUNT, RATE, PERCENT, FREQUENCY):
        assert re.search(quantity.pattern, quantity.example)
        assert re.search(quantity.pattern, quantity.format(quantity.upper))
        assert re.search(quantity.pattern, "0")
        for wrong in ("25", "-" + quantity.example, quantity.example + "x", "nan", ""):
            assert not re.search(quantity.pattern, wrong)


def test_only_an_extending_file_may_be_incomplete():
    whole, partial = SCHEMA["$defs"]["Model"], SCHEMA["$defs"]["partial.Model"]
    assert set(whole["required"]) == {"name", "arrivals"}
    assert "extends" not in whole["properties"]
    assert "required" not in json.dumps({k: v for k, v in SCHEMA["$defs"].items() if k.startswith("partial.")})
    assert partial["properties"]["extends"]["type"] == "string"
    assert partial["properties"]["latency"]["anyOf"][1] == {"type": "null"}
    assert SCHEMA["if"] == {"required": ["extends"]}
