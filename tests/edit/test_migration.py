"""Migration to a later API version: the spec keeps its meaning, and only the necessary bytes change."""

from __future__ import annotations

import json
import re
from itertools import combinations
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apflint.edit.migration import Migration
from apflint.edit.migration import migrate as migrated
from apflint.edit.migration_target import MigrationTarget, choose_target, parse_release_range, serves
from apflint.edit.version_semantics import source_release, stored_spec
from apflint.engine import Options, check
from apflint.load import load
from apflint.load.source_text import Source
from apflint.model import PRESERVE_ZERO, shares_field
from apflint.releases import RELEASES, parse_api_version, parse_release
from apflint.user_error import UserError

if TYPE_CHECKING:
    from pathlib import Path

GROUP = "flowcontrol.apiserver.k8s.io"
VERSIONS = ["v1alpha1", "v1beta1", "v1beta2", "v1beta3", "v1"]
PAIRS = list(combinations(VERSIONS, 2))
EVERY_PAIR = pytest.mark.parametrize(("old", "new"), PAIRS)

SCHEMA = """\
# The nightly jobs.
---
kind: "FlowSchema"   # quoted
apiVersion:   'flowcontrol.apiserver.k8s.io/VERSION'  # not VERSION
metadata: &meta {name: nightly}
spec:
    priorityLevelConfiguration: {"name": workload-low,}
    rules:
    - subjects: [{kind: Group, group: {name: night-watch}}]
      nonResourceRules: [{verbs: [get], nonResourceURLs: [/x]}]
...
"""
LEVEL = """\
---
apiVersion: flowcontrol.apiserver.k8s.io/VERSION
kind: PriorityLevelConfiguration
metadata:
  name: nights
  # assuredConcurrencyShares and nominalConcurrencyShares in a comment stay
  annotations: {note: "assuredConcurrencyShares VERSION"}
spec:

  type:   Limited
  limited:
      limitResponse: {type: Reject}\t# a tab
      "SHARES" : 0x14   # twenty
---
kind: ConfigMap
apiVersion: v1
data: {x: flowcontrol.apiserver.k8s.io/VERSION, assuredConcurrencyShares: "3"}"""


def choose(version: str | None = None, kubernetes: str | None = None, span: str | None = None) -> MigrationTarget:
    """Return the migration target for values of the options `--to`, `--kubernetes` and `--range`."""
    releases = parse_release_range(span) if span else [parse_release(kubernetes)] if kubernetes else []
    return choose_target(parse_api_version(version) if version else None, releases)


def written(template: str, version: str) -> str:
    return template.replace("SHARES", shares_field(version)).replace(f"{GROUP}/VERSION", f"{GROUP}/{version}")


def move(text: str, to: str = "v1", *, name: str = "x.yaml", **more: Any) -> Migration:
    accept = more.pop("accept_changes", False)
    return migrated(Source(name, text), choose(to, **more), accept_changes=accept)


def level(limited: str, version: str = "v1beta3", annotated: bool = False) -> str:
    notes = f"  annotations:\n    {PRESERVE_ZERO}: ''\n" if annotated else ""
    return (
        f"apiVersion: {GROUP}/{version}\nkind: PriorityLevelConfiguration\nmetadata:\n  name: nights\n{notes}"
        f"spec:\n  type: Limited\n  limited:\n{limited}    limitResponse: {{type: Reject}}\n"
    )


def messages(migration: Migration, what: str = "note") -> list[str]:
    return [f"{remark.line}: {remark.message}" for remark in migration.remarks if remark.kind == what]


@EVERY_PAIR
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("template", [SCHEMA, LEVEL])
def test_only_version_and_shares_change(template: str, line_end: str, old: str, new: str) -> None:
    def final(version: str) -> str:
        text, tail, rest = written(template, version).partition("---\nkind: ConfigMap")
        return (text + (tail + rest).replace(f"{GROUP}/{version}", f"{GROUP}/{old}")).replace("\n", line_end)

    outcome = move(final(old), new)
    assert outcome.text == final(new)
    assert not outcome.is_refused


