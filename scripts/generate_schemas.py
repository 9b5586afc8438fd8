"""Writes schemas/*.json: the JSON Schemas of both kinds and their lists, in each version of the API.

    python scripts/generate_schemas.py                              from fixtures/openapi
    python scripts/generate_schemas.py --check                      whether the committed files are what this makes
    python scripts/generate_schemas.py --openapi DIR                from Kubernetes' own OpenAPI documents
    python scripts/generate_schemas.py --openapi DIR --extract      renews fixtures/openapi from them

The structure comes from OpenAPI, the words from schema_descriptions.toml beside this file. The schemas say what a
kube-apiserver can decode (or else answers HTTP 400), not what it then finds valid (HTTP 422).
"""

from __future__ import annotations

import argparse
import json
import sys
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

from openapi_structure import KINDS, Structure, StructureError, Types, read, render

from apflint.releases import API_VERSIONS, GROUP

ROOT = Path(__file__).resolve().parent.parent
EXTRACTS = ROOT / "fixtures" / "openapi"
SCHEMAS = ROOT / "schemas"
DESCRIPTIONS = Path(__file__).resolve().with_name("schema_descriptions.toml")
# Types that share some fields share their words as well.
SHARED = {
    **dict.fromkeys(KINDS, "Every kind"),
    **dict.fromkeys(("FlowSchemaCondition", "PriorityLevelConfigurationCondition"), "Every condition"),
}
INTEGERS = {"int32": 2**31, "int64": 2**63}


class Life(NamedTuple):
    """The first and the last minor release with a field; None: it was there before, is there after."""

    since: int | None
    until: int | None


class Descriptions:
    """The words about fields, and which of them were used."""

    def __init__(self, path: Path) -> None:
        self.tables: dict[str, Any] = tomllib.loads(path.read_text("utf-8"))
        self.used: set[tuple[str, str]] = set()

    def of_kind(self, kind: str) -> str:
        """What the whole object is. Raises StructureError without words."""
        text = self.tables.get(kind, {}).get("description")
        if not isinstance(text, str):
            raise StructureError(f"{kind} has no description in {DESCRIPTIONS.name}")
        self.used.add((kind, "description"))
        return paragraphs(text)

    def of_field(self, type_name: str, field: str, version: str) -> dict[str, Any]:
        """The table of a field as one API version sees it. Raises StructureError without words."""
        for owner in (type_name, SHARED.get(type_name, "")):
            table = self.tables.get(owner, {}).get(field)
            if isinstance(table, dict) and str(table.get("description", "")).strip():
                self.used.add((owner, field))
                return {**table, **table.get(version, {})}
        raise StructureError(f"{type_name}.{field} has no description in {DESCRIPTIONS.name}")

    def unused(self) -> list[str]:
        """What describes nothing."""
        every = {(owner, field) for owner, fields in self.tables.items() for field in fields}
        return sorted(".".join(pair) for pair in every - self.used)


