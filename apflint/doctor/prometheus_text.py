"""Parser of the metrics of an API server, in the text format of Prometheus. Only the requested metrics are parsed.

Findings need line numbers, which the parser of prometheus_client does not report. In addition, importing
prometheus_client takes longer than parsing the 60,000 lines of a large cluster with this module. Format:
https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from apflint.budgets import MAX_LABEL_CHARACTERS
from apflint.user_error import UserError

if TYPE_CHECKING:
    from collections.abc import Collection

_SAMPLE = re.compile(r"[\w:]+(?:\{(?P<labels>.*)\})?[ \t]+(?P<value>[^\s]+)(?:[ \t]+-?\d+)?[ \t\r]*", re.ASCII)
# The possessive quantifiers `*+` never backtrack. Backtracking would take 165 bytes of memory for each character.
_LABEL = re.compile(r'[ \t]*(\w+)[ \t]*=[ \t]*"([^"\\]*+(?:\\.[^"\\]*+)*+)"[ \t]*(?:,|$)', re.ASCII)
# Numbers that Go's strconv.ParseFloat parses and Prometheus accepts. Python's float would also accept `1_000` and Arabic
# digits.
_NUMBER = re.compile(r"[-+]?(?:(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?|inf(?:inity)?)|nan", re.ASCII | re.IGNORECASE)
_ESCAPE = re.compile(r"\\(.)")
_ANY_SAMPLE = re.compile(
    r"^[a-zA-Z_]\w*(?:\{.*\})?[ \t]+(?:[-+]?[\d.]+(?:e[-+]?\d+)?|NaN|[-+]Inf)(?:[ \t]+\d+)?\r?$",
    re.MULTILINE | re.ASCII,
)


_MAX_VALUE = float(2**63)
"""Upper limit of plausible values: servers count in 64 bits, even nanoseconds. Larger values could overflow computations."""
_COUNTED = ("_bucket", "_count", "_sum", "_total")
_SEATS = "apiserver_flowcontrol_"
"""Suffixes and prefix of the names of metrics that are never negative. Other metrics may be -1, for an unknown value."""


class Sample(NamedTuple):
    """A value of a metric with its labels, and its line number, which starts at 1."""

    labels: dict[str, str]
    value: float
    line: int


class Samples(NamedTuple):
    """The samples in a text of Prometheus metrics, by metric name, and the places of values that cannot be used."""

    by_name: dict[str, list[Sample]]
    unusable: tuple[tuple[int, str], ...]
    """Line and metric name of each value that is NaN, infinite or too large, and of impossible negative values."""


def looks_like_metrics(text: str) -> bool:
    """Return whether a text contains a comment or a sample in the text format of Prometheus."""
    return text.startswith(("# HELP ", "# TYPE ")) or _ANY_SAMPLE.search(text) is not None


def parse_samples(text: str, names: Collection[str]) -> Samples:
    """Return the samples of the metrics in `names`. Values that cannot be used are only listed in `Samples.unusable`.

    Raises UserError for a line that is not in the format, for a text that ends within a line, and for a sample that occurs
    twice. The message does not contain the file name.
    """
    if not text.endswith("\n"):
        raise UserError(
            "the last line does not end with a line break, so a part of the metrics is missing: save the metrics again"
        )
    by_name: dict[str, list[Sample]] = {}
    seen: set[str] = set()
    unusable: list[tuple[int, str]] = []
    for number, line in enumerate(text.split("\n"), 1):
        brace = line.find("{")
        end = brace if brace > 0 else line.find(" ")
        if line[:end] not in names:
            continue
        sample = _SAMPLE.fullmatch(line)
        value = _parse_value(sample["value"]) if sample else None
        labels = _parse_labels(sample["labels"] or "") if sample else None
        if value is None or labels is None or not _has_bound(line[:end], labels):
            raise UserError(f"line {number} is not in the text format of Prometheus")
        if (longest := max(map(len, labels.values()), default=0)) > MAX_LABEL_CHARACTERS:
            raise UserError(
                f"line {number} has a label with {longest:,} characters, but names of objects have at most 253"
            )
        name, series = line[:end], line[: line.rfind("}") + 1] or line[:end]
        if series in seen:
            raise UserError(
                f"line {number} repeats {name}: pass the metrics of each server and moment in a separate file"
            )
        seen.add(series)
        lowest = 0 if name.startswith(_SEATS) or name.endswith(_COUNTED) else -_MAX_VALUE
        if lowest <= value < _MAX_VALUE:  # NaN is not in this range
            by_name.setdefault(name, []).append(Sample(labels, value, number))
        else:
            unusable.append((number, name))
    return Samples(by_name, tuple(unusable))


def _has_bound(name: str, labels: dict[str, str]) -> bool:
    """Return whether the label `le` of a sample is as the name of its metric requires.

    A sample of a bucket must have `le`. If any sample has `le`, the value must be a number.
    """
    if "le" not in labels:
        return not name.endswith("_bucket")
    return _parse_value(labels["le"]) is not None


def _parse_value(text: str) -> float | None:
    return float(text) if _NUMBER.fullmatch(text) else None


def _parse_labels(text: str) -> dict[str, str] | None:
    """Return the labels between the braces of a sample, or None if the text is not in the format."""
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
