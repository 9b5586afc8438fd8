"""Generates manifests for recording the verdicts of servers.

Each function with the decorator `@family` yields the cases of one family: pairs of a name and a manifest. The manifest
differs from a valid manifest only in the aspect that the family covers. `combine_mistakes` combines several
differences. The API version determines the cases. `apiVersion` and `kind` never change: a server takes missing values
from the URL, which a linter does not know.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any, NamedTuple

from apflint.model import shares_field
from apflint.releases import GROUP
from recording.verdicts import Case

SEED = 1040  # number of KEP-1040, which defines API Priority and Fairness
MAX_CASES_PER_FAMILY = 24
RANDOM_CASES = 60
MAX_RANDOM_MISTAKES = 4

Path = tuple[str | int, ...]


class Raw(str):
    """YAML text to insert unchanged."""

    __slots__ = ()


class Target(NamedTuple):
    """The API version that the cases are for."""

    version: str

    @property
    def shares(self) -> str:
        """The field with the shares of a limited level."""
        return shares_field(self.version)

    def flow_schema(self, **spec: Any) -> dict[str, Any]:
        """Return a valid FlowSchema with all fields. The arguments replace fields of its spec."""
        rule = {
            "subjects": [
                {"kind": "User", "user": {"name": "alice"}},
                {"kind": "Group", "group": {"name": "dev"}},
                {"kind": "ServiceAccount", "serviceAccount": {"namespace": "ci", "name": "runner"}},
            ],
            "resourceRules": [
                {
                    "verbs": ["get", "list"],
                    "apiGroups": ["apps"],
                    "resources": ["deployments"],
                    "clusterScope": True,
                    "namespaces": ["dev"],
                }
            ],
            "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/metrics"]}],
        }
        return self._object(
            "FlowSchema",
            {
                "priorityLevelConfiguration": {"name": "global-default"},
                "matchingPrecedence": 500,
                "distinguisherMethod": {"type": "ByUser"},
                "rules": [rule],
            }
            | spec,
        )

    def level(self, **limited: Any) -> dict[str, Any]:
        """Return a valid priority level with queues. The arguments replace fields of `spec.limited`."""
        queuing = {"queues": 64, "handSize": 6, "queueLengthLimit": 50}
        spec = {self.shares: 30, "limitResponse": {"type": "Queue", "queuing": queuing}}
        if self.version in ("v1", "v1beta3"):  # older versions do not have borrowing
            spec |= {"lendablePercent": 50, "borrowingLimitPercent": 100}
        return self._object("PriorityLevelConfiguration", {"type": "Limited", "limited": spec | limited})

    def _object(self, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
        return {"apiVersion": f"{GROUP}/{self.version}", "kind": kind, "metadata": {"name": "example"}, "spec": spec}


Named = Iterator[tuple[str, Any]]
FAMILIES: dict[str, Callable[[Target], Named]] = {}
"""For each family: the function that yields the names and manifests of its cases, as objects or as YAML."""


def family(function: Callable[[Target], Named]) -> Callable[[Target], Named]:
    """Register a function that generates cases. The name of the function becomes the name of the family of cases."""
    FAMILIES[function.__name__] = function
    return function


def generate(version: str) -> list[Case]:
    """Return the cases of all families for an API version, without repeated manifests."""
    target = Target(version)
    cases: dict[str, Case] = {}
    for name, function in FAMILIES.items():
        for number, value in function(target):
            manifest = value if isinstance(value, str) else to_yaml(value)
            cases.setdefault(manifest, Case(f"g/{name}/{number}", manifest))
    return list(cases.values())


def sample(cases: list[Case]) -> list[Case]:
    """Return at most `MAX_CASES_PER_FAMILY` cases of each family, to limit the size of the repository."""
    families: dict[str, list[Case]] = {}
    for case in cases:
        families.setdefault(case.id.split("/")[1], []).append(case)
    chosen: set[Case] = set()
    for members in families.values():
        chance = random.Random(SEED)
        chosen.update(chance.sample(members, min(MAX_CASES_PER_FAMILY, len(members))))
    return [case for case in cases if case in chosen]


@family
def valid(target: Target) -> Named:
    """Yield accepted objects, and objects with names that a new server already has."""
    yield "flow-schema", target.flow_schema()
    yield "level", target.level()
    yield "reject", target.level(limitResponse={"type": "Reject"})
    for name in ("global-default", "service-accounts"):
        yield f"flow-schema-{name}", change(target.flow_schema(), ("metadata", "name"), name)
    for name in ("global-default", "workload-low"):
        yield f"level-{name}", change(target.level(), ("metadata", "name"), name)


@family
def missing_fields(target: Target) -> Named:
    """For each field, yield an object without the field, and an object in which the field is null."""
    for value in (target.flow_schema(), target.level()):
        for path in list_paths(value):
            yield f"no-{format_path(value, path)}", remove(value, path)
            if isinstance(path[-1], str):
                yield f"null-{format_path(value, path)}", change(value, path, None)


@family
def wrong_types(target: Target) -> Named:
    """For each field, yield objects in which the field has a value of a wrong type: one object for each type."""
    values = {"string": "text", "integer": 5, "bool": True, "list": [], "object": {}}
    for value in (target.flow_schema(), target.level()):
        for path in list_paths(value):
            for name, wrong in values.items():
                if type(get(value, path)) is not type(wrong):
                    yield f"{format_path(value, path)}-{name}", change(value, path, wrong)


@family
def unknown_fields(target: Target) -> Named:
    """Yield objects with an unknown field, and with a field name in another letter case."""
    for value in (target.flow_schema(), target.level()):
        for path in list_paths(value):
            fields = get(value, path)
            if isinstance(fields, dict):
                yield f"{format_path(value, path)}-extra", change(value, (*path, "extra"), 1)
                last = list(fields)[-1]
                renamed = change(remove(value, (*path, last)), (*path, last.title()), fields[last])
                yield f"{format_path(value, path)}-case", renamed


@family
def duplicate_keys(target: Target) -> Named:
    """Yield objects with a key that occurs twice, or once and in a merge key."""
    for value in (target.flow_schema(), target.level()):
        lines = to_yaml(value).splitlines(keepends=True)
        for number, line in enumerate(lines):
            if line.rstrip().endswith(":") or line.lstrip().startswith("-"):
                continue  # repeating this line would not repeat the value, which is on the next lines
            yield f"{value['kind']}-line-{number + 1}", "".join([*lines[: number + 1], line, *lines[number + 1 :]])
    text = to_yaml(target.level())
    yield (
        "merge-same",
        text.replace("  limited:\n", "  limited:\n    <<: {lendablePercent: 1}\n    lendablePercent: 2\n"),
    )
    yield "merge-other", text.replace("    limitResponse:\n", "    limitResponse:\n      <<: {}\n")


@family
def wildcards(target: Target) -> Named:
    """Yield objects with lists that contain "*" as the only item, next to other items, and twice."""
    lists = {
        "verbs": "get",
        "apiGroups": "apps",
        "resources": "pods",
        "namespaces": "dev",
        "nonResourceURLs": "/metrics",
    }
    for field, other in lists.items():
        for name, items in (
            ("alone", ["*"]),
            ("first", ["*", other]),
            ("last", [other, "*"]),
            ("twice", ["*", "*"]),
            ("invalid", ["*", "/*/"]),
        ):
            for part in ("resourceRules", "nonResourceRules"):
                path = ("spec", "rules", 0, part, 0, field)
                if field in get(target.flow_schema(), path[:-1]):
                    yield f"{part}-{field}-{name}", change(target.flow_schema(), path, items)


@family
def lists(target: Target) -> Named:
    """Yield objects with lists that are empty, repeat an item, or contain null or an empty string."""
    value = target.flow_schema()
    for path in list_paths(value):
        items = get(value, path)
        if isinstance(items, list):
            field = format_path(value, path)
            yield f"{field}-empty", change(value, path, [])
            yield f"{field}-twice", change(value, path, items * 2)
            yield f"{field}-null-item", change(value, path, [*items, None])
            if isinstance(items[0], str):
                yield f"{field}-empty-item", change(value, path, ["", *items])


@family
def verbs(target: Target) -> Named:
    """Yield objects with verbs in resource rules and in non-resource rules."""
    names = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "proxy")
    for verb in (*names, "head", "post", "connect", "impersonate", "GET", "List", " get"):
        for part in ("resourceRules", "nonResourceRules"):
            yield f"{part}-{verb}", change(target.flow_schema(), ("spec", "rules", 0, part, 0, "verbs"), [verb])


@family
def namespaces(target: Target) -> Named:
    """Yield FlowSchemas with valid and invalid namespaces in a rule, with and without clusterScope."""
    names = ("dev", "Dev", "dev_1", "-dev", "dev-", "a.b", "1", "", "x" * 63, "x" * 64, "dev*", "*")
    rule: Path = ("spec", "rules", 0, "resourceRules", 0)
    for number, name in enumerate(names):
        for scope in (True, False):
            value = change(target.flow_schema(), (*rule, "clusterScope"), scope)
            yield f"{number}-{scope}", change(value, (*rule, "namespaces"), [name])
    for scope in (True, False):
        value = change(target.flow_schema(), (*rule, "clusterScope"), scope)
        yield f"none-{scope}", remove(value, (*rule, "namespaces"))


@family
def non_resource_urls(target: Target) -> Named:
    """Yield FlowSchemas with valid and invalid values of nonResourceURLs."""
    urls = (
        "/",
        "/*",
        "/**",
        "/a",
        "/a/",
        "/a/*",
        "/a*",
        "/a/*/b",
        "//a",
        "/a b",
        "/A?x#y%20",
        "a",
        "",
        " ",
        "/\t",
        "/é",
    )
    for number, url in enumerate(urls):
        path = ("spec", "rules", 0, "nonResourceRules", 0, "nonResourceURLs")
        yield str(number), change(target.flow_schema(), path, [url])


@family
def rules(target: Target) -> Named:
    """Yield objects whose rules lack subjects, resource rules or non-resource rules."""
    (rule,) = target.flow_schema()["spec"]["rules"]
    parts = ("subjects", "resourceRules", "nonResourceRules")
    for number in range(8):
        kept = {part: rule[part] for bit, part in enumerate(parts) if number & 1 << bit}
        yield f"only-{'-'.join(kept) or 'none'}", target.flow_schema(rules=[kept])
        emptied = {part: rule[part] if part in kept else [] for part in parts}
        yield f"empty-but-{'-'.join(kept) or 'none'}", target.flow_schema(rules=[emptied])
    yield "two-wrong", target.flow_schema(rules=[{}, rule, {"subjects": []}])
    yield "no-rules", target.flow_schema(rules=[])


@family
def subjects(target: Target) -> Named:
    """Yield objects with subjects of each kind and combination of fields, and with names of subjects."""
    fields: dict[str, Any] = {
        "user": {"name": "alice"},
        "group": {"name": "dev"},
        "serviceAccount": {"namespace": "ci", "name": "runner"},
    }

    def with_subject(subject: dict[str, Any]) -> dict[str, Any]:
        return change(target.flow_schema(), ("spec", "rules", 0, "subjects"), [subject])

    for kind in ("User", "Group", "ServiceAccount", "user", "Serviceaccount", "Role", ""):
        for number in range(8):
            chosen = {name: fields[name] for bit, name in enumerate(fields) if number & 1 << bit}
            yield f"{kind}-{'-'.join(chosen) or 'none'}", with_subject({"kind": kind} | chosen)
    for number, name in enumerate(("", " ", "*", "a*", "é", "x" * 1000)):
        yield f"user-name-{number}", with_subject({"kind": "User", "user": {"name": name}})
        yield f"group-name-{number}", with_subject({"kind": "Group", "group": {"name": name}})
    for number, name in enumerate(("", "*", "a*", "a.b", "A", "-a", "x" * 63, "x" * 64, "x" * 253, "x" * 254)):
        for field in ("namespace", "name"):
            account = fields["serviceAccount"] | {field: name}
            yield f"account-{field}-{number}", with_subject({"kind": "ServiceAccount", "serviceAccount": account})


@family
def precedence(target: Target) -> Named:
    """Yield objects with a matchingPrecedence at its bounds. Only the FlowSchema "exempt" may have 1."""
    for number in (-(2**31), -1, 0, 1, 2, 999, 9999, 10000, 10001, 2**31 - 1, 2**31):
        yield str(number), target.flow_schema(matchingPrecedence=number)
    for name in ("exempt", "catch-all", "Exempt"):
        yield f"1-{name}", change(target.flow_schema(matchingPrecedence=1), ("metadata", "name"), name)


@family
def distinguisher_methods(target: Target) -> Named:
    """Yield objects with types of distinguisherMethod."""
    for method in ("ByUser", "ByNamespace", "byUser", "ByGroup", "User", "", " ByUser"):
        yield method or "empty", target.flow_schema(distinguisherMethod={"type": method})
    yield "no-type", target.flow_schema(distinguisherMethod={})


@family
def names(target: Target) -> Named:
    """Yield objects with valid and invalid names, and FlowSchemas that reference levels with these names."""
    for number, name in enumerate(
        ("a", "1", "a.b", "a-b", "A", "a_b", "-a", "a-", ".a", "a..b", "a b", "é", "", "x" * 253, "x" * 254)
    ):
        yield f"flow-schema-{number}", change(target.flow_schema(), ("metadata", "name"), name)
        yield f"level-{number}", change(target.level(), ("metadata", "name"), name)
        yield f"reference-{number}", target.flow_schema(priorityLevelConfiguration={"name": name})


@family
def metadata(target: Target) -> Named:
    """Yield objects with labels, annotations, finalizers, generateName and owners."""
    texts = (
        "a",
        "A",
        "a/b",
        "a/b/c",
        "/a",
        "a/",
        "-a",
        "a_b",
        "a b",
        "",
        "x" * 63,
        "x" * 64,
        f"{'x' * 253}/a",
        f"{'x' * 254}/a",
    )
    for number, text in enumerate(texts):
        yield f"label-{number}", change(target.level(), ("metadata", "labels"), {text: "a"})
        yield f"label-value-{number}", change(target.level(), ("metadata", "labels"), {"a": text})
        yield f"annotation-{number}", change(target.level(), ("metadata", "annotations"), {text: "a"})
        yield f"finalizer-{number}", change(target.level(), ("metadata", "finalizers"), [text])
    yield "both-orphan", change(target.level(), ("metadata", "finalizers"), ["orphan", "foregroundDeletion"])
    yield "annotations-too-long", change(target.level(), ("metadata", "annotations"), {"a": "x" * 2**18})
    for name in ("a-", "A-", "a_"):
        yield f"generate-name-{name}", change(target.level(), ("metadata",), {"generateName": name})
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}
    for field in (None, *owner):
        owners = [{key: value for key, value in owner.items() if key != field}]
        yield f"owner-without-{field}", change(target.level(), ("metadata", "ownerReferences"), owners)


@family
def shares(target: Target) -> Named:
    """Yield levels with shares, under both names of the field, and with the annotation that preserves 0 shares."""
    for number in (-(2**31), -1, 0, 1, 2**31 - 1, 2**31):
        yield str(number), target.level(**{target.shares: number})
    for name in ("assuredConcurrencyShares", "nominalConcurrencyShares"):
        yield (
            f"named-{name}",
            change(remove(target.level(), ("spec", "limited", target.shares)), ("spec", "limited", name), 5),
        )
    for annotated in (0, 5):
        value = target.level(**{target.shares: annotated})
        annotation = {"flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares": ""}
        yield f"preserve-zero-{annotated}", change(value, ("metadata", "annotations"), annotation)


@family
def borrowing(target: Target) -> Named:
    """Yield levels with lendablePercent and borrowingLimitPercent at their bounds."""
    for field in ("lendablePercent", "borrowingLimitPercent"):
        for number in (-(2**31), -1, 0, 1, 99, 100, 101, 2**31 - 1, 2**31):
            yield f"{field}-{number}", target.level(**{field: number})


@family
def queuing(target: Target) -> Named:
    """Yield levels with queues and queueLengthLimit at their bounds, and with `queuing` that does not fit the type."""
    for field in ("queues", "handSize", "queueLengthLimit"):
        for number in (-(2**31), -1, 0, 1, 6, 7, 10**7, 10**7 + 1, 2**31):
            path = ("spec", "limited", "limitResponse", "queuing", field)
            yield f"{field}-{number}", change(target.level(), path, number)
    for kind in ("Queue", "Reject", "queue", "Drop", ""):
        yield f"{kind or 'empty'}-without", target.level(limitResponse={"type": kind})
        yield f"{kind or 'empty'}-defaults", target.level(limitResponse={"type": kind, "queuing": {}})


@family
def hands(target: Target) -> Named:
    """Yield levels with each handSize from 1 to 17, and with numbers of queues at which the entropy reaches 60 bits."""
    most = (10**7, 10**7, 1048576, 32768, 4096, 1024, 380, 181, 101, 64, 43, 32, 24, 19, 16, 16, 17)
    for size, queues in enumerate(most, start=1):
        for number in sorted({size - 1, queues - 1, queues, queues + 1}):
            queuing = {"queues": number, "handSize": size, "queueLengthLimit": 50}
            yield f"{size}-of-{number}", target.level(limitResponse={"type": "Queue", "queuing": queuing})


@family
def exempt_levels(target: Target) -> Named:
    """Yield levels of each type and combination of `limited` and `exempt`, with the name "exempt" and other names."""
    limited = target.level()["spec"]["limited"]
    for name in ("example", "exempt", "catch-all"):
        for kind in ("Limited", "Exempt", "exempt", ""):
            for label, fields in (
                ("none", {}),
                ("limited", {"limited": limited}),
                ("exempt", {"exempt": {}}),
                ("both", {"limited": limited, "exempt": {}}),
                ("null", {"limited": None, "exempt": None}),
            ):
                value = change(target.level(), ("spec",), {"type": kind} | fields)
                yield f"{name}-{kind or 'empty'}-{label}", change(value, ("metadata", "name"), name)
    for field, number in (
        ("nominalConcurrencyShares", -1),
        ("nominalConcurrencyShares", 10),
        ("lendablePercent", -1),
        ("lendablePercent", 100),
        ("lendablePercent", 101),
        ("borrowingLimitPercent", 1),
    ):
        value = change(target.level(), ("spec",), {"type": "Exempt", "exempt": {field: number}})
        yield f"{field}-{number}", change(value, ("metadata", "name"), "exempt")


@family
def yaml_scalars(target: Target) -> Named:
    """Yield objects with scalars of YAML 1.1 and 1.2 in fields of each type, and as keys."""
    scalars = """5 +5 -0 0x10 0o17 017 08 0b11 1_0 1e2 1E2 5.0 5. 5.5 .5 1e-2 .inf .nan 1:30 50% 1k 1,000 y N yes No on OFF true
        True TRUE tRUE null ~ Null "5" '5' !!int "5" !!str 5 !!float 5 2001-01-01 2001-01-01T00:00:00Z = << é |- !foo a"""
    rule = ("spec", "rules", 0, "resourceRules", 0, "clusterScope")
    for number, scalar in enumerate(scalars.replace("!!int ", "!!int_").replace("!!str ", "!!str_").split()):
        raw = Raw(scalar.replace("_", " ") if scalar.startswith("!!") else scalar)
        yield f"integer-{number}", target.flow_schema(matchingPrecedence=raw)
        yield f"bool-{number}", change(target.flow_schema(), rule, raw)
        yield f"string-{number}", change(target.flow_schema(), ("metadata", "name"), raw)
        yield f"label-{number}", change(target.flow_schema(), ("metadata", "labels"), {"a": raw})
        yield f"key-{number}", change(target.flow_schema(), ("metadata", "labels"), {raw: "a"})


@family
def documents(target: Target) -> Named:
    """Yield an object with other text around it, and text that is not YAML."""
    text = to_yaml(target.level())
    yield "json", json.dumps(target.level())
    yield "start", f"---\n{text}"
    yield "end", f"{text}...\n"
    yield "crlf", text.replace("\n", "\r\n")
    yield "byte-order-mark", f"\ufeff{text}"
    yield "directive-1.1", f"%YAML 1.1\n---\n{text}"
    yield "directive-1.2", f"%YAML 1.2\n---\n{text}"
    yield "tab-indentation", text.replace("  ", "\t", 1)
    yield "tab-after-colon", text.replace(": ", ":\t")
    yield "no-space-after-colon", text.replace("spec:", "spec:x", 1)
    yield "open-quote", text.replace("name: ", 'name: "', 1)
    yield "template", text.replace('"example"', "{{ .Values.name }}")
    yield "unused-anchor", text.replace("spec:", "spec: &spec", 1)
    yield "alias", text.replace("spec:", "x: &x {a: b}\nspec:", 1).replace("queuing:", "queuing: *x\n      y:", 1)
    yield "unknown-alias", text.replace('"example"', "*missing")


@family
def combine_mistakes(target: Target) -> Named:
    """Yield objects with one to four random mistakes. Most of these objects can be decoded."""
    chance = random.Random(SEED)
    values: dict[type, tuple[Any, ...]] = {
        str: ("*", "", "text", "Text", "a b"),
        int: (-1, 0, 1, 101, 10**9),
        bool: (True, False),
        list: ([], None, {}),
        dict: ({}, None, []),
        type(None): ("text",),
    }
    for number in range(RANDOM_CASES):
        value = chance.choice([target.flow_schema, target.level])()
        for _ in range(chance.randint(1, MAX_RANDOM_MISTAKES)):
            path = chance.choice([path for path in list_paths(value) if len(path) > 1])
            new = chance.choice(values[type(get(value, path))])
            value = chance.choice([remove(value, path), change(value, path, new), change(value, path, new)])
        yield str(number), value


def list_paths(value: dict[str, Any]) -> list[Path]:
    """Return the path of every value in the metadata and the spec of an object, in document order."""

    def walk(value: Any, path: Path) -> Iterator[Path]:
        yield path
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, item in items:
            yield from walk(item, (*path, key))

    return [path for part in ("metadata", "spec") for path in walk(value[part], (part,))]


def format_path(value: dict[str, Any], path: Path) -> str:
    """Return a path in words, for the ID of a case."""
    return ".".join(map(str, ("fs" if value["kind"] == "FlowSchema" else "pl", *path)))


def get(value: Any, path: Path) -> Any:
    """Return the value at a path."""
    for key in path:
        value = value[key]
    return value


def change(value: dict[str, Any], path: Path, new: Any) -> dict[str, Any]:
    """Return a copy of an object with another value at a path."""
    copy = deepcopy(value)
    get(copy, path[:-1])[path[-1]] = deepcopy(new)
    return copy


def remove(value: dict[str, Any], path: Path) -> dict[str, Any]:
    """Return a copy of an object without the value at a path."""
    copy = deepcopy(value)
    del get(copy, path[:-1])[path[-1]]
    return copy


def to_yaml(value: Any, indent: str = "") -> str:
    """Return an object as YAML in block style. Strings are quoted, except for `Raw`."""
    lines = []
    for key, item in value.items() if isinstance(value, dict) else (("-", item) for item in value):
        mark = indent + ("-" if isinstance(value, list) else f"{_to_key(key)}:")
        if (isinstance(item, dict) and item) or (
            isinstance(item, list) and any(isinstance(member, dict) for member in item)
        ):
            block = to_yaml(item, indent + "  ")
            # The first line of a list item is on the same line as the dash.
            lines.append(f"{mark} {block.lstrip(' ')}" if isinstance(value, list) else f"{mark}\n{block}")
        else:
            lines.append(f"{mark} {item if isinstance(item, Raw) else json.dumps(item)}\n")
    return "".join(lines)


def _to_key(key: str) -> str:
    return key if isinstance(key, Raw) or key.isalpha() else json.dumps(key)