def paragraphs(text: str) -> str:
    """Running text of paragraphs that were wrapped for the reader of a file."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.strip().split("\n\n"))


def minor(release: str) -> int:
    """36 for 1.36."""
    return int(release.removeprefix("1."))


def life(name: str, present: dict[int, bool], words: dict[str, Any]) -> Life:
    """When a field exists, from the recorded releases; where several are possible, the words say which it was."""
    releases = sorted(present)
    having = [release for release in releases if present[release]]
    before = [release for release in releases if release < having[0]]
    after = [release for release in releases if release > having[-1]]
    if len(before) + len(having) + len(after) != len(releases):
        raise StructureError(f"{name} comes and goes: it is in the releases {having} of {releases}")
    return Life(
        since=_settle(name, "since", range(before[-1] + 1, having[0] + 1), words) if before else None,
        until=_settle(name, "until", range(having[-1], after[0]), words) if after else None,
    )


def _settle(name: str, key: str, possible: range, words: dict[str, Any]) -> int:
    if len(possible) == 1:
        return possible[0]
    said = minor(words.get(key, "1.0"))
    if said not in possible:
        raise StructureError(
            f"the recorded releases leave `{key}` of {name} between 1.{possible[0]} and 1.{possible[-1]}:"
            f" say which in {DESCRIPTIONS.name}, with its source"
        )
    return said


class Version:
    """The structure of one version of the API over all its releases."""

    def __init__(self, version: str, structures: list[Structure], descriptions: Descriptions) -> None:
        self.version = version
        self.descriptions = descriptions
        self.group = {item.release: item.flowcontrol for item in structures if item.version == version}
        # metadata is the same in all versions of the API: it has the history of all recorded releases.
        self.meta = {item.release: item.meta for item in structures}
        known = next((row for row in API_VERSIONS if row.name == version), None)
        self.introduced = known.introduced if known else min(self.group)
        self.removed = max(known.removed, *self.group) if known and known.removed else None

    def fields(self, type_name: str) -> dict[str, tuple[str, Life]]:
        """The shape and the life of each field, in alphabetical order, that some release of this version has."""
        history: dict[int, Types] = (
            self.group if any(type_name in types for types in self.group.values()) else self.meta
        )
        existing = {release: types[type_name] for release, types in history.items() if type_name in types}
        found = {}
        for field in sorted({field for fields in existing.values() for field in fields}):
            shapes = {fields[field] for fields in existing.values() if field in fields}
            if len(shapes) != 1:
                raise StructureError(f"{self.version} {type_name}.{field} changes its type: {sorted(shapes)}")
            words = self.descriptions.of_field(type_name, field, self.version)
            when = life(
                f"{type_name}.{field}", {release: field in fields for release, fields in existing.items()}, words
            )
            if when.until is not None and when.until < self.introduced:
                continue
            if when.since is not None and self.removed is not None and when.since > self.removed:
                continue
            since = None if when.since is not None and when.since <= self.introduced else when.since
            found[field] = (shapes.pop(), Life(since, when.until))
        return found

    def properties(self, type_name: str) -> dict[str, Any]:
        """The `properties` of a type: for each field its schema, words, and life."""
        properties = {}
        for field, (shape, when) in self.fields(type_name).items():
            words = self.descriptions.of_field(type_name, field, self.version)
            schema: dict[str, Any] = {"description": paragraphs(words["description"]), **schema_of(shape)}
            if "default" in words:
                schema["default"] = words["default"]
            if "examples" in words:
                # An example rather than an enum: any string can be decoded, and whether it is valid comes later.
                target = schema["items"] if shape.startswith("[]") else schema
                target["examples"] = words["examples"]
            if when.since is not None:
                schema["x-apflint-since"] = f"1.{when.since}"
            if when.until is not None:
                schema["x-apflint-until"] = f"1.{when.until}"
            properties[field] = schema
        return properties

    def schema(self, kind: str) -> dict[str, Any]:
        """The schema of a kind, complete in itself."""
        definitions: dict[str, Any] = {}

        def define(type_name: str) -> None:
            for shape, _ in self.fields(type_name).values():
                target = shape.removeprefix("[]")
                if target[0].isupper() and target not in definitions:
                    definitions[target] = {}  # holds the place: a type may come up again below itself
                    define(target)
                    definitions[target] = mapping(self.properties(target), null=True)

        define(kind)
        root = mapping(self.properties(kind), null=False)
        root["properties"]["apiVersion"]["examples"] = [f"{GROUP}/{self.version}"]
        root["properties"]["kind"]["examples"] = [kind]
        releases = ", ".join(f"1.{release}" for release in sorted(self.group))
        return {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$id": f"urn:apflint:schema:{GROUP}:{self.version}:{kind}",
            "$comment": f"Made by scripts/generate_schemas.py: do not edit. Structure: OpenAPI of Kubernetes {releases}; metadata also of the other recorded releases (fixtures/openapi). Words: scripts/{DESCRIPTIONS.name}. It accepts what a kube-apiserver can decode; whether that is valid is another question.",
            "title": f"{kind} ({GROUP}/{self.version})",
            "description": self.descriptions.of_kind(kind),
            **root,
            "$defs": dict(sorted(definitions.items())),
        }


def mapping(properties: dict[str, Any], *, null: bool) -> dict[str, Any]:
    """The schema of a mapping that has these fields and no others."""
    return {"type": ["object", "null"] if null else "object", "additionalProperties": False, "properties": properties}


def schema_of(shape: str) -> dict[str, Any]:
    """The JSON Schema of a shape. null is allowed everywhere: Go's decoder takes it for "absent"."""
    if shape.startswith("[]"):
        return {"type": ["array", "null"], "items": schema_of(shape.removeprefix("[]"))}
    if shape.startswith("map[string]"):
        values = schema_of(shape.removeprefix("map[string]"))
        return {"type": ["object", "null"], "additionalProperties": values}
    if shape in INTEGERS:
        limit = INTEGERS[shape]
        return {"type": ["integer", "null"], "format": shape, "minimum": -limit, "maximum": limit - 1}
    if shape == "date-time":
        return {"type": ["string", "null"], "format": "date-time"}
    if shape == "any":
        return {}
    if shape in {"string", "boolean"}:
        return {"type": [shape, "null"]}
    return {"$ref": f"#/$defs/{shape}"}