@EVERY_PAIR
@pytest.mark.parametrize("as_list", ["List", "PriorityLevelConfigurationList"])
def test_objects_in_lists_and_json(old: str, new: str, as_list: str) -> None:
    def manifest(version: str) -> str:
        api = f"{GROUP}/{version}"
        own = {"apiVersion": api, "kind": "PriorityLevelConfiguration"} if as_list == "List" else {}
        limited = {shares_field(version): 7, "limitResponse": {"type": "Reject"}}
        item = own | {"metadata": {"name": "a"}, "spec": {"type": "Limited", "limited": limited}}
        value = {"apiVersion": "v1" if as_list == "List" else api, "kind": as_list, "items": [item]}
        return json.dumps(value, indent="\t").replace("/", "\\/")

    assert move(manifest(old), new, name="x.json").text == manifest(new)
    # YAML does not allow tabs, so compare the migration of the text with spaces.
    assert move(manifest(old).replace("\t", " "), new).text == manifest(new).replace("\t", " ")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            level("    assuredConcurrencyShares: 0 # none\n", "v1beta2"),
            level("    nominalConcurrencyShares: 30 # none\n", "v1"),
        ),
        (level("    nominalConcurrencyShares: 0\n"), level("    nominalConcurrencyShares: 30\n", "v1")),
        (level("", "v1beta1"), level("", "v1")),
        (level("    assuredConcurrencyShares:\n", "v1beta1"), level("    nominalConcurrencyShares:\n", "v1")),
        (level(""), level("", "v1")),
        (level("    nominalConcurrencyShares: 0\n", annotated=True), level("    nominalConcurrencyShares: 0\n", "v1")),
        (level("", annotated=True), level("    nominalConcurrencyShares: 0\n", "v1")),
        (level("    nominalConcurrencyShares:\n", annotated=True), level("    nominalConcurrencyShares: 0\n", "v1")),
        (level("    nominalConcurrencyShares: 5\n", annotated=True), level("    nominalConcurrencyShares: 5\n", "v1")),
        (level("", "v1beta2", annotated=True), level("", "v1")),
        (
            level("    assuredConcurrencyShares: 0\n", "v1beta2", annotated=True),
            level("    nominalConcurrencyShares: 30\n", "v1"),
        ),
    ],
)
def test_shares_that_are_zero_or_absent_keep_their_meaning(before: str, after: str) -> None:
    assert move(before).text == after


def test_changes_in_meaning_are_noted_with_their_line() -> None:
    assert messages(move(level("    assuredConcurrencyShares: 0\n", "v1beta1"))) == [
        (
            "7: from Kubernetes 1.26 on, this priority level borrows seats of other levels without limit if"
            " borrowingLimitPercent is absent, and lends no seats if lendablePercent is absent"
        ),
        (
            "8: assuredConcurrencyShares is 0, which means 30 shares in v1beta1 and 0 in v1:"
            " set nominalConcurrencyShares to 30"
        ),
    ]
    assert [note[:30] for note in messages(move(level("", annotated=True)))] == [
        "6: remove the annotation flowc",
        "9: nominalConcurrencyShares is",
    ]
    assert messages(move(level("    assuredConcurrencyShares: 3\n", "v1beta2"))) == []


@pytest.mark.parametrize("old", ["v1alpha1", "v1beta1", "v1beta2"])
def test_annotation_has_no_effect_before_v1beta3(old: str) -> None:
    outcome = move(level("    assuredConcurrencyShares: 7\n", old, annotated=True))
    assert outcome.text == level("    nominalConcurrencyShares: 7\n", "v1")
    assert messages(outcome)[0] == (
        f"6: remove the annotation {PRESERVE_ZERO}: it has no effect in {old}, and v1 rejects it"
    )


