"""Generate schemas/*.json: the JSON Schemas (Draft 2020-12) of both kinds and their lists in each API version.

    python scripts/generate_schemas.py                              generate them from fixtures/openapi
    python scripts/generate_schemas.py --check                      fail if the committed files differ
    python scripts/generate_schemas.py --openapi DIR                generate them from Kubernetes' OpenAPI documents
    python scripts/generate_schemas.py --openapi DIR --extract      update fixtures/openapi from these documents

The structure comes from OpenAPI, and the descriptions from schema_descriptions.toml. A schema accepts all objects that
a kube-apiserver can decode, including objects that the server rejects as invalid (HTTP 422). The schema rejects objects
that the server cannot decode (HTTP 400).
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
# Types with the same fields share a table of descriptions.
SHARED_TABLES = {
    **dict.fromkeys(KINDS, "Every kind"),
    **dict.fromkeys(("FlowSchemaCondition", "PriorityLevelConfigurationCondition"), "Every condition"),
}
INTEGERS = {"int32": 2**31, "int64": 2**63}


class Lifetime(NamedTuple):
    """First and last minor release that has a field.

    `since` is None if the field is older than the recordings. `until` is None if the field was not removed.
    """

    since: int | None
    until: int | None


class Descriptions:
    """The tables of schema_descriptions.toml. The object records which tables are used."""

    def __init__(self, path: Path) -> None:
        self.tables: dict[str, Any] = tomllib.loads(path.read_text("utf-8"))
        self.used: set[tuple[str, str]] = set()

    def of_kind(self, kind: str) -> str:
        """Return the description of a kind. Raises StructureError if there is none."""
        text = self.tables.get(kind, {}).get("description")
        if not isinstance(text, str):
            raise StructureError(f"{kind} has no description in {DESCRIPTIONS.name}")
        self.used.add((kind, "description"))
        return unwrap(text)

    def of_field(self, type_name: str, field: str, version: str) -> dict[str, Any]:
        """Return the table of a field in one API version. Raises StructureError if there is no description."""
        for owner in (type_name, SHARED_TABLES.get(type_name, "")):
            table = self.tables.get(owner, {}).get(field)
            if isinstance(table, dict) and str(table.get("description", "")).strip():
                self.used.add((owner, field))
                return {**table, **table.get(version, {})}
        raise StructureError(f"{type_name}.{field} has no description in {DESCRIPTIONS.name}")

    def unused(self) -> list[str]:
        """Return the names of tables that describe no field."""
        tables = {(owner, field) for owner, fields in self.tables.items() for field in fields}
        return sorted(".".join(table) for table in tables - self.used)


def unwrap(text: str) -> str:
    """Join the lines of each paragraph."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.strip().split("\n\n"))


def minor(release: str) -> int:
    """Return the minor release, such as 36 for 1.36."""
    return int(release.removeprefix("1."))


def lifetime(name: str, present: dict[int, bool], table: dict[str, Any]) -> Lifetime:
    """Infer the lifetime of a field from the recorded releases.

    `present` states for each recorded release whether the release has the field. If the recordings permit several
    releases, use the keys `since` and `until` of `table`.
    """
    having = sorted(release for release in present if present[release])
    before = [release for release in present if release < having[0]]
    after = [release for release in present if release > having[-1]]
    if len(before) + len(having) + len(after) != len(present):
        raise StructureError(f"{name} is in the releases {having} of {sorted(present)}, with a gap between them")
    return Lifetime(
        since=_choose_release(name, "since", range(max(before) + 1, having[0] + 1), table) if before else None,
        until=_choose_release(name, "until", range(having[-1], min(after)), table) if after else None,
    )


def _choose_release(name: str, key: str, possible: range, table: dict[str, Any]) -> int:
    if len(possible) == 1:
        return possible[0]
    release = minor(table.get(key, "1.0"))
    if release not in possible:
        raise StructureError(
            f"by the recorded releases, `{key}` of {name} is one of 1.{possible[0]} to 1.{possible[-1]}:"
            f" set it in {DESCRIPTIONS.name}, with its source"
        )
    return release


