"""Discovery and reading of input files: order, skipped files, and failures of the file system."""

from __future__ import annotations

import io
import os
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from conftest import UNMEASURED
from hypothesis import assume, given
from hypothesis import strategies as st

from apflint.settings.patterns import Patterns
from apflint.sources import file_reading
from apflint.sources.discovery import FoundFile, discover_files
from apflint.sources.file_reading import UnreadableInput, may_hold_apf, read_file

if TYPE_CHECKING:
    from pathlib import Path

APF = b"apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: FlowSchema\n"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to an empty directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def put(directory: Path, *names: str, data: bytes = APF) -> None:
    for name in names:
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def names(*paths: str, exclude: tuple[str, ...] = (), force_exclude: bool = False) -> list[str]:
    found = list(discover_files(paths, Patterns(exclude), force_exclude))
    assert not [file for file in found if file.problem]
    return [file.name for file in found]


def reason(path: str) -> str:
    (found,) = discover_files([path])
    answer = read_file(found)
    assert isinstance(answer, UnreadableInput)
    return answer.reason


def test_directory_stands_for_its_manifests_sorted(tree: Path) -> None:
    put(tree, "b.yml", "a.yaml", "c.json", "c.txt", "yaml", "a/z.yaml", "a/b/c/deep.json", "b/x.yaml")
    expected = ["a/b/c/deep.json", "a/z.yaml", "a.yaml", "b/x.yaml", "b.yml", "c.json"]
    assert names(".") == expected
    assert names("./") == expected
    assert names(str(tree)) == [f"{tree}/{name}" for name in expected]
    assert names("a/") == names("./a") == names("a") == ["a/b/c/deep.json", "a/z.yaml"]


def test_order_is_that_of_the_arguments(tree: Path) -> None:
    put(tree, "a/1.yaml", "b/1.yaml")
    assert names("b", "a") == ["b/1.yaml", "a/1.yaml"]


def test_named_file_may_have_any_name(tree: Path) -> None:
    put(tree, "manifest.txt", ".hidden/x.yaml", "node_modules/y")
    assert names("manifest.txt", ".hidden/x.yaml", "./node_modules/y") == [
        "manifest.txt",
        ".hidden/x.yaml",
        "node_modules/y",
    ]


def test_hidden_directories_and_node_modules_are_skipped_unless_named(tree: Path) -> None:
    put(tree, ".git/a.yaml", ".venv/b.yaml", "x/node_modules/c.yaml", "x/.d.yaml", ".github/e.yml")
    assert names(".") == ["x/.d.yaml"]
    assert names(".github") == [".github/e.yml"]


def test_each_file_is_found_once(tree: Path) -> None:
    put(tree, "a/x.yaml", "y.yaml")
    (tree / "a" / "link.yaml").symlink_to("x.yaml")
    (tree / "hop.yaml").symlink_to(tree / "y.yaml")
    assert names("y.yaml", "./y.yaml", str(tree / "y.yaml"), "a/../y.yaml", "hop.yaml", ".", "a") == [
        "y.yaml",
        "a/link.yaml",
    ]


def test_loops_of_links_end(tree: Path) -> None:
    put(tree, "a/b/x.yaml")
    (tree / "a/b/up").symlink_to(tree, target_is_directory=True)
    (tree / "a/self.d").symlink_to("self.d")
    (tree / "a/dir.yaml").symlink_to("b", target_is_directory=True)
    assert names(".") == ["a/b/x.yaml"]
    assert names("a/b/up/a/b/up/a") == ["a/b/up/a/b/up/a/b/x.yaml"]  # a link that the user names is followed


