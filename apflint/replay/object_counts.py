"""Numbers and sizes of stored objects, which determine the seats of lists. Audit logs do not contain these numbers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from apflint.doctor.prometheus_text import parse_samples
from apflint.evaluate.resources import find_resources
from apflint.named_tuple import NamedTuple
from apflint.user_error import UserError
from apflint.wording import quote

if TYPE_CHECKING:
    from collections.abc import Mapping

    from apflint.doctor.prometheus_text import Sample

_ARGUMENT = re.compile(r"([^=\s]+)=([0-9]{1,12})(?::([0-9]{1,12}))?")
_COUNTS = ("apiserver_resource_objects", "apiserver_storage_objects")
_SIZES = "apiserver_resource_size_estimate_bytes"


NOT_COUNTED = -1
"""Number of objects of a resource that the server could not count. The server's metrics have the same value."""


class ObjectTotals(NamedTuple):
    """Number and average size of the objects of a resource in all namespaces."""

    number: int
    """Number of objects, or `NOT_COUNTED`."""
    size: int | None = None
    """Average size of an object in bytes, None if unknown, or 0 if the server could not measure the objects."""


ObjectCounts = dict[str, ObjectTotals]
"""Number and size of the stored objects of each resource. The keys are resources such as `pods` or `deployments.apps`.
"""


def parse_object_count(text: str) -> tuple[str, ObjectTotals]:
    """Parse `pods=5000` or `pods=5000:4000`, the number of objects and their average size.

    Resources without a group may have any name that kubectl accepts. Raises UserError for another form.
    """
    match = _ARGUMENT.fullmatch(text)
    if match is None:
        raise UserError(
            f"{quote(text)} in --objects: write RESOURCE=COUNT or RESOURCE=COUNT:BYTES, such as pods=5000:4000 for 5,000 pods"
            " with an average size of 4,000 bytes"
        )
    resource, count, size = match.groups()
    if "." not in resource:  # only built-in resources may be named without a group
        known = find_resources(resource)
        if not known:
            raise UserError(
                f"unknown resource {quote(resource)} in --objects: write other resources with their group, as in widgets.example.com"
            )
        resource = known[0].qualified_name
    return resource, ObjectTotals(int(count), None if size is None else int(size))


def parse_metrics(text: str) -> ObjectCounts:
    """Return the object counts in the metrics of kube-apiserver.

    Raises UserError if the text has no metric with object counts, or is damaged.

    The metrics are `apiserver_storage_objects`, or `apiserver_resource_objects` and
    `apiserver_resource_size_estimate_bytes` from 1.34 on. The value -1 means that the server could not count or measure
    the objects. For a list of objects that it could not count, the server assumes the maximum number of seats. On a
    recorded kube-apiserver 1.36.2, such lists take as many seats as their level allows. Source: `UpdateStoreStats` in
    staging/src/k8s.io/apiserver/pkg/storage/etcd3/metrics/metrics.go.
    """
    samples, unusable = parse_samples(text, (*_COUNTS, _SIZES))
    if unusable:
        line, metric = unusable[0]
        raise UserError(
            f"line {line}: the value of {metric} is not a number of objects or bytes; remove this line, or save the"
            " metrics again"
        )
    counts, sizes = _find_greatest(samples, *_COUNTS), _find_greatest(samples, _SIZES)
    if not counts:
        raise UserError(
            "no metric apiserver_resource_objects or apiserver_storage_objects: this is not the output of"
            " kubectl get --raw /metrics"
        )
    return {
        resource: ObjectTotals(max(count, NOT_COUNTED), _average(sizes, resource, count))
        for resource, count in counts.items()
    }


def _find_greatest(samples: Mapping[str, list[Sample]], *names: str) -> dict[str, int]:
    """Return the greatest value of each resource in the samples of the metrics `names`."""
    values: dict[str, int] = {}
    for name in names:
        for sample in samples.get(name, ()):
            resource = ".".join(filter(None, (sample.labels.get("resource"), sample.labels.get("group"))))
            values[resource] = max(int(sample.value), values.get(resource, -1))
    return values


def _average(sizes: Mapping[str, int], resource: str, count: int) -> int | None:
    if resource not in sizes:
        return None
    return max(sizes[resource], 0) // count if count > 0 else 0
