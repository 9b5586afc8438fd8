"""Measures whole processes of `apflint` and prints what came out: the figures of docs/performance.md.

    python scripts/benchmark.py [--apflint CMD] [--yamllint CMD] [--requests N] [--runs N] [requests|repeated|start]...

Use an installed apflint (`pip install .`, not editable) and unset PYTHONDONTWRITEBYTECODE, or every start compiles anew.
Inputs are made here from a fixed seed, so that they are the same everywhere; nothing is downloaded.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

SEED = 1040
FLOW_SCHEMAS = 20
WANTED_RATE = 30_000
"""Different requests a second on one core, as a whole process."""
KINDS = ("requests", "repeated", "start", "analysis")
WANTED_SECONDS = 5.0
"""For `check` of 300 FlowSchemas with 10 rules each, all rules of apflint included."""


def flow_schema(number: int) -> dict[str, Any]:
    """A FlowSchema of a team: its group and its service accounts, on a few resources and one path."""
    subjects = [
        {"kind": "Group", "group": {"name": f"team-{number}"}},
        {"kind": "ServiceAccount", "serviceAccount": {"namespace": f"team-{number}", "name": "*"}},
    ]
    return {
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "kind": "FlowSchema",
        "metadata": {"name": f"team-{number:02}"},
        "spec": {
            "priorityLevelConfiguration": {"name": ("workload-high", "workload-low")[number % 2]},
            "matchingPrecedence": 1000 + 100 * number,
            "distinguisherMethod": {"type": ("ByUser", "ByNamespace")[number % 2]},
            "rules": [
                {
                    "subjects": subjects,
                    "resourceRules": [
                        {
                            "verbs": ["get", "list", "watch", "update"],
                            "apiGroups": ["", "apps"],
                            "resources": ["pods", "pods/status", "deployments"],
                            "namespaces": ["*"],
                            "clusterScope": True,
                        }
                    ],
                    "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": [f"/team-{number}/*"]}],
                }
            ],
        },
    }


def requests(count: int) -> list[str]:
    """So many different requests as JSON lines: users and service accounts of 30 teams, what controllers and people do."""
    chance = random.Random(SEED)
    lines: dict[str, None] = {}
    while len(lines) < count:
        team, namespace, name = chance.randrange(30), f"team-{chance.randrange(200)}", f"x-{chance.randrange(100_000)}"
        if chance.random() < 0.5:
            user, groups = f"user-{chance.randrange(2000)}", [f"team-{team}", "system:authenticated"]
        else:
            user = f"system:serviceaccount:team-{team}:sa-{chance.randrange(50)}"
            groups = ["system:serviceaccounts", f"system:serviceaccounts:team-{team}", "system:authenticated"]
        method, path = chance.choice(
            (
                ("GET", f"/api/v1/namespaces/{namespace}/pods/{name}"),
                ("GET", f"/api/v1/namespaces/{namespace}/pods?limit=500&resourceVersion={name[2:]}"),
                ("PUT", f"/api/v1/namespaces/{namespace}/pods/{name}/status"),
                ("GET", f"/apis/apps/v1/deployments?watch=true&resourceVersion={name[2:]}"),
                ("POST", f"/apis/batch/v1/namespaces/{namespace}/jobs?fieldManager={name}"),
                ("DELETE", f"/apis/example.com/v1/namespaces/{namespace}/widgets/{name}"),
                ("GET", f"/team-{team}/{name}"),
            )
        )
        lines[json.dumps({"user": user, "groups": groups, "method": method, "path": path})] = None
    return list(lines)


def seconds(command: list[str], folder: Path) -> float:
    """How long a whole process takes; its output goes nowhere. An exit status other than 0 ends the benchmark."""
    begin = time.perf_counter()
    done = subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    taken = time.perf_counter() - begin
    if done.returncode != 0:
        raise SystemExit(f"{shlex.join(command)} ended with {done.returncode}: {done.stderr.decode()[-500:]}")
    return taken


def explain_rate(apflint: list[str], lines: list[str], runs: int) -> float:
    """Answers a second of `explain --requests`, the median of whole processes: JSON in, JSON out, flow and limits included."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "apf.json").write_text(
            json.dumps({"apiVersion": "v1", "kind": "List", "items": [flow_schema(n) for n in range(FLOW_SCHEMAS)]})
        )
        (folder / "requests.jsonl").write_text("\n".join(lines) + "\n")
        command = [*apflint, "explain", "--isolated", "-f", "apf.json", "--requests", "requests.jsonl"]
        return len(lines) / statistics.median(seconds(command, folder) for _ in range(runs))


def start(apflint: list[str], yamllint: list[str] | None, runs: int) -> None:
    """`check` of one small valid file beside yamllint of the same, runs taken in turn."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "apf.yaml").write_text(SMALL)
        commands = {"apflint": [*apflint, "check", "--isolated", "apf.yaml"]}
        if yamllint is not None:
            commands["yamllint"] = [*yamllint, "apf.yaml"]
        commands["python"] = [sys.executable, "-c", ""]
        taken: dict[str, list[float]] = {tool: [] for tool in commands}
        for command in commands.values():
            seconds(command, folder)  # compiles what has not been run yet: not measured
        for _ in range(runs):
            for tool, command in commands.items():
                taken[tool].append(seconds(command, folder))
        medians = {tool: statistics.median(times) for tool, times in taken.items()}
    print(f"one small valid file, median of {runs} whole processes each, taken in turn:")
    for tool, median in medians.items():
        print(f"  {tool:9} {1000 * median:6.1f} ms")
    if yamllint is None:
        print("  yamllint is not installed, so there is nothing to compare with")
    else:
        print(f"  ratio     {medians['apflint'] / medians['yamllint']:6.2f}  (apflint / yamllint)")


SMALL = """---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata:
  name: health-for-team-a
