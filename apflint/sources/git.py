"""Reads manifests from a git revision with the git executable, without touching the work tree or the index.

The repository may be hostile, so git must not run programs that the repository configures. The git commands used here
only read objects: they start no hook, filter, diff driver, file system monitor or pager. These commands never fetch
missing objects.
"""

from __future__ import annotations

import os
import posixpath
from typing import TYPE_CHECKING, NamedTuple

from apflint.budgets import MAX_FILE_BYTES, MAX_GIT_SECONDS, MAX_KUSTOMIZATION_DEPTH, MAX_REVISION_FILES
from apflint.finding import SkippedDocuments
from apflint.load.source_text import GIT_PREFIX
from apflint.settings.patterns import PathMatcher
from apflint.sources.discovery import INSTALLED_DIRECTORY, SUFFIXES, InputFile
from apflint.sources.file_reading import may_hold_apf
from apflint.sources.files import PATCH_REASON, SourceFiles
from apflint.sources.kustomize_patches import KUSTOMIZATIONS, list_patch_files
from apflint.sources.programs import run_program
from apflint.user_error import UserError
from apflint.wording import pluralize

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from apflint.settings.patterns import Patterns

_COMMAND = ("git", "--no-pager", "--no-optional-locks", "-c", "core.fsmonitor=false")
# GIT_ALLOW_PROTOCOL overrides the settings of a repository, and an empty list allows no protocol. So git cannot fetch
# missing objects, even if an old release of git does not support GIT_NO_LAZY_FETCH.
_ENVIRONMENT = {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
_MAX_MESSAGE_CHARACTERS = 300
_SHORT_ID = 12
"""Number of characters of the ID of a commit in the names of sources. Twelve characters are enough to distinguish
commits.
"""
_REPLY_BYTES = 128  # longer than any header line in the output of `git cat-file --batch`
_LINK, _SUBMODULE = "120000", "160000"
"""File modes of symbolic links and submodules in git. The content of a symbolic link is its target."""
_LINK_PROBLEMS = (b"dangling", b"loop", b"notdir", b"symlink")
"""Problems with symbolic links that `git cat-file --follow-symlinks` prints with a size.

The output then continues with a path of this size.
"""
_MAX_TARGET_BYTES = 4096  # PATH_MAX on Linux
_MAX_LINKS = 40  # maximum of Linux for one path, see path_resolution(7)


class _Header(NamedTuple):
    """The metadata of a git object. `type` is `tree` or `blob`."""

    object_id: str
    type: str
    size: int


class _GitEntry(NamedTuple):
    path: str
    """Path of the file, relative to the current directory."""
    object_id: str
    size: int
    is_link: bool = False


def read_revision(name: str, paths: Sequence[str], exclude: Patterns) -> SourceFiles:
    """Return the manifests of `git:REVISION` or `git:REVISION:PATH`.

    PATH is relative to the current directory. If `name` contains no PATH, `paths` are the files and directories to
    read, some of which may not exist. If `paths` is empty, too, the current directory is read. In directories, the same
    files are read as by `discover_files`.

    The names of the files have the form `git:main:manifests/apf.yaml`, with a path relative to the current directory.
    Patches of kustomizations are skipped. Symbolic links are followed only within the revision. Submodules are not
    read. Raises UserError if git is missing, fails or takes too long, if the revision or PATH does not exist, and if
    files are missing in a partial clone.
    """
    revision, _, path = name.removeprefix(GIT_PREFIX).partition(":")
    _check_name(name, revision, path, paths)
    try:
        return _read(name, revision, paths or (path or ".",), exclude, is_optional=bool(paths))
    except ValueError:
        raise UserError(f"{name}: git printed something unexpected.") from None


def read_revision_file(name: str, path: str) -> bytes | None:
    """Return the bytes of a file in `git:REVISION`, or None if the file is missing or larger than `MAX_FILE_BYTES`.

    `path` is relative to the current directory. Raises UserError as `read_revision` does.
    """
    revision = name.removeprefix(GIT_PREFIX)
    _check_name(name, revision, path, ())
    git = _Git(name)
    prefix = os.fsdecode(git.run("rev-parse", "--show-prefix")).removesuffix("\n")
    try:
        (header,) = git.resolve(f"{revision}:{_normalize(name, prefix, path)}")
        if header is None or header.type != "blob" or header.size + _REPLY_BYTES > MAX_FILE_BYTES:
            return None
        return next(data for _, data in git.read_entries([_GitEntry(path, header.object_id, header.size)]))
    except ValueError:
        raise UserError(f"{name}: git printed something unexpected.") from None


class Commit(NamedTuple):
    """A commit in the history of `git:REVISION[:PATH]`."""

    time: int
    """Time of the committer, in seconds since 1970."""
    name: str
    """Source argument for the manifests of the commit: `git:COMMIT[:PATH]`."""


def list_history(name: str) -> list[Commit]:
    """Return the commits that changed the files of `git:REVISION` or `git:REVISION:PATH`, the newest first.

    If `name` contains no PATH, return only commits that changed the current directory. If a commit is a
    merge, follow only its first parent. So the result contains the merge instead of the merged commits,
    and its time is the time at which the change arrived in the branch. Raises UserError as
    `read_revision` does.
    """
    revision, _, path = name.removeprefix(GIT_PREFIX).partition(":")
    _check_name(name, revision, path, ())
    git = _Git(name)
    # `rev-list` is a plumbing command: settings such as log.showSignature, which start programs, do not affect the
    # command.
    output = os.fsdecode(
        git.run("rev-list", "--first-parent", "--timestamp", "--end-of-options", revision, "--", path or ".")
    )
    suffix = f":{path}" if path else ""
    pairs = (line.split(" ") for line in output.splitlines())
    return [Commit(int(time), f"{GIT_PREFIX}{commit[:_SHORT_ID]}{suffix}") for time, commit in pairs]


def is_revision(name: str) -> bool:
    """Return whether the git repository of the current directory has this revision. Return False if git cannot run."""
    command = (*_COMMAND, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    try:
        return run_program(command, MAX_GIT_SECONDS, environment={**os.environ, **_ENVIRONMENT}).status == 0
    except UserError:
        return False


def write_revision(name: str, directory: str) -> str:
    """Write the files of `git:REVISION` into `directory`. Return the path of the current directory in this copy.

    Symbolic links and submodules are left out, so that no file is outside of `directory`. Raises UserError as
    `read_revision` does, and for a revision with more than `MAX_REVISION_FILES` files or `MAX_FILE_BYTES` bytes.
    """
    revision = name.removeprefix(GIT_PREFIX)
    _check_name(name, revision, "", ())
    git = _Git(name)
    prefix = os.fsdecode(git.run("rev-parse", "--show-prefix")).removesuffix("\n")
    (root,) = git.resolve(f"{revision}^{{tree}}")
    if root is None:
        raise UserError(f'{name}: the repository has no revision "{revision}".')
    entries = [
        _GitEntry(path, object_id, size)
        for mode, object_id, size, path in git.list_tree(root.object_id)
        if mode not in (_LINK, _SUBMODULE)
    ]
    if len(entries) > MAX_REVISION_FILES or sum(entry.size for entry in entries) > MAX_FILE_BYTES:
        raise UserError(
            f"{name}: the revision has {len(entries):,} files and {sum(entry.size for entry in entries) / 1e6:,.0f} MB, but"
            f" apflint renders only clusters in revisions of at most {MAX_REVISION_FILES:,} files and {MAX_FILE_BYTES / 1e6:.0f} MB"
        )
    os.mkdir(os.path.join(directory, ".git"))  # makes `directory` the root of a project (`find_git_root`)
    for entry, data in git.read_entries(entries):
        path = os.path.join(directory, entry.path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)
    return os.path.normpath(os.path.join(directory, prefix))


def _read(name: str, revision: str, paths: Sequence[str], exclude: Patterns, *, is_optional: bool) -> SourceFiles:
    git = _Git(name)
    prefix, is_shallow = os.fsdecode(git.run("rev-parse", "--show-prefix", "--is-shallow-repository")).split("\n")[:2]
    full_paths = [_normalize(name, prefix, path) for path in paths]
    root, *found = git.resolve(f"{revision}^{{tree}}", *(f"{revision}:{path}" for path in full_paths))
    if root is None:
        hint = ""
        if is_shallow == "true":
            hint = (
                " This is a shallow clone: fetch the history with `git fetch --unshallow`, or in GitHub Actions with"
                " `fetch-depth: 0` of actions/checkout."
            )
        raise UserError(f'{name}: the repository has no revision "{revision}".{hint}')
    notes: list[str] = []
    entries: dict[str, _GitEntry] = {}
    named: set[str] = set()
    matcher = PathMatcher(exclude)
    for path, full_path, header in zip(map(posixpath.normpath, paths), full_paths, found, strict=True):
        if header is None:
            problem = f'{name}: "{revision}" has no file or directory "{full_path}"'
            if not is_optional:
                raise UserError(f"{problem}.")
            notes.append(problem)
        elif header.type == "tree":
            selected = _select(git.list_tree(header.object_id), path, matcher, name, notes)
            entries |= {entry.path: entry for entry in selected}
        else:
            named.add(path)
            entries[path] = _GitEntry(path, header.object_id, header.size)
    files = {}
    if any(entry.is_link for entry in entries.values()):
        entries = _follow_links(entries, prefix, _LinkedTree(git, root.object_id), f"{GIT_PREFIX}{revision}:", notes)
    for entry, data in git.read_entries(entries.values()):
        is_manifest = may_hold_apf(data)
        path = name if entry.path in named else ""
        files[entry.path] = InputFile.from_bytes(
            f"{GIT_PREFIX}{revision}:{entry.path}", path, data if is_manifest else b"", may_hold_apf=is_manifest
        )
    held = [posixpath.join(prefix, path) for path, file in files.items() if file.may_hold_apf]
    patches = {posixpath.relpath(patch, prefix or ".") for patch in git.list_patches(root.object_id, held)}
    skipped = (file for path, file in files.items() if path in patches and file.may_hold_apf)
    return SourceFiles(
        tuple(file for path, file in files.items() if path not in patches),
        tuple(SkippedDocuments(file.name, PATCH_REASON) for file in skipped),
        notes=tuple(notes),
    )


def _normalize(name: str, prefix: str, path: str) -> str:
    """Convert a path relative to the current directory into a path relative to the root of the repository.

    `prefix` is the current directory relative to the root. Raises UserError if the path is not in the repository.
    """
    full_path = posixpath.normpath(prefix + path)
    if posixpath.isabs(path) or full_path.startswith(".."):
        raise UserError(
            f"{name}: the path is not in the git repository. Write the path relative to the current directory."
        )
    return "" if full_path == "." else full_path


def _check_name(name: str, revision: str, path: str, paths: Sequence[str]) -> None:
    """Raise UserError if a revision or path in a `git:` source is invalid. `name` is the source in the message.

    Git could parse a revision that begins with `-` as an option, and a line break would separate paths.
    Also raise UserError if the revision is empty, or if both `path` and `paths` are given.
    """
    if not revision:
        raise UserError(f"{name}: name a revision, as in {GIT_PREFIX}main or {GIT_PREFIX}v1.2:manifests.")
    if revision.startswith("-") or not revision.isprintable() or any("\n" in path for path in (path, *paths)):
        raise UserError(f"{name}: this is not a valid name of a git revision.")
    if path and paths:
        raise UserError(
            f"{name}: the settings already name the paths of the cluster, so name only the revision: {GIT_PREFIX}{revision}."
        )


def _select(
    lines: Iterable[tuple[str, str, int, str]], start: str, exclude: PathMatcher, name: str, notes: list[str]
) -> list[_GitEntry]:
    """Return the files of a git tree that `discover_files` would select if `start` were a directory on disk.

    `lines` lists the tree of the directory `start`. If the tree contains submodules, a note is added to
    `notes`.
    """
    entries: list[_GitEntry] = []
    if start == "." and exclude.matches_or_parent(start):
        return entries
    submodules = 0
    for mode, object_id, size, below in lines:
        parts = below.split("/")
        if any(part.startswith(".") or part == INSTALLED_DIRECTORY for part in parts[:-1]):
            continue
        if mode != _SUBMODULE and not below.endswith(SUFFIXES):
            continue
        path = posixpath.normpath(posixpath.join(start, below))
        if any(exclude.matches(parent) for parent in _with_parents(path, start)):
            continue
        submodules += mode == _SUBMODULE
        if mode != _SUBMODULE and not (mode == _LINK and parts[-1].startswith(".#")):
            entries.append(_GitEntry(path, object_id, size, mode == _LINK))
    if submodules:
        notes.append(f"{name}: apflint does not read {pluralize(submodules, 'submodule')} of the revision")
    return sorted(entries, key=lambda entry: entry.path.split("/"))


def _follow_links(
    entries: dict[str, _GitEntry], prefix: str, tree: _LinkedTree, name_prefix: str, notes: list[str]
) -> dict[str, _GitEntry]:
    """Return `entries`, in which each symbolic link to a file has the content of its target.

    Each file is returned only once, even if several paths lead to it. Links to directories are omitted,
    as in `discover_files`. A note is added to `notes` for each link without a target.
    """
    found: dict[str, _GitEntry] = {}
    seen: set[str] = set()
    for path, entry in entries.items():
        problem = ""
        try:
            real = tree.resolve(posixpath.normpath(prefix + path))
        except ValueError as error:
            real, problem = "", str(error)
        target = tree.files.get(real)
        if target is None and real not in tree.directories:
            problem = "No such file or directory."
        if problem:
            notes.append(f"{name_prefix}{path}: {problem} apflint ignores the file")
        if target is not None and real not in seen:
            found[path] = entry._replace(object_id=target.object_id, size=target.size)
        seen.add(real)
    return found


def _with_parents(path: str, start: str) -> Iterator[str]:
    """Yield a path, and then the directories above it that are below `start`, from the innermost to the outermost."""
    while path not in ("", start):
        yield path
        path = posixpath.dirname(path)


class _Git:
    """Runs git in the current directory. Error messages start with `name`."""

    def __init__(self, name: str) -> None:
        self._name = name

    def run(self, *arguments: str, stdin: str = "") -> bytes:
        """Run git and return its standard output. Raises UserError if git fails."""
        command = (*_COMMAND, *arguments)
        done = run_program(
            command, MAX_GIT_SECONDS, stdin=os.fsencode(stdin), environment={**os.environ, **_ENVIRONMENT}
        )
        if done.status == 0:
            return done.stdout
        if "promisor" in done.stderr:
            raise self._incomplete()
        message = " ".join(done.stderr.removeprefix("fatal: ").split())[:_MAX_MESSAGE_CHARACTERS]
        raise UserError(f"{self._name}: git: {message or f'exit code {done.status}'}")

    def resolve(self, *expressions: str) -> list[_Header | None]:
        """Return the ID, type and size of the git object that each expression names.

        An expression such as `HEAD:manifests` names a tree or a file. The result has None for an expression
        that names no object. Symbolic links in the path of an expression are followed, unless their targets
        are outside of the tree.
        """
        stdin = "".join(f"{text}\n" for text in expressions)
        output = self.run("cat-file", "--batch-check", "--follow-symlinks", stdin=stdin)
        headers: list[_Header | None] = []
        at = 0
        while at < len(output):
            end = output.index(b"\n", at)
            words = output[at:end].split(b" ")
            headers.append(_parse_header(os.fsdecode(output[at:end])))
            at = end + 1
            if words[0] in _LINK_PROBLEMS and len(words) == 2:
                at += int(words[1]) + 1
        return headers

    def list_tree(self, object_id: str) -> Iterator[tuple[str, str, int, str]]:
        """Yield mode, ID, size and path of each file below a tree."""
        # Without --full-tree, git omits files outside of the current directory.
        for line in os.fsdecode(self.run("ls-tree", "-r", "-z", "-l", "--full-tree", object_id)).split("\0")[:-1]:
            attributes, _, path = line.partition("\t")
            mode, _, object_id, size = attributes.split()
            yield mode, object_id, int(size) if size.isdigit() else 0, path

    def read_entries(self, entries: Iterable[_GitEntry]) -> Iterator[tuple[_GitEntry, bytes]]:
        """Yield (entry, content) for each entry. The contents are read with few git processes."""
        batch: list[_GitEntry] = []
        size = 0
        for entry in entries:
            if entry.size + _REPLY_BYTES > MAX_FILE_BYTES:
                raise UserError(
                    f"{self._name}: {entry.path} has {entry.size / 1_000_000:.0f} MB, but apflint reads at most"
                    f" {MAX_FILE_BYTES >> 20} MiB of a file. Use the setting `exclude`."
                )
            if size + entry.size + _REPLY_BYTES > MAX_FILE_BYTES:
                yield from self._read_batch(batch)
                batch, size = [], 0
            batch.append(entry)
            size += entry.size + _REPLY_BYTES
        yield from self._read_batch(batch)

    def list_patches(self, root: str, paths: Iterable[str]) -> set[str]:
        """Return the patches listed by kustomizations in the directories of `paths`, or in parents of these directories."""
        directories: set[str] = set()
        for path in paths:
            directory = path
            for _ in range(MAX_KUSTOMIZATION_DEPTH if "\n" not in path else 0):
                directory = posixpath.dirname(directory)
                directories.add(directory)
                if not directory:
                    break
        candidates = [posixpath.join(directory, name) for directory in sorted(directories) for name in KUSTOMIZATIONS]
        if not candidates:
            return set()
        found = self.resolve(*(f"{root}:{candidate}" for candidate in candidates))
        entries = [
            _GitEntry(candidate, header.object_id, header.size)
            for candidate, header in zip(candidates, found, strict=True)
            if header is not None and header.type == "blob" and header.size <= MAX_FILE_BYTES // 2
        ]
        patches: set[str] = set()
        for entry, data in self.read_entries(entries):
            directory = posixpath.dirname(entry.path)
            for listed in list_patch_files(data.decode("utf-8", "replace")):
                patch = posixpath.normpath(posixpath.join(directory, listed))
                # As in `Patches`, only files in the directory of the kustomization and below count.
                if patch.startswith(f"{directory}/" if directory else ""):
                    patches.add(patch)
        return patches

    def _read_batch(self, batch: list[_GitEntry]) -> Iterator[tuple[_GitEntry, bytes]]:
        if not batch:
            return
        output = self.run("cat-file", "--batch", stdin="".join(f"{entry.object_id}\n" for entry in batch))
        at = 0
        for entry in batch:
            end = output.index(b"\n", at)
            header = _parse_header(output[at:end].decode())
            if header is None:
                raise self._incomplete()
            start, at = end + 1, end + header.size + 2
            yield entry, output[start : at - 1]

    def _incomplete(self) -> UserError:
        return UserError(
            f"{self._name}: this partial clone lacks files of the revision, and apflint does not fetch them. Use a full clone."
        )


class _LinkedTree:
    """Finds the target files of symbolic links in a tree. Links to targets outside of the tree are rejected."""

    def __init__(self, git: _Git, root: str) -> None:
        self.files: dict[str, _GitEntry] = {}
        """All files. The keys are paths relative to the root of the repository."""
        self.directories: set[str] = {""}
        links = []
        for mode, object_id, size, path in git.list_tree(root):
            entry = _GitEntry(path, object_id, size)
            self.directories.update(_with_parents(posixpath.dirname(path), ""))
            if mode == _LINK and size <= _MAX_TARGET_BYTES:
                links.append(entry)
            elif mode not in (_LINK, _SUBMODULE):
                self.files[path] = entry
        self._targets = {entry.path: os.fsdecode(data) for entry, data in git.read_entries(links)}

    def resolve(self, path: str) -> str:
        """Return the path of the file that a path leads to, after all symbolic links in the path are followed.

        Raises ValueError, whose message is a sentence, if the file is outside of the tree, or if links form a loop.
        """
        parts: list[str] = []
        pending = path.split("/")[::-1]
        links = 0
        while pending:
            part = pending.pop()
            if part in ("", "."):
                continue
            if part == ".." and not parts:
                raise ValueError("Symbolic link to a file outside of the repository.")
            if part == "..":
                parts.pop()
                continue
            parts.append(part)
            target = self._targets.get("/".join(parts))
            if target is None:
                continue
            links += 1
            if links > _MAX_LINKS:
                raise ValueError("Symbolic link that refers back to itself.")
            if target.startswith("/"):
                raise ValueError("Symbolic link to a file outside of the repository.")
            parts.pop()
            pending += target.split("/")[::-1]
        return "/".join(parts)


def _parse_header(line: str) -> _Header | None:
    """Return the header in a line of `git cat-file`, or None if the line reports a missing object."""
    words = line.split(" ")
    if len(words) != 3 or not words[2].isdigit():
        return None
    return _Header(words[0], words[1], int(words[2]))
