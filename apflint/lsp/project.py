"""A folder as `apflint check` in it would see it, with open texts in place of the files: read once, checked often.

Everything here happens in the folder: patterns and names of settings and findings count from the current directory, so
`check` changes into it. It is called from one thread only, which nobody else's relative paths depend on.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from apflint import engine
from apflint.cli.check import Flags, Inputs, requested
from apflint.inputs import files
from apflint.inputs.patches import Patches
from apflint.load import Loaded, load, load_text
from apflint.load.source import Source
from apflint.releases import release
from apflint.workspace import Workspace, workspace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from apflint.engine import Options
    from apflint.finding import Report

MOST_FILES = 20_000
"""Files of a folder that are looked at. A home directory that was opened by chance has more."""


class Checked(NamedTuple):
    """What is found in a folder."""

    folder: str
    report: Report
    workspace: Workspace
    sources: Mapping[str, Source]
    """What was read, by the name that findings show; the context as well."""
    notes: tuple[str, ...]
    """What the user ought to know besides: settings that are wrong, files that cannot be read."""

    def path(self, name: str) -> str:
        """The path of a file by the name that findings show."""
        return name if name.startswith("untitled:") else os.path.normpath(os.path.join(self.folder, name))


class _File(NamedTuple):
    """A file as it was when it was last read."""

    signature: tuple[int, int, int]
    loaded: Loaded | None
    """None where it holds nothing of ours."""


class Project:
    """One folder. With `alone` only open texts are checked, none of the other files: a file that is in no folder."""

    def __init__(self, folder: str, *, alone: bool = False) -> None:
        self.folder = folder
        self.alone = alone
        self._read: dict[str, _File] = {}
        self._texts: dict[str, tuple[str, Loaded]] = {}
        self._request: tuple[Inputs, Options] | None = None
        self._found: list[tuple[str, str]] | None = None
        self._context: list[tuple[str, str]] = []
        self._patches = Patches()
        self._last: list[Loaded] = []
        self._notes: list[str] = []
        self._again = True

    def check(self, texts: Mapping[str, str], loose: Mapping[str, str], *, again: bool) -> list[Checked]:
        """Checks the folder with `texts` (real path -> text) in place of files; then each of `loose`, texts without a file.

        With `again` the disk is looked at again; else the files and settings are those of the last time.
        OSError where the folder is gone.
        """
        os.chdir(self.folder)
        self._again = again or self._request is None
        if self._again:
            self._look()
        assert self._request is not None, "the folder was looked at"
        inputs, options = self._request
        notes = list(self._notes)
        loaded = list(self._inputs(texts, inputs, notes))
        context = [part for name, real in self._context if (part := self._input(name, real, texts, notes)) is not None]
        answers = [self._answer(loaded, context, options, notes)]
        unnamed = [self._open(name, name, text) for name, text in loose.items()]
        answers += [self._answer([part], [*loaded, *context], options, []) for part in unnamed]
        self._last = [*unnamed, *loaded, *context]
        self._texts = {path: entry for path, entry in self._texts.items() if path in texts or path in loose}
        return answers

    def _answer(self, loaded: list[Loaded], context: list[Loaded], options: Options, notes: list[str]) -> Checked:
        known = workspace(loaded, release(options.kubernetes), context, options.world)
        report = engine.report(loaded, known, engine.enabled(options), suppressions=options.suppressions)
        if options.adjust is not None:
            kept = tuple(found for one in report.findings if (found := options.adjust(one)) is not None)
            report = report._replace(findings=kept)
        sources = {part.source.name: part.source for part in (*context, *loaded)}
        return Checked(self.folder, report, known, sources, tuple(notes))

    def mended(self, name: str) -> str | None:
        """The text of an input of the last check with all its safe fixes made, the others being as they were; None: no fix.

        Those that don't go well are left out, as `apflint fix` leaves them out.
        """
        from apflint.edit.fix import mend

        assert self._request is not None, "something was checked"
        os.chdir(self.folder)
        _, options = self._request
        others = [part for part in self._last if part.source.name != name]
        mine = next((part for part in self._last if part.source.name == name), None)
        if mine is None:
            return None

        def judge(inputs: Mapping[str, bytes]) -> Report:
            loaded = [load(one, data) for one, data in inputs.items()]
            return self._answer(loaded, others, options, []).report

        try:
            data = mine.source.text.encode()
        except UnicodeEncodeError:
            return None
        mending = mend({name: data}, judge)
        return mending.inputs[name].decode() if mending.made else None

    def _look(self) -> None:
        """Reads the settings and the names of the files."""
        self._notes = []
        try:
            request = requested((), {}, Flags())
            engine.enabled(request.options)
        except (ValueError, OSError) as error:
            self._notes.append(f"the settings are not used: {_said(error)}")
            last = self._request
            request = requested((), {}, Flags(isolated=True))
            self._request = last or (request.inputs, request.options)
        else:
            self._request = request.inputs, request.options
        inputs = self._request[0]
        self._found = None if self.alone else self._files(inputs.paths, inputs.exclude)
        self._context = self._files(inputs.context, inputs.exclude) if inputs.context else []
        known = {real for _, real in self._context}
        self._found = self._found and [one for one in self._found if one[1] not in known]
        self._patches = Patches()
        there = {name for name, _ in (*(self._found or ()), *self._context)}
        self._read = {name: file for name, file in self._read.items() if name in there}

    def _files(self, paths: Iterable[str], exclude: tuple[str, ...]) -> list[tuple[str, str]]:
        """Name and real path of the files in `paths`."""
        found: list[tuple[str, str]] = []
        for one in files.discover(paths, exclude):
            if len(found) == MOST_FILES:
                note = (
                    f"{self.folder} has more than {MOST_FILES:,} manifests: the others are checked when they are open"
                )
                self._notes.append(note)
                break
            if not one.problem:
                found.append((one.name, os.path.realpath(one.path)))
        return found

    def _inputs(self, texts: Mapping[str, str], inputs: Inputs, notes: list[str]) -> Iterator[Loaded]:
        """What is checked, in the order of `apflint check`, with open files that a walk does not find."""
        names = {real: name for name, real in self._found or ()}
        known = {real for _, real in self._context}
        for path in texts:
            if path not in names and path not in known and not self._is_excluded(path, inputs.exclude):
                names[path] = os.path.relpath(path)
        for real, name in sorted(names.items(), key=lambda entry: entry[1].split(os.sep)):
            part = self._input(name, real, texts, notes)
            if part is not None and not ((part.documents or part.troubles) and real in self._patches):
                yield part

    @staticmethod
    def _is_excluded(path: str, exclude: tuple[str, ...]) -> bool:
        return bool(exclude) and not list(files.discover((path,), exclude, force_exclude=True))

    def _open(self, path: str, name: str, text: str) -> Loaded:
        """An open text; read again only when it has changed."""
        known = self._texts.get(path)
        if known is None or known[0] != text or known[1].source.name != name:
            known = self._texts[path] = (text, load_text(Source(name, text)))
        return known[1]

    def _input(self, name: str, real: str, texts: Mapping[str, str], notes: list[str]) -> Loaded | None:
        """A file of the disk, or the open text of it; None where it cannot be read or holds nothing of ours."""
        if real in texts:
            return self._open(real, name, texts[real])
        known = self._read.get(name)
        if known is not None and not self._again:
            return known.loaded
        try:
            status = os.stat(name)
        except (OSError, ValueError):
            return None  # it has gone, which is no news
        signature = (status.st_mtime_ns, status.st_size, status.st_ino)
        if known is None or known.signature != signature:
            data = files.read(files.Found(name, name))
            if isinstance(data, files.Unreadable):
                notes.append(f"{name}: {data.reason}")
                return None
            known = self._read[name] = _File(signature, load(name, data) if files.may_hold_apf(data) else None)
        return known.loaded


def _said(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}"
    return str(error)
