"""Records the limits of priority levels, from the metrics of a server (`fixtures/oracle-numbers/limits.jsonl`)."""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING, Any

from apflint.builtin import AUTOUPDATE, MANDATORY
from apflint.releases import GROUP
from recording.api import path_of, read_objects
from recording.client import ServerError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from recording.client import Client
    from recording.servers import Servers

KIND = "PriorityLevelConfiguration"
METRICS = ("nominal", "lower", "upper")
EQUAL_READS = 3
"""Number of consecutive equal readings after which the server is assumed to have configured all levels."""
MAX_READS = 40
INTERVAL_SECONDS = 0.5
_METRIC = re.compile(r'(?m)^apiserver_flowcontrol_(nominal|lower|upper)_limit_seats\{priority_level="([^"]+)"\} (\S+)$')

Case = dict[str, Any]
"""Case with the keys `id`, `total` (seats of the server), `levels` (specs in v1 by name), and the recorded `limits`."""
Limits = dict[str, list[int]]
"""Nominal, lower and upper limit of each level. The keys are names of levels."""


def read_cases(file: Path) -> list[Case]:
    """Return the cases of a recorded file."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def record(servers: Servers, cases: list[Case]) -> Iterator[str]:
    """Create the levels of each case on a server, and yield a line of the file for each case, in the same order.

    `total` of a case is the number of seats of the server. Starts a server for each total. If no server can have the
    total of a case, the line repeats the limits that `cases` contains for this case.
    """
    limits: dict[str, Limits] = {case["id"]: case["limits"] for case in cases}
    for total in sorted({case["total"] for case in cases if servers.can_have(case["total"])}):
        with servers.start(total=total) as server:
            fresh = read_objects(server.client, "v1", KIND)
            mandatory = {name: fresh[name]["spec"] for name in MANDATORY}
            for case in cases:
                if case["total"] == total:
                    levels = mandatory | case["levels"]
                    replace_levels(server.client, levels)
                    limits[case["id"]] = wait_for_limits(server.client, sorted(levels))
    for case in cases:
        row = {key: case[key] for key in ("id", "total", "levels")} | {"limits": limits[case["id"]]}
        yield json.dumps(row, separators=(",", ":")) + "\n"


def replace_levels(client: Client, levels: dict[str, Any]) -> None:
    """Create, replace and delete priority levels until the server has exactly `levels`.

    The mandatory levels must be included, because a server continues to use the last spec of a deleted mandatory level.
    """
    existing = read_objects(client, "v1", KIND)
    for name in existing.keys() - levels.keys():
        client.write("DELETE", path_of("v1", KIND, name))
    for name, spec in levels.items():
        if name in existing and existing[name]["spec"] == spec:
            continue
        # The annotation prevents the server from restoring the original specs of built-in levels.
        metadata = {"name": name, "annotations": {AUTOUPDATE: "false"}}
        value = {"apiVersion": f"{GROUP}/v1", "kind": KIND, "metadata": metadata, "spec": spec}
        if name in existing:
            client.write("PUT", path_of("v1", KIND, name), value)
        else:
            client.write("POST", path_of("v1", KIND), value)


def wait_for_limits(client: Client, names: list[str]) -> Limits:
    """Return the limits of the named levels as soon as they are stable.

    Raises ServerError if the limits keep changing.
    """
    limits: Limits = {}
    equal = 0
    for _ in range(MAX_READS):
        last, limits = limits, read_limits(client.get_text("/metrics"), names)
        equal = equal + 1 if limits == last and len(limits) == len(names) else 1
        if equal == EQUAL_READS:
            return limits
        time.sleep(INTERVAL_SECONDS)
    raise ServerError(f"the metrics have no stable limits of {', '.join(names)}")


def read_limits(metrics: str, names: list[str]) -> Limits:
    """Return the limits from the text of the metrics. Levels without all three limits are omitted."""
    values = {(match[2], match[1]): int(float(match[3])) for match in _METRIC.finditer(metrics)}
    return {
        name: [values[name, metric] for metric in METRICS]
        for name in names
        if all((name, metric) in values for metric in METRICS)
    }
