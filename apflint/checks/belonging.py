"""Fixes of fields that are unknown where they stand (APF101, APF703): what the field is called, or where it belongs."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from apflint.checks import repair
from apflint.checks.subjects import MEMBERS
from apflint.fix import Fix, Nest, Remove, Rename
from apflint.model import shares_field
from apflint.schema import find_field_paths
from apflint.wording import listed, nearest, quote

if TYPE_CHECKING:
    from apflint.load.document import Document
    from apflint.location import Path
    from apflint.releases import Release
    from apflint.schema import Violation

OF_ROLES = ("resourceNames", "roleRef")
"""Fields of RBAC that FlowSchemas do not have."""
OF_RBAC_SUBJECTS = ("apiGroup", "apiVersion")
"""Fields that a subject of RBAC has or had, and one of a FlowSchema has not."""
SYNONYMS = {
    "precedence": "matchingPrecedence",
    "priority": "matchingPrecedence",
    "priorityLevel": "priorityLevelConfiguration",
    "distinguisher": "distinguisherMethod",
    "paths": "nonResourceURLs",
}
"""What people call a field, where the spelling is too far off to tell."""
_SHARES = frozenset(("concurrencyShares", "shares", "guaranteed", "guaranteedConcurrencyShares"))
"""What people call the shares of a level."""


def synonym(name: str, value: object, version: str) -> str | None:
    """The field that people mean by a name whose spelling is too far off to tell; None if there is none for such a value."""
    if name in _SHARES:
        return shares_field(version) if isinstance(value, int) and not isinstance(value, bool) else None
    if name == "queue":
        return "queuing" if isinstance(value, dict) else "queues" if isinstance(value, int) else None
    return SYNONYMS.get(name)


def owner_of_fields(document: Document, violation: Violation, release: Release) -> str | None:
    """The one mapping, such as `spec.limited`, that has all fields of the mapping below an unknown field; else None."""
    value = document.at(*violation.path)
    if not isinstance(value, dict) or not value:
        return None
    names = [synonym(key, item, document.version) or key for key, item in value.items()]
    owners = owners_of(names[0], document, release)
    for name in names[1:]:
        owners &= owners_of(name, document, release)
    return owners.pop() if len(owners) == 1 else None


def owners_of(name: str, document: Document, release: Release) -> set[str]:
    """The mappings of a spec that have a field of this name; of `limited` and `exempt` only that of the level's type."""
    places = find_field_paths(name, document.kind, document.version, release)
    owners = {place.rpartition(".")[0] for place in places if place.startswith("spec.")}
    if owners >= {"spec.exempt", "spec.limited"}:
        owners -= {"spec.limited" if document.at("spec", "type") == "Exempt" else "spec.exempt"}
    return owners


def renamed(document: Document, path: Path, name: str, *, safe: bool = True) -> Fix | None:
    """Calls the field at `path` by another name, unless a field of that name is there."""
    if name in _owner(document, path):
        return None
    return Fix(f"rename {quote(path[-1])} to {quote(name)}", safe, (Rename(path, name),))


def mended(document: Document, violation: Violation, release: Release) -> Fix | None:
    """The fix for an unknown field; None where it is not plain what was meant."""
    path, name = violation.path, str(violation.path[-1])
    if is_subject(document, path):
        if name in OF_RBAC_SUBJECTS:
            return Fix(f"remove {quote(name)}", True, (Remove(path),))
        if fix := _rbac_subject(document, path):
            return fix
    if name in OF_ROLES:  # without it the FlowSchema takes more than was meant
        return Fix(f"remove {quote(name)}", False, (Remove(path),))
    meant = _meant(document, violation, find_field_paths(name, document.kind, document.version, release))
    if meant is not None:
        return renamed(document, path, meant) if _meanings(document, path[:-1], violation.known)[meant] == 1 else None
    return _deeper(document, violation, release) if nearest(name, violation.known) is None else None


def is_subject(document: Document, path: Path) -> bool:
    """Whether a field is one of a subject."""
    return document.kind == "FlowSchema" and len(path) == 6 and path[3] == "subjects"


