"""Fixes of unknown fields (APF101, APF703): rename, move or remove the field."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from apflint.budgets import MAX_COMPARED_FIELDS
from apflint.edit_operations import Fix, Nest, Rename
from apflint.fixes.field_fixes import remove_field
from apflint.model import SUBJECT_FIELDS, shares_field
from apflint.schema import find_field_paths
from apflint.spelling import find_intended, find_similar
from apflint.wording import join_words, quote

if TYPE_CHECKING:
    from apflint.load.document import Document
    from apflint.location import Path
    from apflint.releases import Release
    from apflint.schema_violations import Violation

RBAC_ROLE_FIELDS = ("resourceNames", "roleRef")
"""Fields that RBAC roles and bindings have, but FlowSchemas do not."""
RBAC_SUBJECT_FIELDS = ("apiGroup", "apiVersion")
"""Fields that subjects have in RBAC, but not in FlowSchemas."""
_SYNONYMS = {
    "precedence": "matchingPrecedence",
    "priority": "matchingPrecedence",
    "priorityLevel": "priorityLevelConfiguration",
    "distinguisher": "distinguisherMethod",
    "paths": "nonResourceURLs",
}
_SHARES_SYNONYMS = frozenset(("concurrencyShares", "shares", "guaranteed", "guaranteedConcurrencyShares"))


def fix_unknown_field(document: Document, violation: Violation, release: Release) -> Fix | None:
    """Return a fix that renames, moves or removes an unknown field, or None if the intention is not certain."""
    path, name = violation.path, str(violation.path[-1])
    if is_subject_field(document, path) and name in RBAC_SUBJECT_FIELDS:
        return remove_field(path, safe=True)
    if name in RBAC_ROLE_FIELDS:
        return remove_field(path, safe=False)  # unsafe: the author wanted this field to restrict the requests
    intended = _find_intended_field(document, violation, release)
    if intended is None:
        return None if find_similar(name, violation.known) else _nest_fields(document, violation, release)
    owner = _mapping(document, path[:-1])
    unknown = [key for key in owner if key not in violation.known]
    if len(unknown) > MAX_COMPARED_FIELDS:
        return None
    contenders = [key for key in unknown if _guess_field(document, (*path[:-1], key), violation.known) == intended]
    return rename_field(document, path, intended) if len(contenders) == 1 else None


def rename_field(document: Document, path: Path, name: str, *, safe: bool = True) -> Fix | None:
    """Return a fix that renames a field, or None if the mapping of the field already has a field `name`."""
    if name in _mapping(document, path[:-1]):
        return None
    return Fix(f"rename {quote(path[-1])} to {quote(name)}", safe, (Rename(path, name),))


def find_synonym(name: str, value: object, version: str) -> str | None:
    """Return the field that is usually intended by the synonym `name`, such as `matchingPrecedence` for `priority`.

    Return None if `name` is not a known synonym, or if `value` does not fit the field.
    """
    if name in _SHARES_SYNONYMS:
        return shares_field(version) if isinstance(value, int) and not isinstance(value, bool) else None
    if name == "queue":
        return "queuing" if isinstance(value, dict) else "queues" if isinstance(value, int) else None
    return _SYNONYMS.get(name)


def find_owner_of_fields(document: Document, violation: Violation, release: Release) -> str | None:
    """Return the path of the mapping, such as `spec.limited`, that can contain all fields below an unknown field.

    Return None if there is no such mapping, or if there are several.
    """
    value = document.at(*violation.path)
    if not isinstance(value, dict) or not value:
        return None
    names = [find_synonym(key, item, document.version) or key for key, item in value.items()]
    owners = set.intersection(*(find_owners(name, document, release) for name in names))
    return owners.pop() if len(owners) == 1 else None


def find_owners(name: str, document: Document, release: Release) -> set[str]:
    """Return the paths of the mappings of a spec that can contain a field `name`.

    If both `spec.exempt` and `spec.limited` can contain the field, the mapping that does not fit the type of the level
    is omitted.
    """
    places = find_field_paths(name, document.kind, document.version, release)
    owners = {place.rpartition(".")[0] for place in places if place.startswith("spec.")}
    if owners >= {"spec.exempt", "spec.limited"}:
        owners -= {"spec.limited" if document.at("spec", "type") == "Exempt" else "spec.exempt"}
    return owners


def is_subject_field(document: Document, path: Path) -> bool:
    """Return whether a field belongs to a subject of a rule."""
    return document.kind == "FlowSchema" and len(path) == 6 and path[3] == "subjects"


def find_intended_kind(subject: object) -> str | None:
    """Return the kind of a subject, corrected if it is misspelled, or None if the kind is not certain."""
    kind = subject.get("kind") if isinstance(subject, dict) else None
    return find_intended(kind, SUBJECT_FIELDS) if isinstance(kind, str) else None


def _mapping(document: Document, path: Path) -> dict[str, Any]:
    value = document.at(*path)
    return value if isinstance(value, dict) else {}


def _guess_field(document: Document, path: Path, known: tuple[str, ...]) -> str | None:
    """Return the known field that the author of an unknown field probably meant.

    The name of the unknown field is a synonym or a misspelling of the known field. Return None if no
    known field is similar.
    """
    name = str(path[-1])
    synonym = find_synonym(name, document.at(*path), document.version)
    return synonym if synonym in known else find_intended(name, known)


def _find_intended_field(document: Document, violation: Violation, release: Release) -> str | None:
    """Return the field that an unknown field should be renamed to, or None if it should not be renamed.

    Return None if the unknown name is valid at another place of the object, because the field is then probably
    misplaced and not misspelled. But if the intended name differs only in the plural `s`, return the intended name
    anyway.
    """
    name = str(violation.path[-1])
    intended = _guess_field(document, violation.path, violation.known)
    if intended is not None and intended.lower().removesuffix("s") != name.lower().removesuffix("s"):
        elsewhere = find_field_paths(name, document.kind, document.version, release)
        return None if elsewhere else intended
    return intended


def _nest_fields(document: Document, violation: Violation, release: Release) -> Fix | None:
    """Return a fix that moves unknown fields into a new mapping next to them, to which they belong.

    For example, a subject in RBAC has the fields `kind`, `name` and `namespace`. In a FlowSchema, the
    fix moves `name` and `namespace` into a new mapping `serviceAccount`. Return None if the mapping
    already exists, or if it is not certain to which mapping the fields belong.
    """
    owner = _mapping(document, violation.path[:-1])
    target = _find_nested_owner(document, violation, str(violation.path[-1]), release)
    if target is None or target in owner:
        return None
    unknown = (key for key in owner if key not in violation.known)
    names = tuple(key for key in unknown if _find_nested_owner(document, violation, key, release) == target)
    if is_subject_field(document, violation.path):
        # YAML may parse a name as a boolean or number (`name: yes`). Move the name anyway: APF102 then reports its
        # type.
        names = ("name", "namespace") if target == "serviceAccount" else ("name",)
        if not all(isinstance(owner.get(name), str | bool | int | float) and owner[name] != "" for name in names):
            names = ("namespace",)
            if violation.path[-1] not in names:
                return None
    title = f"move {join_words(map(quote, names), 'and')} into {quote(target)}"
    return Fix(title, True, (Nest((*violation.path[:-1], target), names),))


def _find_nested_owner(document: Document, violation: Violation, name: str, release: Release) -> str | None:
    """Return the name of the mapping into which the unknown field `name` belongs, or None if it is not certain.

    The mapping is a sibling of the unknown field. For example, if a spec has the unknown field `limitResponse`, the
    result is `limited`, because `spec.limited` can contain the field.
    """
    steps = [step for step in violation.path[:-1] if isinstance(step, str)]
    if steps == ["spec"] and name == "name":
        return None  # uncertain: the author may mean `metadata.name` or the name in a reference
    paths = find_field_paths(name, document.kind, document.version, release)
    places = [path.replace("[]", "").split(".") for path in paths]
    owners = {place[-2] for place in places if place[:-2] == steps and place[-2] in violation.known} - {"status"}
    mapping = _mapping(document, violation.path[:-1])
    if owners == {"exempt", "limited"}:
        owners = {"Exempt": {"exempt"}, "Limited": {"limited"}}.get(str(mapping.get("type")), set())
    if is_subject_field(document, violation.path):
        owners &= {SUBJECT_FIELDS.get(find_intended_kind(mapping) or "")}
    return owners.pop() if len(owners) == 1 else None
