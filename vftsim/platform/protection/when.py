"""An instant of a run as people say it: ``20 s``, ``step 2 + 300 s``, ``stir``."""

import re
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from vftsim.spec import DURATION

_FORM = re.compile(
    r"\s*(?:(?P<phase>pre-registration|stir|step\s+(?P<step>[1-9][0-9]{0,3}))\s*(?:\+\s*(?P<after>.+))?"
    r"|(?P<run>(?!\s*[^\W\d_]).+))",  # a duration does not begin with a letter
    re.DOTALL,
)
_MAX_TEXT = 100


@dataclass(frozen=True, slots=True)
class Instant:
    """``offset_ns`` after the start of ``phase``: ``run``, ``pre-registration``, ``stir`` or ``step N``."""

    phase: str
    offset_ns: int

    def __str__(self) -> str:
        offset = DURATION.format(self.offset_ns)
        if self.phase == "run":
            return offset
        return f"{self.phase} + {offset}" if self.offset_ns else self.phase


class WhenText:
    """Pydantic annotation: text to :class:`Instant`."""

    @staticmethod
    def parse(value: object) -> Instant:
        """Return the instant that a file or Python code gave."""
        if isinstance(value, Instant):
            return value
        match = _FORM.fullmatch(value) if isinstance(value, str) and len(value) <= _MAX_TEXT else None
        if match is None:
            why = "must be an instant of the run such as '20 s', 'stir' or 'step 2 + 300 s'"
            raise PydanticCustomError("when", "{why}", {"why": why})
        if match["run"] is not None:
            return Instant("run", int(DURATION.parse(match["run"])))
        phase = f"step {int(match['step'])}" if match["step"] else match["phase"]
        return Instant(phase, int(DURATION.parse(match["after"])) if match["after"] else 0)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            self.parse, serialization=core_schema.plain_serializer_function_ser_schema(str, when_used="json")
        )

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {
            "type": "string",
            "description": "An instant: a duration from the start of the run, or a phase (pre-registration, "
            "stir, step N) and a duration after its start.",
            "examples": ["20 s", "step 2 + 300 s"],
        }


When = Annotated[Instant, WhenText()]
"""An instant; ``step 2 + 300 s`` in a file."""
