"""Finds the audit logs that a command names, and tells them from manifests in the same directory."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

from apflint.named_tuple import NamedTuple
from apflint.sources.audit_logs import AuditLogFile, find_audit_logs
from apflint.sources.discovery import SUFFIXES
from apflint.sources.log_names import WHOLE_LOG, OmittedObjects, ReadPeriod
from apflint.user_error import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator


class FoundLogs(NamedTuple):
    """The files of audit logs that a command names."""

    files: list[AuditLogFile]
    ignored: frozenset[str]
    """Real paths of the logs. They are no manifests, although they may have the names of manifests."""
    manifests: tuple[str, ...] = ()
    """Files in the named directories that have APF objects, and no events. They are not in `files`."""

    def describe_unused(self, words: Collection[str]) -> Iterator[str]:
        """Yield clauses about manifests that are neither read as logs nor part of the configuration.

        `words` are the source arguments. Without them, the configuration is that of the current directory.
        """
        here = os.path.join(os.path.realpath("."), "") if self.manifests else ""
        for path in () if words else self.manifests:
            if not os.path.realpath(path).startswith(here):
                yield f"{path}: a manifest, which is not read as a log. To use its objects, add -f {shlex.quote(path)}"


NO_LOGS = FoundLogs([], frozenset())


def find_logs(
    paths: Iterable[str],
    *,
    period: ReadPeriod = WHOLE_LOG,
    report_omitted: Callable[[OmittedObjects], object] = lambda _: None,
    keeps_urls: bool = False,
) -> FoundLogs:
    """Return the files of audit logs as `find_audit_logs` does, without the manifests in directories.

    A manifest that the user names counts as a log, so that the command reports that it has no events. Manifests are not in
    `FoundLogs.ignored`: if they are in the current directory, they are part of the configuration. Raises UserError as
    `find_audit_logs` does.
    """
    named = list(paths)
    files = find_audit_logs(named, period=period, report_omitted=report_omitted, keeps_urls=keeps_urls)
    manifests = {file.path for file in files if _holds_manifests(file)}
    logs = [file for file in files if file.path in named or file.path not in manifests] or files
    ignored = frozenset(os.path.realpath(file.path) for file in files if file.path not in manifests)
    left_out = manifests.difference(file.path for file in logs)
    return FoundLogs(logs, ignored, tuple(sorted(left_out)))


def _holds_manifests(file: AuditLogFile) -> bool:
    """Return whether a file has APF objects and no events. A file that cannot be read is a log, whose reader reports the problem."""
    if file.inode is None or not file.path.endswith(SUFFIXES):
        return False
    from apflint.sources.evidence_files import holds_objects, recognize  # most logs have other names

    try:
        return recognize(file) == "manifest" and holds_objects(file.path)
    except (OSError, UserError):
        return False
