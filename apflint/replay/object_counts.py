"""Numbers and sizes of stored objects, on which the seats of lists depend. Audit logs do not contain them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from apflint.errors import UserError
from apflint.evaluate.resources import find_resources
from apflint.record import NamedTuple
from apflint.wording import quote

if TYPE_CHECKING:
    from collections.abc import Mapping

_ARGUMENT = re.compile(r"([^=\s]+)=([0-9]{1,12})(?::([0-9]{1,12}))?")
_SAMPLE = re.compile(
    r"^apiserver_(?P<metric>resource_objects|storage_objects|resource_size_estimate_bytes)\{(?P<labels>[^\n]*)\}"
    r"[ \t]+(?P<value>[^ \t\r\n]+)",
    re.MULTILINE,
)
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class StoredObjects(NamedTuple):
    """The objects of a resource in all namespaces."""

    number: int
    size: int | None = None
    """Average size of an object in bytes, or None if unknown. 0 stands for objects that the server could not measure."""


ObjectCounts = dict[str, StoredObjects]
"""Objects by resource, written like `pods` or `deployments.apps`."""


def parse_object_count(text: str) -> tuple[str, StoredObjects]:
    """Parse `pods=5000` or `pods=5000:4000`, the number of objects and their average size.

    Resources without a group may have any name that kubectl accepts. Raises UserError for other text.
    """
    match = _ARGUMENT.fullmatch(text)
    if match is None:
        raise UserError(
            f"{quote(text)} in --objects: write RESOURCE=COUNT or RESOURCE=COUNT:BYTES, such as pods=5000:4000 for 5,000 pods"
            " with an average size of 4,000 bytes"
        )
    resource, count, size = match.groups()
    if "." not in resource:  # all resources of the core group are Kubernetes' own
        known = find_resources(resource)
        if not known:
            raise UserError(
                f"unknown resource {quote(resource)} in --objects: write other resources with their group, as in widgets.example.com"
            )
        resource = known[0].qualified_name
    return resource, StoredObjects(int(count), None if size is None else int(size))


def parse_metrics(text: str) -> ObjectCounts:
    """Return the object counts in the metrics of kube-apiserver. Raises UserError if the text has none.

    The metrics are `apiserver_storage_objects`, or `apiserver_resource_objects` and `apiserver_resource_size_estimate_bytes`
    from 1.34 on. The value -1 means that the server could not count or measure. Source: `UpdateStoreStats` in
    staging/src/k8s.io/apiserver/pkg/storage/etcd3/metrics/metrics.go.
    """
    counts: dict[str, int] = {}
    sizes: dict[str, int] = {}
    for match in _SAMPLE.finditer(text):
        labels = dict(_LABEL.findall(match["labels"]))
        resource = ".".join(filter(None, (labels.get("resource"), labels.get("group"))))
        try:
            value = int(float(match["value"]))
        except (ValueError, OverflowError):
            raise UserError(
                f"the value of apiserver_{match['metric']} is not a number: {quote(match['value'])}"
            ) from None
        values = sizes if match["metric"] == "resource_size_estimate_bytes" else counts
        values[resource] = max(value, values.get(resource, -1))
    if not counts:
        raise UserError(
            "no metric apiserver_resource_objects or apiserver_storage_objects: this is not the output of"
            " kubectl get --raw /metrics"
        )
    return {
        resource: StoredObjects(count, _average(sizes, resource, count))
        for resource, count in counts.items()
        if count >= 0
    }


def _average(sizes: Mapping[str, int], resource: str, count: int) -> int | None:
    if resource not in sizes:
        return None
    return max(sizes[resource], 0) // count if count else 0