def test_comment_beside_the_annotation_stays() -> None:
    text = level("", annotated=True).replace(": ''\n", ": ''  # why\n    other: z\n")
    assert "  annotations:\n    # why\n    other: z\nspec:" in move(text).text


def test_annotation_does_not_take_effect_in_v1beta3() -> None:
    text = level("    assuredConcurrencyShares: 0\n", "v1beta2", annotated=True)
    assert PRESERVE_ZERO not in move(text, "v1beta3").text
    kept = move(text, "v1beta3", kubernetes="1.28").text
    assert kept == level("    nominalConcurrencyShares: 0\n", "v1beta3", annotated=True)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (
            level("    assuredConcurrencyShares: 3\n    lendablePercent: 5\n", "v1beta1"),
            "9: spec.limited.lendablePercent",
        ),
        (level("    assuredConcurrencyShares: 3\n    shares: 5\n", "v1beta2"), "9: spec.limited.shares: unknown field"),
        (level("    nominalConcurrencyShares: 3\n", "v1beta2"), "8: spec.limited.nominalConcurrencyShares"),
    ],
)
def test_changed_meaning_is_refused_unless_accepted(text: str, place: str) -> None:
    outcome = move(text)
    assert outcome.is_refused
    assert outcome.text == text
    assert [line[: len(place)] for line in messages(outcome, "refused")] == [place]
    accepted = move(text, accept_changes=True)
    assert not accepted.is_refused
    assert f"{GROUP}/v1\n" in accepted.text
    assert "assured" not in accepted.text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (level("    assuredConcurrencyShares: x\n", "v1beta2"), "8: the API server cannot decode the object"),
        (level("    assuredConcurrencyShares: 1\n    assuredConcurrencyShares: 1\n", "v1beta2"), "9: duplicate key"),
        (level("    assuredConcurrencyShares: 1\n    nominalConcurrencyShares: 1\n", "v1beta2"), "9: assuredConc"),
        (level("", "v1beta9"), '1: unknown version "v1beta9"'),
        (level("    a: {{ .Values.x }}\n", "v1beta2"), "8: this is"),
        (level("    a: 'x\n", "v1beta2"), "8: "),
        (level("    assuredConcurrencyShares: .inf\n", "v1beta2"), "8: JSON cannot represent infinity"),
    ],
)
def test_unreadable_objects_are_always_refused(text: str, message: str) -> None:
    both = level("", "v1beta2") + "---\n" + text
    line, _, words = message.partition(":")
    for accept in (False, True):
        outcome = move(both, accept_changes=accept)
        assert outcome.is_refused
        assert outcome.text == both
        assert any(f"{int(line) + 9}:{words}" in remark for remark in messages(outcome, "refused")), outcome.remarks


def test_shared_values() -> None:
    item = "- apiVersion: &v flowcontrol.apiserver.k8s.io/v1beta2\n  kind: PriorityLevelConfiguration\n  metadata: {name: a}\n"
    spec = "  spec:\n    type: Limited\n    limited: &l {assuredConcurrencyShares: 5, limitResponse: {type: Reject}}\n"
    both = item + spec + item.replace("&v flowcontrol.apiserver.k8s.io/v1beta2", "*v") + spec.replace("&l {", "*l\n#{")
    text = f"apiVersion: v1\nkind: List\nitems:\n{both}"
    assert move(text).text == text.replace("v1beta2", "v1").replace("{assured", "{nominal", 1)

    other = "- {apiVersion: v1, kind: ConfigMap, data: {x: *v}}\n"
    outcome = move(f"apiVersion: v1\nkind: List\nitems:\n{item}{spec}{other}")
    assert outcome.is_refused
    assert "anchor" in messages(outcome, "refused")[0]

    merged = level("    <<: *d\n", "v1beta2").replace("spec:\n", "x: &d {assuredConcurrencyShares: 5}\nspec:\n")
    assert move(merged).is_refused
    assert move(merged, accept_changes=True).is_refused