spec:
  matchingPrecedence: 1000
  priorityLevelConfiguration:
    name: workload-low
  distinguisherMethod:
    type: ByUser
  rules:
    - subjects:
        - kind: Group
          group:
            name: team-a
      resourceRules:
        - verbs: [get, list]
          apiGroups: [""]
          resources: [pods]
          namespaces: [team-a]
"""


def crowd(count: int, rules: int) -> list[dict[str, Any]]:
    """FlowSchemas that overlap in every way: few users and resources, so that many rules never decide anything."""
    chance = random.Random(SEED)

    def rule() -> dict[str, Any]:
        user = {"kind": "User", "user": {"name": f"user-{chance.randrange(40)}"}}
        group = {"kind": "Group", "group": {"name": f"group-{chance.randrange(20)}"}}
        return {
            "subjects": [chance.choice((user, group))],
            "resourceRules": [
                {
                    "verbs": chance.sample(["get", "list", "watch", "create", "update", "delete"], 2),
                    "apiGroups": [chance.choice(("", "apps", "batch"))],
                    "resources": chance.sample(["pods", "deployments", "configmaps", "secrets", "jobs"], 2),
                    "clusterScope": True,
                    "namespaces": chance.choice((["*"], [f"team-{chance.randrange(10)}"])),
                }
            ],
        }

    schemas = [flow_schema(number) for number in range(count)]
    for schema in schemas:
        schema["metadata"]["name"] = f"crowd-{schema['metadata']['name']}"
        schema["spec"]["matchingPrecedence"] = chance.randrange(1001, 8999)
        schema["spec"]["rules"] = [rule() for _ in range(rules)]
    return schemas


def analysis(apflint: list[str], runs: int) -> bool:
    """`check` with all rules: 300 FlowSchemas of 10 rules, and 20 more than the built-in ones with and without analysis."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, items in (("crowd", crowd(300, 10)), ("few", [flow_schema(n) for n in range(FLOW_SCHEMAS)])):
            (folder / f"{file}.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
        command = [*apflint, "check", "--isolated", "--fail-on", "never", "--format", "concise"]
        crowded = statistics.median(seconds([*command, "crowd.json"], folder) for _ in range(3))
        print(f"check of 300 FlowSchemas with 10 rules each, all rules: {crowded:.1f} s")
        plain = [*command, "--ignore", "APF4,APF5,APF6,APF7", "few.json"]
        times = [(seconds([*command, "few.json"], folder), seconds(plain, folder)) for _ in range(runs)]
        whole, rest = (1000 * statistics.median(each) for each in zip(*times, strict=True))
        print(
            f"check of {FLOW_SCHEMAS} FlowSchemas: {whole:.0f} ms, of which the whole-set rules are {whole - rest:.0f} ms"
        )
    return crowded <= WANTED_SECONDS


def tool(given: str | None, name: str) -> list[str] | None:
    """The command that was given, or the tool beside this Python, or on the path; None where there is none."""
    if given is not None:
        return shlex.split(given)
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else shutil.which(name)
    return None if found is None else [found]


def main() -> int:
    """Prints the figures; 1 where the wanted rate is not reached."""
    parser = argparse.ArgumentParser(description="Measures whole processes of apflint.")
    parser.add_argument("kinds", nargs="*", metavar="|".join(KINDS), help="what to measure (default: all)")
    parser.add_argument("--apflint", metavar="CMD")
    parser.add_argument("--yamllint", metavar="CMD")
    parser.add_argument("--requests", type=int, default=100_000, metavar="N", help="different requests")
    parser.add_argument("--runs", type=int, default=20, metavar="N", help="processes for each start that is measured")
    options = parser.parse_args()
    if unknown := set(options.kinds) - set(KINDS):
        parser.error(f"{', '.join(sorted(unknown))}: not one of {', '.join(KINDS)}")
    kinds = options.kinds or KINDS
    apflint = tool(options.apflint, "apflint")
    if apflint is None:
        parser.error("apflint is not installed; name it with --apflint")
    if os.environ.get("PYTHONDONTWRITEBYTECODE"):
        print("note: PYTHONDONTWRITEBYTECODE is set; unset it, or each start may compile anew")
    print(f"Python {sys.version.split()[0]}, {os.cpu_count()} processors")
    status = 0
    if "requests" in kinds:
        rate = explain_rate(apflint, requests(options.requests), 3)
        print(f"explain --requests, {options.requests:,} different requests: {rate:,.0f} a second, whole process")
        status = int(rate < WANTED_RATE)
        if status:
            print(f"  that is below the {WANTED_RATE:,} that are wanted")
    if "repeated" in kinds:
        chance = random.Random(SEED)
        lines = requests(20_000)
        rate = explain_rate(apflint, [chance.choice(lines) for _ in range(1_000_000)], 3)
        print(f"explain --requests, 1,000,000 lines, 20,000 of them different: {rate:,.0f} a second, whole process")
    if "start" in kinds:
        start(apflint, tool(options.yamllint, "yamllint"), options.runs)
    if "analysis" in kinds and not analysis(apflint, options.runs):
        print(f"  that is more than the {WANTED_SECONDS:.0f} s that are wanted")
        status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
