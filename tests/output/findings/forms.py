"""Requirements of the parts of published formats that apflint uses, written from the documentation of the formats.

These forms are stricter than the published schemas: they reject everything that apflint does not intend to write.
SARIF: OASIS Standard 2.1.0, sections 3.13 to 3.49, and GitHub, "SARIF support for code scanning". GitLab: "Code
Quality", section "Implement a custom tool". JUnit: the elements and attributes of `junit-10.xsd` of Jenkins' xUnit
plugin.
"""

from __future__ import annotations

from typing import Any


def record(required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the schema of an object that has only these members."""
    return {
        "type": "object",
        "required": list(required),
        "properties": required | (optional or {}),
        "additionalProperties": False,
    }


def listed(items: dict[str, Any], least: int = 0) -> dict[str, Any]:
    return {"type": "array", "items": items, "minItems": least}


TEXT = {"type": "string", "minLength": 1}
COUNT = {"type": "integer", "minimum": 1}
SHORT = record({"text": {"type": "string", "minLength": 1, "maxLength": 1024}})
MESSAGE = record({"text": {"type": "string"}})
LEVEL = {"enum": ["none", "note", "warning", "error"]}
RELATIVE = {"type": "string", "pattern": "^(?!/)[A-Za-z0-9_.~/%-]+$"}
ARTIFACT = {
    "oneOf": [
        record({"uri": RELATIVE, "uriBaseId": {"const": "%SRCROOT%"}}),
        record({"uri": {"type": "string", "pattern": "^file:///[A-Za-z0-9_.~/%-]*$"}}),
    ]
}
REGION = record({"startLine": COUNT, "startColumn": COUNT, "endLine": COUNT, "endColumn": COUNT})
PLACE = record({"artifactLocation": ARTIFACT, "region": REGION})
RULE = record(
    {
        "id": {"type": "string", "pattern": "^APF[0-9]{3}$"},
        "name": {"type": "string", "minLength": 1, "maxLength": 255},
        "shortDescription": SHORT,
        "fullDescription": SHORT,
        "help": record({"text": TEXT, "markdown": TEXT}),
        "helpUri": {"type": "string", "pattern": "^https://"},
        "defaultConfiguration": record({"enabled": {"type": "boolean"}, "level": LEVEL}),
        "properties": record(
            {
                "tags": listed(TEXT, 1) | {"uniqueItems": True},
                "precision": {"enum": ["very-high", "high", "medium", "low"]},
                "problem.severity": {"enum": ["error", "warning", "recommendation"]},
            }
        ),
    }
)
RESULT = record(
    {
        "ruleId": TEXT,
        "ruleIndex": {"type": "integer", "minimum": 0},
        "level": LEVEL,
        "message": MESSAGE,
        "locations": listed(
            record(
                {"physicalLocation": PLACE},
                {"logicalLocations": listed(record({"kind": TEXT, "fullyQualifiedName": TEXT}), 1)},
            ),
            1,
        )
        | {"maxItems": 1},
    },
    {
        "relatedLocations": listed(record({"id": COUNT, "physicalLocation": PLACE, "message": MESSAGE}), 1),
        "fixes": listed(
            record(
                {
                    "description": MESSAGE,
                    "artifactChanges": listed(
                        record(
                            {
                                "artifactLocation": ARTIFACT,
                                "replacements": listed(
                                    record({"deletedRegion": REGION, "insertedContent": MESSAGE}), 1
                                ),
                            }
                        ),
                        1,
                    ),
                }
            ),
            1,
        )
        | {"maxItems": 1},
        "partialFingerprints": record(
            {"primaryLocationLineHash": {"type": "string", "pattern": "^[0-9a-f]{1,16}:[1-9][0-9]*$"}}
        ),
        "properties": record({"clusters": listed(TEXT, 1)}),
    },
)
DRIVER = record({"name": TEXT, "informationUri": TEXT, "semanticVersion": TEXT, "rules": listed(RULE)})
NOTE = record({"level": LEVEL, "message": MESSAGE})
INVOCATION = record({"executionSuccessful": {"type": "boolean"}, "toolExecutionNotifications": listed(NOTE, 1)})
RUN = record(
    {
        "tool": record({"driver": DRIVER}),
        "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
        "originalUriBaseIds": record({"%SRCROOT%": record({"description": MESSAGE})}),
        "results": listed(RESULT) | {"maxItems": 25_000},
    },
    {"invocations": listed(INVOCATION, 1)},
)
SARIF = record(
    {
        "$schema": {"type": "string", "pattern": "^https://.*sarif-schema-2\\.1\\.0\\.json$"},
        "version": {"const": "2.1.0"},
        "runs": listed(RUN, 1) | {"maxItems": 1},
    }
)

GITLAB = listed(
    record(
        {
            "description": {"type": "string", "pattern": "^APF[0-9]{3}: "},
            "check_name": TEXT,
            "fingerprint": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
            "severity": {"enum": ["info", "minor", "major", "critical", "blocker"]},
            "location": record({"path": TEXT, "lines": record({"begin": COUNT, "end": COUNT})}),
        }
    )
)

JUNIT = {
    "testsuites": ({"name", "tests", "failures", "errors"}, {"time"}, {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors"},
        {"skipped", "time", "timestamp", "hostname", "id", "package", "file", "log", "url", "group"},
        {"testcase", "properties", "system-out", "system-err", "testsuite"},
    ),
    "testcase": (
        {"name"},
        {"classname", "time", "group"},
        {"skipped", "error", "failure", "system-out", "system-err"},
    ),
    "failure": (set(), {"type", "message"}, set()),
    "system-out": (set(), set(), set()),
}
"""By element: required attributes, optional attributes, and the elements that it may contain."""
