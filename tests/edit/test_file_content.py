"""Atomic replacement of files, and their encodings."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from apflint.edit import file_content

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"])
def test_encoding_is_kept(mark: bytes) -> None:
    codec = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}.get(mark, "utf-8")
    data = mark + "näh 🎈\r\n".encode(codec)
    text, encoding = file_content.decode(data)
    assert text == "näh 🎈\r\n"
    assert encoding.encode(text) == data


def test_permissions_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(b"old")
    path.chmod(0o640)
    file_content.replace(str(path), b"old", b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert os.listdir(tmp_path) == ["a.yaml"]


def test_target_of_a_link_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    goal, link = tmp_path / "deep" / "goal.yaml", tmp_path / "link.yaml"
    goal.write_bytes(b"old")
    link.symlink_to("deep/goal.yaml")
    file_content.replace(str(link), b"old", b"new")
    assert link.is_symlink()
    assert goal.read_bytes() == b"new"


@pytest.mark.parametrize("now", [b"newer", b"old and more", b"ol", b""])
def test_changed_file_is_not_replaced(tmp_path: Path, now: bytes) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(now)
    with pytest.raises(file_content.NotReplacedError, match="changed"):
        file_content.replace(str(path), b"old", b"new")
    assert path.read_bytes() == now
    assert os.listdir(tmp_path) == ["a.yaml"]


def test_failure_leaves_the_old_file_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(b"old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        file_content.replace(str(path), b"old", b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.yaml"]


def test_file_in_a_read_only_directory_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(b"old")

    def refused(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("apflint.atomic_write.open", refused, raising=False)
    with pytest.raises(
        file_content.NotReplacedError, match="cannot create a file in the same directory: Permission denied"
    ):
        file_content.replace(str(path), b"old", b"new")
    assert path.read_bytes() == b"old"


def test_read_only_file_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(b"old")
    # os.access would permit root to write every file.
    monkeypatch.setattr(os, "access", lambda _path, mode: mode != os.W_OK)
    with pytest.raises(file_content.NotReplacedError, match="read-only"):
        file_content.replace(str(path), b"old", b"new")
    assert path.read_bytes() == b"old"


def test_only_regular_files_are_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "."):
        with pytest.raises(file_content.NotReplacedError, match="it is not a regular file"):
            file_content.replace(str(tmp_path / name), b"old", b"new")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may give files away")
def test_owner_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(b"old")
    os.chown(path, 1234, 4321)
    path.chmod(0o4750)
    file_content.replace(str(path), b"old", b"new")
    status = path.stat()
    assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (1234, 4321, 0o4750)


def test_file_is_replaced_if_its_owner_cannot_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    file_content.replace(str(path), b"old", b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o604
    assert asked == [(path.stat().st_uid, path.stat().st_gid)]
