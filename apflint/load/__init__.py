"""Bytes to Documents: reads YAML and JSON as Kubernetes does, and knows the place of every key and value.

Nothing here raises on bad input: what cannot be read is a Trouble with its place, and the rest is read on.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from apflint.finding import Skipped
from apflint.load import templates
from apflint.load.decode import Decoded, DecodeError, decode
from apflint.load.document import GROUP, KINDS, Document
from apflint.load.source import Source
from apflint.load.yaml_text import YamlDocument, YamlError, compose, documents

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.finding import Path

_OURS = re.compile("flowcontrol|FlowSchema|PriorityLevelConfiguration")
_HELM_SOURCE = re.compile(r"^# Source: (\S.*?)\s*$", re.MULTILINE)
_LISTS = {"FlowSchemaList": "FlowSchema", "PriorityLevelConfigurationList": "PriorityLevelConfiguration"}


class Trouble(NamedTuple):
    """Text that could not be read as a manifest, or is not one of ours though it looks like it."""

    what: Literal["syntax", "unsafe", "template", "not-ours"]
    source: Source
    start: int
    end: int
    message: str
    rejected: bool
    """Whether the API server cannot decode it either."""


class Loaded(NamedTuple):
    """What one input holds."""

    source: Source
    documents: tuple[Document, ...]
    troubles: tuple[Trouble, ...]
    skipped: tuple[Skipped, ...]


def load(name: str, data: bytes) -> Loaded:
    """Reads one input; `name` is shown in findings, and `.json` at its end means JSON. Never raises."""
    try:
        text = _text(data)
    except UnicodeDecodeError as error:
        readable = data[: error.start].decode("utf-8", "replace")
        source = Source(name, data.decode("utf-8", "replace"))
        message = f"byte 0x{data[error.start]:02x} at offset {error.start:,} is no UTF-8: this is no text file"
        trouble = Trouble("unsafe", source, len(readable), len(readable) + 1, message, rejected=True)
        return Loaded(source, (), (trouble,), ())
    return load_text(Source(name, text)) if text else Loaded(Source(name, ""), (), (), ())


def helm_sources(text: str) -> list[Source] | None:
    """The output of `helm template` as one source for each template, from its `# Source: FILE` lines; else None.

    A template that renders several documents is one source with all of them, in order.
    """
    starts = list(_HELM_SOURCE.finditer(text))
    if not starts:
        return None
    parts: dict[str, list[str]] = {}
    for match, following in zip(starts, [*starts[1:], None], strict=True):
        end = following.start() if following else len(text)
        body = text[match.end() : end].removeprefix("\r").removeprefix("\n")
        if following and body.rstrip().endswith("---"):
            body = body.rstrip()[:-3]
        parts.setdefault(match.group(1), []).append(body)
    before = text[: starts[0].start()].strip().strip("-").strip()
    extra = [Source("<stdin>", text[: starts[0].start()])] if before else []
    return extra + [Source(name, "---\n".join(bodies)) for name, bodies in parts.items()]


def load_text(source: Source) -> Loaded:
    """Reads one text. Never raises."""
    reader = _Reader(source)
    if source.name.endswith(".json"):
        from apflint.load import json_text  # noqa: PLC0415

        reader.read(json_text.documents(source.text), json=True)
    else:
        reader.read(documents(source.text), json=False)
    skipped = [Skipped(source.name, reason, count) for reason, count in sorted(reader.others.items())]
    return Loaded(source, tuple(reader.documents), tuple(reader.troubles), tuple(skipped))


def _text(data: bytes) -> str:
    for mark, encoding in ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if data.startswith(mark):
            return data.decode(encoding)
    return data.decode("utf-8")


def _compose_json(text: str, start: int, end: int) -> Any:
    from apflint.load import json_text  # noqa: PLC0415

    return next(json_text.documents(" " * start + text[start:end])).root


class _Reader:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.documents: list[Document] = []
        self.troubles: list[Trouble] = []
        self.others: Counter[str] = Counter()
        self.templated = False

    def read(self, found: Iterator[YamlDocument], *, json: bool) -> None:
        text = self.source.text
        for document in found:
            if document.error:
                self._broken(document, document.error)
            elif document.root is not None:
                part = _compose_json if json else _compose_yaml
                try:
                    decoded = decode(document.root)
                except DecodeError as error:
                    self._broken(
                        document, YamlError(str(error), error.node.start, error.node.end, unsafe=error.unsafe)
                    )
                    continue
                again = partial(part, text, document.start, document.end)
                self._object(document, decoded, decoded.value, (), again)

    def _broken(self, document: YamlDocument, error: YamlError) -> None:
        """A document that cannot be read: a template, an unsafe one, or a mistake; other people's are only counted."""
        text = self.source.text
        if not _OURS.search(text, document.start, document.end):
            self.others["unreadable, but nothing of API Priority and Fairness in it"] += 1
            return
        template = templates.in_text(text, document.start, document.end)
        if error.unsafe:
            self._trouble("unsafe", error.start, error.end, str(error))
        elif template is None:
            self._trouble("syntax", error.start, error.end, str(error))
        elif not self.templated:
            # Once a file: the pieces between its directives are no documents.
            self.templated = True
            message = f"this is {template.what}, not a manifest yet: it was not checked; {template.render}"
            self._trouble("template", template.start, template.end, message)

    def _trouble(self, what: Any, start: int, end: int, message: str, *, rejected: bool = True) -> None:
        self.troubles.append(Trouble(what, self.source, start, max(end, start), message, rejected))

    def _object(
        self,
        document: YamlDocument,
        decoded: Decoded,
        value: Any,
        path: Path,
        again: Any,
        inherited: tuple[str, str] = ("", ""),
    ) -> None:
        """One decoded value: an object of ours, a list of objects, or something else."""
        if not isinstance(value, dict):
            if value is not None:
                self.others["no Kubernetes object"] += 1
            return
        api_version, kind = value.get("apiVersion") or inherited[0], value.get("kind") or inherited[1]
        if not isinstance(api_version, str) or not isinstance(kind, str):
            self.others["no Kubernetes object"] += 1
            return
        group = api_version.rpartition("/")[0]
        items = value.get("items")
        if isinstance(items, list) and ((group == GROUP and kind in _LISTS) or (api_version, kind) == ("v1", "List")):
            for number, item in enumerate(items):
                child = (api_version, _LISTS[kind]) if kind in _LISTS else ("", "")
                self._object(document, decoded, item, (*path, "items", number), again, child)
            return
        if kind in KINDS and (group == GROUP or templates.in_name(api_version)):
            if placeholder := templates.in_name(api_version):
                self._not_a_manifest(again, path, f"apiVersion is `{placeholder}`: this is a template, not a manifest yet")
            elif templates.is_patch(value):
                self._not_a_manifest(again, path, f"this is a patch for a {kind}, not the {kind}")
            else:
                self._ours(decoded, value, path, again, (api_version, kind))
            return
        if near := _near_miss(group, api_version, kind):
            self._at(again, path, "not-ours", near, rejected=False)
            return
        self.others[f"{kind} objects" if kind else "no Kubernetes object"] += 1

    def _ours(self, decoded: Decoded, value: dict[str, Any], path: Path, again: Any, kind: tuple[str, str]) -> None:
        depth = len(path)
        self.documents.append(
            Document(
                self.source,
                value,
                again,
                prefix=path,
                api_version=kind[0],
                kind=kind[1],
                duplicates=tuple(
                    found._replace(path=found.path[depth:])
                    for found in decoded.duplicates
                    if found.path[:depth] == path
                ),
                not_finite=tuple(found[depth:] for found in decoded.not_finite if found[:depth] == path),
            )
        )

    def _not_a_manifest(self, again: Any, path: Path, message: str) -> None:
        render = "it was not checked; check what it renders to: kustomize build DIR | apflint check -"
        if "patch" not in message:
            render = "it was not checked; fill it in first: envsubst < FILE | apflint check -"
        self._at(again, path, "template", f"{message}: {render}", rejected=False)

    def _at(self, again: Any, path: Path, what: str, message: str, *, rejected: bool) -> None:
        """A trouble at the kind or the apiVersion of an object that is not read further."""
        place = Document(self.source, {}, again, prefix=path, kind="FlowSchema")
        field = "apiVersion" if what == "not-ours" and "kind" not in message.partition(":")[0] else "kind"
        start, end = place.offsets((field,))
        self._trouble(what, start, end, message, rejected=rejected)


def _compose_yaml(text: str, start: int, end: int) -> Any:
    return compose(text[start:end], start)


def _near_miss(group: str, api_version: str, kind: str) -> str | None:
    """A sentence where group or kind are nearly ours; None for everybody else's objects (APF005)."""
    if group == GROUP:
        from difflib import get_close_matches  # noqa: PLC0415

        known = (*KINDS, *_LISTS)
        close = get_close_matches(kind, known, 1, 0.6)
        hint = f"did you mean {close[0]}?" if close else f"its kinds are {KINDS[0]} and {KINDS[1]}"
        return f"kind `{kind}`: the group {GROUP} has no such kind; {hint} This object was not checked"
    if kind in KINDS:
        from difflib import SequenceMatcher  # noqa: PLC0415

        alike = SequenceMatcher(None, group, GROUP).ratio()
        bare = not group and re.fullmatch(r"v1((alpha|beta)\d)?", api_version)
        if bare or api_version == GROUP or group.startswith("flowcontrol") or alike > 0.8:
            return (
                f"apiVersion `{api_version}`: {kind} is in the group {GROUP}, as in `{GROUP}/v1`."
                " No API server knows this one. This object was not checked"
            )
    return None
