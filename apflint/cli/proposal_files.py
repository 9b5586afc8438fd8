"""Names and writes the files of a proposal, and builds command-line arguments that name the files."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from apflint.atomic_write import write_atomically
from apflint.cli.repeated_options import name_sources, repeat_configuration, repeat_seats, repeat_settings
from apflint.output.proposal_files import ProposalFiles
from apflint.sources.source_arguments import BUILT_IN_PREFIX, KUSTOMIZE_PREFIX, LIVE, PREFIXES
from apflint.unknown_seats import describe_assumed_seats
from apflint.user_error import UserError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from apflint.propose.log_proposal import LogProposal
    from apflint.propose.proposal import ProvenProposal
    from apflint.sources.effective_configurations import EffectiveConfiguration
    from apflint.sources.input_types import InputRequest

Proposal = TypeVar("Proposal", "ProvenProposal", "LogProposal")


class ProposalPlace(NamedTuple):
    """The places to which the files of a proposal are written, and the configuration that the proposal changes.

    The methods also return the paths of files that are not written, because command lines in the
    report contain the paths.
    """

    request: InputRequest
    configuration: EffectiveConfiguration
    write: str | None
    """The file to write the manifests to, or None without --write."""
    directory: str | None
    """The directory to write all files to, or None without --output-dir."""

    def name_manifests(self, name: str) -> str:
        """Return the path of the file with the new objects. `name` is the name of the proposal."""
        return self.write or os.path.join(self.directory or "", f"{name}.yaml")

    def name_policy_test(self, name: str) -> str:
        """Return the path of the policy test. `name` is the name of the proposal.

        The test must not be in a directory of manifests, because `kubectl apply` would reject the test.
        """
        return os.path.join(self.directory or "", f"{name}-test.yaml")

    def list_manifests(self, name: str) -> tuple[str, ...]:
        """Return the command-line arguments that name the manifests, including the file with the new objects.

        `name` is the name of the proposal. Paths are relative to the directory of the policy test.
        """
        start = self.directory or "."
        file = self.name_manifests(name)
        words = [_relate(word, start) for word in self._words if word not in ("-", LIVE)]
        words = [word for word in words if not word.startswith(BUILT_IN_PREFIX)]
        is_contained = any(self._contains(file, word) for word in self._words)
        return (*words, *([] if is_contained else [_relate(file, start)]))

    @property
    def _words(self) -> tuple[str, ...]:
        return self.request.words or (".",) * bool(self.configuration.objects)

    def _contains(self, file: str, word: str) -> bool:
        """Return whether the source argument `word` is a directory in which the file is written."""
        if word.startswith(PREFIXES) or (self.write is None and self.directory is None):
            return False
        return os.path.realpath(file).startswith(f"{os.path.realpath(word).rstrip(os.sep)}{os.sep}")

    def write_files(self, found: ProvenProposal | LogProposal) -> ProposalFiles:
        """Write the files of a proposal that the user requests, and return the names of its files.

        The result also names the files that the user does not request, because reports suggest these names.

        Raises UserError if a file exists or cannot be written.
        """
        manifests, policy_test = self.name_manifests(found.name), self.name_policy_test(found.name)
        alerts = os.path.join(self.directory or "", f"{found.name}-alerts.yaml")
        texts = {}
        if self.write is not None or self.directory is not None:
            texts[manifests] = found.manifests
        if self.directory is not None:
            texts |= {policy_test: found.policy_test, alerts: self._write_alerts(found)}
        diff = "" if found.edits_objects else self._write_diff(manifests)
        return ProposalFiles(
            manifests,
            policy_test,
            alerts,
            _write_new(texts),
            diff,
            shlex.join(self._repeat_options(name_sources(self.request, self.configuration))),
            shlex.join(repeat_settings(self.request._replace(kubectl=None))),
            shlex.join(("kubectl", *(() if self.request.kubectl is None else self.request.kubectl.arguments))),
        )

    def mark_assumption(self, found: Proposal) -> Proposal:
        """Return the proposal with a comment before its manifests and its policy test if the number of seats is assumed.

        The comment states the assumed number of seats of an API server. If the number is known, return the
        proposal unchanged.
        """
        if not self.configuration.are_seats_assumed:
            return found
        head = f"# {describe_assumed_seats(found.after.limits.server_concurrency)}\n"
        manifests, policy_test = (text and head + text for text in (found.manifests, found.policy_test))
        return found._replace(manifests=manifests, policy_test=policy_test)

    def _write_alerts(self, found: ProvenProposal | LogProposal) -> str:
        """Return the alerts for the configuration with the proposal as YAML."""
        from apflint.monitoring.alerts import build_alerts, describe_omitted_alerts
        from apflint.output.alerts import render_alerts

        notes = [f"Configuration: {self.configuration.description}", f"With the proposal: {found.name}"]
        notes += describe_omitted_alerts(found.after)
        if self.configuration.are_seats_assumed:
            notes.append(describe_assumed_seats(found.after.limits.server_concurrency))
        return render_alerts(build_alerts(found.after), notes, is_object=True)

    def list_tested(self, name: str, *, edits_objects: bool) -> tuple[str, ...]:
        """Return the command-line arguments for the configuration that the policy test checks.

        These are the arguments of `list_manifests`, with one exception. If `edits_objects` is true, the
        new file contains changed copies of objects in the manifests, so the path of the new file is
        omitted.
        """
        words = self.list_manifests(name)
        file = _relate(self.name_manifests(name), self.directory or ".")
        return tuple(word for word in words if word != file) if edits_objects else words

    def _repeat_options(self, sources: Iterable[str]) -> tuple[str, ...]:
        """Return the options of this run for command lines that the report shows: sources, release, seats and settings.

        The release is always named, except for a running cluster, which determines the release. Otherwise, another version
        of apflint could assume another release.
        """
        pinned = self.request.assume(kubernetes=self.configuration.effective.release)
        return (*repeat_configuration(pinned, sources), *repeat_seats(pinned), *repeat_settings(pinned))

    def _write_diff(self, file: str) -> str:
        """Return a command line that shows what the new objects change. `file` is the file with these objects.

        Return "" if there is no short command line for this purpose.
        """
        words = [word for word in self._words if word not in ("-", LIVE) and not word.startswith(BUILT_IN_PREFIX)]
        if LIVE in self._words:
            others = [word for word in words if not self._contains(file, word)]
            return shlex.join(("apflint", "diff", LIVE, file, *self._repeat_options(others)))
        if self.configuration.cluster or any(self._contains(file, word) for word in words):
            cluster = ["--cluster", self.configuration.cluster] if self.configuration.cluster else []
            return shlex.join(("apflint", "diff", "git:HEAD", ".", *cluster, *self._repeat_options(())))
        release = f"{BUILT_IN_PREFIX}{self.configuration.effective.release.name}"
        old = release if self.request.defaults else next(iter(words), None)
        return "" if old is None else shlex.join(("apflint", "diff", old, file, *self._repeat_options(words)))


def _relate(word: str, start: str) -> str:
    """Return the source argument `word`, with its path (if any) relative to the directory `start`."""
    prefix = KUSTOMIZE_PREFIX if word.startswith(KUSTOMIZE_PREFIX) else ""
    if not prefix and word.startswith(PREFIXES):
        return word
    return prefix + os.path.relpath(word.removeprefix(prefix), start)


def _write(file: str, text: str) -> None:
    try:
        os.makedirs(os.path.dirname(file) or ".", exist_ok=True)
        write_atomically(file, text.encode())
    except (OSError, ValueError) as error:  # a NUL character in the name raises ValueError
        reason = error.strerror if isinstance(error, OSError) else None
        raise UserError(f"{file}: not written: {reason or error}") from error


def _write_new(texts: Mapping[str, str]) -> tuple[str, ...]:
    """Write texts to new files, and return the names of the written files.

    `texts` maps file names to texts. Empty texts are not written.

    Raises UserError if a file exists.
    """
    texts = {file: text for file, text in texts.items() if text}
    for file in texts:
        if os.path.lexists(file):
            raise UserError(
                f"{file}: the file exists, and is not replaced. Add it to the configuration with -f, or name a new file"
            )
    for file, text in texts.items():
        _write(file, text)
    return tuple(texts)
