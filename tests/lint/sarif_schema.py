"""The part of SARIF 2.1.0 (OASIS standard, section 3) that dsgen writes, as a closed JSON Schema.

Each object allows only properties that the standard has, and asks for those it makes mandatory.
"""

from typing import Any


def _object(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _array(items: Any, least: int = 0) -> dict[str, Any]:
    return {"type": "array", "items": items, "minItems": least}


_TEXT = {"type": "string"}
_FROM_1 = {"type": "integer", "minimum": 1}
_MULTIFORMAT = _object(["text"], text=_TEXT, markdown=_TEXT)  # 3.12
_MESSAGE = _object(["text"], text=_TEXT)  # 3.11
_REGION = _object(["startLine"], startLine=_FROM_1, startColumn=_FROM_1, endLine=_FROM_1, endColumn=_FROM_1)  # 3.30
_ARTIFACT = _object(["uri"], uri={"type": "string", "format": "uri-reference", "pattern": r"^[!-~]*$"})  # 3.4
_LOCATION = _object(  # 3.28
    ["physicalLocation"],
    physicalLocation=_object(["artifactLocation"], artifactLocation=_ARTIFACT, region=_REGION),
    message=_MESSAGE,
)
_REPLACEMENT = _object(["deletedRegion"], deletedRegion=_REGION, insertedContent=_object([], text=_TEXT))  # 3.57
_CHANGE = _object(  # 3.56
    ["artifactLocation", "replacements"], artifactLocation=_ARTIFACT, replacements=_array(_REPLACEMENT, 1)
)
_RESULT = _object(  # 3.27
    ["message"],
    ruleId=_TEXT,
    ruleIndex={"type": "integer", "minimum": -1},
    level={"enum": ["none", "note", "warning", "error"]},
    message=_MESSAGE,
    locations=_array(_LOCATION),
    relatedLocations=_array(_LOCATION),
    partialFingerprints={"type": "object", "additionalProperties": _TEXT},
    fixes=_array(_object(["artifactChanges"], description=_MULTIFORMAT, artifactChanges=_array(_CHANGE, 1)), 1),  # 3.55
)
_RULE = _object(["id"], id=_TEXT, name=_TEXT, shortDescription=_MULTIFORMAT, help=_MULTIFORMAT)  # 3.49
_DRIVER = _object(["name"], name=_TEXT, version=_TEXT, rules={**_array(_RULE), "uniqueItems": True})  # 3.19
_RUN = _object(  # 3.14
    ["tool"],
    tool=_object(["driver"], driver=_DRIVER),
    columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
    results=_array(_RESULT),
)
SARIF = _object(  # 3.13
    ["version", "runs"],
    version={"const": "2.1.0"},
    runs=_array(_RUN),
    **{"$schema": {"type": "string", "format": "uri"}},
)
