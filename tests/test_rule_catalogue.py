"""The pages of the rules: parsing, errors in bad pages, and rendering."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.rule_examples import Example, parse_examples

from apflint import package_data, rule_catalogue
from apflint.cli.app import run
from apflint.output.console import PROSE_WIDTH, Style
from apflint.output.rule_page import render_rule, report_rules
from apflint.output.text import render
from apflint.user_error import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from syrupy.assertion import SnapshotAssertion

ROOT = Path(__file__).resolve().parent.parent
PAGE = """\
---
id: APF305
name: hand-larger-than-deck
severity: error
stage: validation
since: 0.1.0
summary: "A hand cannot hold more queues than there are: `handSize` is larger than `queues`."
references:
  - https://kubernetes.io/docs/concepts/cluster-administration/flow-control/
  - https://github.com/kubernetes/enhancements/tree/master/keps/sig-api-machinery/1040-priority-and-fairness
---

## Why

Shuffle sharding deals each flow a *hand* of `handSize` different queues out of the `queues` there are. With fewer
queues than that there is no such hand.

```yaml
not: an example
```

## Bad

```yaml kubernetes=1.28 file=level.yaml
# ~v APF002
spec:
  queues: 8      # why not
  handSize: 12   # ~ APF305
  text: |        # ~ APF305 APF305 APF101
    # ~v APF001 is no marker in here: it has more behind it
```

````json file=level.json
{
"queues": 8,  # ~ APF305
# ~v APF001
# ~v APF305
"handSize": 12
}
````

## Good

```json
{"queues": 16}
```

```console
kubectl is no example
```
"""


def edited(old: str, new: str) -> str:
    """Return the page above with one change."""
    assert old in PAGE
    return PAGE.replace(old, new, 1)


FINE = edited("    # ~v APF001 is no marker in here: it has more behind it\n", "")


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Replace the directory of rule pages by a directory with three pages."""
    for rule_id, name, severity in [
        ("APF203", "unknown-distinguisher", "warning"),
        ("APF305", "hand-larger-than-deck", "error"),
        ("APF903", "unexplained-suppression", "off"),
    ]:
        page = FINE.replace("APF305", rule_id).replace("hand-larger-than-deck", name)
        page = page.replace("since:", "fix: safe\nsince:") if severity == "error" else page
        (tmp_path / f"{rule_id}.md").write_text(page.replace("severity: error", f"severity: {severity}"), "utf-8")
    (tmp_path / "README.md").write_text("no rule", "utf-8")
    monkeypatch.setattr(rule_catalogue, "list_rule_pages", lambda: os.listdir(tmp_path))
    monkeypatch.setattr(rule_catalogue, "read_shipped_text", lambda _, name: (tmp_path / name).read_text("utf-8"))
    _forget()
    yield tmp_path
    _forget()


def _forget() -> None:
    for cached in (rule_catalogue.list_ids, rule_catalogue.read_rule, rule_catalogue.ids_by_name):
        cached.cache_clear()


def test_page_is_parsed() -> None:
    found = rule_catalogue.parse_page(PAGE)
    assert found[:7] == (
        "APF305",
        "hand-larger-than-deck",
        "error",
        "validation",
        "0.1.0",
        "A hand cannot hold more queues than there are: `handSize` is larger than `queues`.",
        (
            "https://kubernetes.io/docs/concepts/cluster-administration/flow-control/",
            "https://github.com/kubernetes/enhancements/tree/master/keps/sig-api-machinery/1040-priority-and-fairness",
        ),
    )
    assert found.fix is None
    assert rule_catalogue.parse_page(edited("since:", "fix: unsafe\nsince:")).fix == "unsafe"
    assert found.body.startswith("## Why\n")
    assert PAGE.split("\n")[found.body_line - 1] == "## Why"
    assert found.url == "https://github.com/apflint/apflint/blob/main/rules/APF305.md"


