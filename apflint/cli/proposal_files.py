"""Names and writes the files of a proposal, and names the configuration in commands about them."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING, NamedTuple

from apflint.atomic_write import write_atomically
from apflint.output.proposal import ProposalFiles
from apflint.sources.source_arguments import BUILT_IN_PREFIX, KUSTOMIZE_PREFIX, LIVE, PREFIXES
from apflint.user_error import UserError

if TYPE_CHECKING:
    from apflint.propose.proposal import ProvenProposal
    from apflint.sources.effective_configurations import EffectiveConfiguration
    from apflint.sources.input_types import InputRequest


class ProposalPlace(NamedTuple):
    """Where the files of a proposal are, or would be if the user wrote them, and what the configuration consists of."""

    request: InputRequest
    configuration: EffectiveConfiguration
    write: str | None
    """The file for the manifests, or None."""
    directory: str | None
    """The directory for all files, or None."""

    def name_manifests(self, name: str) -> str:
        """Return the path of the new objects."""
        return self.write or os.path.join(self.directory or "", f"{name}.yaml")

    def name_policy_test(self, name: str) -> str:
        """Return the path of the policy test. Beside manifests that `kubectl apply` reads, it would be an error."""
        return os.path.join(self.directory or "", f"{name}-test.yaml")

    def list_manifests(self, name: str) -> tuple[str, ...]:
        """Return the words that name the configuration with the new objects, relative to the directory of the policy test."""
        start = self.directory or "."
        file = self.name_manifests(name)
        words = [_relate(word, start) for word in self._words if word not in ("-", LIVE)]
        words = [word for word in words if not word.startswith(BUILT_IN_PREFIX)]
        return (*words, *([] if self._contains(file) else [_relate(file, start)]))

    @property
    def _words(self) -> tuple[str, ...]:
        return self.request.words or (".",) * bool(self.configuration.objects)

    def _contains(self, file: str) -> bool:
        """Return whether the configuration has the file after it is written, because one of its directories contains it."""
        if self.write is None and self.directory is None:
            return False
        paths = (os.path.realpath(word) for word in self._words if not word.startswith(PREFIXES))
        return any(os.path.realpath(file).startswith(f"{path.rstrip(os.sep)}{os.sep}") for path in paths)

    def write_files(self, found: ProvenProposal) -> ProposalFiles:
        """Write the files that the user wants, and return the names of all. Raises UserError if a file exists or cannot be written."""
        schema = found.isolation.flow_schema
        name = schema.name if schema is not None else found.isolation.level
        manifests, policy_test = self.name_manifests(name), self.name_policy_test(name)
        texts = {}
        if self.write is not None or self.directory is not None:
            texts[manifests] = found.manifests
        if self.directory is not None:
            texts[policy_test] = found.policy_test
        texts = {file: text for file, text in texts.items() if text}
        for file in texts:
            if os.path.lexists(file):
                raise UserError(
                    f"{file}: the file exists, and is not replaced. Add it to the configuration with -f, or name a new file"
                )
        for file, text in texts.items():
            _write(file, text)
        return ProposalFiles(manifests, policy_test, tuple(texts), self._write_diff(manifests), shlex.join(self._words))

    def _write_diff(self, file: str) -> str:
        """Return the command line that shows what the new objects change, or "" if no short one does."""
        effective = self.configuration.effective
        arguments = (
            []
            if self.request.server_concurrency is None
            else [f"--server-concurrency={effective.limits.server_concurrency}"]
        )
        if LIVE in self._words:
            return shlex.join(("apflint", "diff", LIVE, file, *arguments))
        if self.configuration.cluster or self._contains(file):
            cluster = ["--cluster", self.configuration.cluster] if self.configuration.cluster else []
            return shlex.join(("apflint", "diff", "git:HEAD", ".", *cluster, *arguments))
        words = (word for word in self._words if word != "-" and not word.startswith(BUILT_IN_PREFIX))
        files = (part for word in words for part in ("-f", word))
        release = f"{BUILT_IN_PREFIX}{effective.release.name}"
        return shlex.join(("apflint", "diff", *files, release, file, *arguments))


def _relate(word: str, start: str) -> str:
    """Return a word with its path relative to a directory."""
    prefix = KUSTOMIZE_PREFIX if word.startswith(KUSTOMIZE_PREFIX) else ""
    if not prefix and word.startswith(PREFIXES):
        return word
    return prefix + os.path.relpath(word.removeprefix(prefix), start)


def _write(file: str, text: str) -> None:
    try:
        os.makedirs(os.path.dirname(file) or ".", exist_ok=True)
        write_atomically(file, text.encode())
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = error.strerror if isinstance(error, OSError) else None
        raise UserError(f"{file}: not written: {reason or error}") from error
