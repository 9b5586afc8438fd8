"""Locations: places of objects and ranges of text have a common interface."""

from __future__ import annotations

import pytest

from apflint.load import load
from apflint.location import Location, Place, Span, TextRange, clipped, field_path

TEXT = """\
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: a}
spec:
  rules:
  - subjects: []
"""
LOADED = load("a.yaml", TEXT.encode())
DOCUMENT = LOADED.documents[0]


def test_steps_below_a_place() -> None:
    place = Place(DOCUMENT, ("spec",)) / "rules" / 0 / "subjects"
    assert place == Place(DOCUMENT, ("spec", "rules", 0, "subjects"))
    assert place.field == "spec.rules[0].subjects"
    assert TEXT[slice(*place.offsets)] == "[]"
    assert place.span == Span(6, 15, 6, 17)


def test_step_below_a_key_points_at_a_value() -> None:
    assert TEXT[slice(*(Place(DOCUMENT, ("metadata",), key=True) / "name").offsets)] == "a"


def test_known_offsets_win() -> None:
    assert Place(DOCUMENT, ("kind",), key=True, known_offsets=(1, 2)).offsets == (1, 2)


@pytest.mark.parametrize("location", [Place(DOCUMENT, ("kind",)), TextRange(LOADED.source, 50, 60)])
def test_place_and_text_range_have_one_interface(location: Location) -> None:
    assert location.source is LOADED.source
    assert TEXT[slice(*location.offsets)] == "FlowSchema"
    assert location.span == Span(2, 7, 2, 17)
    assert (location.document, location.path) in ((DOCUMENT, ("kind",)), (None, ()))


def test_field_paths_are_written_as_kubernetes_writes_them() -> None:
    assert field_path(("metadata", "labels", "a.io/b")) == "metadata.labels[a.io/b]"
    assert field_path(("spec", "rules", 0)) == "spec.rules[0]"
    assert field_path(("a" * 500,)) == clipped("a" * 500) == "a" * 399 + "…"
