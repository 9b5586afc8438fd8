"""Moves the objects of a text to a later API version: edits at the exact places, and the proof that they did as planned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from apflint.edit import places
from apflint.edit.meaning import Plan, meaning, moved, planned
from apflint.edit.operations import text_edits, unshared
from apflint.edit.proof import others_same, same, whole
from apflint.edit.text_edits import CannotEditError, apply_edits
from apflint.edit.versions import Target, age, serves
from apflint.load import load_text
from apflint.load.document import GROUP
from apflint.load.source import Source
from apflint.releases import api_version

if TYPE_CHECKING:
    from apflint.fix import Edit, Operation
    from apflint.load import Loaded
    from apflint.load.document import Document
    from apflint.location import Path


class Told(NamedTuple):
    """What is to be said about an object or a place: sentences without the last one's end."""

    what: Literal["moved", "note", "refused"]
    line: int
    """1-based."""
    object: str
    """`FlowSchema "name"`, or "" where it is no object."""
    message: str


class Migration(NamedTuple):
    """What became of a text. Where something is `refused` the text is as it was, all of it."""

    text: str
    told: tuple[Told, ...]
    refused: bool


def migrate(source: Source, target: Target, *, accept_changes: bool = False) -> Migration:
    """Moves every object of a text to `target.version`.

    With `accept_changes` also those whose meaning changes. Never raises: what cannot be done is told, with its place.
    """
    loaded = load_text(source)
    told = [
        Told("refused", problem.place.span.line, "", problem.message)
        for problem in loaded.problems
        if problem.kind != "not-apf"
    ]
    plans: dict[int, Plan] = {}
    edits: list[Edit] = []
    for number, document in enumerate(loaded.documents):
        if (left := _left_alone(document, target)) is not None:
            told += left
            continue
        plan = planned(document, target)
        told += _tellings(document, plan, target, accept_changes=accept_changes)
        plans[number] = plan
        try:
            edits += _edits(document, plan.operations, target.version)
        except CannotEditError as error:
            line = source.position(error.start)[0]
            told.append(Told("refused", line, _named(document), f"this cannot be edited: {error}. Edit it by hand"))
    if any(one.what == "refused" for one in told):
        return Migration(source.text, _sorted(told), refused=True)
    try:
        text = apply_edits(source.text, edits)
    except CannotEditError:
        told += [_entangled(loaded.documents[number], plans[number]) for number in plans]
        return Migration(source.text, _sorted(told), refused=True)
    if failed := _disproved(loaded, load_text(Source(source.name, text)), plans, target):
        told += [_entangled(document, plan) for document, plan in failed]
        return Migration(source.text, _sorted(told), refused=True)
    return Migration(text, _sorted(told), refused=False)


def _sorted(told: list[Told]) -> tuple[Told, ...]:
    return tuple(sorted(dict.fromkeys(told), key=lambda one: one.line))


def _named(document: Document) -> str:
    return f'{document.kind} "{document.name}"'


def _line(document: Document, path: Path) -> int:
    return document.source.position(document.offsets(path)[0])[0]


def _left_alone(document: Document, target: Target) -> list[Told] | None:
    """Why an object is not touched; None if it is to be moved, an empty list where that needs no words."""
    version = document.version
    if version == target.version:
        return []
    line = _line(document, ("apiVersion",))
    if api_version(version) is None:
        return [Told("refused", line, _named(document), f'"{version}" is no version of {GROUP}')]
    if age(version) < age(target.version):
        return None
    missing = next((release for release in target.releases if not serves(release, version)), None)
    if missing is None:
        return [Told("note", line, _named(document), f"is {version} already, which is later: left as it is")]
    message = f"{version} is later than {target.version}, and Kubernetes {missing.name} does not serve it"
    return [Told("refused", line, _named(document), message)]


def _tellings(document: Document, plan: Plan, target: Target, *, accept_changes: bool) -> list[Told]:
    line = _line(document, ("apiVersion",))
    told = [Told("moved", line, _named(document), f"{document.version} -> {target.version}")]
    for note in plan.notes:
        refused = note.weight == "impossible" or (note.weight == "different" and not accept_changes)
        told.append(Told("refused" if refused else "note", _line(document, note.path), _named(document), note.message))
    return told


def _edits(document: Document, operations: tuple[Operation, ...], version: str) -> list[Edit]:
    text, root = document.source.text, document.root
    edits = [
        places.replace_part(text, root, (*prefix, "apiVersion"), old.rpartition("/")[2], version)
        for prefix, old in _versions(document, version)
    ]
    return [*edits, *text_edits(document, operations)]


def _versions(document: Document, version: str) -> list[tuple[Path, str]]:
    """Where the apiVersion of an object is written: in itself, and in a list of its kind, which it may inherit it from."""
    found: list[tuple[Path, str]] = []
    if document.value.get("apiVersion"):
        found.append((document.prefix, document.api_version))
    if document.prefix:
        owner = document.prefix[:-2]
        around: Any = whole(document.root)
        for step in owner:
            around = around[step]
        outer = around.get("apiVersion") or (document.api_version if not found else "")
        known = isinstance(outer, str) and outer.startswith(f"{GROUP}/") and around.get("apiVersion")
        if known and api_version(outer.rpartition("/")[2]) and age(outer.rpartition("/")[2]) < age(version):
            found.append((owner, outer))
    return found


def _disproved(before: Loaded, after: Loaded, plans: dict[int, Plan], target: Target) -> list[tuple[Document, Plan]]:
    """The objects that the new text does not hold as planned, or all moved ones where it is not what it should be."""
    moving = [(before.documents[number], plan) for number, plan in plans.items()]
    same_kinds = [found.kind for found in before.documents] == [found.kind for found in after.documents]
    if not same_kinds or len(after.problems) != len(before.problems):
        return moving
    failed = []
    for number, (old, new) in enumerate(zip(before.documents, after.documents, strict=True)):
        plan = plans.get(number)
        wanted = moved(old, plan.operations, target.version) if plan else old
        expected = unshared(wanted.value)
        if plan and "apiVersion" in expected:
            expected["apiVersion"] = wanted.api_version
        if not same(new.value, expected) or new.api_version != wanted.api_version:
            failed.append((old, plan) if plan else (old, Plan((), ())))
        elif plan and any(meaning(new, release) != meaning(wanted, release) for release in target.releases):
            failed.append((old, plan))
    return failed if failed or others_same(before, after) else moving


def _entangled(document: Document, plan: Plan) -> Told:
    """Says that the text cannot be edited here, pointing at the alias or merge key that is to blame where there is one."""
    paths: list[Path] = [("apiVersion",), *(operation.path for operation in plan.operations)]
    for path in paths:
        found = places.find_alias(document.root, (*document.prefix, *path))
        if found is not None:
            name = document.source.text[found[0] : found[1]].partition("\n")[0]
            message = f"`{name}` takes values from another place, which an edit would change too. Edit it by hand"
            return Told("refused", document.source.position(found[0])[0], _named(document), message)
    message = "an edit of the text would change something else too (an anchor, perhaps). Edit it by hand"
    return Told("refused", _line(document, ("apiVersion",)), _named(document), message)
