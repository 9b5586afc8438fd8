"""Which texts a kube-apiserver takes for a point in time (metav1.Time)."""

from __future__ import annotations

import re

# Go's time.Parse(time.RFC3339, ...), which metav1.Time decodes with, is laxer than RFC 3339: an hour of one digit and a
# comma before the fraction will do. It is stricter in that T and Z are capitals and that there is no second 60.
# Source: parse in Go's src/time/format.go (the comma: since Go 1.17, Kubernetes 1.23).
_TIMESTAMP = (
    r"(\d{4})-(\d\d)-(\d\d)T(?:[01]?\d|2[0-3]):[0-5]\d:[0-5]\d(?:[.,]\d+)?(?:Z|[+-](?:[01]\d|2[0-4]):(?:[0-5]\d|60))"
)
_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def is_timestamp(text: str) -> bool:
    """Whether a server takes this for a point in time: `2026-11-21T10:00:00Z`, also with fraction and offset."""
    match = re.fullmatch(_TIMESTAMP, text, re.ASCII)
    if not match:
        return False
    year, month, day = map(int, match.groups())
    if not 1 <= month <= 12:
        return False
    leap_day = month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 1 <= day <= _DAYS[month - 1] + leap_day
