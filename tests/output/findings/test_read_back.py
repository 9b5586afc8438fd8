"""Independent parsers read the same findings from all reports of a run, even if manifests are hostile."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support.hostile_manifests import FILES, ODD_DIRECTORIES, ODD_NAMES, texts

from apflint.cli.app import run
from output.findings.readers import FORMATS, PEOPLE, compared, expected, read_command, read_json, read_markdown

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow

LAWS = settings(derandomize=True, max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@contextlib.contextmanager
def directory(files: dict[str, bytes]) -> Iterator[Path]:
    """Create a directory with those files whose names the file system accepts, and make it the current directory."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        path = Path(name, "project")
        path.mkdir()
        for file, data in files.items():
            with contextlib.suppress(OSError):
                (path / file).parent.mkdir(exist_ok=True)
                (path / file).write_bytes(data)
        os.chdir(path)
        try:
            yield path
        finally:
            os.chdir(before)


def in_process(files: dict[str, bytes]) -> dict[str, str]:
    """Return the reports of one run of the command in all formats."""
    output = io.StringIO()
    with directory(files) as path, contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        reports = [f"--report={name}={path.parent / name}" for name in (*FORMATS, *PEOPLE)]
        assert run(["check", "--isolated", "--verbose", *reports]) in (0, 1), output.getvalue()
        assert not list(filter(None, map(read_command, output.getvalue().split("\n"))))
        return {name: (path.parent / name).read_bytes().decode() for name in (*FORMATS, *PEOPLE)}


@given(FILES)
@example(
    {
        f"{name}.yaml": b"{apiVersion: flowcontrol.apiserver.k8s.io/v1, kind: FlowSchema, x: 1}\n---\nkind: Pod\napiVersion: v1"
        for name in ODD_NAMES
    }
)
@LAWS
def test_every_report_shows_the_same_findings(files: dict[str, bytes]) -> None:
    compared(in_process(files))


@pytest.mark.parametrize("name", ODD_DIRECTORIES)
def test_tables_for_directories_read_back(name: str) -> None:
    """Check help with settings tables. Formats with a single string omit the tables, but the message contains their paths."""
    level = b"{apiVersion: flowcontrol.apiserver.k8s.io/v1, kind: PriorityLevelConfiguration, metadata: {name: twice}}"
    reports = in_process({f"{name}/a.yaml": level, "plain/a.yaml": level})
    compared(reports)
    (found,) = (load for load in json.loads(reports["json"])["findings"] if " both define " in load["message"])
    tables = tomllib.loads(found["help"].partition(":\n")[2])
    if os.fsencode(name) == name.encode("utf-8", "replace"):
        assert {path for table in tables["cluster"] for path in table["paths"]} == {name, "plain"}
        lines = {line.strip() for line in reports["text"].split("\n")}
        assert lines >= set(found["help"].split("\n")[1:])
    else:  # apflint.toml cannot contain this name, because the name is not UTF-8
        assert not tables
        assert found["help"].endswith("add the output of `apflint config --suggest-clusters` to apflint.toml")


ODD = {
    f"{name}.yaml": (
        "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: FlowSchema\n"
        f"metadata: {{name: {json.dumps(name)}, labels: {{a: {json.dumps(name)}}}}}\n"
        f"spec: {{{json.dumps('::error::]]>|`<' + name)}: 1}}\n"
    ).encode("utf-8", "surrogatepass")
    for name in ODD_NAMES
}


@pytest.mark.parametrize(
    ("environment", "encoding"),
    [
        ({"LC_ALL": "C.UTF-8"}, "utf-8"),
        ({"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, "ascii"),
    ],
)
def test_output_of_a_process_reads_back(environment: dict[str, str], encoding: str) -> None:
    """Check standard output in locales with different character sets, and the summary of a GitHub job."""
    with directory(ODD) as path:
        summary = path.parent / "summary"
        variables = {**os.environ, **environment, "GITHUB_STEP_SUMMARY": str(summary)}
        printed = {}
        for name in (*FORMATS, *PEOPLE):
            command = [sys.executable, "-m", "apflint", "check", "--isolated", "--format", name]
            done = subprocess.run(command, env=variables, check=False, capture_output=True, timeout=60)
            assert done.returncode == 1, done.stderr
            assert all(map(str.isprintable, done.stderr.decode(encoding).split("\n")))
            printed[name] = done.stdout.decode(encoding)
        assert compared(printed, encoding) > len(ODD)
        rows = read_markdown(summary.read_text("utf-8"))
        assert Counter(rows) == Counter(expected(found, "markdown") for found in read_json(printed["json"]))


@given(st.sampled_from(["<stdin>", *ODD_NAMES]), texts())
@settings(LAWS, max_examples=30)
def test_name_of_standard_input_is_printed(name: str, data: bytes) -> None:
    output = io.StringIO()
    with directory({"input": data}) as path, contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        reports = [f"--report={output_format}={path.parent / output_format}" for output_format in (*FORMATS, *PEOPLE)]
        with pytest.MonkeyPatch.context() as patch, (path / "input").open(encoding="latin-1") as stream:
            patch.setattr(sys, "stdin", stream)
            assert run(["check", "-", "--isolated", f"--stdin-filename={name}", *reports]) in (0, 1), output.getvalue()
        compared(
            {
                output_format: (path.parent / output_format).read_bytes().decode()
                for output_format in (*FORMATS, *PEOPLE)
            }
        )


COMMANDS = """\
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {name: "::error::x##[add-mask]y"}
spec: {type: Limited, limited: {nominalConcurrencyShares: 5, limitResponse: {type: Reject}}}
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: "::error::f##[add-mask]y"}
spec:
  matchingPrecedence: 5
  priorityLevelConfiguration: {name: "::error::x##[add-mask]y"}
  rules:
  - subjects: [{kind: User, user: {name: "::error::u##[add-mask]y"}}]
    resourceRules: [{verbs: [get], apiGroups: [""], resources: [pods], namespaces: ["*"]}]
"""


@pytest.mark.parametrize(
    "line",
    [
        "limits a.yaml",
        "diff defaults:1.36 a.yaml",
        "diff --format markdown defaults:1.36 a.yaml",
        "explain get pods -n x --as ::error::u##[add-mask]y -f a.yaml",
        "explain get pods -n x --as alice -v -f a.yaml",
        "graph a.yaml",
        "graph --format dot a.yaml",
        "shards --flow-schema ::error::x --distinguisher ::error::y --queues 64 --hand-size 4",
        "config --config ::error::x##[add-mask]y",
        "rule ::error::x##[add-mask]y",
        "schema ::error::x##[add-mask]y",
    ],
)
def test_no_output_line_is_a_command(line: str) -> None:
    output = io.StringIO()
    with (
        directory({"a.yaml": COMMANDS.encode()}),
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(output),
    ):
        assert run(line.split(" ")) in (0, 1, 2)
    assert output.getvalue()
    for shown in output.getvalue().split("\n"):
        assert read_command(shown) is None
        assert "##[" not in shown