def kind_of(subject: object) -> str | None:
    """The kind that a subject is meant to be, misspelt perhaps; None where that is not plain."""
    kind = subject.get("kind") if isinstance(subject, dict) else None
    return repair.meant(kind, MEMBERS) if isinstance(kind, str) else None


def _owner(document: Document, path: Path) -> dict[str, Any]:
    """The mapping that has the field."""
    return _mapping(document, path[:-1])


def _mapping(document: Document, path: Path) -> dict[str, Any]:
    value = document.at(*path)
    return value if isinstance(value, dict) else {}


@lru_cache(maxsize=1)  # all unknown fields of a mapping ask, one after the other
def _meanings(document: Document, path: Path, known: tuple[str, ...]) -> Counter[str]:
    """How many unknown fields of the mapping at `path` must be each of the known ones, misspelt."""
    mapping = _mapping(document, path)
    others = {key: value for key, value in mapping.items() if key not in known}
    words = (_known_synonym(key, value, document.version, known) or _word(key, known) for key, value in others.items())
    return Counter(word for word in words if word is not None)


def _known_synonym(name: str, value: object, version: str, known: tuple[str, ...]) -> str | None:
    other = synonym(name, value, version)
    return other if other in known else None


def _word(name: str, known: tuple[str, ...]) -> str | None:
    """The field that a misspelt one must be."""
    return repair.meant(name, known)


def _meant(document: Document, violation: Violation, elsewhere: tuple[str, ...]) -> str | None:
    """The same, but for a name that is a field in another place: then it is more likely to be in the wrong place."""
    name = str(violation.path[-1])
    value = document.at(*violation.path)
    word = _known_synonym(name, value, document.version, violation.known) or _word(name, violation.known)
    if elsewhere and word is not None and word.lower().removesuffix("s") != name.lower().removesuffix("s"):
        return None
    return word


def _rbac_subject(document: Document, path: Path) -> Fix | None:
    """Name and namespace of a subject as RBAC writes it, moved into the mapping that is called after the kind."""
    subject = _owner(document, path)
    member = MEMBERS.get(kind_of(subject) or "")
    names = ("name", "namespace") if member == "serviceAccount" else ("name",)
    if member is None or member in subject or path[-1] not in names:
        return None
    # What YAML read as a boolean or a number was meant as a name all the same: `name: yes`. That is the next finding then.
    if not all(isinstance(subject.get(name), str | bool | int | float) and subject[name] != "" for name in names):
        return None
    return _nested(path, member, names)


def _deeper(document: Document, violation: Violation, release: Release) -> Fix | None:
    """Fields that belong one level deeper, in a mapping that is not there: moved into it."""
    owner = _owner(document, violation.path)
    target = _home(document, violation, str(violation.path[-1]), release)
    if target is None or target in owner:
        return None
    names = tuple(
        key for key in owner if key not in violation.known and _home(document, violation, key, release) == target
    )
    return _nested(violation.path, target, names)


def _home(document: Document, violation: Violation, name: str, release: Release) -> str | None:
    """The one mapping beside an unknown field that has a field of its name."""
    steps = [step for step in violation.path[:-1] if isinstance(step, str)]
    places = [
        place.replace("[]", "").split(".") for place in find_field_paths(name, document.kind, document.version, release)
    ]
    homes = {place[-2] for place in places if place[:-2] == steps and place[-2] in violation.known}
    homes -= {"status"}
    if homes == {"exempt", "limited"}:
        level_type = _owner(document, violation.path).get("type")
        homes -= {"exempt"} if level_type == "Limited" else {"limited"} if level_type == "Exempt" else set()
    if steps == ["spec"] and name == "name":
        return None  # of the level, or of the object
    if is_subject(document, violation.path) and homes != {MEMBERS.get(kind_of(_owner(document, violation.path)) or "")}:
        return None  # the namespace of a user or a group, which have none
    return homes.pop() if len(homes) == 1 else None


def _nested(path: Path, target: str, names: tuple[str, ...]) -> Fix:
    title = f"move {listed(map(quote, names), 'and')} into {quote(target)}"
    return Fix(title, True, (Nest((*path[:-1], target), names),))
