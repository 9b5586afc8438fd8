"""Generator of manifests with fixable mistakes, in unusual YAML styles."""

from __future__ import annotations

import copy
import json
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

GROUP = "flowcontrol.apiserver.k8s.io"
KINDS = ("Group", "User", "ServiceAccount")
NOTES = (
    "why",
    "{a: [b",
    'it\'s "so"',
    "kind: FlowSchema",
    "100 %, näh 🎈",
    "--- # &x *y <<: !!int",
    "matchingPrecedense: verbs",
)
TEXTS = (
    "plain",
    "a # b",
    "it's",
    'say "x"',
    "yes",
    "0x10",
    "tab\there",
    "ünï 🎈",
    "- dash",
    "a: b",
    "",
    "~",
    "*x",
    "c: #1 \\",
)


class Raw(str):
    """A plain scalar without quotes, which YAML does not parse as a string."""

    __slots__ = ()


class Text(str):
    """A quoted number or boolean in a field whose type is not string."""

    __slots__ = ()


class Generated(NamedTuple):
    """A text, and the expected values after all safe fixes."""

    data: bytes
    wanted: list[Any]
    """The expected value of each non-empty document."""


def schema(random: Random, name: str) -> dict[str, Any]:
    """Generate a FlowSchema without mistakes."""
    subjects = [
        {"kind": "Group", "group": {"name": "night-watch"}},
        {"kind": "User", "user": {"name": "alice"}},
        {"kind": "ServiceAccount", "serviceAccount": {"name": "runner", "namespace": "ci"}},
    ]
    random.shuffle(subjects)
    resources = {
        "verbs": random.sample(["get", "list", "watch", "create"], 3),
        "apiGroups": ["apps"],
        "resources": random.sample(["deployments", "statefulsets", "daemonsets"], 2),
        "namespaces": ["ci", "team-a"],
    }
    paths = {"verbs": ["get", "watch"], "nonResourceURLs": ["/x", "/y/*"]}
    rule: dict[str, Any] = {"subjects": subjects[: random.randint(1, 3)], "resourceRules": [resources]}
    if random.random() < 0.5:
        rule["nonResourceRules"] = [paths]
    rules = [rule] if random.random() < 0.7 else [rule, copy.deepcopy(rule) | {"nonResourceRules": [paths]}]
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "FlowSchema",
        "metadata": _metadata(random, name),
        "spec": {
            "priorityLevelConfiguration": {"name": "workload-low"},
            "matchingPrecedence": random.choice([random.randint(500, 800), 1000]),
            "distinguisherMethod": {"type": random.choice(["ByUser", "ByNamespace"])},
            "rules": rules,
        },
    }


def level(random: Random, name: str) -> dict[str, Any]:
    """Generate a PriorityLevelConfiguration without mistakes."""
    response: dict[str, Any] = {"type": "Reject"}
    if random.random() < 0.6:
        response = {"type": "Queue", "queuing": {"queues": 64, "handSize": 6, "queueLengthLimit": 50}}
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "PriorityLevelConfiguration",
        "metadata": _metadata(random, name),
        "spec": {
            "type": "Limited",
            "limited": {"nominalConcurrencyShares": 30, "lendablePercent": 20, "limitResponse": response},
        },
    }


def _metadata(random: Random, name: str) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name}
    if random.random() < 0.7:
        metadata["labels"] = {"team": "a", "managed": "yes", "revision": "12"}
    if "labels" in metadata and random.random() < 0.3:
        metadata["annotations"] = metadata["labels"] | {"note": random.choice(TEXTS)}
    elif random.random() < 0.7:
        metadata["annotations"] = {f"note-{n}": random.choice(TEXTS) for n in range(random.randint(1, 3))}
    return metadata


