"""Record the behavior of a kube-apiserver in the format of `fixtures/`.

    python scripts/record_apiserver.py [WHAT...] --kube-apiserver PATH --etcd PATH
    python scripts/record_apiserver.py [WHAT...] --server URL --change-this-cluster

WHAT is any of `versions`, `objects`, `openapi`, `verdicts`, `requests` and `limits`; all by default. The first form
starts new servers. The second form records a running server, which must be disposable, because the script creates and
deletes levels. docs/contributing/new-release.md shows how to add a release with this script.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from openapi_structure import StructureError
from recording import api, builtin_objects, limits, openapi, request_infos, served_versions, verdicts
from recording.cases import generate, sample
from recording.client import Client, Credentials, ServerError
from recording.servers import OwnServers, RunningServer

from apflint.releases import SERVER_CONCURRENCY

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from recording.servers import Server, Servers

ROOT = Path(__file__).resolve().parent.parent
FIXTURES = ROOT / "fixtures"
RECORDINGS = ("versions", "objects", "openapi", "verdicts", "requests", "limits")
# Paths relative to the directory of fixtures.
SERVED_VERSIONS = "oracle/releases/served.json"
BUILTIN_OBJECTS = "oracle/releases/defaults.jsonl"
REQUEST_INFOS = "oracle-classify/requestinfo.jsonl"
LIMITS = "oracle-numbers/limits.jsonl"


def record(servers: Servers, what: Collection[str], fixtures: Path, cases: Path | None = None) -> None:
    """Record a release, and update the files in `fixtures`. Raises ServerError.

    `cases` is a file or directory with recorded verdicts. Its manifests replace the generated manifests.
    """
    with servers.start() as server, servers.start(removed=True) as server_of_all:
        kube = api.read_release(server.client)[0]
        if "versions" in what:
            record_versions(server, server_of_all, kube, fixtures / SERVED_VERSIONS)
        for version in api.read_versions(server_of_all.client)[0]:
            record_version(server_of_all.client, kube, version, what, fixtures, cases)
        if "requests" in what:
            record_requests(server, fixtures / REQUEST_INFOS)
    if "limits" in what:
        known = limits.read_cases(FIXTURES / LIMITS)
        kept = sum(not servers.can_have(case["total"]) for case in known)
        print(
            f"{len(known) - kept} of {len(known)} cases have a number of seats that the server can have",
            file=sys.stderr,
        )
        write(fixtures / LIMITS, limits.record(servers, known))


def record_versions(server: Server, server_of_all: Server, kube: str, target: Path) -> None:
    """Update the entry of the release `kube` in the table of served versions.

    `server_of_all` has the same release as `server`, but also serves the API versions that the release has removed.
    """
    releases = json.loads(read(target) or "{}")
    releases[kube] = served_versions.record(server.client, server_of_all.client)
    write(target, served_versions.render(releases))


def record_version(
    client: Client,
    kube: str,
    version: str,
    what: Collection[str],
    fixtures: Path,
    cases: Path | None,
) -> None:
    """Record the objects, the structure and the verdicts for one API version."""
    name = f"{kube}-{version}"
    if "objects" in what:
        target = fixtures / BUILTIN_OBJECTS
        rows = builtin_objects.record(client, kube, version, builtin_objects.parse(read(target)))
        write(target, builtin_objects.render(rows))
    if "openapi" in what:
        write(fixtures / f"openapi/{name}.json", openapi.record(client, kube, version))
    if "verdicts" in what:
        if cases:
            sent = verdicts.read_cases(cases / f"{name}.jsonl" if cases.is_dir() else cases)
        else:
            sent = sample(generate(version))
        write(fixtures / f"conformance/{name}.jsonl", verdicts.record(client, kube, version, sent))


def record_requests(server: Server, target: Path) -> None:
    """Send the requests that the committed fixtures contain, and record their attributes."""
    if server.audit_log is None:
        raise ServerError(
            "request infos come from the audit log of the server: set --audit-log, or do not record requests"
        )
    write(
        target,
        request_infos.record(server.client, server.audit_log, request_infos.read_cases(FIXTURES / REQUEST_INFOS)),
    )


def read(file: Path) -> str:
    """Return the text of a file, or an empty string if the file does not exist."""
    return file.read_text(encoding="utf-8") if file.exists() else ""


def write(file: Path, lines: Iterable[str]) -> None:
    """Write a file after all of its lines have been generated."""
    text = "".join(lines)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8", newline="\n")
    print(f"{file}: {text.count(chr(10))} lines", file=sys.stderr)


def parse_arguments(arguments: list[str] | None) -> argparse.Namespace:
    """Return the options. Exits with 2 for contradictory options."""
    parser = argparse.ArgumentParser(description="Record what a kube-apiserver does.")
    parser.add_argument(
        "what", nargs="*", metavar="WHAT", help=f"what to record: {', '.join(RECORDINGS)} (default: all)"
    )
    parser.add_argument("--fixtures", type=Path, default=FIXTURES, metavar="DIR", help="directory to update")
    parser.add_argument(
        "--cases", type=Path, metavar="PATH", help="send the manifests of this file or directory of recorded verdicts"
    )
    own = parser.add_argument_group("own servers")
    own.add_argument("--kube-apiserver", type=Path, metavar="PATH", help="program to start")
    own.add_argument("--etcd", type=Path, metavar="PATH", help="program to start")
    running = parser.add_argument_group("running server")
    running.add_argument("--server", metavar="URL", help="its URL, or that of kubectl proxy")
    running.add_argument(
        "--change-this-cluster",
        action="store_true",
        help="confirm that the cluster is disposable: its priority levels change",
    )
    running.add_argument("--token-file", type=Path, metavar="FILE", help="file with a bearer token")
    running.add_argument("--ca-file", type=Path, metavar="FILE", help="certificates to trust")
    running.add_argument("--client-certificate", type=Path, metavar="FILE", help="certificate of the user")
    running.add_argument("--client-key", type=Path, metavar="FILE", help="private key of the certificate")
    running.add_argument("--audit-log", type=Path, metavar="FILE", help="its audit log (level Metadata)")
    running.add_argument(
        "--total", type=int, default=SERVER_CONCURRENCY, help=f"its number of seats (default: {SERVER_CONCURRENCY})"
    )
    options = parser.parse_args(arguments)
    if unknown := set(options.what) - set(RECORDINGS):
        parser.error(f"cannot record {', '.join(sorted(unknown))}: use {', '.join(RECORDINGS)}")
    if bool(options.server) == bool(options.kube_apiserver and options.etcd):
        parser.error("set either --server, or --kube-apiserver and --etcd")
    if options.server and not options.change_this_cluster:
        parser.error("recording creates and deletes priority levels: confirm with --change-this-cluster")
    return options


def find_servers(options: argparse.Namespace) -> Servers:
    """Return the servers that the options name. Raises ServerError."""
    if options.kube_apiserver:
        return OwnServers(options.kube_apiserver, options.etcd)
    token = read(options.token_file).strip() if options.token_file else ""
    credentials = Credentials(token, options.ca_file, options.client_certificate, options.client_key)
    return RunningServer(Client(options.server, credentials), options.audit_log, options.total)


def main(arguments: list[str] | None = None) -> int:
    """Record a release. Returns 1 if the server answers unexpectedly, or if a file is missing."""
    options = parse_arguments(arguments)
    try:
        record(find_servers(options), options.what or RECORDINGS, options.fixtures, options.cases)
    except (ServerError, StructureError, OSError) as error:
        print(f"record_apiserver: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
