"""Examples in policy tests, diffs and reachability findings are requests of ordinary users if such requests exist."""

from __future__ import annotations

import json
import re
import shlex
from typing import TYPE_CHECKING, Any

import pytest
from support.builders import flow_schema, group, user

from apflint.cli.app import run

if TYPE_CHECKING:
    from pathlib import Path

SECRETS = {"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"], "namespaces": ["shop"]}
TEAM = flow_schema("team", "workload-high", 450, subjects=[group("dev")], resources=[SECRETS], by="ByUser")


def users(out: str) -> set[str]:
    """Return the users of all commands in a text, with the named groups."""
    commands = (shlex.split(line) for line in re.findall(r"apflint explain (\S+ .*--as.*)", out))
    return {" ".join(words[words.index("--as") + 1 :]).partition(" -f ")[0] for words in commands}


@pytest.mark.parametrize(
    ("level", "example"),
    [
        ("workload-high", "alice --as-group dev"),
        ("exempt", "alice --as-group dev"),
        ("global-default", "alice --as-group dev"),
        # Only users in the group `system:nodes` reach the level `system`.
        ("system", "system:node:node-1 --as-group dev --as-group system:nodes"),
    ],
)
def test_a_policy_test_is_refuted_by_an_ordinary_user(
    level: str, example: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "team.json").write_text(json.dumps(TEAM))
    test = {"never": {"subject": {"group": "dev"}, "reaches": level}}
    (tmp_path / "suite.yaml").write_text(json.dumps({"manifests": ["team.json"], "tests": [test]}))
    assert run(["test", str(tmp_path / "suite.yaml")]) == 1
    assert users(capsys.readouterr().out) == {example}


@pytest.mark.parametrize("first", [user("system:apiserver"), group("system:nodes"), user("system:node:worker")])
def test_a_diff_shows_ordinary_users(first: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    both = flow_schema("team", "workload-high", 450, subjects=[first, group("dev")], resources=[SECRETS], by="ByUser")
    for name, content in (("old.json", {**both, "metadata": {"name": "other"}}), ("new.json", both)):
        (tmp_path / name).write_text(json.dumps(content))
    assert run(["diff", "--isolated", str(tmp_path / "old.json"), str(tmp_path / "new.json")]) == 1
    assert users(capsys.readouterr().out) == {"alice --as-group dev"}