class Version:
    """Structure of one API version in all its releases."""

    def __init__(self, version: str, structures: list[Structure], descriptions: Descriptions) -> None:
        self.version = version
        self.descriptions = descriptions
        self.group = {item.release: item.flowcontrol for item in structures if item.version == version}
        # metadata is the same in all API versions, so its history comes from all recorded releases.
        self.meta = {item.release: item.meta for item in structures}
        api_version = next((row for row in API_VERSIONS if row.name == version), None)
        self.introduced = api_version.introduced if api_version else min(self.group)
        self.removed = max(api_version.removed, *self.group) if api_version and api_version.removed else None

    def fields(self, type_name: str) -> dict[str, tuple[str, Lifetime]]:
        """Return shape and lifetime of each field that any release has in this API version, in alphabetical order."""
        in_group = any(type_name in types for types in self.group.values())
        history: dict[int, Types] = self.group if in_group else self.meta
        releases = {release: types[type_name] for release, types in history.items() if type_name in types}
        result = {}
        for field in sorted({field for fields in releases.values() for field in fields}):
            shapes = {fields[field] for fields in releases.values() if field in fields}
            if len(shapes) != 1:
                raise StructureError(f"{self.version} {type_name}.{field} changes its type: {sorted(shapes)}")
            table = self.descriptions.of_field(type_name, field, self.version)
            present = {release: field in fields for release, fields in releases.items()}
            since, until = lifetime(f"{type_name}.{field}", present, table)
            if until is not None and until < self.introduced:
                continue
            if since is not None and self.removed is not None and since > self.removed:
                continue
            if since is not None and since <= self.introduced:
                since = None
            result[field] = (shapes.pop(), Lifetime(since, until))
        return result

    def properties(self, type_name: str) -> dict[str, Any]:
        """Return the `properties` of a type: schema, description and lifetime of each field."""
        properties = {}
        for field, (shape, (since, until)) in self.fields(type_name).items():
            table = self.descriptions.of_field(type_name, field, self.version)
            schema: dict[str, Any] = {"description": unwrap(table["description"]), **schema_of(shape)}
            if "default" in table:
                schema["default"] = table["default"]
            if "examples" in table:
                # Use `examples` instead of `enum`: the schema must accept any string, because a server validates it
                # after decoding.
                target = schema["items"] if shape.startswith("[]") else schema
                target["examples"] = table["examples"]
            if since is not None:
                schema["x-apflint-since"] = f"1.{since}"
            if until is not None:
                schema["x-apflint-until"] = f"1.{until}"
            properties[field] = schema
        return properties

    def schema(self, kind: str) -> dict[str, Any]:
        """Return the schema of a kind with the definitions of all its types."""
        definitions: dict[str, Any] = {}

        def define(type_name: str) -> None:
            for shape, _ in self.fields(type_name).values():
                target = shape.removeprefix("[]")
                if target[0].isupper() and target not in definitions:
                    definitions[target] = {}  # ends the recursion for a type that contains itself
                    define(target)
                    definitions[target] = mapping(self.properties(target), nullable=True)

        define(kind)
        root = mapping(self.properties(kind), nullable=False)
        root["properties"]["apiVersion"]["examples"] = [f"{GROUP}/{self.version}"]
        root["properties"]["kind"]["examples"] = [kind]
        releases = ", ".join(f"1.{release}" for release in sorted(self.group))
        return {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$id": f"urn:apflint:schema:{GROUP}:{self.version}:{kind}",
            "$comment": f"Generated by scripts/generate_schemas.py: do not edit. Structure: OpenAPI of Kubernetes {releases}; metadata also of the other recorded releases (fixtures/openapi). Descriptions: scripts/{DESCRIPTIONS.name}. It accepts every object that a kube-apiserver can decode, including those that it then rejects as invalid.",
            "title": f"{kind} ({GROUP}/{self.version})",
            "description": self.descriptions.of_kind(kind),
            **root,
            "$defs": dict(sorted(definitions.items())),
        }


def mapping(properties: dict[str, Any], *, nullable: bool) -> dict[str, Any]:
    """Return the schema of a mapping with these fields and no others."""
    types = ["object", "null"] if nullable else "object"
    return {"type": types, "additionalProperties": False, "properties": properties}


def schema_of(shape: str) -> dict[str, Any]:
    """Return the JSON Schema of a shape, such as `[]string`.

    All schemas allow null, which Go's decoder treats as absent.
    """
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
    """Return the content of each file. The keys are file names.

    Raises StructureError if descriptions and structure do not match.
    """
    files = {}
    for version in sorted({structure.version for structure in structures}):
        schemas = Version(version, structures, descriptions)
        for kind in KINDS:
            files[f"{kind}-{version}.json"] = json.dumps(schemas.schema(kind), indent=2, ensure_ascii=False) + "\n"
    return files


def find_differences(directory: Path, files: dict[str, str]) -> list[str]:
    """Return the names of files that are different, missing, or not generated."""
    families = {name.split("-v")[0] for name in files}
    committed = {
        path.name: path.read_text("utf-8") for path in directory.glob("*.json") if path.name.split("-v")[0] in families
    }
    return sorted(name for name in committed.keys() | files.keys() if committed.get(name) != files.get(name))


def generate_files(openapi: Path, *, extract: bool) -> tuple[Path, dict[str, str]]:
    """Return the target directory, and the content of each file. Raises StructureError as `generate` does."""
    structures = [read(path) for path in sorted(openapi.glob("*.json"))]
    if not structures:
        raise StructureError(f"no OpenAPI document in {openapi}")
    if extract:
        return EXTRACTS, {f"1.{item.release}-{item.version}.json": render(item) for item in structures}
    descriptions = Descriptions(DESCRIPTIONS)
    files = generate(structures, descriptions)
    if openapi == EXTRACTS and (unused := descriptions.unused()):
        raise StructureError(f"{DESCRIPTIONS.name} describes unknown fields: {', '.join(unused)}")
    return SCHEMAS, files


def main(arguments: list[str] | None = None) -> int:
    """Return 0 on success, and 1 if files differ or if descriptions and structure do not match."""
    parser = argparse.ArgumentParser(description="Generate schemas/*.json.")
    parser.add_argument(
        "--openapi", type=Path, default=EXTRACTS, metavar="DIR", help="directory of OpenAPI documents or extracts"
    )
    parser.add_argument("--extract", action="store_true", help="update fixtures/openapi instead of the schemas")
    parser.add_argument("--check", action="store_true", help="only compare; fail if the committed files differ")
    options = parser.parse_args(arguments)
    try:
        directory, files = generate_files(options.openapi, extract=options.extract)
    except StructureError as error:
        print(f"generate_schemas: {error}.", file=sys.stderr)
        return 1
    if options.check:
        different = find_differences(directory, files)
        if different:
            print(
                f"generate_schemas: out of date: {', '.join(different)} in {directory.name}/."
                " Run python scripts/generate_schemas.py and commit the result.",
                file=sys.stderr,
            )
        return int(bool(different))
    for name in find_differences(directory, files):
        path = directory / name
        if name in files:
            path.write_text(files[name], "utf-8")
        else:
            path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