def generate(structures: list[Structure], descriptions: Descriptions) -> dict[str, str]:
    """The text of each schema file by its name. Raises StructureError where words and structure do not fit."""
    files = {}
    for version in sorted({structure.version for structure in structures}):
        made = Version(version, structures, descriptions)
        for kind in KINDS:
            files[f"{kind}-{version}.json"] = json.dumps(made.schema(kind), indent=2, ensure_ascii=False) + "\n"
    return files


def differences(folder: Path, files: dict[str, str]) -> list[str]:
    """Names of files that are not as they should be: different, missing, or made by nobody."""
    wanted = {name.split("-v")[0] for name in files}
    committed = {
        path.name: path.read_text("utf-8") for path in folder.glob("*.json") if path.name.split("-v")[0] in wanted
    }
    return sorted(name for name in committed.keys() | files.keys() if committed.get(name) != files.get(name))


def outputs(openapi: Path, *, extract: bool) -> tuple[Path, dict[str, str]]:
    """The files to be, with the folder they belong in. Raises StructureError."""
    structures = [read(path) for path in sorted(openapi.glob("*.json"))]
    if not structures:
        raise StructureError(f"there is no OpenAPI document in {openapi}")
    if extract:
        return EXTRACTS, {f"1.{item.release}-{item.version}.json": render(item) for item in structures}
    descriptions = Descriptions(DESCRIPTIONS)
    files = generate(structures, descriptions)
    if openapi == EXTRACTS and (unused := descriptions.unused()):
        raise StructureError(f"{DESCRIPTIONS.name} describes what does not exist: {', '.join(unused)}")
    return SCHEMAS, files


def main(arguments: list[str] | None = None) -> int:
    """0: done, or all as committed; 1: something differs, or words and structure do not fit."""
    parser = argparse.ArgumentParser(description="Generates schemas/*.json.")
    parser.add_argument(
        "--openapi", type=Path, default=EXTRACTS, metavar="DIR", help="OpenAPI documents, or extracts of them"
    )
    parser.add_argument("--extract", action="store_true", help="renew fixtures/openapi instead of the schemas")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the committed files differ")
    options = parser.parse_args(arguments)
    try:
        folder, files = outputs(options.openapi, extract=options.extract)
    except StructureError as error:
        print(f"generate_schemas: {error}.", file=sys.stderr)
        return 1
    if options.check:
        wrong = differences(folder, files)
        if wrong:
            print(
                f"generate_schemas: not what the generator makes: {', '.join(wrong)} in {folder.name}/."
                " Run python scripts/generate_schemas.py and commit the result.",
                file=sys.stderr,
            )
        return int(bool(wrong))
    for name in differences(folder, files):
        path = folder / name
        if name in files:
            path.write_text(files[name], "utf-8")
        else:
            path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