def test_examples() -> None:
    bad, bad_json, good = parse_examples(rule_catalogue.parse_page(FINE))
    assert bad == Example(
        kind="bad",
        text="spec:\n  queues: 8      # why not\n  handSize: 12\n  text: |\n",
        file="level.yaml",
        kubernetes="1.28",
        expected=(("APF002", 1), ("APF305", 3), ("APF305", 4), ("APF305", 4), ("APF101", 4)),
        page_line=24,
    )
    assert bad_json.text == '{\n"queues": 8,\n"handSize": 12\n}\n'
    assert bad_json.expected == (("APF305", 2), ("APF001", 3), ("APF305", 3))
    assert good == Example("good", '{"queues": 16}\n', "example.json", None, (), 43)
    for example in (bad, bad_json, good):
        assert FINE.split("\n")[example.page_line - 1].startswith("```")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("# ~ APF305\n", "# ~APF305\n", "APF305.md:24: .*misspelled"),
        ("# ~ APF305\n", "# ~ APF305,APF101\n", "misspelled"),
        ("# ~ APF305\n", "# ~ APF35\n", "misspelled"),
        ("# ~v APF002", "# ~v APF2", "misspelled"),
        ('{"queues": 16}', '{"queues": 16} # ~ APF305', "APF305.md:43: a bad example marks"),
        ("kubernetes=1.28", "kubernets=1.28", '"kubernets" is not an option'),
        ("````\n\n## Good", "```\n\n## Good", "APF305.md:32: the fence that starts here is not closed"),
    ],
)
def test_wrong_example_is_an_error_with_its_line(old: str, new: str, message: str) -> None:
    assert old in FINE
    with pytest.raises(ValueError, match=message):
        parse_examples(rule_catalogue.parse_page(FINE.replace(old, new, 1)))


def test_bad_example_without_marker_is_an_error() -> None:
    with pytest.raises(ValueError, match="a bad example marks its findings"):
        parse_examples(rule_catalogue.parse_page(re.sub("# ~.*", "", FINE)))


def test_new_rules_belong_to_the_next_version() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    unreleased = changelog.partition("## [Unreleased]\n")[2].partition("\n## [")[0]
    added = set(re.findall(r"^ *- (APF\d+) `[a-z-]+`", unreleased, re.MULTILINE))
    released = re.findall(r"^## \[([\d.]+)\]", changelog, re.MULTILINE)
    assert added == {rule.id for rule in rule_catalogue.read_rules() if rule.since not in released}


@pytest.mark.usefixtures("directory")
def test_finding_a_rule() -> None:
    assert rule_catalogue.list_ids() == ("APF203", "APF305", "APF903")
    assert [rule.id for rule in rule_catalogue.read_rules()] == ["APF203", "APF305", "APF903"]
    assert (
        rule_catalogue.find_rule("APF305")
        is rule_catalogue.find_rule("apf305")
        is rule_catalogue.find_rule("hand-larger-than-deck")
    )
    assert rule_catalogue.select_ids("APF") == ("APF203", "APF305", "APF903")
    assert rule_catalogue.select_ids("APF2") == rule_catalogue.select_ids("unknown-distinguisher") == ("APF203",)


@pytest.mark.usefixtures("directory")
@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("APF304", ' Did you mean "APF305" or "APF903"?'),
        ("hand-bigger-than-deck", ' Did you mean "hand-larger-than-deck"?'),
        ("unknown_distinguisher", ' Did you mean "unknown-distinguisher"?'),
        ("xyz", ""),
        ("", ""),
        ("../APF305", ' Did you mean "APF305"?'),
    ],
)
def test_unknown_rule_suggests_the_nearest(text: str, near: str) -> None:
    with pytest.raises(UserError, match=re.escape(f'Unknown rule "{text}".{near}')):
        rule_catalogue.find_rule(text)
    with pytest.raises(UserError, match=re.escape(f'"{text}".{near}')):
        rule_catalogue.select_ids(text)
    with pytest.raises(KeyError):
        rule_catalogue.read_rule(text)


@pytest.mark.usefixtures("directory")
def test_reading_one_page_reads_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    real = package_data.read_shipped_text

    def counting(directory: Any, name: str) -> str:
        read.append(name)
        return real(directory, name)

    monkeypatch.setattr(rule_catalogue, "read_shipped_text", counting)
    assert rule_catalogue.list_ids()
    assert rule_catalogue.select_ids("APF3") == ("APF305",)
    assert read == []
    assert rule_catalogue.find_rule("APF305").id == "APF305"
    assert read == ["APF305.md"]


