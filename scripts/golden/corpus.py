"""Writes the inputs of a golden run to a directory: fixtures, rule examples, a git repository, and stand-ins for programs."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

GROUP = "flowcontrol.apiserver.k8s.io"
KUBECTL = """\
#!/bin/sh
for word; do case $word in /*) path=$word ;; esac; done
case "$*" in
*--context=forbidden*) echo 'Error from server (Forbidden): User "alice" cannot get path "/version"' >&2; exit 1 ;;
esac
file=${0%/*}/answers/$(echo "$path" | tr /? __)
[ -f "$file" ] || { echo "Error from server (NotFound): the server could not find the requested resource" >&2; exit 1; }
exec cat "$file"
"""
KUSTOMIZE = """\
#!/bin/sh
[ -f "$2/kustomization.yaml" ] || { echo "Error: unable to find one of 'kustomization.yaml'" >&2; exit 1; }
for file in "$2"/../../apf/base/*.yaml "$2"/*.yaml; do
    case $file in */kustomization.yaml | *\\**) ;; *) echo ---; cat "$file" ;; esac
done
"""
CLUSTERS = """\
[[cluster]]
name = "prod"
kubernetes = "1.36"
server-concurrency = 1200
paths = ["apf/base", "clusters/prod"]

[[cluster]]
name = "staging"
paths = ["apf/base", "clusters/staging"]
"""
GIT_DATE = "2026-01-02T03:04:05+0000"


def write_corpus(directory: Path, checkout: Path) -> None:
    """Write all inputs to `directory`, from the fixtures and rule pages of a checkout.

    The directory `work/here` in `directory` contains links to all inputs. apflint does not follow links in a directory,
    so a command without a path finds no manifests.
    """
    work = directory / "work"
    shutil.copytree(checkout / "fixtures", work / "fixtures")
    if (realworld := checkout.parent / "shared" / "realworld").is_dir():
        shutil.copytree(realworld, work / "realworld", ignore=shutil.ignore_patterns("*.md"))
    else:
        print(f"skipped: there is no {realworld}", file=sys.stderr)
    for page in sorted((checkout / "rules").glob("APF*.md")):
        write_examples(work / "examples", page)
    for recording in sorted((checkout / "fixtures/conformance").glob("*.jsonl")):
        for number, line in enumerate(recording.read_text("utf-8").splitlines()):
            # A list stores long runs of a character as pairs of the character and its count.
            parts = json.loads(line)["manifest"]
            manifest = "".join(part if isinstance(part, str) else part[0] * part[1] for part in parts)
            write(work / "conformance" / recording.stem / f"{number:03}.yaml", manifest)
    write_configurations(work, checkout / "fixtures/oracle-classify")
    write(work / "load.yaml", (checkout / "fixtures/simulate/load.yaml").read_text("utf-8"))
    for name, text in (("empty.yaml", ""), ("broken.yaml", "a: [1\nb: }"), ("binary.yaml", "\x00\x01")):
        write(work / "odd" / name, text)
    write_repository(work / "gitops", checkout / "fixtures/stories/many-clusters", directory / "home")
    write_programs(directory / "bin", checkout)
    (work / "here").mkdir()
    for path in sorted(work.iterdir()):
        if path.name != "here":
            (work / "here" / path.name).symlink_to(path)


def write(file: Path, text: str, mode: int = 0o644) -> None:
    """Write a file, and create its directory."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")
    file.chmod(mode)


