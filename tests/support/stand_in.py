"""HTTP server that gives the responses of a recorded kube-apiserver.

A response depends on method, path, query, headers and body of the request. It has the format of the server, such as a
`Status` with `details.causes`. The content comes from the files in `fixtures/`.
"""

from __future__ import annotations

import json
import re
from contextlib import closing, contextmanager
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, NamedTuple

from recording.client import Client
from recording.servers import Server

from apflint.builtin import AUTOUPDATE, MANDATORY

if TYPE_CHECKING:
    from collections.abc import Iterator

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
GROUP = "flowcontrol.apiserver.k8s.io"
KINDS = {"flowschemas": "FlowSchema", "prioritylevelconfigurations": "PriorityLevelConfiguration"}
_OBJECTS = re.compile(rf"/apis/{re.escape(GROUP)}/(\w+)/({'|'.join(KINDS)})(?:/([^/?]+))?(?:\?(.*))?")
_FIELD_TYPES: dict[str, dict[str, Any]] = {
    "string": {"type": "string"},
    "boolean": {"type": "boolean"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "date-time": {"allOf": [{"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.Time"}], "default": {}},
    "any": {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1"},
}


class Reply(NamedTuple):
    status: int
    value: Any
    headers: dict[str, str] = {}  # noqa: RUF012  # never changed


def lines(path: str) -> list[Any]:
    return [json.loads(line) for line in (FIXTURES / path).read_text(encoding="utf-8").splitlines()]


def status(code: int, reason: str, message: str, causes: list[dict[str, str]] | None = None) -> Reply:
    details = {"details": {"group": GROUP, "causes": causes}} if causes else {}
    value = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message}
    return Reply(code, value | {"reason": reason, "code": code} | details)


class Recorded:
    """The recorded server of a release, with its objects."""

    def __init__(self, kube: str, total: int, audit_log: Path, *, removed: bool) -> None:
        self.total = total
        self.kube = kube
        self.audit_log = audit_log
        entry = json.loads((FIXTURES / "oracle/releases/served.json").read_text(encoding="utf-8"))[kube]
        self.entry = entry
        self.served = entry["default"] + (entry["removed"] if removed else [])
        self.objects: dict[tuple[str, str], dict[str, Any]] = {}
        """Specs by version and kind, and then by name."""
        for row in lines("oracle/releases/defaults.jsonl"):
            for label in row["in"]:
                if label.partition("-")[0] == kube:
                    key = (label.partition("-")[2], row["kind"])
                    self.objects.setdefault(key, {})[row["name"]] = row["spec"]

    def reply(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Reply:
        if "impersonate-user" in headers:
            return self.reply_to_user(method, path, headers)
        match = _OBJECTS.fullmatch(path)
        if match and match[1] in self.served:
            version, kind, name, query = match[1], KINDS[match[2]], match[3], match[4]
            if method == "GET" and not name:
                return self.list_objects(version, kind)
            if headers.get("content-type") == "application/yaml" and method in ("POST", "PUT"):
                return self.judge(version, kind, name, query, body)
            if version == "v1" and not query:
                return self.write(method, kind, name, body)
        if method == "GET" and path == "/version":
            return Reply(200, {"major": "1", "minor": self.kube[2:], "gitVersion": self.entry["gitVersion"]})
        if method == "GET" and path == f"/apis/{GROUP}":
            return Reply(200, self.describe_group())
        if method == "GET" and path == "/metrics":
            return Reply(200, self.measure())
        prefix, _, version = path.rpartition("/")
        if method == "GET" and prefix == f"/openapi/v3/apis/{GROUP}" and version in self.served:
            return Reply(200, self.describe_structure(version))
        return status(404, "NotFound", "the server could not find the requested resource")

    def describe_group(self) -> dict[str, Any]:
        versions = [{"groupVersion": f"{GROUP}/{version}", "version": version} for version in self.served]
        preferred = next(row for row in versions if row["version"] == self.entry["preferred"])
        return {"kind": "APIGroup", "name": GROUP, "versions": versions, "preferredVersion": preferred}

    def list_objects(self, version: str, kind: str) -> Reply:
        items = [
            {"metadata": {"name": name, "uid": f"uid-of-{name}", "annotations": {AUTOUPDATE: "true"}}, "spec": spec}
            for name, spec in self.objects[version, kind].items()
        ]
        warning = self.entry["warnings"].get(version, {}).get(kind)
        headers = {"Warning": f'299 - "{warning}"'} if warning else {}
        return Reply(200, {"kind": f"{kind}List", "apiVersion": f"{GROUP}/{version}", "items": items}, headers)

    def write(self, method: str, kind: str, name: str | None, body: bytes) -> Reply:
        existing = self.objects["v1", kind]
        if method == "DELETE" and name in existing:
            assert name is not None
            del existing[name]
            return Reply(200, {"kind": "Status", "status": "Success"})
        value = json.loads(body)
        assert (value["kind"], value["apiVersion"]) == (kind, f"{GROUP}/v1")
        target = value["metadata"]["name"]
        if (method == "POST" and not name and target in existing) or (method == "PUT" and name != target):
            return status(409, "AlreadyExists", f"{target} already exists")
        if method == "PUT" and name not in existing:
            return status(404, "NotFound", f"{name} not found")
        assert value["metadata"]["annotations"] == {
            AUTOUPDATE: "false"
        }  # without the annotation, the server would restore the built-in spec
        existing[target] = value["spec"]
        return Reply(201 if method == "POST" else 200, value)

    @cached_property
    def verdicts(self) -> dict[tuple[str, bytes], dict[str, Any]]:
        return {
            (version, join_runs(row["manifest"]).encode("utf-8", "surrogatepass")): row
            for version in self.served
            for row in lines(f"conformance/{self.kube}-{version}.jsonl")
        }

    def judge(self, version: str, kind: str, name: str | None, query: str | None, body: bytes) -> Reply:
        row = self.verdicts.get((version, body))
        if row is None or query != "dryRun=All&fieldValidation=Strict":
            return status(500, "InternalError", "nobody sent this manifest so")
        if name and name not in self.objects[version, kind]:
            return status(404, "NotFound", f"{name} not found")
        if row["accepted"]:
            return Reply(row["code"], {}) if row["code"] == (200 if name else 201) else status(409, "AlreadyExists", "")
        if row["code"] == 422:
            causes = [{"reason": reason, "message": "...", "field": field} for reason, field in row["causes"]]
            return status(422, "Invalid", f'{kind}.{GROUP} "example" is invalid', causes)
        return status(400, "BadRequest", describe_decode_error(version, kind, row["decode"]))

    @cached_property
    def limits(self) -> list[dict[str, Any]]:
        return lines("oracle-numbers/limits.jsonl")

    def measure(self) -> str:
        levels = self.objects["v1", "PriorityLevelConfiguration"]
        assert set(MANDATORY) <= levels.keys()
        text = "# TYPE apiserver_flowcontrol_nominal_limit_seats gauge\n"
        for row in self.limits:
            if (
                row["total"] == self.total
                and {**levels, **row["levels"]} == levels
                and set(row["limits"]) == set(levels)
            ):
                for name, limits in row["limits"].items():
                    for metric, value in zip(("nominal", "lower", "upper"), limits, strict=True):
                        text += f'apiserver_flowcontrol_{metric}_limit_seats{{priority_level="{name}"}} {value}\n'
        return text + 'apiserver_flowcontrol_nominal_limit_seats{priority_level="deleted"} 7\n'

    def describe_structure(self, version: str) -> dict[str, Any]:
        extract = json.loads((FIXTURES / f"openapi/{self.kube}-{version}.json").read_text(encoding="utf-8"))
        names = {name: f"io.k8s.api.flowcontrol.{version}.{name}" for name in extract["flowcontrol"]}
        names |= {name: f"io.k8s.apimachinery.pkg.apis.meta.v1.{name}" for name in extract["meta"]}

        def schema_of(shape: str) -> dict[str, Any]:
            if shape.startswith("[]"):
                return {"type": "array", "items": schema_of(shape[2:])}
            if shape.startswith("map[string]"):
                return {"type": "object", "additionalProperties": schema_of(shape[len("map[string]") :])}
            return _FIELD_TYPES.get(shape) or {"$ref": f"#/components/schemas/{names[shape]}"}

        schemas: dict[str, Any] = {
            "io.k8s.apimachinery.pkg.apis.meta.v1.Time": {"type": "string", "format": "date-time"},
            "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1": {"type": "object"},
        }
        for name, fields in (extract["flowcontrol"] | extract["meta"]).items():
            properties = {field: {"description": "..."} | schema_of(shape) for field, shape in fields.items()}
            schemas[names[name]] = {"type": "object", "properties": properties}
            if "metadata" in fields:
                gvk = {"group": GROUP, "kind": name, "version": version}
                schemas[names[name]]["x-kubernetes-group-version-kind"] = [gvk]
        return {"openapi": "3.0.0", "info": {"version": "unversioned"}, "components": {"schemas": schemas}}

    @cached_property
    def requests(self) -> dict[tuple[str, str], tuple[bool, dict[str, Any]]]:
        rows = lines("oracle-classify/requestinfo.jsonl")
        return {(method, url): (seen, attributes) for _, method, url, seen, attributes in rows}

    def reply_to_user(self, method: str, url: str, headers: dict[str, str]) -> Reply:
        seen, attributes = self.requests[method, url]
        if error := attributes.get("error"):
            return Reply(500, f'Internal Server Error: "{url}": failed to create RequestInfo: {error}\n')
        keys = ("resource", "namespace", "name", "apiGroup", "apiVersion", "subresource")
        reference = {key: attributes[key] for key in keys if key in attributes}
        event = {"kind": "Event", "auditID": headers["audit-id"], "requestURI": url, "verb": attributes.get("verb", "")}
        event |= {"impersonatedUser": {"username": headers["impersonate-user"]}}
        event |= {"objectRef": reference} if attributes.get("isResourceRequest") else {}
        with self.audit_log.open("a", encoding="utf-8") as log:
            log.write(json.dumps({**event, "auditID": "another request"}) + "\n" + json.dumps(event) + "\n")
        uids = {"X-Kubernetes-Pf-Flowschema-Uid": "1", "X-Kubernetes-Pf-Prioritylevel-Uid": "2"} if seen else {}
        return status(403, "Forbidden", "forbidden")._replace(headers=uids)


def join_runs(manifest: Any) -> str:
    parts = [manifest] if isinstance(manifest, str) else manifest
    return "".join(part if isinstance(part, str) else part[0] * part[1] for part in parts)


def describe_decode_error(version: str, kind: str, named: list[dict[str, Any]]) -> str:
    """Return a message with the wording of kube-apiserver 1.36."""
    start = f'{kind} in version "{version}" cannot be handled as a {kind}: '
    first = named[0]
    if first["kind"] == "wrongType":
        target = f"struct field {kind}Spec.{first['field']}" if first["field"] else "value"
        return f"{start}json: cannot unmarshal {first['got']} into Go {target} of type {first['want']}"
    if first["kind"] == "syntax":
        return f"the object provided is unrecognized (must be of type {kind}): yaml: line 3: did not find (61 ...)"
    if first["kind"] == "other":
        return f'{start}parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"'
    keys = [
        f'  line {number}: key "{row["field"]}" already set in map'
        for number, row in enumerate(named)
        if row["kind"] == "duplicateKey"
    ]
    unknown = [f'unknown field "{row["field"]}"' for row in named if row["kind"] == "unknownField"]
    parts = (["yaml: unmarshal errors:\n" + "\n".join(keys)] if keys else []) + unknown
    return f"{start}strict decoding error: {', '.join(parts)}"


@contextmanager
def serve(recorded: Recorded) -> Iterator[str]:
    """Run the server on the loopback address. Yields its URL."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def __getattr__(self, name: str) -> Any:
            if name.startswith("do_"):  # handles every method, because servers accept methods that HTTP does not define
                return self.answer
            raise AttributeError(name)

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            # The path is read from the request line: in `self.path`, Python reduces several leading slashes to one.
            url = self.requestline.split(" ")[1]
            headers = {name.lower(): value for name, value in self.headers.items()}
            reply = recorded.reply(self.command, url, headers, body)
            text = reply.value if isinstance(reply.value, str) else json.dumps(reply.value)
            self.send_response(reply.status)
            for name, value in {**reply.headers, "Content-Length": str(len(text.encode()))}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(text.encode())

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


class StandIns:
    """A source of recorded servers."""

    def __init__(self, kube: str, directory: Path) -> None:
        self.kube = kube
        self.directory = directory

    def can_have(self, total: int) -> bool:
        return total > 0

    @contextmanager
    def start(self, *, total: int = 600, removed: bool = False) -> Iterator[Server]:
        audit_log = self.directory / "audit.log"
        with serve(Recorded(self.kube, total, audit_log, removed=removed)) as url, closing(Client(url)) as client:
            yield Server(client, audit_log)