_FIELDS = {
    "matchingPrecedence": ("matchingPrecedense", "matchingprecedence", "matchingPrecedance"),
    "distinguisherMethod": ("distinguisherMethd", "distinguishermethod"),
    "priorityLevelConfiguration": ("priorityLevelConfig", "prioritylevelConfiguration"),
    "subjects": ("subject", "subjcets"),
    "resourceRules": ("resourceRule", "ressourceRules"),
    "nonResourceURLs": ("nonResourceUrls", "nonResourceURL"),
    "apiGroups": ("apiGroup", "apigroups"),
    "limited": ("limitted",),
    "limitResponse": ("limitResponce", "limitresponse"),
    "queuing": ("queueing",),
    "handSize": ("handsize", "hand_size"),
    "queueLengthLimit": ("queueLenghtLimit",),
    "labels": ("label", "lables"),
    "lendablePercent": ("lendablePercentage",),
}
_WORDS = {
    "ByUser": ("ByUsers", "byUser"),
    "ByNamespace": ("byNamespace", "ByNamespaces"),
    "Limited": ("limited",),
    "Queue": ("queue",),
    "Reject": ("reject",),
    "get": ("GET", "Get"),
    "watch": ("Watch",),
}


def misspell(value: Any, random: Random, fields: dict[str, tuple[str, ...]] = _FIELDS) -> None:
    """Misspell the name of one field."""
    owners = [(owner, key) for owner in mappings(value) for key in owner if key in fields]
    if owners:
        owner, key = random.choice(owners)
        new = random.choice(fields[key])
        entries = [(new if old == key else old, entry) for old, entry in owner.items()]
        owner.clear()
        owner.update(entries)


def misspell_word(value: Any, random: Random) -> None:
    """Misspell a known value, such as a verb or a type."""
    places: list[tuple[Any, Any]] = [
        (owner, key)
        for owner in [*mappings(value["spec"]), *lists(value["spec"])]
        for key, item in _entries(owner)
        if isinstance(item, str) and item in _WORDS and key != "name"
    ]
    if places:
        owner, key = random.choice(places)
        owner[key] = random.choice(_WORDS[owner[key]])


def _entries(owner: Any) -> list[tuple[Any, Any]]:
    return list(owner.items() if isinstance(owner, dict) else enumerate(owner))


def unquote(value: Any, _: Random) -> None:
    """Add labels that YAML parses as booleans and numbers."""
    for owner in mappings(value):
        for key in ("managed", "revision"):
            if key in owner:
                owner[key] = Raw(owner[key])


def quote(value: Any, random: Random) -> None:
    """Put a number into quotes."""
    places = [(owner, key) for owner in mappings(value) for key, item in owner.items() if isinstance(item, int)]
    if places:
        owner, key = random.choice(places)
        owner[key] = Text(owner[key])


def as_in_roles(value: Any, random: Random) -> None:
    """Write subjects as in RBAC."""
    for owner in mappings(value):
        if "kind" in owner and len(owner) == 2 and random.random() < 0.7:
            entries = [*owner.pop(next(key for key in owner if key != "kind")).items(), ("kind", owner.pop("kind"))]
            random.shuffle(entries)
            owner.update(entries)


def left_out(value: Any, random: Random) -> None:
    """Remove fields that have only one possible value."""
    for owner in mappings(value["spec"]):
        for key, known in (("matchingPrecedence", [1000]), ("type", ["Limited"]), ("kind", list(KINDS))):
            if owner.get(key) in known and len(owner) > 1 and random.random() < 0.7:
                del owner[key]


def wildcard(value: Any, random: Random) -> None:
    """Add a wildcard to a list with other items."""
    for owner in mappings(value):
        if "verbs" in owner and owner["verbs"] == ["*"]:
            owner["verbs"] = random.choice([["*", "get"], ["get", "*"], ["get", "*", "list"]])


def twice(value: Any, random: Random) -> None:
    """Repeat an item of a list."""
    found = [entries for entries in lists(value) if entries and all(isinstance(entry, str) for entry in entries)]
    if found:
        entries = random.choice(found)
        entries.insert(random.randint(1, len(entries)), entries[0])


