"""The arguments that name the sources of a configuration."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from apflint.releases import parse_release
from apflint.sources.source_arguments import PREFIXES, Words, parse_words, suggest_word
from apflint.user_error import UserError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to an empty directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("a.yaml", Words(paths=("a.yaml",))),
        ("-", Words(paths=("-",))),
        ("./live", Words(paths=("./live",))),
        ("./git:main", Words(paths=("./git:main",))),
        ("lively", Words(paths=("lively",))),
        ("LIVE", Words(paths=("LIVE",))),
        ("1.30", Words(paths=("1.30",))),
        ("https://example.com/a.yaml", Words(paths=("https://example.com/a.yaml",))),
        ("git:main", Words(revisions=("git:main",))),
        ("git:main:manifests", Words(revisions=("git:main:manifests",))),
        ("kustomize:overlays/prod", Words(built=("kustomize:overlays/prod",))),
        ("kustomize:.", Words(built=("kustomize:.",))),
        ("cluster:prod", Words(clusters=("prod",))),
        ("cluster:a:b", Words(clusters=("a:b",))),
        ("live", Words(is_live=True)),
        ("defaults:1.30", Words(release=parse_release("1.30"))),
        ("defaults:v1.30.2", Words(release=parse_release("1.30"))),
    ],
)
def test_each_kind_of_word(word: str, expected: Words) -> None:
    assert parse_words([word]) == expected


def test_words_keep_their_order_and_may_be_in_any_position() -> None:
    words = ["b.yaml", "git:v2", "cluster:b", "a.yaml", "cluster:a", "git:v1:m", "defaults:1.30", "-"]
    expected = Words(("b.yaml", "a.yaml", "-"), ("git:v2", "git:v1:m"), (), ("b", "a"), release=parse_release("1.30"))
    assert parse_words(words) == expected
    assert parse_words(word for word in words) == expected  # `words` may be an iterator, which can be read only once


def test_name_given_twice_counts_once() -> None:
    repeated = ["git:main", "cluster:prod", "defaults:1.30", "live"]
    for word in repeated:
        assert parse_words([word, word]) == parse_words([word])
    assert parse_words(["defaults:1.30", "defaults:v1.30"]).release == parse_release("1.30")
    assert parse_words(["kustomize:a", "kustomize:a"]).kustomizations == ("a",)


def test_no_words_name_nothing() -> None:
    assert parse_words([]) == Words()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("git:",), "git: needs a name, as in git:main"),
        (("kustomize:",), "kustomize: needs a name, as in kustomize:overlays/prod"),
        (("cluster:",), "cluster: needs a name, as in cluster:prod"),
        (("defaults:",), "defaults: needs a name, as in defaults:1.36"),
        (("a.yaml", "git:"), "git: needs a name, as in git:main"),
        (("defaults:9",), '"9" is not a Kubernetes release'),
        (("defaults:main",), '"main" is not a Kubernetes release'),
        (("defaults:1.30", "defaults:1.31"), "defaults:1.30 and defaults:1.31 are two clusters: name one"),
        (
            ("live", "defaults:1.30"),
            "live and defaults:1.30 cannot be combined: a running cluster has its own built-in objects",
        ),
        (
            ("defaults:1.30", "a.yaml", "live"),
            "live and defaults:1.30 cannot be combined: a running cluster has its own built-in objects",
        ),
        (
            ("kustomize:overlays/prod", "cluster:prod"),
            "cluster:prod and kustomize:overlays/prod cannot be combined: each names a cluster",
        ),
        (
            ("git:main:m", "kustomize:overlays/prod"),
            "git:main:m and kustomize:overlays/prod cannot be combined: kustomize builds files of the work tree, not of a git revision",
        ),
    ],
)
def test_empty_names_unknown_releases_and_contradictions(words: tuple[str, ...], message: str) -> None:
    for order in (words, words[::-1]):
        if "are two clusters" in message and order != words:
            continue  # the message names the words in their order
        with pytest.raises(UserError) as caught:
            parse_words(order)
        assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    "words",
    [
        ("live", "cluster:prod"),
        ("live", "kustomize:overlays/prod"),
        ("live", "git:main"),
        ("git:main", "cluster:prod"),
        ("git:main", "defaults:1.30"),
        ("cluster:prod", "defaults:1.30"),
        ("kustomize:a", "defaults:1.30"),
        ("cluster:a", "cluster:b"),
        ("kustomize:a", "kustomize:b"),
    ],
)
def test_words_that_can_be_combined(words: tuple[str, ...]) -> None:
    with_file = parse_words((*words, "a.yaml"))
    assert with_file == parse_words(("a.yaml", *words)) == parse_words(words)._replace(paths=("a.yaml",))


@pytest.mark.parametrize("kind", ["file", "directory", "dangling link"])
def test_running_cluster_that_is_also_a_path_is_an_error(kind: str, directory: Path) -> None:
    path = directory / "live"
    if kind == "file":
        path.touch()
    elif kind == "directory":
        path.mkdir()
    else:
        path.symlink_to("missing")
    with pytest.raises(UserError) as caught:
        parse_words(["a.yaml", "live"])
    assert (
        str(caught.value)
        == "live names the running cluster, but a path has the same name. To read the path, write ./live"
    )
    assert parse_words(["./live"]) == Words(paths=("./live",))


@pytest.mark.parametrize("prefix", PREFIXES)
def test_prefix_wins_over_a_path(prefix: str, directory: Path) -> None:
    name = f"{prefix}1.30"
    (directory / name).touch()
    assert parse_words([name]).paths == ()
    assert parse_words([f"./{name}"]) == Words(paths=(f"./{name}",))


@pytest.mark.parametrize(
    ("words", "has_manifests", "is_project"),
    [
        ((), False, True),
        ((".",), True, True),
        (("git:main",), True, True),
        (("git:main", "."), True, True),
        (("git:main:manifests",), True, False),
        (("manifests",), True, False),
        (("-",), True, False),
        ((".", "manifests"), True, False),
        (("cluster:prod",), True, False),
        (("kustomize:.",), True, False),
        (("live",), False, False),
        (("live", "."), True, False),
        (("defaults:1.30",), False, False),
        (("defaults:1.30", "."), True, False),
    ],
)
def test_what_words_name(words: tuple[str, ...], has_manifests: bool, is_project: bool) -> None:
    parsed = parse_words(words)
    assert (parsed.has_manifests, parsed.is_project) == (has_manifests, is_project)


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("1.30", " For the built-in objects of a release, write defaults:1.30."),
        ("v1.30", " For the built-in objects of a release, write defaults:1.30."),
        ("prod", " For the cluster of the settings, write cluster:prod."),
        ("main", " For the git revision, write git:main."),
        ("v2", " For the git revision, write git:v2."),
        ("main~0", " For the git revision, write git:main~0."),
        ("release-2", ""),
        ("-main", ""),
        ("1.30.yaml", ""),
        ("2.30", ""),
        ("", ""),
        ("a b", ""),
        ("--output=x", ""),
    ],
)
@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_path_that_does_not_exist_names_the_prefixed_form(path: str, hint: str, directory: Path) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    for command in (("init", "-q", "-b", "main"), (*who, "commit", "-q", "--allow-empty", "-m", "a"), ("tag", "v2")):
        subprocess.run(["git", *command], cwd=directory, check=True)
    assert suggest_word(path, ("prod", "staging")) == hint


def test_nothing_is_suggested_outside_of_a_repository(monkeypatch: pytest.MonkeyPatch, directory: Path) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(directory.parent))
    assert suggest_word("main") == ""
    assert suggest_word("prod") == ""
    monkeypatch.setenv("PATH", str(directory))  # hides git
    assert suggest_word("main") == ""