def test_shared_annotation_is_not_removed() -> None:
    notes = f"  annotations: &a\n    {PRESERVE_ZERO}: ''\n"
    first = level("    nominalConcurrencyShares: 5\n").replace("  name: nights\n", f"  name: nights\n{notes}")
    text = "apiVersion: v1\nkind: List\nitems:\n"
    for manifest in (first, first.replace(notes, "  annotations: *a\n")):
        text += "- " + manifest.replace("\n", "\n  ").rstrip(" ")
    outcome = move(text)
    assert (outcome.is_refused, outcome.text) == (True, text)
    (refused,) = messages(outcome, "refused")
    assert "the text cannot be edited here: the mapping is shared through an alias; edit the text manually" in refused


def test_newer_versions_stay() -> None:
    text = level("", "v1")
    outcome = move(text, "v1beta3", kubernetes="1.29")
    assert (outcome.text, outcome.is_refused) == (text, False)
    assert messages(outcome) == ["1: the object already has the newer version v1, and stays unchanged"]
    assert move(text, "v1beta2").is_refused
    assert move(text) == Migration(text, ())


def test_targets() -> None:
    assert choose("v1").releases == (RELEASES[-1],)
    assert choose(f"{GROUP}/v1beta2") == choose("v1beta2", "1.28")
    assert choose(None, "1.27").version == "v1beta3"
    assert choose(None, None, "1.26..1.28").version == "v1beta3"
    assert len(choose(None, None, "1.29..1.36").releases) == 8
    assert choose("v1beta3", None, "1.29..1.31").version == "v1beta3"
    for arguments, message in (
        (("v2",), "unknown API version"),
        (("v1", "1.28"), "Kubernetes 1.28 does not serve v1. This release serves v1beta3, v1beta2."),
        ((None, None, "1.25..1.36"), "v1beta2 for 1.25 to 1.28, v1 for 1.29 to 1.36"),
        ((None, None, "1.20..1.37"), "v1beta1 for 1.20 to 1.25, v1beta3 for 1.26 to 1.31, v1 for 1.32 to 1.37"),
        ((None, None, "1.36..1.25"), 'Write "1.25..1.36"'),
        ((None, None, "1.36"), "not a range"),
        (("v1beta3", None, "1.29..1.32"), "Kubernetes 1.32 does not serve v1beta3"),
    ):
        with pytest.raises(UserError, match=re.escape(message)):
            choose(*arguments)


@pytest.mark.parametrize(
    ("version", "kubernetes", "origin"),
    [
        ("v1beta2", "1.26", "1.26"),
        ("v1beta2", "1.36", "1.28"),
        ("v1beta3", "1.29", "1.29"),
        ("v1alpha1", "1.25", "1.20"),
    ],
)
def test_release_that_defines_the_meaning(version: str, kubernetes: str, origin: str) -> None:
    assert source_release(version, parse_release(kubernetes)).name == origin


def test_zero_shares_are_refused_if_the_release_rejects_them() -> None:
    text = level("    nominalConcurrencyShares: 0\n", annotated=True)
    outcome = move(text, kubernetes="1.29")
    assert outcome.text == text
    assert messages(outcome, "refused") == [
        "10: Kubernetes 1.29 rejects a priority level with 0 shares; they are allowed from 1.30 on"
    ]
    assert not move(text, kubernetes="1.30").is_refused


SHARES = st.sampled_from([None, "", "null", "0", "1", "30", "0x10", "245", "!!int 7", "&n 0"])
COMMENTS = st.sampled_from(["", " # shares", "  "])