def queues_under_reject(value: Any, _: Random) -> None:
    """Add queues to a level that rejects requests."""
    for owner in mappings(value):
        if owner.get("type") == "Reject":
            owner["queuing"] = {"queues": 64, "handSize": 6, "queueLengthLimit": 50}


def from_the_server(value: Any, random: Random) -> None:
    """Add fields that the server sets."""
    for key, item in (("uid", "12-34"), ("resourceVersion", "77"), ("generation", 3), ("namespace", "nights")):
        if random.random() < 0.5:
            value["metadata"][key] = item
    if random.random() < 0.3:
        value["status"] = {"conditions": [{"type": "Dangling", "status": "False"}]}


def old_shares(value: Any, _: Random) -> None:
    """Write the shares under the field name of earlier API versions."""
    for owner in mappings(value):
        if "nominalConcurrencyShares" in owner:
            owner["assuredConcurrencyShares"] = owner.pop("nominalConcurrencyShares")


def bare_method(value: Any, _: Random) -> None:
    """Replace a mapping with its only value, a string."""
    method = value["spec"].get("distinguisherMethod")
    if isinstance(method, dict):
        value["spec"]["distinguisherMethod"] = method["type"]


MISTAKES: tuple[Callable[[Any, Random], None], ...] = (
    misspell,
    misspell_word,
    unquote,
    quote,
    as_in_roles,
    left_out,
    wildcard,
    twice,
    queues_under_reject,
    from_the_server,
    old_shares,
    bare_method,
)


def mappings(value: Any) -> list[dict[str, Any]]:
    """Return all mappings in a value, including the value itself as the first item."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return ([value] if isinstance(value, dict) else []) + [mapping for item in inner for mapping in mappings(item)]


def lists(value: Any) -> list[list[Any]]:
    """Return all lists in a value."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return ([value] if isinstance(value, list) else []) + [found for item in inner for found in lists(item)]