def write_examples(directory: Path, page: Path) -> None:
    """Write the bad and good examples of a rule page without the comments that mark findings (`# ~`).

    The paths are RULE-KIND-NUMBER-RELEASE/FILE.
    """
    section = re.compile(r"^## (Bad|Good)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
    fence = re.compile(r"^(`{3,})(yaml|json)(.*)\n((?:.*\n)*?)\1$", re.MULTILINE)
    for kind, body in section.findall(page.read_text("utf-8")):
        for number, (_, language, info, text) in enumerate(fence.findall(body)):
            options = dict(option.partition("=")[::2] for option in info.split())
            name = f"{page.stem}-{kind.lower()}-{number}-{options.get('kubernetes', 'newest')}"
            manifest = re.sub(r"[ \t]*# ~ .*$", "", re.sub(r"(?m)^[ \t]*# ~v .*\n", "", text), flags=re.MULTILINE)
            write(directory / name / options.get("file", f"example.{language}"), manifest)


def write_configurations(work: Path, recordings: Path) -> None:
    """Write the recorded configurations as manifests, and for each of them the requests that a server received."""
    for line in (recordings / "configs.jsonl").read_text("utf-8").splitlines():
        configuration = json.loads(line)
        objects = [
            {
                "apiVersion": f"{GROUP}/v1",
                "kind": value["kind"],
                "metadata": {"name": value["name"]},
                "spec": value["spec"],
            }
            for value in configuration["objects"]
        ]
        write(
            work / "configs" / f"{configuration['id']}.json", json.dumps({"kind": "List", "items": objects}, indent=1)
        )
    requests: dict[str, list[dict[str, Any]]] = {}
    for line in (recordings / "requests.jsonl").read_text("utf-8").splitlines():
        name, user, groups, method, path, *_ = json.loads(line)
        request = {"user": user, "groups": groups, "method": method, "path": path}
        requests.setdefault(name.partition("-")[0], []).append(request)
    for name, values in requests.items():
        write(work / "requests" / f"{name}.jsonl", "".join(f"{json.dumps(value)}\n" for value in values))


def write_repository(directory: Path, story: Path, home: Path) -> None:
    """Write a git repository of two clusters: three commits with a fixed date, a tag, and an uncommitted change."""
    write(home / ".gitconfig", "[user]\n    name = Maria\n    email = maria@example.com\n")
    shutil.copytree(story, directory)
    run_git(directory, home, "init", "--quiet", "--initial-branch=main")
    commit(directory, home, {})
    run_git(directory, home, "tag", "v1")
    commit(directory, home, {"apflint.toml": CLUSTERS})
    prod = directory / "clusters/prod/ci.yaml"
    commit(directory, home, {"clusters/prod/ci.yaml": prod.read_text("utf-8").replace("Shares: ", "Shares: 1")})
    prod.write_text(prod.read_text("utf-8").replace("name: ci", "name: builds"), "utf-8")


def commit(directory: Path, home: Path, files: Mapping[str, str]) -> None:
    """Write files, and commit all changes."""
    for name, text in files.items():
        write(directory / name, text)
    run_git(directory, home, "add", "--all")
    run_git(directory, home, "commit", "--quiet", "--message", "Change")


def run_git(directory: Path, home: Path, *arguments: str) -> None:
    """Run git with fixed dates and the settings in `home` only."""
    variables = {
        "HOME": str(home),
        "GIT_AUTHOR_DATE": GIT_DATE,
        "GIT_COMMITTER_DATE": GIT_DATE,
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    subprocess.run(["git", *arguments], cwd=directory, check=True, env=os.environ | variables)


def write_programs(directory: Path, checkout: Path) -> None:
    """Write a kubectl that prints recorded answers of a server, and a kustomize that concatenates files."""
    write(directory / "kubectl", KUBECTL, 0o755)
    write(directory / "kustomize", KUSTOMIZE, 0o755)
    live = checkout / "fixtures/live"
    answers = {path: json.dumps(body) for path, (_, body) in recorded_answers(checkout).items()}
    answers["/metrics"] = (live / "metrics.txt").read_text("utf-8")
    dump = "/debug/api_priority_and_fairness/dump_"
    answers[f"{dump}priority_levels"] = (live / "2-slow-a.priority_levels.txt").read_text("utf-8")
    answers[f"{dump}requests?includeRequestDetails=1"] = (live / "dump_requests.txt").read_text("utf-8")
    for path, text in answers.items():
        write(directory / "answers" / re.sub("[/?]", "_", path), text)


def recorded_answers(checkout: Path) -> dict[str, tuple[int, Any]]:
    """Return {path: (status code, body)}, the recorded answers of the API server that tests of the checkout imitate."""
    sys.path.append(str(checkout / "tests"))
    from support import api_server  # importable only after the path has been extended

    return api_server.recorded_answers()
