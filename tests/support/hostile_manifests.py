"""Strategies for manifests with hostile text in many places, and for files with unusual names."""

from __future__ import annotations

import json
import os
from typing import Any

from hypothesis import strategies as st

WORDS = st.sampled_from(
    (
        "alice",
        "]]>",
        "<![CDATA[",
        "<!-- -->",
        "<script>alert(1)</script>",
        "\n::error file=x,line=1::pwned",
        "::add-mask::a",
        "::stop-commands::x",
        "##[error]x",
        "###[set-output name=a]##vso[task.setvariable variable=a]b",
        "##teamcity[x]",
        "%0A%0D%25%3A%2C",
        "\r\n",
        "\r",
        "| a | b |",
        "\\|",
        "\\\\|",
        "``` `` `",
        "`",
        "[x](http://evil.example)",
        "![x](y)",
        "@everyone #1 www.x.example",
        "**a** _b_ ~~c~~ $x$",
        "&amp;&#10;&lt;",
        "{0} {rule}",
        "\ufffe\uffff",
        "\x00",
        "\x1b[2J\x1b]8;;http://x\x1b\\",
        "\x80\x85\x9b",
        "\u2028\u2029",
        "\u202e\u2066abc\u2069",
        "\ud800",
        "\udcff",
        "\udfff\ud800",
        "\U0001f600",
        "\u0301",
        "\xa0\u3000\u200b\ufeff",
        " ",
        "\t",
        "\\",
        "'",
        '"',
        "a" * 300,
        "w\u00ebr" * 200,
        "-",
        "*",
        "apflint: ignore[APF101] x",
    )
)
HOSTILE = st.lists(WORDS | st.text(st.characters(exclude_categories=()), max_size=8), max_size=4).map("".join)


@st.composite
def objects(draw: st.DrawFn) -> dict[str, Any]:
    """Generate an APF object with hostile text in some places: names, keys, lists, labels."""

    def text(usual: str) -> str:
        return draw(st.just(usual) | HOSTILE)

    if draw(st.integers(0, 3)) == 0:
        spec: dict[str, Any] = {
            "type": text("Limited"),
            "limited": {
                "nominalConcurrencyShares": draw(st.sampled_from([5, -1, "5", None])),
                "limitResponse": {"type": text("Queue"), "queuing": {"queues": 1, "handSize": 9}},
            },
        }
        kind = "PriorityLevelConfiguration"
    else:
        kind = "FlowSchema"
        verbs = [text("get"), *draw(st.lists(HOSTILE, max_size=2))]
        resources = {
            "verbs": verbs,
            "apiGroups": [text("")],
            "resources": [text("pods")],
            "namespaces": [text("x")],
        }
        spec = {
            "matchingPrecedence": draw(st.sampled_from([1, 1, 0, 10001, "1"])),
            "priorityLevelConfiguration": {"name": text("workload-low")},
            "distinguisherMethod": {"type": text("ByUser")},
            "rules": [{"subjects": [{"kind": "User", "user": {"name": text("alice")}}], "resourceRules": [resources]}],
        }
    if draw(st.booleans()):
        spec[text("unknown")] = 1
    # Names are drawn from a few values, so that several objects have the same name, and findings have related places.
    metadata: dict[str, Any] = {"name": draw(st.sampled_from(["twice", "alone"]) | HOSTILE)}
    if draw(st.booleans()):
        metadata["labels"] = {text("app"): text("x")}
        metadata["annotations"] = {text("note"): text("x"), "apflint/ignore.APF104": text("why")}
    return {"apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": kind, "metadata": metadata, "spec": spec}


@st.composite
def texts(draw: st.DrawFn) -> bytes:
    """Generate a file: JSON, or YAML with or without escaped scalars, with a comment, and sometimes with a syntax
    error."""
    parts = []
    for found in draw(st.lists(objects(), min_size=1, max_size=3)):
        indent = draw(st.sampled_from([None, 1]))
        written = json.dumps(found, indent=indent, ensure_ascii=draw(st.booleans()))
        if draw(st.integers(0, 4)) == 0:
            written = "# " + draw(HOSTILE) + "\n" + written
        if draw(st.integers(0, 6)) == 0:
            written = written.replace('"', draw(st.sampled_from(["'", "", '""'])), draw(st.integers(1, 3)))
        parts.append(written)
    data = draw(st.sampled_from(["\n---\n", "\r\n---\r\n", "\n"])).join(parts).encode("utf-8", "surrogatepass")
    if draw(st.integers(0, 9)) == 0:
        data += draw(st.binary(max_size=6))
    return data


ODD_NAMES = (
    "a b",
    "100%25",
    "%",
    "a,b:c",
    "::error file=x::y",
    "##[error]x",
    "a\nb",
    "a\r\n::error::x",
    "a|b",
    "`a``b`",
    "<a>&\"'",
    "]]>",
    "[x](y)",
    "caf\udce9",
    "\udcff\udcfe",
    "\x01\x1b[2J",
    "\u202ecod",
    "\u2028",
    "\xa0\u3000",
    "d\u00e9",
    "de\u0301",
    "\U0001f600",
    "\\",
    "a\\|b",
    " lead",
    "trail ",
    "-dash",
    "#?;=+&",
    "n" * 200,
    "~",
    "a=b",
    "..a",
)
"""Unusual names of files and directories. Lone surrogates stand for bytes that are not UTF-8 (PEP 383)."""
ODD_DIRECTORIES = tuple(name for name in ODD_NAMES if not name.startswith("."))
"""Names of directories whose files are checked. Hidden directories are excluded, because checks skip them."""

NAMES = st.sampled_from(ODD_NAMES) | st.binary(min_size=1, max_size=12).map(
    lambda data: os.fsdecode(data.replace(b"/", b"_").replace(b"\0", b"_").strip(b".") or b"_")
)
FILES = st.dictionaries(
    st.builds(
        lambda directory, name, ending: f"{directory}/{name}{ending}" if directory else f"{name}{ending}",
        st.just("") | NAMES,
        NAMES,
        st.sampled_from([".yaml", ".json", ".yml"]),
    ),
    texts(),
    min_size=1,
    max_size=3,
)