def broken(random: Random, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Generate an object with some mistakes, and the same object without them."""
    wanted = (schema if random.random() < 0.6 else level)(random, name)
    if random.random() < 0.3:
        for owner in mappings(wanted):
            if "verbs" in owner:
                owner["verbs"] = ["*"]
    value = copy.deepcopy(wanted)
    for mistake in random.sample(MISTAKES, random.choice([0, 1, 1, 1, 2, 3])):
        mistake(value, random)
    return value, wanted


class Writer:
    """Writer of values as YAML, in random styles."""

    def __init__(self, random: Random, *, comments: bool = True, anchors: bool = True) -> None:
        self.random = random
        self.comments = comments
        self.anchors = anchors
        self.anchored: list[tuple[str, str]] = []
        self.named = 0
        self.shapes: Counter[str] = Counter()
        self.count = 0

    def document(self, value: Any) -> str:
        """Return a document without the marker `---`."""
        self.anchored = []
        self.shapes = Counter(shape(item) for item in (*mappings(value), *lists(value)))
        if self.random.random() < 0.12:
            return self.indentedly_json(value) + "\n"
        if self.random.random() < 0.08:
            return self.flow(value, 0) + self.trail() + "\n"
        return self.block(value, 0)

    def indentedly_json(self, value: Any) -> str:
        """Return an indented JSON document, which is also YAML."""
        random = self.random
        return json.dumps(value, indent=random.choice([None, 1, 2, 4]), ensure_ascii=False)

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def comment(self) -> str:
        self.count += 1
        return f"#{self.random.choice(['', ' ', '# '])}c{self.count} {self.random.choice(NOTES)}"

    def trail(self) -> str:
        """Return random text for the end of a line: spaces, or a comment."""
        if self.comments and self.chance(0.15):
            return self.random.choice([" ", "  ", "\t", " \t "]) + self.comment()
        return self.random.choice(["", "", "", "", "", " ", "   ", "\t"])

    def between(self) -> str:
        """Return random lines before an entry: empty lines, and comments with any indentation."""
        text = ""
        while self.chance(0.12):
            blank = " " * self.random.randint(0, 7)
            text += blank + (self.comment() if self.comments and self.chance(0.7) else "") + "\n"
        return text

    def block(self, value: Any, indent: int, *, first: bool = True) -> str:
        """Return the lines of a mapping or a list. The first line is not indented unless `first` is set."""
        text, lead = "", " " * indent
        entries: list[tuple[str, Any]] = []
        if isinstance(value, dict):
            named = list(value.items())
            if self.chance(0.3):
                self.random.shuffle(named)
            merged = self.merge(value) if self.anchors and self.chance(0.5) else None
            if merged:
                named = [entry for entry in named if entry[0] not in merged[1]]
                text += f"{lead if first else ''}<<: *{merged[0]}{self.trail()}\n"
            entries = [(f"{self.key(key)}:", item) for key, item in named]
        else:
            entries = [("-", item) for item in value]
        for head, item in entries:
            begins = first or bool(text)
            text += (self.between() + lead if begins else "") + self.entry(head, item, indent, in_list=head == "-")
        return text

    def entry(self, head: str, item: Any, indent: int, *, in_list: bool) -> str:
        known = any(shape(item) == one for _, one in self.anchored)
        if not isinstance(item, dict | list) or not item or self.chance(0.6 if known else 0.2):
            gap = " " * self.random.choice([1, 1, 1, 2, 5])
            return f"{head}{gap}{self.inline(item, indent)}{self.trail()}\n"
        mark = self.mark(item) if not in_list else ""
        if in_list and self.chance(0.85):
            blanks = self.random.choice([1, 1, 1, 2, 3])
            return f"-{' ' * blanks}" + self.block(item, indent + 1 + blanks, first=False)
        same = isinstance(item, list) and not in_list and self.chance(0.5)
        deeper = indent if same else indent + self.random.randint(1, 8)
        written = f"{head}{mark and f' &{mark}'}{self.trail()}\n" + self.block(item, deeper)
        if mark:
            self.anchored.append((mark, shape(item)))
        return written

    def inline(self, item: Any, indent: int) -> str:
        """Return a value as text that follows the key on the same line."""
        for name, known in self.anchored:
            if known == shape(item) and self.chance(0.7):
                return f"*{name} "
        mark = self.mark(item)
        written = self.flow(item, indent + 1) if isinstance(item, dict | list) else self.scalar(item, flow=False)
        if mark:
            self.anchored.append((mark, shape(item)))
        return f"&{mark} {written}" if mark else written

    def mark(self, item: Any) -> str:
        """Return an anchor, or an empty string. Repeated values have an anchor more often."""
        share = 0.4 if self.shapes[shape(item)] > 1 or (isinstance(item, dict) and "managed" in item) else 0.04
        if not self.anchors or not self.chance(share):
            return ""
        self.named += 1  # a number for each anchor, because some YAML parsers reject repeated anchor names
        return f"a{self.named}x{self.random.randint(0, 999)}"

    def merge(self, value: dict[str, Any]) -> tuple[str, set[str]] | None:
        """Return (anchor, keys) of an anchored mapping that `value` can include with a merge key (`<<`).

        Return None if there is no anchored mapping whose entries are all in `value`.
        """
        for name, known in self.anchored:
            kind, _, text = known.partition(":")
            if kind == "dict":
                entries = json.loads(text)
                mine = json.loads(shape(value).partition(":")[2])
                if entries and entries.items() <= mine.items() if _flat(entries, mine) else False:
                    return name, set(entries)
        return None

    def flow(self, value: Any, indent: int) -> str:
        """Return the text of a value in flow style, on one or several lines."""
        if isinstance(value, dict):
            parts = [f"{self.key(key)}: {self.flow(item, indent)}" for key, item in value.items()]
            left, right = "{", "}"
        elif isinstance(value, list):
            parts, (left, right) = [self.flow(item, indent) for item in value], "[]"
        else:
            return self.scalar(value, flow=True)
        if not parts:
            return left + right
        lines = self.chance(0.25)
        text = left + self.gap(indent, lines=lines)
        for number, part in enumerate(parts):
            last = number == len(parts) - 1
            comma = "," if not last or self.chance(0.15) else ""
            text += part + self.random.choice(["", "", " "]) + comma
            text += self.gap(indent, lines=lines) if not last or lines else self.random.choice(["", " "])
        return text + right

    def gap(self, indent: int, *, lines: bool) -> str:
        if not lines:
            return self.random.choice(["", " ", " ", "  "]) if self.chance(0.3) else " "
        end = f" {self.comment()}" if self.comments and self.chance(0.2) else self.random.choice(["", " "])
        return f"{end}\n{' ' * (indent + self.random.randint(0, 4))}"

    def key(self, key: str) -> str:
        if key in ("name", "kind") or self.chance(0.8):
            return key
        return self.random.choice([f'"{key}"', f"'{key}'"])

    def scalar(self, value: Any, *, flow: bool) -> str:
        if isinstance(value, Raw):
            return str(value)
        if not isinstance(value, str):
            return json.dumps(value)
        simple = value.replace("-", "").replace("/", "").isalnum() and value.isascii() and not _is_special(value)
        styles = ["'", '"'] if isinstance(value, Text) or not simple else ["", "", "", "'", '"']
        style = self.random.choice(styles)
        if "\t" in value:
            style = '"'
        if style == "'":
            return "'" + value.replace("'", "''") + "'"
        if style == '"':
            return json.dumps(
                value, ensure_ascii=self.chance(0.3) and max(value, default="") < "\ud800"
            )  # YAML parsers reject surrogate pairs, with which JSON escapes characters above U+FFFF
        if simple and not flow and self.chance(0.03):
            return value
        return value


def _flat(entries: dict[str, Any], mine: dict[str, Any]) -> bool:
    return all(isinstance(item, str | int) for item in (*entries.values(), *mine.values()))


def _is_special(text: str) -> bool:
    return text.lower() in ("yes", "no", "on", "off", "y", "n", "true", "false", "null", "") or text[0] in "0123456789-"


def plain(value: Any) -> Any:
    """Return the value that YAML parses: plain scalars become booleans and numbers."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, Raw):
        return True if value == "yes" else int(value)
    return value


def shape(value: Any) -> str:
    """Return a key for a value. Values with the same text in YAML have the same key."""
    return f"{type(value).__name__}:{json.dumps(plain(value), sort_keys=True)}"


OTHER = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"about": "FlowSchema # 1"}}


