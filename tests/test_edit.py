"""`apflint.edit`: edits of text, and the replacement of files."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apflint.edit import files, insertion, nesting, places, removal
from apflint.edit.text_edits import CannotEditError, apply_edits
from apflint.fix import Edit
from apflint.load.json import parse_tree as parse_json
from apflint.load.yaml import parse_tree

if TYPE_CHECKING:
    from pathlib import Path


def test_edits_are_made_together_whatever_their_order() -> None:
    assert apply_edits("one two three", [Edit(8, 13, "3"), Edit(0, 3, "1"), Edit(7, 7, "!")]) == "1 two! 3"
    assert apply_edits("one", [Edit(0, 3, "1"), Edit(0, 3, "1")]) == "1"
    assert apply_edits("one", []) == "one"
    assert apply_edits("one two", [Edit(4, 7, "2"), Edit(4, 4, "and "), Edit(3, 3, ",")]) == "one, and 2"


@pytest.mark.parametrize(
    "edits",
    [[Edit(0, 2, "a"), Edit(1, 3, "b")], [Edit(1, 1, "a"), Edit(1, 1, "b")], [Edit(2, 9, "")], [Edit(2, 1, "")]],
)
def test_edits_that_are_at_odds_are_refused(edits: list[Edit]) -> None:
    with pytest.raises(CannotEditError, match="edits overlap"):
        apply_edits("one", edits)


@given(st.text(), st.lists(st.tuples(st.integers(0, 40), st.integers(0, 3), st.text(max_size=3)), max_size=4))
def test_what_no_edit_touches_is_left(text: str, wanted: list[tuple[int, int, str]]) -> None:
    edits, at = [], 0
    for gap, length, new in wanted:
        if at + gap + length > len(text):
            break
        edits.append(Edit(at + gap, at + gap + length, new))
        at += gap + length + 1
    kept = [
        text[before.end : after.start]
        for before, after in zip([Edit(0, 0, ""), *edits], [*edits, Edit(len(text), 0, "")], strict=True)
    ]
    expected = "".join(piece + new for piece, new in zip(kept, [*(edit.new for edit in edits), ""], strict=True))
    assert apply_edits(text, reversed(edits)) == expected


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("a:\n  b: 1 # c\n  c: 2\n", "a:\n  # c\n  c: 2\n"),
        ("a:\r\n  b: 1\r\n  c: 2\r\n", "a:\r\n  c: 2\r\n"),
        ("a:\n  b: 1\nz: 1\n", "z: 1\n"),
        ("a:\n  c: 2\n  b: |\n    x\n  d: 1", "a:\n  c: 2\n  d: 1"),
        ("a: {b: 1, c: 2}", "a: {c: 2}"),
        ("a: {c: 2, b: 1}", "a: {c: 2}"),
        ("a: {b: 1}\nz: 1", "z: 1"),
        ("{x: 1, a: {b: 1}, z: 1}", "{x: 1, z: 1}"),
    ],
)
def test_an_entry_goes_with_all_that_is_its_own(text: str, after: str) -> None:
    root = parse_tree(text, 0, len(text))
    assert root is not None
    assert apply_edits(text, removal.remove_entries(text, root, [("a", "b")])) == after


@pytest.mark.parametrize(
    ("text", "after"),
    [
        # No field: behind the others.
        ("a:\n  c: 2\n", "a:\n  c: 2\n  b: 7\n"),
        ("a:\n  c: 2", "a:\n  c: 2\n  b: 7"),
        ("a:\n  c: 2 # x\n    # y\n  # z\nd: 1\n", "a:\n  c: 2 # x\n    # y\n  b: 7\n  # z\nd: 1\n"),
        ("a:\n  c: |+\n    x\n\n\nd: 1\n", "a:\n  c: |+\n    x\n\n\n  b: 7\nd: 1\n"),
        ("a:\n  c:\n    - d: |\n        # x\n\nd: 1\n", "a:\n  c:\n    - d: |\n        # x\n\n  b: 7\nd: 1\n"),
        ("a:\n  c:\n\nd: 1\n", "a:\n  c:\n  b: 7\n\nd: 1\n"),
        ("a:\n  ? c\n  : 2\n  e: 3\n", "a:\n  ? c\n  : 2\n  e: 3\n  b: 7\n"),
        ("a:\n  c: 2\n  <<: {d: 1}\n", "a:\n  c: 2\n  <<: {d: 1}\n  b: 7\n"),
        ("- c: 2\n", "- c: 2\n  b: 7\n"),
        ("a:\r\n    c: 2\r\n", "a:\r\n    c: 2\r\n    b: 7\r\n"),
        ("a: {c: 2}", "a: {c: 2, b: 7}"),
        ("a: {c: 2,}", "a: {c: 2, b: 7,}"),
        ("a: {c: }", "a: {c: , b: 7}"),
        ("a: {<<: {d: 1}}", "a: {<<: {d: 1}, b: 7}"),
        ('a: {\n  "c": 2\n}', 'a: {\n  "c": 2,\n  "b": 7\n}'),
        ("a: {\n  c: 2 # x\n}", "a: {\n  c: 2, # x\n  b: 7\n}"),
        ("a: {\r\n  c: 2, # x\r\n}", "a: {\r\n  c: 2, # x\r\n  b: 7,\r\n}"),
        ("a: {}", 'a: {"b": 7}'),
        # Nothing there but a null.
        ("a:\n", "a:\n  b: 7\n"),
        ("a: # x", "a: # x\n  b: 7"),
        ("a: ~ # x\n", "a: {b: 7} # x\n"),
        ('{"a": null}', '{"a": {"b": 7}}'),
    ],
)
def test_a_new_key_stands_behind_its_neighbours(text: str, after: str) -> None:
    root = parse_tree(text, 0, len(text))
    assert root is not None
    path = (0, "b") if text.startswith("-") else ("a", "b")
    assert apply_edits(text, insertion.insert_entry(text, root, path, 7)) == after


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("rules: []\n", "type: 7\nrules: []\n"),
        ("# x\n# y\nlimited: {}\n", "type: 7\n# x\n# y\nlimited: {}\n"),
        ("a: 1\n# x\n\n# y\nkind: K # z\n# t\nb: 2\n", "a: 1\n# x\n\n# y\nkind: K # z\ntype: 7\n# t\nb: 2\n"),
        ("{rules: [], kind: K}", "{rules: [], kind: K, type: 7}"),
        ("{kind: K, rules: []}", "{kind: K, type: 7, rules: []}"),
        ("{\n  kind: K, # x\n  # y\n  rules: []\n}", "{\n  kind: K, # x\n  type: 7,\n  # y\n  rules: []\n}"),
        ('{"kind": "K",\n "rules": []}', '{"kind": "K",\n "type": 7,\n "rules": []}'),
        ('{"rules": []}', '{"type": 7, "rules": []}'),
        ('{\n  "rules": []\n}', '{\n  "type": 7,\n  "rules": []\n}'),
    ],
)
def test_a_new_field_stands_where_it_does_by_custom(text: str, after: str) -> None:
    root = parse_tree(text, 0, len(text))
    assert root is not None
    assert apply_edits(text, insertion.insert_entry(text, root, ("type",), 7)) == after


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("- limited: 1\n", "- type: 7\n  limited: 1\n"),
        ("-   limited: 1\n    z: 1\n", "-   type: 7\n    limited: 1\n    z: 1\n"),
        ("-\n  # x\n  limited: 1\n", "-\n  type: 7\n  # x\n  limited: 1\n"),
    ],
)
def test_a_new_first_field_of_an_item_of_a_list(text: str, after: str) -> None:
    root = parse_tree(text, 0, len(text))
    assert root is not None
    assert apply_edits(text, insertion.insert_entry(text, root, (0, "type"), 7)) == after


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("b: 1", "b: 7"),
        ("b: &x !!int 1 # c", "b: &x !!int 7 # c"),
        ("b:", "b: 7"),
        ("b: # c", "b: 7 # c"),
        ("b: null", "b: 7"),
        ("{b: 0x0, c: 1}", "{b: 7, c: 1}"),
    ],
)
def test_a_number_takes_the_place_of_a_value(text: str, after: str) -> None:
    root = parse_tree(text, 0, len(text))
    assert root is not None
    assert apply_edits(text, [places.replace_scalar(text, root, ("b",), 7)]) == after


@pytest.mark.parametrize(
    ("text", "new", "after"),
    [
        ("b: a # c", "workload-low", "b: workload-low # c"),
        ("b: a", "/metrics/cadvisor", "b: /metrics/cadvisor"),
        ("b: a", "/healthz/*", 'b: "/healthz/*"'),
        ("b: a", "false", 'b: "false"'),
        ("b: a", "", 'b: ""'),
        ("b: 'a'", "it's", "b: 'it''s'"),
        ('b: "a"', "c", 'b: "c"'),
        ("b: 1", "c", 'b: "c"'),
    ],
)
def test_a_text_takes_the_place_of_a_value(text: str, new: str, after: str) -> None:
    root = parse_tree(text, 0, len(text))
    assert root is not None
    assert apply_edits(text, [places.replace_scalar(text, root, ("b",), new)]) == after


def test_keys_and_texts_keep_their_quotes() -> None:
    for text, after in (
        ("'b': g/v1x", "'c': g/v1"),
        ('&k "b": &a "g/v1x" # v1x', '&k "c": &a "g/v1" # v1x'),
        ("? b\n: 'g/v1x'", "? c\n: 'g/v1'"),
        ("b: >-\n  g/v1x\nd: 1", "c: >-\n  g/v1\nd: 1"),
        ('"\\x62": "g/\\x761x"', '"c": "g/v1"'),
    ):
        root = parse_tree(text, 0, len(text))
        assert root is not None
        edits = [places.rename_key(text, root, ("b",), "c"), places.replace_part(text, root, ("b",), "v1x", "v1")]
        assert apply_edits(text, edits) == after
    text = '{"b": "g\\/v1x"}'
    assert (
        apply_edits(text, [places.replace_part(text, parse_json(text, 0, len(text)), ("b",), "v1x", "v1")])
        == '{"b": "g\\/v1"}'
    )


@pytest.mark.parametrize("text", ["x: &x {b: 1, c: 1}\na:\n  <<: *x\n", "x: &x {b: 1}\na: *x\n"])
def test_what_comes_from_another_place_is_not_removed_here(text: str) -> None:
    root = parse_tree(text, 0, len(text))
    assert root is not None
    with pytest.raises(CannotEditError):
        removal.remove_entries(text, root, [("a", "b")])
    assert places.find_alias(root, ("a", "b")) is not None
    assert places.find_alias(root, ("x", "b")) is None


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"])
def test_encodings_are_kept(mark: bytes) -> None:
    codec = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}.get(mark, "utf-8")
    data = mark + "näh 🎈\r\n".encode(codec)
    text, encoding = files.decode(data)
    assert text == "näh 🎈\r\n"
    assert encoding.encode(text) == data


def test_a_file_is_replaced_with_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(b"old")
    path.chmod(0o640)
    files.replace(str(path), b"old", b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert os.listdir(tmp_path) == ["a.yaml"]


def test_a_link_stays_and_its_goal_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    goal, link = tmp_path / "deep" / "goal.yaml", tmp_path / "link.yaml"
    goal.write_bytes(b"old")
    link.symlink_to("deep/goal.yaml")
    files.replace(str(link), b"old", b"new")
    assert link.is_symlink()
    assert goal.read_bytes() == b"new"


@pytest.mark.parametrize("now", [b"newer", b"old and more", b"ol", b""])
def test_a_file_that_changed_meanwhile_is_left(tmp_path: Path, now: bytes) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(now)
    with pytest.raises(files.NotReplacedError, match="changed"):
        files.replace(str(path), b"old", b"new")
    assert path.read_bytes() == now
    assert os.listdir(tmp_path) == ["a.yaml"]


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(b"old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        files.replace(str(path), b"old", b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.yaml"]


def test_a_file_in_a_folder_that_takes_no_other_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(b"old")

    def refused(**_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.mkstemp", refused)
    with pytest.raises(files.NotReplacedError, match="cannot create a file in its directory: Permission denied"):
        files.replace(str(path), b"old", b"new")
    assert path.read_bytes() == b"old"


def test_a_read_only_file_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, "access", lambda _path, mode: mode != os.W_OK)  # root may write everything
    with pytest.raises(files.NotReplacedError, match="read-only"):
        files.replace(str(path), b"old", b"new")
    assert path.read_bytes() == b"old"


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("b: x # c\n", "b: {name: x} # c\n"),
        ("b: 'x: y'\n", "b: {name: 'x: y'}\n"),
        ("b: x, y\n", 'b: {name: "x, y"}\n'),
        ("b: &a system:x\n", "b: &a {name: system:x}\n"),
        ('{"b": "x"}', '{"b": {"name": "x"}}'),
    ],
)
def test_a_text_becomes_the_only_entry_of_a_mapping(text: str, after: str) -> None:
    root = parse_tree(text, 0, len(text))
    assert root is not None
    assert apply_edits(text, [places.wrap_scalar(text, root, ("b",), "name")]) == after


@pytest.mark.parametrize("text", ["b: 7", "b: |\n  x\n", "b: [x]", "b:", "c: x"])
def test_what_is_no_text_on_one_line_is_not_wrapped(text: str) -> None:
    root = parse_tree(text, 0, len(text))
    assert root is not None
    with pytest.raises(CannotEditError):
        places.wrap_scalar(text, root, ("b",), "name")


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("b: 1\nc: 2\nd: 3\n", "a:\n  b: 1\n  c: 2\nd: 3\n"),
        ("- b: 1 # x\n  # y\n\n  c: 2\n", "- a:\n    b: 1 # x\n    # y\n\n    c: 2\n"),
        ("b:\r\n  - x\r\nc: |\r\n  y\r\n\r\n   z\r\n", "a:\r\n  b:\r\n    - x\r\n  c: |\r\n    y\r\n\r\n     z\r\n"),
        ("c: {x: 1,\n  y: 2}\nb: 'u\n  v'\n", "a:\n  c: {x: 1,\n    y: 2}\n  b: 'u\n    v'\n"),
        ("{d: 3, b: 1, c: 2}", "{d: 3, a: {b: 1, c: 2}}"),
        ('{"b": 1,\n "c": [2]}', '{"a": {"b": 1,\n "c": [2]}}'),
        # What stands apart, with the comments that are its own.
        ("b: 1\nd: 3\nc: 2\n", "a:\n  b: 1\n  c: 2\nd: 3\n"),
        ("- c: 2 # x\n    # y\n  # z\n  d: 3\n  b: 1", "- a:\n    c: 2 # x\n    # y\n    b: 1\n  # z\n  d: 3\n"),
        (
            "b: 1\r\nd: 3\r\n\r\n# x\r\nc: # y\r\n- z\r\n\r\n  # u\r\ne: 4\r\n",
            "a:\r\n  b: 1\r\n  # x\r\n  c: # y\r\n  - z\r\nd: 3\r\n\r\n\r\n  # u\r\ne: 4\r\n",
        ),
        ("{b: 1, d: 3, c: 2}", "{a: {b: 1, c: 2}, d: 3}"),
        ('{"c": 2,\n "d": 3,\n "b": 1\n}', '{"a": {"c": 2, "b": 1},\n "d": 3\n}'),
    ],
)
def test_entries_move_into_a_mapping_with_all_their_lines(text: str, after: str) -> None:
    root = parse_tree(text, 0, len(text))
    assert root is not None
    path = (0, "a") if text.startswith("-") else ("a",)
    assert apply_edits(text, nesting.nest_entries(text, root, path, ("b", "c"))) == after


@pytest.mark.parametrize(
    "text", ["{b: 1, d: 3, # x\n c: 2}", "b: 1\n", "? b\n: 1\nc: 2\n", "b: 1\nd: 3\n? c\n: 2\n", "<<: {b: 1}\nc: 2\n"]
)
def test_entries_that_do_not_stand_on_lines_of_their_own_are_left(text: str) -> None:
    root = parse_tree(text, 0, len(text))
    assert root is not None
    with pytest.raises(CannotEditError):
        nesting.nest_entries(text, root, ("a",), ("b", "c"))


@pytest.mark.parametrize(
    ("text", "path", "after"),
    [
        ("a: {x: [1, 2, 3]}", ("a", "x", 1), "a: {x: [1, 3]}"),
        ("- b: 1\n  c: 2\n", (0, "b"), "- c: 2\n"),
        ("- b: 1 # why\n  # more\n  c: 2\n", (0, "b"), "- # why\n  # more\n  c: 2\n"),
        ("a:\r\n- b: 1\r\n  c: 2\r\n", ("a", 0, "b"), "a:\r\n- c: 2\r\n"),
        ("a:\n  - x # why\n  - y\n", ("a", 0), "a:\n  # why\n  - y\n"),
    ],
)
def test_the_first_one_of_an_item_leaves_its_dash(text: str, path: tuple[str | int, ...], after: str) -> None:
    root = parse_tree(text, 0, len(text))
    assert root is not None
    assert apply_edits(text, removal.remove_entries(text, root, [path])) == after


@pytest.mark.parametrize(
    ("text", "paths", "told"),
    [
        ("a: [x, y]", [("a", 0), ("a", 1)], "the list would be empty"),
        ("a: [x]", [("a", 0)], "the list would be empty"),
        ("a: [x]", [("a", 1)], "there is no such list"),
        ("a: [x]", [("a", "x")], "there is no such list"),
        ("a: x", [("a", 0)], "there is no such list"),
        ("- b: {c: 1}\n", [(0, "b")], "it shares a line with something else"),
        ("- {b: 1}\n", [(0, "b")], "nothing would be left"),
        ("- - a\n  - b\n", [(0, 0)], "it shares a line with something else"),
        ("a: {b: 1}\n", [("a", "x")], "there is no `x`"),
        ("a: {b: 1}\n", [("x", "b", "c")], "there is no such mapping"),
    ],
)
def test_what_cannot_be_removed_is_said(text: str, paths: list[tuple[str | int, ...]], told: str) -> None:
    root = parse_tree(text, 0, len(text))
    assert root is not None
    with pytest.raises(CannotEditError, match=told):
        removal.remove_entries(text, root, paths)


@pytest.mark.parametrize(
    ("text", "path", "told"),
    [
        ("a: x", ("a", "b"), "there is no such mapping"),
        ("a: [x]", ("a", 0, "b"), "there is no such mapping"),
        ("a: !!map\n", ("a", "b"), "there is no such mapping"),
        ("{a: }", ("a", "b"), "it shares a line with something else"),
        ("? b\n: 1\n", ("c",), "it shares a line with something else"),
    ],
)
def test_where_no_key_can_be_put_in_is_said(text: str, path: tuple[str | int, ...], told: str) -> None:
    root = parse_tree(text, 0, len(text))
    assert root is not None
    with pytest.raises(CannotEditError, match=told):
        insertion.insert_entry(text, root, path, 7)


def test_nothing_moves_where_there_is_no_mapping() -> None:
    text = "a: [b]\n"
    root = parse_tree(text, 0, len(text))
    assert root is not None
    for path in (("a", "x"), ("a", 0, "x"), ("z", "x")):
        with pytest.raises(CannotEditError, match="there is no such mapping"):
            nesting.nest_entries(text, root, path, ("b",))
    assert places.find_alias(root, ("z", "x")) is None


def test_only_regular_files_are_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "."):
        with pytest.raises(files.NotReplacedError, match="it is not a regular file"):
            files.replace(str(tmp_path / name), b"old", b"new")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may give files away")
def test_a_file_of_somebody_else_stays_theirs(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(b"old")
    os.chown(path, 1234, 4321)
    path.chmod(0o4750)
    files.replace(str(path), b"old", b"new")
    status = path.stat()
    assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (1234, 4321, 0o4750)


def test_whoever_may_not_give_files_away_replaces_them_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, true = [], os.fstat

    def somebody_elses(descriptor: int) -> os.stat_result:
        return os.stat_result([*true(descriptor)[:4], 77, 88, *true(descriptor)[6:10]])

    def refused(_: int, user: int, group: int) -> None:
        asked.append((user, group))
        raise PermissionError(1, "Operation not permitted")

    path = tmp_path / "a.yaml"
    path.write_bytes(b"old")
    path.chmod(0o604)
    monkeypatch.setattr(os, "fstat", somebody_elses)
    monkeypatch.setattr(os, "fchown", refused)
    files.replace(str(path), b"old", b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o604
    assert asked == [(path.stat().st_uid, path.stat().st_gid)]


def test_a_folder_that_cannot_be_opened_does_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, true, tried = tmp_path / "a.yaml", os.open, []
    path.write_bytes(b"old")

    def opened(name: str, *rest: int, **more: int) -> int:
        if name == str(tmp_path):
            tried.append(name)
            raise PermissionError(13, "Permission denied")
        return true(name, *rest, **more)

    monkeypatch.setattr(os, "open", opened)
    files.replace(str(path), b"old", b"new")
    assert path.read_bytes() == b"new"
    assert tried == [str(tmp_path)]
