"""Parser of the metrics of an API server, in the text format of Prometheus. It parses only the metrics that it is asked for.

Findings point at lines, which the parser of prometheus_client does not report. It also takes longer to import than this module
takes for the 60,000 lines of a large cluster.
Format: https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from apflint.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Collection

_SAMPLE = re.compile(r"[\w:]+(?:\{(?P<labels>.*)\})?[ \t]+(?P<value>[^\s]+)(?:[ \t]+-?\d+)?[ \t\r]*")
_LABEL = re.compile(r'[ \t]*(\w+)[ \t]*=[ \t]*"((?:[^"\\]|\\.)*)"[ \t]*(?:,|$)')
_ESCAPE = re.compile(r"\\(.)")
_ANY_SAMPLE = re.compile(
    r"^[a-zA-Z_]\w*(?:\{.*\})?[ \t]+(?:[-+]?[\d.]+(?:e[-+]?\d+)?|NaN|[-+]Inf)(?:[ \t]+\d+)?\r?$", re.MULTILINE
)


_MAX_VALUE = float(2**63)
"""Servers count in 64 bits, also nanoseconds. Larger values are impossible, and too large for computations."""


class Sample(NamedTuple):
    """A value of a metric with its labels, and its line, which starts at 1."""

    labels: dict[str, str]
    value: float
    line: int


class Samples(NamedTuple):
    """The samples of a text by the name of their metric, and the lines of values that are NaN, infinite or impossible."""

    by_name: dict[str, list[Sample]]
    not_finite: tuple[int, ...]


def looks_like_metrics(text: str) -> bool:
    """Return whether a text has a comment or a sample of the format."""
    return text.startswith(("# HELP ", "# TYPE ")) or _ANY_SAMPLE.search(text) is not None


def parse_samples(text: str, names: Collection[str]) -> Samples:
    """Return the samples of the metrics in `names`. Values that are NaN, infinite or impossible are left out.

    Raises UserError, which does not contain the name of the file, for a line that is not in the format, for a text that
    ends within a line, and for a sample that occurs twice.
    """
    if not text.endswith("\n"):
        raise UserError("the last line has no end, so a part of the metrics is missing: save them again")
    by_name: dict[str, list[Sample]] = {}
    seen: set[str] = set()
    not_finite: list[int] = []
    for number, line in enumerate(text.split("\n"), 1):
        brace = line.find("{")
        end = brace if brace > 0 else line.find(" ")
        if line[:end] not in names:
            continue
        sample = _SAMPLE.fullmatch(line)
        value = _parse_value(sample["value"]) if sample else None
        labels = _parse_labels(sample["labels"] or "") if sample else None
        if value is None or labels is None:
            raise UserError(f"line {number} is not in the text format of Prometheus")
        name, series = line[:end], line[: line.rfind("}") + 1] or line[:end]
        if series in seen:
            raise UserError(
                f"line {number} repeats {name}: pass the metrics of each server and moment in a separate file"
            )
        seen.add(series)
        if abs(value) < _MAX_VALUE:  # false for NaN
            by_name.setdefault(name, []).append(Sample(labels, value, number))
        else:
            not_finite.append(number)
    return Samples(by_name, tuple(not_finite))


def _parse_value(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _parse_labels(text: str) -> dict[str, str] | None:
    """Return the labels between the braces of a sample, or None if they are not in the format."""
    labels: dict[str, str] = {}
    position = 0
    while position < len(text):
        label = _LABEL.match(text, position)
        if label is None:
            return None
        value = label[2]
        labels[label[1]] = _ESCAPE.sub(_unescape, value) if "\\" in value else value
        position = label.end()
    return labels


def _unescape(escape: re.Match[str]) -> str:
    return "\n" if escape[1] == "n" else escape[1]
