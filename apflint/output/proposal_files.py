"""The files and the commands of a proposal as blocks and JSON, for proposals with and without an audit log."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from apflint.named_tuple import NamedTuple
from apflint.output.blocks import DOCUMENTS, TEXT, Code, Command, Details, Group, Heading, Only, Prose, Text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from apflint.output.blocks import Block

STEP_TITLES = {"verify": "Verify", "apply": "Apply", "rollBack": "Roll back"}
"""Titles of the steps by their names in JSON, in the order in which a user performs them."""


class ProposalFiles(NamedTuple):
    """The file names of a proposal, the command line that shows its changes, and arguments of other commands."""

    manifests: str
    policy_test: str
    alerts: str
    written: tuple[str, ...]
    """Names of the files that apflint has written. apflint only suggests the names of all other files."""
    diff: str
    """Command line that shows what the proposal changes, or "" if there is no short command line for this purpose."""
    options: str = ""
    """Options of `apflint` for the configuration of this run."""
    test_options: str = ""
    """Options of `apflint test` for the settings of this run."""
    kubectl: str = "kubectl"
    """`kubectl` with the options that select the running cluster, if the configuration is from there."""


def report_files(files: ProposalFiles, manifests: str, policy_test: str) -> Iterator[Block]:
    """Yield blocks for the files of a proposal: the manifests, the policy test and the alerts.

    `manifests` and `policy_test` are the texts of these two files. If a text is empty, the proposal has
    no such file. In text output, a block names a file that apflint has written, or contains the text of
    a file that is not written. Other formats always contain both texts. The alerts are named only if
    their file is written.
    """
    for name, text in ((files.manifests, manifests), (files.policy_test, policy_test)):
        if not text:
            continue
        if name in files.written:
            yield Only(TEXT, [Prose([f"Written: {name}"])])
        else:
            yield Only(TEXT, [Group([Heading(name), Code(text)])])
        yield Only(DOCUMENTS, [Details((Text(name, "name"),), [Code(text, "yaml")])])
    if files.alerts in files.written:
        yield Prose([f"Written: {files.alerts}"])


def list_checks(files: ProposalFiles, manifests: str, policy_test: str) -> list[str]:
    """Return the command lines that verify the manifests before they are applied.

    `manifests` and `policy_test` are the contents of the two files. If the proposal does not have a
    file, its content is an empty string. Without manifests, return an empty list.
    """
    if not manifests:
        return []
    return [
        *([files.diff] if files.diff else []),
        *([f"apflint test {shlex.quote(files.policy_test)} {files.test_options}".rstrip()] if policy_test else []),
        f"{files.kubectl} diff -f {shlex.quote(files.manifests)}",
    ]


def report_steps(steps: Mapping[str, Sequence[str]]) -> Iterator[Block]:
    """Yield the command lines of each step. The keys of `steps` are those of `STEP_TITLES`."""
    for step, title in STEP_TITLES.items():
        blocks: list[Block] = []
        for line in steps[step]:
            program, _, arguments = line.partition(" ")
            blocks.append(Command(program, arguments, 2))
        yield Group([Heading(title), *blocks])


def files_json(files: ProposalFiles, manifests: str, policy_test: str) -> dict[str, object]:
    """Return the object `files` of the JSON output.

    `manifests` and `policy_test` are the texts of the files, or empty if the proposal does not have the file.
    """
    return {
        "manifests": {"name": files.manifests, "text": manifests} if manifests else None,
        "policyTest": {"name": files.policy_test, "text": policy_test} if policy_test else None,
        "alerts": files.alerts if files.alerts in files.written else None,
        "written": [*files.written],
    }
