"""`apflint defaults`: the built-in objects of a release as YAML or JSON, and what an upgrade changes in them."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from apflint import builtin
from apflint.location import field_path
from apflint.output.json_text import to_json
from apflint.releases import API_VERSIONS, GROUP, NEWEST, api_version, parse_release

if TYPE_CHECKING:
    from collections.abc import Mapping

    from apflint.location import Path
    from apflint.releases import Release

Format = Literal["yaml", "json"]


class FieldChange(NamedTuple):
    """A field with different values, ABSENT where there is none.

    The index of an item is that in the new list, or in the old one where the item is gone.
    """

    field: str
    old: object
    new: object


class Change(NamedTuple):
    """What becomes of one built-in object; `fields` where it is changed."""

    what: Literal["added", "removed", "changed"]
    entry: builtin.BuiltInObject
    spec: Mapping[str, object]
    """The new spec, or of a removed object the old one."""
    fields: tuple[FieldChange, ...]


class _Absent:
    """The value of a field that is not there: null would be something else."""


ABSENT = _Absent()


def run(
    kubernetes: str | None = None,
    version: str | None = None,
    output: Format = "yaml",
    diff: tuple[str, str] | None = None,
) -> str:
    """What `apflint defaults` prints, with its last line ended.

    `kubernetes`: the release, by default the newest known; `version`: the API version, by default the newest that the
    release serves (1.18 and 1.19: v1alpha1, which they serve on request); `diff`: two releases to compare instead, where
    `output` "yaml" gives words. ValueError, with a message for the user, for what is no release or no version.
    """
    if diff is not None:
        if kubernetes is not None or version is not None:
            raise ValueError("--diff names two releases: leave out --kubernetes and --api-version")
        old, new = parse_release(diff[0]), parse_release(diff[1])
        return _diff_json(old, new) if output == "json" else _diff_text(old, new)
    target = NEWEST if kubernetes is None else parse_release(kubernetes)
    chosen = target.newest_version if version is None else _version(version, target)
    return _json(target, chosen) if output == "json" else _yaml(target, chosen)


def changes(old: Release, new: Release) -> list[Change]:
    """How the built-in objects of `new` differ from those of `old`: removed, added, changed; fields as `new` calls them."""
    version = new.newest_version
    before = dict(zip(builtin.list_objects(old), builtin.build_manifests(old, version), strict=True))
    after = dict(zip(builtin.list_objects(new), builtin.build_manifests(new, version), strict=True))
    removed = [Change("removed", key, value["spec"], ()) for key, value in before.items() if key not in after]
    added = [Change("added", key, value["spec"], ()) for key, value in after.items() if key not in before]
    changed = [
        Change("changed", key, value["spec"], tuple(_fields(("spec",), before[key]["spec"], value["spec"])))
        for key, value in after.items()
        if key in before and before[key]["spec"] != value["spec"]
    ]
    return removed + added + changed


def _fields(path: Path, old: Any, new: Any) -> list[FieldChange]:
    if old == new:
        return []
    if isinstance(old, dict) and isinstance(new, dict):
        steps: list[str | int] = list(dict.fromkeys((*old, *new)))
        return [
            change for step in steps for change in _fields((*path, step), old.get(step, ABSENT), new.get(step, ABSENT))
        ]
    if _are_objects(old) and _are_objects(new):
        return _items(path, old, new)
    return [FieldChange(field_path(path), old, new)]


def _items(path: Path, old: list[Any], new: list[Any]) -> list[FieldChange]:
    """Lists of objects have no keys: what is equal is paired first, so that one item that goes does not change the rest."""
    import json  # the command line imports this module to show help, too
    from difflib import SequenceMatcher

    texts = [json.dumps(item) for item in old], [json.dumps(item) for item in new]
    found: list[FieldChange] = []
    for what, start, end, new_start, new_end in SequenceMatcher(None, *texts, autojunk=False).get_opcodes():
        if what == "equal":
            continue
        for left, right in zip_longest(range(start, end), range(new_start, new_end)):
            if right is None:
                found.append(FieldChange(field_path((*path, left)), old[left], ABSENT))
            elif left is None:
                found.append(FieldChange(field_path((*path, right)), ABSENT, new[right]))
            else:
                found += _fields((*path, right), old[left], new[right])
    return found


def _are_objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


def _version(text: str, target: Release) -> str:
    life = api_version(text.removeprefix(f"{GROUP}/"))
    if life is None:
        known = ", ".join(f'"{other.name}"' for other in API_VERSIONS)
        raise ValueError(f'"{text}" is no version of {GROUP}. There are {known}.')
    if life.introduced > target.minor:
        raise ValueError(
            f"Kubernetes {target.name} has no {GROUP}/{life.name}: it came with 1.{life.introduced}. "
            f'The newest that {target.name} has is "{target.newest_version}".'
        )
    return life.name


def _json(target: Release, version: str) -> str:

    items = builtin.build_manifests(target, version)
    return to_json({"kind": "List", "apiVersion": "v1", "items": items}, 2)


def _yaml(target: Release, version: str) -> str:
    import io  # as above, and ruamel.yaml takes tens of milliseconds
    import textwrap

    from ruamel.yaml import YAML
    from ruamel.yaml.scalarstring import DoubleQuotedScalarString

    yaml = YAML()
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.width = 4096
    out = io.StringIO()
    for sentence in _header(target, version):
        for line in textwrap.wrap(sentence, 116, break_on_hyphens=False, break_long_words=False):
            out.write(f"# {line}\n")
    pairs = zip(builtin.list_objects(target), builtin.build_manifests(target, version), strict=True)
    for number, (entry, value) in enumerate(pairs):
        out.write(f"{'---' if number else ''}\n# {entry.role}\n")
        annotations = value["metadata"].get("annotations", {})
        annotations.update({key: DoubleQuotedScalarString(text) for key, text in annotations.items()})
        yaml.dump(value, out)
    return out.getvalue()


def _header(target: Release, version: str) -> list[str]:
    but = ", but for spec.exempt" if target.has_exempt_field else ""
    lines = [
        f"What Kubernetes {target.name} itself creates for API Priority and Fairness, as {GROUP}/{version}, complete with defaults.",
        f"mandatory: the server always has it, and lets nobody change its spec{but}.",
        "suggested: the server creates it where it is missing. An administrator may change it.",
    ]
    if version in target.on_request:
        lines.append(
            f"{target.name} serves {version} only when it is started with --runtime-config={GROUP}/{version}=true."
        )
    elif version not in target.served:
        instead = target.newest_version
        lines.append(f"{target.name} no longer serves {version}. To apply these objects there, take {instead}.")
    return [*lines, f"Source: {builtin.describe_source(target)}"]


def _diff_json(old: Release, new: Release) -> str:

    answer: dict[str, Any] = {
        "from": old.name,
        "to": new.name,
        "served": {"from": list(old.served), "to": list(new.served)},
        "added": [],
        "removed": [],
        "changed": [],
    }
    for change in changes(old, new):
        entry: dict[str, Any] = change.entry._asdict()
        if change.what == "changed":
            entry["fields"] = [_field_json(field) for field in change.fields]
        else:
            entry["spec"] = change.spec
        answer[change.what].append(entry)
    return to_json(answer, 2)


def _field_json(change: FieldChange) -> dict[str, Any]:
    # An absent value has no key; null is the value null.
    values = {"old": change.old, "new": change.new}
    return {"field": change.field} | {side: value for side, value in values.items() if value is not ABSENT}


def _diff_text(old: Release, new: Release) -> str:
    found = changes(old, new)
    lines = [f"From Kubernetes {old.name} to {new.name}:"]
    for change in found:
        entry = change.entry
        lines += ["", f"{change.what}: {entry.role} {entry.kind} {entry.name}"]
        lines += [f"  {line}" for line in _details(change)]
    if not found:
        lines.append("The built-in objects are the same.")
    else:
        same = len(set(builtin.list_objects(old)) & set(builtin.list_objects(new))) - sum(
            c.what == "changed" for c in found
        )
        lines += ["", f"{same} other built-in objects stay as they are.", *_consequences(old, new, found)]
    return "\n".join([*lines, _served(old, new)]) + "\n"


def _details(change: Change) -> list[str]:
    if change.what == "changed":
        return [_in_words(field) for field in change.fields]
    spec: Mapping[str, Any] = change.spec
    if change.entry.kind == "FlowSchema":
        level = spec["priorityLevelConfiguration"]["name"]
        return [f'matchingPrecedence {spec["matchingPrecedence"]}, priority level "{level}"']
    limited = spec.get("limited", {})
    shares = next((value for key, value in limited.items() if key.endswith("ConcurrencyShares")), 0)
    return [f"{spec['type']}, {shares} shares"]


def _in_words(change: FieldChange) -> str:
    if change.old is ABSENT:
        return f"{change.field}: absent becomes {_value(change.new)}"
    if change.new is ABSENT:
        return f"{change.field}: {_value(change.old)} is gone"
    return f"{change.field}: {_value(change.old)} becomes {_value(change.new)}"


def _value(value: Any) -> str:
    import json  # as above

    return json.dumps(value)


def _consequences(old: Release, new: Release, found: list[Change]) -> list[str]:
    """What a server of the new release does with the objects that one of the old release left."""
    if new.minor < old.minor:
        return []
    if not new.maintains_objects:
        # kubernetes/kubernetes pull request 98028 came after these releases.
        keeps = "It leaves objects that exist as they are: changes and removals are yours to make."
        return [f"A {new.name} server creates what is missing. {keeps}"]
    # NewFlowSchemaRemover and the suggested strategy in pkg/registry/flowcontrol/ensurer; recorded on 1.36.2.
    does = []
    if any(change.what == "removed" for change in found):
        does.append("deletes a removed object that is still there")
    if any(change.what == "changed" and change.entry.role == "suggested" for change in found):
        does.append("gives a changed suggested object its new spec")
    own = f'unless the object is marked as an administrator\'s own ({builtin.AUTOUPDATE}: "false")'
    return [f"A {new.name} server {' and '.join(does)}, {own}."] if does else []


def _served(old: Release, new: Release) -> str:
    before, after = old.served, new.served
    if before == after:
        versions = ", ".join(after) or "none"
        return f"API versions served by default, as before: {versions}."
    return f"API versions served by default: {', '.join(before) or 'none'} becomes {', '.join(after) or 'none'}."
