"""Sorts files by their content: metrics and dumps of API servers, logs, and manifests."""

from __future__ import annotations

import os
import re
from itertools import islice
from typing import TYPE_CHECKING

from apflint.budgets import MAX_METRICS_BYTES
from apflint.doctor.snapshot import UnknownContentError, is_server_file, parse_part
from apflint.named_tuple import NamedTuple
from apflint.requests.server_log import parse_logged_request
from apflint.sources.audit_logs import AuditLogFile, Block, find_audit_logs, read_beginning, read_blocks
from apflint.sources.discovery import SUFFIXES
from apflint.sources.file_reading import describe_failure
from apflint.sources.server_state_files import decode, read_parts
from apflint.user_error import UserError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Literal

    from apflint.doctor.snapshot import Part
    from apflint.sources.input_types import InputRequest

    Kind = Literal["server", "audit log", "server log", "manifest", ""]

_SAMPLE_LINES = 50
_SAMPLE_BYTES = 64 * 1024
_AUDIT_MARK = re.compile(rb"auditID|stageTimestamp|requestReceivedTimestamp|google\.cloud\.audit\.AuditLog")
"""Strings that an audit event contains, also in the envelopes of cloud providers. An audit policy contains none of them."""


class EvidenceFiles(NamedTuple):
    """Files, grouped by the kind of their content. Files of the same kind are in the order of the arguments."""

    parts: tuple[Part, ...] = ()
    """Metrics and dumps."""
    server_files: tuple[str, ...] = ()
    """The files of `parts`."""
    audit_logs: tuple[AuditLogFile, ...] = ()
    server_logs: tuple[AuditLogFile, ...] = ()
    """Logs of kube-apiserver itself."""
    manifests: tuple[str, ...] = ()

    @property
    def logs(self) -> tuple[AuditLogFile, ...]:
        """The audit logs, and the logs of kube-apiserver itself."""
        return (*self.audit_logs, *self.server_logs)

    def add_manifests(self, request: InputRequest) -> InputRequest:
        """Return the request with the manifests as sources. The other files are ignored, also in directories."""
        used = (*self.server_files, *(file.path for file in self.logs))
        return request._replace(
            words=tuple(dict.fromkeys((*request.words, *self.manifests))),
            ignored=frozenset(map(os.path.realpath, used)),
        )


def sort_evidence(paths: Iterable[str]) -> EvidenceFiles:
    """Sort files by the kind of their content. `paths` are files and directories. Subdirectories are ignored.

    A directory without metrics, dumps and logs counts as a directory of manifests. Raises UserError for an unreadable
    file, for a file of unknown content, and if standard input is named twice.
    """
    named = list(paths)
    if named.count("-") > 1:
        raise UserError("standard input (-) can be read only once")
    found: dict[str, list[AuditLogFile]] = {"server": [], "audit log": [], "server log": []}
    manifests: list[str] = []
    for path in named:
        if os.path.isdir(path):
            manifests += _sort_directory(path, found)
            continue
        for file in map(read_beginning, find_audit_logs([path])):
            kind = recognize(file)
            if kind in found:
                found[kind].append(file)
            elif kind == "manifest" and file.inode is not None:
                manifests.append(file.path)
            else:
                raise _explain_unusable(file)
    server, audit, own = ({file.path: file for file in found[kind]} for kind in ("server", "audit log", "server log"))
    return EvidenceFiles(
        tuple(part for file in server.values() for part in _read(file)),
        tuple(server),
        tuple(audit.values()),
        tuple(own.values()),
        tuple(dict.fromkeys(manifests)),
    )


def _explain_unusable(file: AuditLogFile) -> UserError:
    """Return the reason why a file of unknown content cannot be used, such as an error message of an API server."""
    try:
        if file.size <= MAX_METRICS_BYTES:
            list(_read(file))
    except UnknownContentError:
        pass
    except UserError as error:
        return error
    return UserError(
        f"{file.name}: this is neither metrics, nor a debug dump, nor an audit log. For manifests, use -f {file.path}"
    )


def _sort_directory(path: str, found: dict[str, list[AuditLogFile]]) -> Iterator[str]:
    """Add the metrics, dumps and logs in a directory to `found`. Yield the paths of the manifests in the directory.

    If the directory contains no metrics, dumps or logs, yield only the path of the directory.
    """
    try:
        names = sorted(name for name in os.listdir(path) if not name.startswith("."))
    except OSError as error:
        raise UserError(f"{path}: {describe_failure(path, error)}") from None
    kinds: dict[str, Kind] = {}
    for name in names:
        file = os.path.join(path, name)
        if os.path.isfile(file):
            (log,) = find_audit_logs([file])
            kind = recognize(log)
            kinds[file] = kind
            if kind in found:
                found[kind].append(log)
    if any(kind in found for kind in kinds.values()):
        yield from (file for file, kind in kinds.items() if kind == "manifest" and holds_objects(file))
    else:
        yield path


def holds_objects(path: str) -> bool:
    """Return whether a file contains the word `flowcontrol`, which every manifest of an APF object contains."""
    with open(path, "rb") as stream:
        return b"flowcontrol" in stream.read()


def recognize(file: AuditLogFile) -> Kind:
    """Return the kind of a file, such as `audit log`, or an empty string if the kind is unknown.

    Reads only the beginning of the file. Raises UserError if the file cannot be read.
    """
    sample = file if file.rest is None else file._replace(rest=iter(()))
    block = next(read_blocks(sample), Block(b""))
    if block.is_file_problem and file.rest is None:
        raise UserError(f"{file.name}: {block.problem}")
    beginning = block.data
    if is_server_file(decode(beginning[:_SAMPLE_BYTES])):
        return "server"
    lines = [line for line in islice(beginning.split(b"\n"), _SAMPLE_LINES) if line.strip()]
    if any(map(_AUDIT_MARK.search, lines)):
        return "audit log"
    if any(parse_logged_request(line.decode("utf-8", "replace")) is not None for line in lines):
        return "server log"
    return "manifest" if file.path.endswith(SUFFIXES) else ""


def _read(file: AuditLogFile) -> Iterator[Part]:
    """Yield the metrics or dump that a file or a stream contains, as a `Part`."""
    if file.rest is None:
        yield from read_parts([file.path])
        return
    pieces, size = [], 0
    for block in read_blocks(file):
        pieces.append(block.data)
        size += len(block.data)
        if block.problem or size > MAX_METRICS_BYTES:
            raise UserError(f"{file.name}: {block.problem or f'more than {MAX_METRICS_BYTES >> 20} MiB'}")
    yield parse_part(file.name, decode(b"".join(pieces)))