def test_broken_links(tree: Path) -> None:
    (tree / "gone.yaml").symlink_to("nowhere")
    (tree / "round.yaml").symlink_to("round.yaml")
    (tree / ".#edited.yaml").symlink_to("user@host.1234")  # Emacs locks a file with such a link
    answers = {discover_file.name: read_file(discover_file) for discover_file in discover_files(["."])}
    assert answers == {
        "gone.yaml": UnreadableInput("Symbolic link to something that does not exist."),
        "round.yaml": UnreadableInput("Symbolic link that refers back to itself."),
    }
    assert reason("gone.yaml") == "Symbolic link to something that does not exist."
    assert reason("round.yaml") == "Symbolic link that refers back to itself."


def test_one_bad_path_does_not_hide_the_others(tree: Path) -> None:
    put(tree, "x.yaml")
    answers = [
        read_file(discover_file)
        for discover_file in discover_files(["missing", "x.yaml", "x.yaml/y", "a\0b", "\ud800", "n" * 300, ""])
    ]
    assert answers[1] == APF
    assert [answer.reason if isinstance(answer, UnreadableInput) else "" for answer in answers] == [
        "No such file or directory.",
        "",
        "No such file: a parent in the path is not a directory.",
        "No file can have this name.",
        "No file can have this name.",
        "The name is longer than this system allows.",
        "No such file or directory.",
    ]


def test_directory_named_like_a_manifest(tree: Path) -> None:
    put(tree, "x.yaml/y.yaml")
    assert names(".") == names("x.yaml") == ["x.yaml/y.yaml"]


def test_names_that_are_not_utf_8(tree: Path) -> None:
    raw = os.fsencode(tree) + b"/\xff.yaml"
    try:
        descriptor = os.open(raw, os.O_WRONLY | os.O_CREAT)
    except OSError:
        pytest.skip("this file system rejects names that are not UTF-8")
    os.write(descriptor, APF)
    os.close(descriptor)
    (found,) = discover_files(["."])
    assert found.name == "\udcff.yaml"
    assert read_file(found) == APF


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read everything")
def test_permission_denied(tree: Path) -> None:
    put(tree, "secret.yaml", "locked/x.yaml", "z.yaml")
    (tree / "secret.yaml").chmod(0)
    (tree / "locked").chmod(0)
    try:
        answers = {discover_file.name: read_file(discover_file) for discover_file in discover_files(["."])}
    finally:
        (tree / "locked").chmod(0o700)
    denied = UnreadableInput("Permission denied.")
    assert answers == {"locked/": denied, "secret.yaml": denied, "z.yaml": APF}


def test_directory_that_cannot_be_listed(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tree, "a/x.yaml", "b/x.yaml")
    scandir = os.scandir

    def refuse(path: str) -> object:
        if path == "a/":
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    assert [(discover_file.name, bool(discover_file.problem)) for discover_file in discover_files(["."])] == [
        ("a/", True),
        ("b/x.yaml", False),
    ]


def test_file_that_vanishes_or_turns_into_something_else(tree: Path) -> None:
    put(tree, "a.yaml", "b.yaml", "c.yaml")
    found = list(discover_files(["."]))
    (tree / "a.yaml").unlink()
    (tree / "b.yaml").unlink()
    (tree / "b.yaml").mkdir()
    assert [read_file(file) for file in found] == [
        UnreadableInput("No such file or directory."),
        UnreadableInput(
            "This is a directory. To read the output of a command, pipe the output to apflint, and name the file `-`."
        ),
        APF,
    ]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_pipes_sockets_and_devices_are_refused_at_once(tree: Path) -> None:
    os.mkfifo(tree / "pipe.yaml")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket.yaml")
        begin = time.monotonic()
        answers = {discover_file.name: read_file(discover_file) for discover_file in discover_files([".", "/dev/zero"])}
    assert time.monotonic() - begin < 5
    assert {name: str(answer).split("'")[1].split(".")[0] if answer else "" for name, answer in answers.items()} == {
        "pipe.yaml": "This is a named pipe",
        "socket.yaml": "This is a socket",
        "/dev/zero": "This is a device",
    }


