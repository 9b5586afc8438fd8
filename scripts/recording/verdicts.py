"""Records verdicts: whether a server accepts a manifest, and the reason if not (`fixtures/conformance/`)."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from apflint.load import load
from recording.api import PLURALS, path_of, read_objects
from recording.client import ServerError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from recording.client import Answer, Client

QUERY = "?dryRun=All&fieldValidation=Strict"
LONG_RUN = re.compile(r"(.)\1{999,}", re.DOTALL)
"""Pattern for a repeated character that would make a file too large for the repository."""
_KIND = re.compile(r"(FlowSchema|PriorityLevelConfiguration)\b")
_UNKNOWN_FIELD = re.compile(r'unknown field "((?:[^"\\]|\\.)*)"')
_DUPLICATE_KEY = re.compile(r'key ("(?:[^"\\]|\\.)*"|\S+) already set in map')  # the server quotes only strings
_DUPLICATE_FIELD = re.compile(r'duplicate field "((?:[^"\\]|\\.)*)"')
_WRONG_TYPE = re.compile(r"cannot unmarshal (\w+).*? into Go (?:struct field [^. ]+\.(\S+)|value) of type (\S+)")
_SYNTAX = re.compile(r"yaml: (?!unmarshal errors)|json: unsupported value")


class Case(NamedTuple):
    """A manifest to send."""

    id: str
    manifest: str


def record(client: Client, kube: str, version: str, cases: Iterable[Case]) -> Iterator[str]:
    """Send manifests to a server, and yield a line of `fixtures/conformance/<kube>-<version>.jsonl` for each manifest.

    Every request is a dry run: an update if the object exists on the server, or else a create.
    """
    existing = {kind: read_objects(client, version, kind) for kind in PLURALS}
    for case in cases:
        kind, name = find_target(case.manifest)
        replaces = name in existing[kind]
        answer = client.send(
            "PUT" if replaces else "POST",
            path_of(version, kind, quote(name, safe="") if replaces else "") + QUERY,
            case.manifest.encode("utf-8", "surrogatepass"),
            {"Content-Type": "application/yaml"},
        )
        row = {"id": case.id, "kube": kube, "apiVersion": version, "manifest": case.manifest}
        yield format_line(row | read_verdict(answer, case.id))


def read_cases(file: Path) -> list[Case]:
    """Return the cases of a recorded file."""
    rows = [json.loads(line) for line in file.read_text(encoding="ascii").splitlines()]
    return [Case(row["id"], join_runs(row["manifest"])) for row in rows]


def find_target(manifest: str) -> tuple[str, str]:
    """Return the kind and the name of the object in a manifest. The name is empty if the manifest cannot be decoded."""
    documents = load("case.yaml", manifest.encode("utf-8", "surrogatepass")).documents
    if documents:
        return documents[0].kind, documents[0].name or ""
    match = _KIND.search(manifest)
    return match[1] if match else "FlowSchema", ""


def read_verdict(answer: Answer, case: str) -> dict[str, Any]:
    """Return the verdict in a response. Raises ServerError if the response is not a verdict about a manifest."""
    if answer.status in (200, 201):
        return {"accepted": True, "code": answer.status, "causes": []}
    status = answer.json()
    if answer.status == 422:
        causes = {(cause["reason"], cause["field"]) for cause in status["details"]["causes"]}
        return {"accepted": False, "code": 422, "causes": [list(cause) for cause in sorted(causes)]}
    if answer.status == 400:
        return {"accepted": False, "code": 400, "causes": [], "decode": read_decode_error(status["message"])}
    raise ServerError(f"{case}: the server answers {answer.status}, not a verdict: {status.get('message')}")


def read_decode_error(message: str) -> list[dict[str, str | None]]:
    """Return the fields that the message of a response 400 names. Such a response has no list of causes."""
    if match := _WRONG_TYPE.search(message):
        return [{"kind": "wrongType", "got": match[1], "field": match[2], "want": match[3]}]
    named = [
        {"kind": kind, "field": field.removeprefix('"').removesuffix('"')}
        for kind, pattern in (
            ("unknownField", _UNKNOWN_FIELD),
            ("duplicateField", _DUPLICATE_FIELD),
            ("duplicateKey", _DUPLICATE_KEY),
        )
        for field in pattern.findall(message)
    ]
    return named or [{"kind": "syntax" if _SYNTAX.search(message) else "other"}]


def split_runs(manifest: str) -> str | list[Any]:
    """Return a manifest in a shorter form if it has very long runs of a character, else unchanged.

    The shorter form is a list of strings and pairs [character, count].
    """
    parts: list[Any] = []
    end = 0
    for run in LONG_RUN.finditer(manifest):
        parts += [manifest[end : run.start()], [run[1], run.end() - run.start()]]
        end = run.end()
    return [*parts, manifest[end:]] if parts else manifest


def join_runs(manifest: str | list[Any]) -> str:
    """Return the manifest from the result of `split_runs`."""
    if isinstance(manifest, str):
        return manifest
    return "".join(part if isinstance(part, str) else part[0] * part[1] for part in manifest)


def format_line(row: dict[str, Any]) -> str:
    """Return a line of a file with verdicts."""
    line = {key: row[key] for key in ("id", "kube", "apiVersion")}
    line |= {"manifest": split_runs(row["manifest"])} | {key: row[key] for key in ("accepted", "code", "causes")}
    if "decode" in row:
        line["decode"] = row["decode"]
    return json.dumps(line, separators=(",", ":")) + "\n"