STYLES = {
    "pipe": Style(),
    "terminal": Style(width=80, color=True, hyperlinks=True),
    "narrow": Style(width=50),
}


@pytest.mark.usefixtures("directory")
@pytest.mark.parametrize("style", STYLES)
def test_the_list(style: str, snapshot: SnapshotAssertion) -> None:
    assert render(report_rules(rule_catalogue.read_rules(), STYLES[style]), STYLES[style]) == snapshot


@pytest.mark.usefixtures("directory")
def test_a_page_on_a_pipe(snapshot: SnapshotAssertion) -> None:
    assert render_rule(rule_catalogue.read_rule("APF305"), Style()) == snapshot


# The layout of a page depends on the version of rich, so these tests only check the content.


@pytest.mark.usefixtures("directory")
@pytest.mark.parametrize("width", [50, 80, 200])
def test_a_page_on_a_terminal(width: int) -> None:
    shown = render_rule(rule_catalogue.read_rule("APF305"), Style(width=width))
    assert "\x1b" not in shown
    lines = shown.split("\n")
    assert lines[0] == "APF305 hand-larger-than-deck"
    assert {"Why", "Bad", "Good", "References"} <= set(lines)
    assert "\n\n\n" not in shown
    assert shown.endswith("\n")
    assert not any(line.endswith(" ") for line in lines)
    assert "   handSize: 12   # <- APF305\n" in shown
    assert all(len(line) <= min(width, PROSE_WIDTH) for line in lines if "https://" not in line)
    for reference in rule_catalogue.read_rule("APF305").references:
        assert f"  {reference}\n" in shown


@pytest.mark.usefixtures("directory")
def test_a_page_in_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    style = Style(width=80, color=True, hyperlinks=True)
    shown = render_rule(rule_catalogue.read_rule("APF305"), style)
    codes = re.findall(r"\x1b\[([0-9;]*)m", shown)
    # The style sets no background color, because a dark box would be visible on a light terminal. It uses only the 16
    # colors of the terminal, and no 256 colors or RGB colors.
    assert not [code for code in codes for part in code.split(";") if 40 <= int(part) <= 49 or int(part) in (38, 48)]
    assert f"\x1b]8;;{rule_catalogue.read_rule('APF305').url}\x1b\\" in shown
    plain = re.sub(r"\x1b\[[0-9;]*m|\x1b\]8;[^\x1b]*\x1b\\", "", shown)
    assert re.sub(r" +\n", "\n", plain) == render_rule(rule_catalogue.read_rule("APF305"), Style(width=80))
    # Only the style determines the output. rich must not read these environment variables.
    for name, value in [("NO_COLOR", "1"), ("TERM", "dumb"), ("COLUMNS", "40"), ("FORCE_COLOR", "")]:
        monkeypatch.setenv(name, value)
        assert render_rule(rule_catalogue.read_rule("APF305"), style) == shown


@pytest.mark.usefixtures("directory")
def test_rule_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["rule", "--format", "json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [(rule["id"], rule["severity"]) for rule in listed["rules"]] == [
        ("APF203", "warning"),
        ("APF305", "error"),
        ("APF903", "off"),
    ]
    assert run(["rule", "APF305", "--format", "json"]) == 0
    page = json.loads(capsys.readouterr().out)
    assert page["url"] == rule_catalogue.read_rule("APF305").url
    assert [rule["fix"] for rule in listed["rules"]] == [None, "safe", None]
    assert {**listed["rules"][1], "schema": 1, "body": page["body"]} == page


@pytest.mark.usefixtures("directory")
def test_unknown_rule_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["rule", "APF350"]) == 2
    assert 'Did you mean "APF305"' in capsys.readouterr().err


def test_readable_markers() -> None:
    assert rule_catalogue.explain_markers("```yaml file=x.yaml\n# ~v APF001 APF002\na: 1  # ~ APF305\n```\n") == (
        "```yaml\n# APF001 APF002: the next line\na: 1  # <- APF305\n```\n"
    )