def test_pipe_in_the_place_of_a_file_does_not_hang(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tree, "a.yaml")
    was = (tree / "a.yaml").stat()
    (tree / "a.yaml").unlink()
    os.mkfifo(tree / "a.yaml")
    monkeypatch.setattr(os, "stat", lambda _path, **_: was)  # the file was replaced after the check
    answer = read_file(FoundFile("a.yaml", "a.yaml"))
    assert isinstance(answer, UnreadableInput)
    assert answer.reason.startswith("This is a named pipe")


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(APF)))
    (found,) = discover_files(["-", "/dev/stdin", "-"])
    assert found == FoundFile("<stdin>", "-")
    assert read_file(found) == APF
    monkeypatch.setattr(sys, "stdin", None)
    assert read_file(found) == UnreadableInput("Standard input is closed. Connect it to a pipe or a file.")


@pytest.mark.parametrize("path", ["/dev/stdin", "-", "/dev/fd/0"])
def test_pipe_that_is_standard_input(path: str, root: Path) -> None:
    code = f"import sys; from apflint.sources.discovery import *; from apflint.sources.file_reading import *; print([read_file(found) for found in discover_files([{path!r}])])"
    done = subprocess.run(
        [sys.executable, "-c", code], input=APF, capture_output=True, timeout=30, check=False, cwd=root
    )
    assert done.stdout.decode().strip() == f"[{APF!r}]", done.stderr


def test_endless_standard_input_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Endless(io.RawIOBase):
        def readable(self) -> bool:
            return True

        def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]  # typeshed allows any buffer
            return len(buffer)

    monkeypatch.setattr(file_reading, "MAX_FILE_BYTES", 3 * 1024 * 1024)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(Endless())))  # type: ignore[type-var]  # Endless has the needed methods
    answer = read_file(FoundFile("<stdin>", "-"))
    assert isinstance(answer, UnreadableInput)
    assert answer.reason.startswith("The stream has more than 3 MiB")


def test_large_file_is_refused_only_if_it_may_hold_apf(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_reading, "MAX_FILE_BYTES", 1024 * 1024)
    chunk = file_reading._CHUNK_BYTES
    put(tree, "other.yaml", data=b"x" * (3 * chunk))
    assert read_file(FoundFile("other.yaml", "other.yaml")) == b""
    for offset in (0, chunk - 5, 2 * chunk - 1, 3 * chunk - 11):  # text that spans two chunks is found, too
        data = bytearray(b"x" * (3 * chunk))
        data[offset : offset + 11] = b"flowcontrol"
        put(tree, "large.yaml", data=bytes(data))
        assert reason("large.yaml") == (
            "The file has 2 MB, but apflint reads at most 1 MiB. Split the file, or use --exclude."
        )
    wide = ("x" * (2 * chunk) + "FlowSchema").encode("utf-16")
    put(tree, "wide.yaml", data=wide)
    assert "MiB" in reason("wide.yaml")


@pytest.mark.slow
def test_memory_for_large_file_is_bounded(tree: Path, root: Path) -> None:
    with (tree / "large.yaml").open("wb") as large:
        large.truncate(200_000_000)
    with (tree / "vast.yaml").open("wb") as vast:
        vast.truncate(1 << 40)
    code = (
        "import resource\n"
        "resource.setrlimit(resource.RLIMIT_AS, (150_000_000, 150_000_000))\n"
        "from apflint.sources.discovery import *\nfrom apflint.sources.file_reading import *\n"
        f"print([read_file(found) for found in discover_files([{str(tree)!r}])])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=UNMEASURED, capture_output=True, timeout=60, check=False, cwd=root
    )
    assert done.stdout.decode().startswith("[b'', UnreadableInput(reason='The file has 1099512 MB, "), done.stderr


def test_file_that_claims_size_zero() -> None:
    if not os.path.exists("/proc/self/status"):
        pytest.skip("no /proc here")
    answer = read_file(FoundFile("status", "/proc/self/status"))
    assert isinstance(answer, bytes)
    assert b"VmSize" in answer


