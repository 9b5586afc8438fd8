"""Reads the numbers of objects in a cluster, from a file with metrics of kube-apiserver and from options."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.budgets import MAX_FILE_BYTES
from apflint.replay.object_counts import parse_metrics, parse_object_count
from apflint.sources.audit_logs import find_audit_logs, read_text
from apflint.sources.file_reading import describe_failure
from apflint.user_error import UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from apflint.replay.object_counts import ObjectCounts


def read_object_counts(metrics: str | None, arguments: Sequence[str]) -> ObjectCounts | None:
    """Return the numbers of objects in a cluster, from the file `metrics` and from the values of `--objects`.

    The values of `--objects` (`arguments`) override the file. Return None if there are neither a file nor values. The
    file may be compressed. Raises UserError for invalid values, and for a file that is unreadable or has no numbers of
    objects.
    """
    if metrics is None and not arguments:
        return None
    counts = {} if metrics is None else _read_metrics(metrics)
    counts.update(parse_object_count(argument) for argument in arguments)
    return counts


def _read_metrics(path: str) -> ObjectCounts:
    file, *others = find_audit_logs([path])
    if others:
        raise UserError(f"{path}: --metrics takes one file")
    try:
        data = read_text(file, MAX_FILE_BYTES)
        return parse_metrics(_decode(data))
    except OSError as error:
        raise UserError(f"{file.name}: {describe_failure(path, error)}") from None
    except UserError as error:
        raise UserError(f"{file.name}: {error}") from None


def _decode(data: bytes | None) -> str:
    if data is None:
        raise UserError(
            f"the file is larger than {MAX_FILE_BYTES >> 20} MiB: keep only the lines with _objects and _size_estimate_bytes"
        )
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise UserError("this is not UTF-8") from None