@st.composite
def levels(draw: st.DrawFn) -> tuple[str, str, str, str]:
    """Generate an old and a new version, a release, and a text with a priority level."""
    old, new = draw(st.sampled_from(PAIRS))
    known = draw(st.sampled_from([known for known in RELEASES if serves(known, new)]))
    shares = draw(SHARES)
    quote = draw(st.sampled_from(["", "'", '"']))
    fields = ["limitResponse: {type: Reject}"]
    if shares is not None:
        fields.append(f"{quote}{shares_field(old)}{quote}: {shares}")
    if draw(st.booleans()):
        fields.append(draw(st.sampled_from(["lendablePercent: 50", "borrowingLimitPercent: 0"])))
    fields = draw(st.permutations(fields))
    if draw(st.booleans()):
        limited = f"  limited: {{{', '.join(fields)}}}{draw(COMMENTS)}\n"
    else:
        limited = "  limited:\n" + "".join(f"      {field}{draw(COMMENTS)}\n" for field in fields)
    annotations = draw(
        st.sampled_from(
            [
                "",
                f"  annotations: {{{PRESERVE_ZERO}: ''}}\n",
                f"  annotations:\n    {PRESERVE_ZERO}: x\n    other: z\n",
                f"  annotations: {{other: z, {PRESERVE_ZERO}: ''}}\n",
            ]
        )
    )
    text = (
        f"# {old}\napiVersion: {quote}{GROUP}/{old}{quote}{draw(COMMENTS)}\nkind: PriorityLevelConfiguration\n"
        f"metadata:\n  name: a\n{annotations}spec:\n  type: Limited\n{limited}# end"
    )
    return old, new, known.name, text.replace("\n", draw(st.sampled_from(["\n", "\r\n"])))


@given(levels())
def test_stored_spec_is_the_same_and_migrating_twice_changes_nothing(case: tuple[str, str, str, str]) -> None:
    old, new, kubernetes, text = case
    target = choose(new, kubernetes)
    outcome = migrated(Source("x.yaml", text), target)
    if outcome.is_refused:
        assert outcome.text == text
        known = source_release(old, parse_release(kubernetes))
        assert not (known.has_borrowing and target.releases[0].allows_zero_shares)
        return
    (before,), (after,) = (load("x.yaml", version.encode()).documents for version in (text, outcome.text))
    assert after.version == new
    assert stored_spec(before, source_release(old, target.releases[0])) == stored_spec(after, target.releases[0])
    assert migrated(Source("x.yaml", outcome.text), target).text == outcome.text
    assert kept(outcome.text) == kept(text)


def kept(text: str) -> str:
    """Return a manifest without the fields that a migration may change: version, shares, and annotation for zero shares."""
    text = re.sub(rf"{GROUP}/v\w+", "", text)
    text = re.sub(rf"[^\S\n]*annotations: {{{PRESERVE_ZERO}: ''}}\r?\n|[ ]*{PRESERVE_ZERO}: x\r?\n", "", text)
    text = re.sub(rf", {PRESERVE_ZERO}: ''", "", text)
    text = re.sub(r"['\"]?(assured|nominal)ConcurrencyShares['\"]?: ?(!!int \w+|&n \w+|\w*),?\s*", "", text)
    return re.sub(r"\s|,", "", text)


def test_accepted_objects_are_accepted_after_migration(root: Path) -> None:
    moved = 0
    for path in sorted((root / "fixtures" / "conformance").glob("*.jsonl")):
        with path.open(encoding="utf-8") as lines:
            cases = [json.loads(line) for line in lines]
        texts = [
            case["manifest"]
            for case in cases
            if case["accepted"] and case["apiVersion"] != "v1" and isinstance(case["manifest"], str)
        ]
        for text in texts[::4]:
            outcome = move(text)
            findings = check([("x.yaml", outcome.text.encode())], Options(kubernetes=parse_release("1.37"))).findings
            moved += not outcome.is_refused
            assert outcome.is_refused or not [finding for finding in findings if finding.apiserver], text
    assert moved > 50