def test_exclude(tree: Path) -> None:
    put(tree, "a.yaml", "vendor/x.yaml", "src/vendor/y.yaml", "src/b.gen.yaml", "src/c.yaml", "src/deep/er/d.yaml")
    everything = names(".")
    assert len(everything) == 6
    assert names(".", exclude=("vendor",)) == ["a.yaml", "src/b.gen.yaml", "src/c.yaml", "src/deep/er/d.yaml"]
    assert names(".", exclude=("./vendor/",)) == names(".", exclude=("vendor/**",)) == names(".", exclude=("vendor",))
    assert names(".", exclude=("src/vendor",)) == [name for name in everything if name != "src/vendor/y.yaml"]
    assert names(".", exclude=("src/*",)) == ["a.yaml", "vendor/x.yaml"]
    assert names(".", exclude=("**/vendor/**", "*.gen.yaml")) == ["a.yaml", "src/c.yaml", "src/deep/er/d.yaml"]
    assert names(".", exclude=(f"{tree}/src",)) == ["a.yaml", "vendor/x.yaml"]
    assert names(".", exclude=("[", "")) == everything
    assert names("src", exclude=("src/deep",)) == ["src/b.gen.yaml", "src/c.yaml", "src/vendor/y.yaml"]
    assert names(str(tree), exclude=("src/*", "vendor")) == [f"{tree}/a.yaml"]


def test_named_paths_are_excluded_by_force_only(tree: Path) -> None:
    put(tree, "vendor/deep/x.yaml", "a.yaml")
    paths = ("vendor/deep/x.yaml", "vendor/deep", "a.yaml")
    assert names(*paths, exclude=("vendor",)) == ["vendor/deep/x.yaml", "a.yaml"]
    assert names(*paths, exclude=("vendor",), force_exclude=True) == ["a.yaml"]
    assert names(str(tree / "vendor"), exclude=("vendor",), force_exclude=True) == []


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (APF, True),
        (b"kind: FlowSchema", True),
        (b"kind: PriorityLevelConfiguration", True),
        (b"# flowcontrol", True),
        ("\ufeffkind: FlowSchema".encode("utf-16-le"), True),
        ("\ufeffkind: FlowSchema".encode("utf-16-be"), True),
        ("\ufeffkind: ConfigMap".encode("utf-16-be"), False),
        (b'{"kind": "Flow\\u0053chema"}', True),
        (b'kind: "\\x46lowSchema"', True),
        (b'{"html": "\\u003cb\\u003e"}', False),  # Go's JSON encoder writes <b> this way
        (b"kind: ConfigMap", False),
        (b"kind: flowschema", False),
        (b"", False),
        (b"\x00\xff" * 100, False),
    ],
)
def test_may_hold_apf(data: bytes, expected: bool) -> None:
    assert may_hold_apf(data) is expected


@given(st.binary(max_size=200), st.sampled_from(file_reading._SIGNS), st.binary(max_size=200))
def test_sign_is_found_anywhere(before: bytes, sign: bytes, after: bytes) -> None:
    assume(before[:2] not in file_reading._SIGNS_BY_BOM)
    assert may_hold_apf(before + sign + after)


def test_other_files_are_cheap(tree: Path) -> None:
    data = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: example\ndata:\n  key: |\n    echo hello \\\n" * 60
    for number in range(20):
        put(tree, *(f"{number}/{name}.yaml" for name in range(50)), data=data)

    def run() -> float:
        begin = time.process_time()
        answers = [read_file(discover_file) for discover_file in discover_files(["."])]
        assert not any(may_hold_apf(answer) for answer in answers if isinstance(answer, bytes))
        assert len(answers) == 1000
        return time.process_time() - begin

    # A search takes about 15 µs on an idle machine, and parsing takes 1 ms. The bound allows for a busy machine.
    assert min(run() for _ in range(5)) < 1000 * 120e-6
