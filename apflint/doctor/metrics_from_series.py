"""Converts the series of one API server in Prometheus to the text format in which the server itself exports metrics.

So the diagnosis reads metrics from both sources in the same way. Findings refer to lines of this text.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from apflint.doctor.metric_names import NAMES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

ETCD_LABEL = "apflint_metric"
"""Label that stores the metric name in queries for sums, because Prometheus removes the metric name from a sum."""


def write_metrics(series: Iterable[tuple[Mapping[str, str], str]], target_labels: Collection[str]) -> str:
    """Return series as metrics in text format, in the order in which a server exports metrics.

    `series` are pairs of labels and value. `target_labels` are the labels that Prometheus adds, which are omitted.
    """
    lines = []
    for labels, value in series:
        name = labels.get(ETCD_LABEL) or labels.get("__name__", "")
        if name in NAMES:
            own = {
                label: _bound(text) if label == "le" else text
                for label, text in labels.items()
                if label not in target_labels and label not in ("__name__", ETCD_LABEL)
            }
            shown = ",".join(f'{label}="{_escape(text)}"' for label, text in sorted(own.items()))
            lines.append(f"{name}{{{shown}}} {value}\n" if shown else f"{name} {value}\n")
    return "".join(sorted(lines))


def _bound(text: str) -> str:
    """Return the upper bound of a bucket as API servers write it. Prometheus 3 writes `1.0` instead of `1`."""
    try:
        number = float(text)
    except ValueError:
        return text
    return str(int(number)) if math.isfinite(number) and number == int(number) and "e" not in text else text


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
