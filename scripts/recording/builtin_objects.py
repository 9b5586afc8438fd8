"""Records the objects that a server creates on its own (`fixtures/oracle/releases/defaults.jsonl`)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from recording.api import PLURALS, read_objects

if TYPE_CHECKING:
    from recording.client import Client

Row = dict[str, Any]
"""A row with the keys `kind`, `name`, `in` (recordings with this spec, such as `1.36-v1`) and `spec`."""


def record(client: Client, kube: str, version: str, rows: list[Row]) -> list[Row]:
    """Return `rows`, to which the objects of a server in one API version are added.

    Objects from an earlier recording of the same release and API version are removed. The server must have only the
    built-in objects.
    """
    label = f"{kube}-{version}"
    kept = [row | {"in": [recording for recording in row["in"] if recording != label]} for row in rows]
    for kind in PLURALS:
        for name, item in read_objects(client, version, kind).items():
            same = [row for row in kept if (row["kind"], row["name"], row["spec"]) == (kind, name, item["spec"])]
            if same:
                same[0]["in"].append(label)
            else:
                kept.append({"kind": kind, "name": name, "in": [label], "spec": item["spec"]})
    for row in kept:
        row["in"].sort(key=_order)
    kept = [row for row in kept if row["in"]]
    return sorted(kept, key=lambda row: (_order(row["in"][0])[0], row["in"][0], row["kind"], row["name"]))


def parse(text: str) -> list[Row]:
    """Return the rows of the file."""
    return [json.loads(line) for line in text.splitlines()]


def render(rows: list[Row]) -> str:
    """Return the text of the file."""
    return "".join(json.dumps(row) + "\n" for row in rows)


def _order(label: str) -> tuple[int, str]:
    release, version = label.split("-")
    return int(release.removeprefix("1.")), version