def text(random: Random, tag: str, *, anchors: bool = True) -> Generated:
    """Generate a file with APF objects, other objects, document markers, and sometimes a byte order mark."""
    writer = Writer(random, anchors=anchors)
    documents: list[tuple[Any, Any]] = []
    for number in range(random.choice([1, 1, 1, 2, 3])):
        documents.append(broken(random, f"{tag}{number}"))
        if random.random() < 0.15:
            documents.append((OTHER, OTHER))
    if random.random() < 0.2:
        ours, theirs = ([pair[which] for pair in documents] for which in (0, 1))
        of = {"apiVersion": "v1", "kind": "List"}
        documents = [(of | {"items": ours}, of | {"items": theirs})]
    stream = writer.between()
    for number, (value, _) in enumerate(documents):
        if number or random.random() < 0.4:
            stream += random.choice(["---\n", "---\n", "--- # marked\n", "...\n---\n" if number else "---\n"])
        stream += writer.document(value)
    stream += random.choice(["", "", "...\n", "---\n", "# c999 end\n"])
    if random.random() < 0.2:
        stream = stream.rstrip("\n")
    if random.random() < 0.25:
        stream = stream.replace("\n", "\r\n")
    mark, codec = random.choice(
        [("", "utf-8")] * 5 + [("\ufeff", "utf-8"), ("\ufeff", "utf-16-le"), ("\ufeff", "utf-16-be")]
    )
    return Generated((mark + stream).encode(codec), [wanted for _, wanted in documents])
