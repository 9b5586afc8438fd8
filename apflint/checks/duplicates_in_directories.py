"""APF402: report objects that are defined in two sibling directories.

Sibling directories probably configure different clusters. The duplicate definitions are a problem
only if both directories configure one cluster.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from apflint.budgets import MAX_DIRECTORY_PAIRS
from apflint.cluster_recognition import (
    find_sibling_directories,
    is_unicode,
    list_parents,
    name_directory,
    render_cluster,
)
from apflint.finding import Elsewhere, Problem
from apflint.location import Path, Place
from apflint.wording import pluralize, quote

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from apflint.load.document import Document

    Duplicates = list[tuple[Document, Document]]
    """Pairs of an earlier and a later definition of the same object."""
    DirectoryPairs = Mapping[tuple[str, str], Duplicates]

_NAME: Path = ("metadata", "name")
_COMMAND = "apflint config --suggest-clusters"


def split_duplicates(duplicates: Iterable[Sequence[Document]]) -> tuple[Duplicates, DirectoryPairs]:
    """Return two groups of duplicates: duplicates within one configuration, and duplicates in sibling directories.

    Each item of `duplicates` contains all definitions of one object. Definitions in a directory and in its
    subdirectories belong to one configuration. Definitions in the output of a tool such as Helm belong to one
    configuration, whatever their file names are.
    """
    near: Duplicates = []
    pairs: dict[tuple[str, str], Duplicates] = {}
    for documents in duplicates:
        at: dict[str, Document] = {}  # maps a directory to a definition in this directory
        # Maps a directory to a definition in this directory or in one of its subdirectories.
        below: dict[str, Document] = {}
        for document in documents:
            *parents, directory = ["", *list_parents(document.source.name)]
            if document.source.rendered:
                *parents, directory = [""]
            above = (at[parent] for parent in parents if parent in at)
            if earlier := below.get(directory) or next(above, None):
                near.append((earlier, document))
            elif at:
                first = documents[0]
                siblings = find_sibling_directories(first.source.name, document.source.name)
                assert siblings is not None  # the conditions above exclude nested directories
                pairs.setdefault(siblings, []).append((first, document))
            at.setdefault(directory, document)
            for parent in (*parents, directory):
                below.setdefault(parent, document)
    return near, pairs


def find_problems(pairs: DirectoryPairs) -> Iterator[Problem]:
    """Yield one problem for each pair of directories, at the first duplicate in the second directory."""
    directories = {directory for pair in pairs for directory in pair} if len(pairs) <= MAX_DIRECTORY_PAIRS else None
    for number, ((first, second), duplicates) in enumerate(pairs.items(), 1):
        if number > MAX_DIRECTORY_PAIRS:
            return
        earlier, document = duplicates[0]
        what = f"both define {document.kind} {quote(document.name)}"
        if len(duplicates) > 1:
            what = f"define the same {len(duplicates)} objects, such as {document.kind} {quote(document.name)}"
        notes = [
            "If the directories configure one cluster, the last definition replaces the others, or is rejected.",
            "If apflint.toml does not define clusters, all files are one configuration: findings may combine objects of different clusters.",
        ]
        if number == MAX_DIRECTORY_PAIRS < len(pairs):
            more = pluralize(len(pairs) - number, "more pair")
            notes.append(f"{more} of directories define the same objects.")
        yield Problem(
            Place(document, _NAME),
            f"{_show(first)} and {_show(second)} {what}",
            related=(Elsewhere(Place(earlier, _NAME), "the first definition"),),
            notes=tuple(notes),
            help=_suggest((first, second), directories),
        )


def _show(path: str) -> str:
    """Return a path to write at the start of a message, quoted if the path contains special characters.

    Without quotes, output formats and CI systems would change or interpret special characters at the start of a
    message.
    """
    return path if re.fullmatch(r"[\w./-]+", path) else json.dumps(path, ensure_ascii=False)


def _suggest(pair: tuple[str, str], directories: Collection[str] | None) -> str:
    """Return help that suggests to declare a separate cluster in the settings for each directory of `pair`.

    The help contains the TOML tables to add to the settings. If apflint cannot choose the tables, for example because a
    directory of one pair contains a directory of another pair, the help names only the command that prints the tables.
    `directories` contains the directories of all pairs, or is None if there are too many pairs.
    """
    question = "do they configure different clusters? Then add"
    if (
        directories is None
        or any(path.startswith(("/", "..")) or not is_unicode(path) for path in pair)
        or any(parent in directories for path in directories for parent in list_parents(path))
    ):
        return f"{question} the output of `{_COMMAND}` to apflint.toml"
    tables = (render_cluster(name_directory(path, directories), [path]) for path in pair)
    return f"{question} to apflint.toml, or use `{_COMMAND}`:\n{''.join(tables)}".rstrip("\n")
