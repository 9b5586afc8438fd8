"""The stored objects of each resource, from the metrics of a server.

The number and size of the objects determine the seats of list requests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from apflint.doctor import metric_names
from apflint.evaluate.seats import estimate_seats

if TYPE_CHECKING:
    from apflint.doctor.prometheus_text import Sample
    from apflint.doctor.snapshot import Metrics
    from apflint.evaluate.seats import ListOptions
    from apflint.releases import Release


class StoredObjects(NamedTuple):
    """The objects of a resource in all namespaces."""

    number: int
    size: int | None
    """Size of all objects in bytes, or None if the metrics do not show the size."""
    line: int
    """Line of the number of objects in the metrics."""

    @property
    def average(self) -> int:
        """Average size of an object in bytes, or 0 if unknown."""
        return (self.size or 0) // self.number if self.number else 0

    def list_seats(
        self, release: Release, options: ListOptions, level_max_seats: int = 0, *, consistent: bool = True
    ) -> int | None:
        """Return the seats of a list request, or None if the seats depend on an unknown size of the objects.

        The parameters are those of `estimate_seats`.
        """
        if self.size is None and self.number and release.estimates_seats_by_size:
            return None
        return estimate_seats(
            release, "list", options, self.number, self.average, level_max_seats, consistent=consistent
        )


def list_stored_objects(metrics: Metrics) -> dict[tuple[str, str], StoredObjects]:
    """Return a mapping from (API group, resource) to the stored objects.

    Resources that the server could not count are left out.
    """
    sizes = {_resource(sample): round(sample.value) for sample in metrics.find(metric_names.SIZES) if sample.value >= 0}
    return {
        _resource(sample): StoredObjects(round(sample.value), sizes.get(_resource(sample)), sample.line)
        for sample in metrics.find(metric_names.OBJECTS)
        if sample.value >= 0
    }


def _resource(sample: Sample) -> tuple[str, str]:
    """Return (API group, resource). Older metrics have both in one label: `leases.coordination.k8s.io`."""
    resource, _, group = sample.labels.get("resource", "").partition(".")
    return sample.labels.get("group", group), resource
