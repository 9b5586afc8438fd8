"""Files with hostile text: each has a finding or none, and the other file in the directory is still checked."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from limited import HEAD, HEAD_JSON, apflint, checked

from apflint.budgets import MAX_VIOLATIONS

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

JSON = HEAD_JSON.replace(b"{}", b'{"matchingPrecedence": 1,\n"matchingPrecedence": 1}')
LIST_ITEM = "- apiVersion: flowcontrol.apiserver.k8s.io/v1\n  kind: FlowSchema\n  metadata: {name: a%d, name: b}\n"


def bomb(line: str, first: str) -> str:
    """Return a "billion laughs" document: nine levels of aliases, each with ten aliases of the previous level."""
    lines = [first] + [line.replace("I", str(i)).replace("J", f"*a{i - 1}") for i in range(1, 20)]
    return "\n".join(lines) + "\n" + HEAD


ALIASES = {
    "lists": bomb("aI: &aI [J, J, J, J, J, J, J, J, J, J]", "a0: &a0 [x]"),
    "mappings": bomb("aI: &aI {a: J, b: J, c: J, d: J, e: J, f: J, g: J, h: J, i: J, j: J}", "a0: &a0 {x: 1}"),
    "merges": bomb("aI: &aI {<<: [J, J, J, J, J, J, J, J, J, J]}", "a0: &a0 {x: 1}"),
    "depth": bomb("aI: &aI " + "[" * 150 + "J" + "]" * 150, "a0: &a0 [x]"),
    "merged depth": bomb("aI: &aI " + "{<<: " * 150 + "J" + "}" * 150, "a0: &a0 {x: 1}"),
}
NESTED = {
    "brackets": HEAD + "  x: " + "[" * 10_000 + "]" * 10_000 + "\n",
    "braces": HEAD + "  x: " + "{a: " * 10_000 + "}" * 10_000 + "\n",
    "open brackets": HEAD + "  x: " + "[" * 1_000_000,
    "dashes": HEAD + "x:\n" + "- " * 1_000_000 + "a\n",
    "questions": HEAD + "x:\n" + "? " * 10_000 + "a\n",
    "lines": HEAD + "x:\n" + "".join(" " * i + "a:\n" for i in range(1, 1500)),
    "a million values": HEAD + "  x: [" + "a," * 1_200_000 + "]\n",
}


REFUSED = ("lists", "mappings", "merges")
"""Documents that go-yaml also rejects. For other documents, which only exceed limits of apflint, the message does not
state what a server does."""


@pytest.mark.parametrize("name", [*ALIASES, *NESTED])
def test_bombs_are_unsafe_documents(name: str, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text({**ALIASES, **NESTED}[name])
    run, findings = checked(tmp_path, printed=True)
    assert [finding["rule"] for finding in findings] == ["APF004"]
    assert findings[0]["apiserver"] == ({"reason": "BadRequest", "field": ""} if name in REFUSED else None)
    assert run.status == 1


@pytest.mark.parametrize("text", ['{"a": ' * 10_000, "[" * 10_000 + "]" * 10_000, '[{"a": ' * 200_000])
def test_json_bombs(text: str, tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text('{"kind": "FlowSchema", "spec": ' + text)
    _, findings = checked(tmp_path)
    assert [finding["rule"] for finding in findings] == ["APF004"]


VALUES = {
    "decimal": "9" * 1_000_000,
    "negative": "-" + "9" * 1_000_000,
    "hexadecimal": "0x" + "f" * 1_000_000,
    "octal": "0" + "7" * 1_000_000,
    "exponent": "1e" + "9" * 1_000_000,
    "underscores": ".1" + "_1" * 500_000 + "x",
    "not a number": ".nan",
    "infinite": "-.inf",
    "text": "x" * 5_000_000,
    "quoted": "'" + "x " * 2_000_000 + "'",
    "block": "|\n" + "    line\n" * 300_000,
    "overflow": "1e400",
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_huge_values_are_findings(value: str, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(HEAD + f"  matchingPrecedence: {value}\n")
    run, findings = checked(tmp_path)
    assert [finding["rule"] for finding in findings] == ["APF102"]
    assert run.status == 1


def test_a_huge_number_in_json(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text('{"kind": "FlowSchema", "spec": {"a": ' + "9" * 1_000_000 + "}}")
    _, findings = checked(tmp_path)
    assert [finding["rule"] for finding in findings] == ["APF001"]


@pytest.mark.parametrize(
    "tag", ["!!python/object/apply:os.system", "!!python/object/new:os.system", "!!python/name:os.system"]
)
def test_tags_have_no_effect(tag: str, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(HEAD + f"  a: {tag} [touch pwned]\n  b: {tag} 'touch pwned'\n")
    run, findings = checked(tmp_path)
    assert [(finding["rule"], finding["line"]) for finding in findings] == [("APF101", 8), ("APF101", 9)]
    assert run.status == 1
    assert not (tmp_path / "pwned").exists()


CHARACTERS = {
    "NUL": HEAD + "  a: b\0c\n",
    "escape": HEAD + "  a: \x1b]0;pwned\x07\n",
    "surrogate escape": HEAD + '  a: "\\ud800"\n',
    "delete": HEAD + "# \x7f\n",
}


@pytest.mark.parametrize("text", CHARACTERS.values(), ids=CHARACTERS)
def test_invalid_characters(text: str, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(text)
    run, findings = checked(tmp_path, printed=True)
    assert [finding["rule"] for finding in findings] == ["APF001"]
    assert run.status == 1


def test_escapes_in_values_do_not_reach_the_terminal(tmp_path: Path) -> None:
    """`checked` looks for control characters in what is printed."""
    name = '"\\e[31m\\u202e\\x07\\x9b\\r\\n::error::\\0"'
    (tmp_path / "bad.yaml").write_text(HEAD.replace("name: x", f"name: {name}") + f"  {name}: {name}\n")
    (tmp_path / "bad.json").write_text(
        '{"kind": "FlowSchema", "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "\\u001b\\ud800": 1}'
    )
    run, findings = checked(tmp_path, printed=True)
    assert {finding["rule"] for finding in findings} >= {"APF101", "APF103"}
    assert run.status == 1


@pytest.mark.parametrize(
    ("data", "rules"),
    [
        (HEAD.encode() + b"  a: \xff\xfe\n", ["APF004"]),
        (HEAD.encode("latin-1") + "# é".encode("latin-1"), ["APF004"]),
        (HEAD.encode() + b"  a: \xed\xa0\x80\n", ["APF004"]),
        (HEAD.encode() + b"  a: \xc0\x80\n", ["APF004"]),
        (bytes(range(256)) * 1000 + b"FlowSchema", ["APF004"]),
        (b"\x7fELF" + b"\x00\xff" * 100_000, []),
        (b"\xff\xfe" + HEAD.encode("utf-16-le")[:-1], ["APF004"]),
        (b"\xff\xfe" + (HEAD + "  a: 1\n").encode("utf-16-le"), ["APF101"]),
        (b"\xfe\xff" + (HEAD + "  a: 1\n").encode("utf-16-be"), ["APF101"]),
        (
            (HEAD + "  a: 1\n").encode("utf-16-le"),
            [],
        ),  # like Kubernetes, apflint does not detect UTF-16 without a byte order mark
        ((HEAD + "  a: 1\n").encode("utf-16-be"), []),
        ((HEAD + "  a: 1\n").encode("utf-8-sig"), ["APF101"]),
        ((HEAD + "  a: 1\n").replace("\n", "\r\n").encode(), ["APF101"]),
        ((HEAD + "  a: 1\n").replace("\n", "\r").encode(), ["APF101"]),
        (b"", []),
        (b"\0" * 100_000 + b"FlowSchema", ["APF001"]),
    ],
)
def test_encodings(data: bytes, rules: list[str], tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_bytes(data)
    run, findings = checked(tmp_path, printed=True)
    assert [finding["rule"] for finding in findings] == rules
    assert all(finding["line"] == 8 for finding in findings if finding["rule"] == "APF101")
    assert run.status == 1


MANY = {
    "duplicate keys": (HEAD + "  matchingPrecedence: 7\n" * 3_000, 1_000, 1_000),
    "keys twice": (HEAD + "".join(f"  k{i}: 1\n  k{i}: 2\n" for i in range(1_500)), 2_000, 1_000),
    "unknown keys": (HEAD + "".join(f"  k{i}: 1\n" for i in range(3_000)), 1_000, 1_000),
    "merges": ("r: &r {z: 1}\n" + HEAD + "  <<: *r\n" * 3_000, 1_002, 1_000),
    "aliases": ("r: &r {z: 1}\n" + HEAD + "  x:\n" + "  - *r\n" * 30_000, 2, 0),
    "anchors": (HEAD + "  x:\n" + "".join(f"  - &a{i} 1\n" for i in range(30_000)), 1, 0),
    "list items": (HEAD + "  x:\n" + "  - a\n" * 100_000, 1, 0),
    "list items in a line": (HEAD + "  x: [" + "a, " * 100_000 + "]\n", 1, 0),
    "strings before a number": (HEAD + "  rules: [{resourceRules: [{verbs: [" + "get, " * 150_000 + "5]}]}]\n", 1, 0),
    "syntax errors": ("---\n".join([HEAD + "a: b: c\n"] * 3_000), 1_000, 2_000),
    "errors of structure": ("---\n".join([HEAD + "a: *x\n"] * 3_000), 1_000, 2_000),
    "templates": ("---\n".join([HEAD + "{{ x }}\na: [\n"] * 3_000), 1, 0),
    "near misses": ("---\n".join([HEAD.replace("kind: FlowSchema", "kind: FlowShema")] * 3_000), 1_000, 2_000),
    "items with duplicates": (
        "apiVersion: v1\nkind: List\nitems:\n" + "".join(LIST_ITEM % i for i in range(1_000)),
        2_000,
        0,
    ),
    "other documents": ("---\n".join(["kind: ConfigMap\nmetadata: {name: a}\n"] * 50_000), 0, 0),
    "empty documents": ("---\n" * 200_000 + "# FlowSchema\n", 0, 0),
    "empty lines": ("\n" * 2_000_000 + HEAD, 0, 0),
    "comments": ("# FlowSchema\n" * 100_000 + HEAD, 0, 0),
    "an open quote": (HEAD + "  x: 'abc\n" + "  y: z\n" * 200_000, 1, 0),
    "an open bracket": (HEAD + "  x: [abc\n" + "  y, z\n" * 50_000, 1, 0),
    "half variables": (HEAD + "a: " + "${" * 300_000 + "\nb: c: d\n", 1, 0),
    "half heredocs": (HEAD + "a: " + "<<" * 300_000 + "\nb: c: d\n", 1, 0),
    "blanks": (HEAD + " " * 2_000_000 + "b: c: d\n", 1, 0),
    "a long key": (HEAD + "  " + "k" * 1_000_000 + ": 1\n", 1, 0),
    "directives": ("%YAML 1.1\n# FlowSchema\n" * 20_000 + "---\n" + HEAD, 1, 0),
}


@pytest.mark.parametrize(("text", "reported_count", "left_out"), MANY.values(), ids=MANY)
def test_many_of_a_kind(text: str, reported_count: int, left_out: int, tmp_path: Path) -> None:
    """A thousand findings per rule and file are reported. Further findings are only counted, if counting is cheap."""
    (tmp_path / "bad.yaml").write_text(text)
    run, findings = checked(tmp_path, "--select", "APF0,APF101,APF102,APF201,APF204")
    assert len(findings) == reported_count
    assert json.loads(run.out)["summary"].get("leftOut", 0) == left_out
    assert any("are not reported" in note for finding in findings for note in finding["notes"]) == bool(left_out)


@pytest.mark.parametrize(
    ("data", "rules"),
    [
        (b'{"kind": "FlowSchema", "spec": {"a": NaN}}', ["APF001"]),
        (b'{"kind": "FlowSchema", "spec": {"a": "b\0c"}}', ["APF001"]),
        (b'{"kind": "FlowSchema", "spec": {"a": "\xff"}}', ["APF004"]),
        (b'{"kind": "FlowSchema", "spec": {"a": "\xed\xa0\x80"}}', ["APF004"]),
        (b"\xef\xbb\xbf" + JSON, ["APF002"]),
        (b"\xff\xfe" + JSON.decode().encode("utf-16-le"), ["APF002"]),
        (b"\xfe\xff" + JSON.decode().encode("utf-16-be"), ["APF002"]),
        (JSON.decode().encode("utf-16-be"), []),
        (JSON.replace(b"\n", b"\r\n"), ["APF002"]),
        (
            JSON.replace(b'"name": "x"', b'"name": "\\ud800"'),
            ["APF103", "APF002"],
        ),  # Go reads the lone surrogate as U+FFFD, which is not valid in a name
        (b'{"kind": "FlowSchema", "a": [*x, !!python/name:os.system]}', ["APF001"]),
        (bytes(range(256)) * 1000 + b"FlowSchema", ["APF004"]),
        (b"\0" * 100_000 + b"FlowSchema", ["APF001"]),
        (b'{"kind": "FlowSchema", "a": x\n}\n' + JSON, ["APF001", "APF002"]),
    ],
)
def test_the_same_in_json(data: bytes, rules: list[str], tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_bytes(data)
    run, findings = checked(tmp_path, "--select", "APF0,APF1", "--extend-select", "APF201", printed=True)
    assert [finding["rule"] for finding in findings if finding["rule"] != "APF201"] == rules
    assert run.status == 1


def test_what_is_set_aside_is_not_left_out(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("# apflint: file-ignore[APF101] generated\n" + MANY["unknown keys"][0])
    run, findings = checked(tmp_path, "--select", "APF0,APF101,APF201")
    summary = json.loads(run.out)["summary"]
    assert findings == []
    assert (summary["errors"], summary["suppressed"], summary["leftOut"]) == (1, MAX_VIOLATIONS, 0)


def test_thousands_of_good_documents(tmp_path: Path) -> None:
    text = "---\n".join(HEAD.replace("name: x", f"name: x{i}") for i in range(1_500))
    (tmp_path / "bad.yaml").write_text(text)
    run, findings = checked(tmp_path, "--select", "APF0,APF1,APF2")
    assert findings == []
    assert run.status == 1


@pytest.mark.parametrize(
    "blanks", ["# Source: a" + " " * 300_000 + "b\n", "# Source: " + " " * 300_000 + "\n", "# Source: a\n" * 2_000]
)
def test_what_looks_like_the_output_of_helm(blanks: str, tmp_path: Path) -> None:
    run = apflint(tmp_path, "check", "-", stdin=(blanks + HEAD + "  a: 1\n").encode())
    assert "APF101" in run.out
    assert run.status == 1
