"""Sources of a configuration: every kind of source argument, alone and combined, in every command that reads a
configuration."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from support.api_server import OBJECTS, recorded_answers
from support.audit_logs import event, write_log
from support.shell import LEVEL, ROOT, SCHEMA

from apflint.cli.app import run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = [
    pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed"),
    pytest.mark.skipif(os.name == "nt", reason="the stand-ins for programs are shell scripts"),
]
MANIFESTS = f"{LEVEL}---\n{SCHEMA}"
KUSTOMIZE = '#!/bin/sh\ncat "$2/built.txt"\n'
KUBECTL = """\
#!/bin/sh
for word; do case $word in /*) path=${word%%\\?*};; esac; done
exec cat "DIRECTORY$path.json"
"""
METRICS = str(ROOT / "fixtures/live/0-idle.metrics.txt.gz")
LOAD = "duration: 1s\nclients: [{name: a, as: alice, request: list pods -n a, service: 1s, rate: 1/s}]\n"
SUITE = "tests: [{request: list pods -n a --as alice, reaches: {flowSchema: global-default}}]\n"
REQUEST = ("list", "pods", "-n", "a", "--as", "alice")
OBJECTS_OF_CLUSTER = len(OBJECTS)


@pytest.fixture(scope="module")
def built_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A git repository with manifests, a kustomization and a cluster in the settings, beside stand-ins for programs.

    Tests must not change its files.
    """
    base = tmp_path_factory.mktemp("sources")
    programs, directory = base / "bin", base / "project"
    for name, text in {
        "bin/kustomize": KUSTOMIZE,
        "bin/kubectl": KUBECTL.replace("DIRECTORY", str(base / "answers")),
        "project/manifests/apf.yaml": MANIFESTS,
        "project/overlay/kustomization.yaml": "resources: [../manifests/apf.yaml]\n",
        "project/overlay/built.txt": MANIFESTS,
        "project/extra.yaml": SCHEMA.replace("name: batch\nspec", "name: extra\nspec"),
        "project/apflint.toml": '[[cluster]]\nname = "prod"\npaths = ["manifests"]\n',
        "project/pod.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n",
        "project/empty/notes.txt": "",
        "load.yaml": LOAD,
        "suite.yaml": SUITE,
        **{f"answers{path}.json": json.dumps(body) for path, (_, body) in recorded_answers().items()},
    }.items():
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).write_text(text, encoding="utf-8")
    for program in ("kustomize", "kubectl"):
        (programs / program).chmod(0o755)
    write_log(base / "audit.log", [event()])
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    for command in (("init", "-q", "-b", "main"), ("add", "."), (*who, "commit", "-q", "-m", "a")):
        subprocess.run(["git", *command], cwd=directory, check=True)
    return directory


@pytest.fixture
def unchanged_project(built_project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to the project that all tests share."""
    monkeypatch.setenv("PATH", f"{built_project.parent / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(built_project)
    return built_project


@pytest.fixture
def project(unchanged_project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a copy of the project, for a test that changes its files."""
    shutil.copytree(unchanged_project.parent, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy" / "project")
    return tmp_path / "copy" / "project"


def make_id(value: object) -> str:
    return " ".join(value) if isinstance(value, tuple) else "description"


def flags(words: tuple[str, ...]) -> list[str]:
    return [argument for word in words for argument in ("-f", word)]


COMMANDS: dict[str, Callable[[tuple[str, ...]], list[str]]] = {
    "limits": lambda words: ["limits", *words],
    "limits -f": lambda words: ["limits", *flags(words)],
    "graph": lambda words: ["graph", "--format", "text", *words],
    "graph -f": lambda words: ["graph", "--format", "text", *flags(words)],
    "alerts": lambda words: ["alerts", *words],
    "alerts -f": lambda words: ["alerts", *flags(words)],
    "dashboard": lambda words: ["dashboard", *words],
    "dashboard -f": lambda words: ["dashboard", *flags(words)],
    "explain": lambda words: ["explain", *REQUEST, *flags(words)],
    "shards": lambda words: ["shards", "--flow-schema", "service-accounts", "--distinguisher", "a", *flags(words)],
    "replay": lambda words: ["replay", "../audit.log", *flags(words)],
    "simulate": lambda words: ["simulate", "../load.yaml", *flags(words)],
    "test": lambda words: ["test", "../suite.yaml", *flags(words)],
    "doctor": lambda words: ["doctor", METRICS, "--exit-zero", *flags(words)],
}
WITH_JSON = ("limits", "explain", "shards", "replay", "simulate", "test", "doctor")
SIDES: dict[str, Callable[[tuple[str, ...]], list[str]]] = {
    "diff": lambda words: ["diff", words[0], words[0], *flags(words[1:])],
    "replay --compare": lambda words: ["replay", "../audit.log", *flags(words), "--compare", words[0]],
    "simulate --compare": lambda words: ["simulate", "../load.yaml", *flags(words), "--compare", words[0]],
}

BUILT_IN = "built-in objects of 1.37"
LIVE = f"running cluster ({OBJECTS_OF_CLUSTER} objects, Kubernetes 1.36)"
DESCRIPTIONS: dict[tuple[str, ...], str] = {
    ("manifests",): f"manifests (2 objects) and {BUILT_IN}",
    ("-",): f"<stdin> (2 objects) and {BUILT_IN}",
    ("git:main:manifests",): f"git:main:manifests (2 objects) and {BUILT_IN}",
    ("kustomize:overlay",): f"kustomize:overlay (2 objects) and {BUILT_IN}",
    ("cluster:prod",): f"cluster:prod (2 objects) and {BUILT_IN}",
    ("defaults:1.36",): "built-in objects of 1.36",
    ("live",): LIVE,
    ("manifests", "extra.yaml"): f"manifests and extra.yaml (3 objects) and {BUILT_IN}",
    ("manifests", "pod.yaml"): f"manifests and pod.yaml (2 objects) and {BUILT_IN}",
    ("manifests", "defaults:1.36"): "manifests (2 objects) and built-in objects of 1.36",
    ("defaults:1.36", "manifests"): "manifests (2 objects) and built-in objects of 1.36",
    ("git:main", "cluster:prod"): f"git:main and cluster:prod (2 objects) and {BUILT_IN}",
    ("git:main:manifests", "extra.yaml"): f"git:main:manifests and extra.yaml (3 objects) and {BUILT_IN}",
    ("cluster:prod", "extra.yaml"): f"cluster:prod and extra.yaml (3 objects) and {BUILT_IN}",
    ("cluster:prod", "defaults:1.36"): "cluster:prod (2 objects) and built-in objects of 1.36",
    ("kustomize:overlay", "extra.yaml"): f"kustomize:overlay and extra.yaml (3 objects) and {BUILT_IN}",
    ("extra.yaml", "live"): f"{LIVE} after extra.yaml (1 object) applied",
    ("live", "cluster:prod"): f"{LIVE} after cluster:prod (2 objects) applied",
    ("live", "git:main:manifests"): f"{LIVE} after git:main:manifests (2 objects) applied",
}


def call(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> tuple[int, str, str]:
    """Run a command with the manifests on standard input. Return its exit code, its output and its errors."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(MANIFESTS.encode())))
    code = run(arguments)
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def shown_text(command: str, out: str) -> str:
    """Return the part of the output `out` that names the configuration. In a dashboard, the description names it."""
    description: str = json.loads(out)["description"] if command.startswith("dashboard") else out
    return description


COMBINATIONS_WITH_ALL = (("manifests", "extra.yaml"), ("extra.yaml", "live"))
"""Combinations of sources that are tried with everything that prints a description, as are single sources.

The sources are combined before the command runs, so these cover the manifests of a configuration, and a running
cluster with manifests.
"""
SAME_AS_LIMITS = ("graph -f", "alerts -f", "dashboard -f")
"""Commands that combine `-f` with the other sources by the same function as `limits -f`."""


def is_single_or_tried_with_all(words: tuple[str, ...]) -> bool:
    return len(words) == 1 or words in COMBINATIONS_WITH_ALL


@pytest.mark.parametrize(
    ("command", "words", "description"),
    [
        pytest.param(command, words, description, id=f"{command}: {make_id(words)}")
        for command in COMMANDS
        for words, description in DESCRIPTIONS.items()
        if command not in SAME_AS_LIMITS or is_single_or_tried_with_all(words)
    ],
)
@pytest.mark.usefixtures("unchanged_project")
def test_every_command_names_the_configuration(
    command: str,
    words: tuple[str, ...],
    description: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    code, out, err = call(COMMANDS[command](words), capsys, monkeypatch)
    assert code == 0, err
    (line,) = re.findall(r"Configuration: (.*)", shown_text(command, out))
    hint = ". Name the objects of your cluster with -f, --live or --cluster."
    assert line.removesuffix(hint) == description


@pytest.mark.parametrize("command", WITH_JSON)
@pytest.mark.parametrize("words", [words for words in DESCRIPTIONS if is_single_or_tried_with_all(words)], ids=make_id)
@pytest.mark.usefixtures("unchanged_project")
def test_json_of_every_command_names_the_configuration(
    command: str, words: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, err = call([*COMMANDS[command](words), "--format", "json"], capsys, monkeypatch)
    assert code == 0, err
    answer = json.loads(out)
    if command == "test":
        (answer,) = answer["files"]
    assert list(answer)[1] == "configuration"
    assert answer["configuration"] == DESCRIPTIONS[words]


@pytest.mark.parametrize("command", SIDES)
@pytest.mark.parametrize(
    ("words", "description"),
    [(words, text) for words, text in DESCRIPTIONS.items() if len(words) == 1 and words != ("-",)],
    ids=" ".join,
)
@pytest.mark.usefixtures("unchanged_project")
def test_every_side_names_the_configuration(
    command: str,
    words: tuple[str, ...],
    description: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    code, out, err = call([*SIDES[command](words), "--format", "json"], capsys, monkeypatch)
    assert code == 0, err
    assert json.loads(out)["configuration"] == f"{description} -> {description}"


EQUAL = ("manifests", "-", "git:main:manifests", "kustomize:overlay", "cluster:prod")


@pytest.mark.usefixtures("unchanged_project")
def test_equal_configurations_have_equal_answers(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def answers(word: str) -> list[Any]:
        found = []
        for command in ("limits", "explain", "shards", "simulate"):
            code, out, _ = call([*COMMANDS[command]((word,)), "--format", "json"], capsys, monkeypatch)
            assert code == 0
            answer = json.loads(out)
            assert answer.pop("configuration").startswith(f"{word.replace('-', '<stdin>')} (2 objects)")
            answer.pop("considered", None)  # `considered` contains file names, which differ
            found.append(answer)
        return found

    expected = answers("manifests")
    for word in EQUAL:
        assert answers(word) == expected, word
        for sides in (("manifests", word), (word, "manifests")):
            code, out, err = call(["diff", *sides, "--format", "json"], capsys, monkeypatch)
            assert (code, err) == (0, "")
            assert json.loads(out)["objects"] == []


@pytest.mark.parametrize("command", ["limits", "explain", "replay", "simulate", "shards"])
@pytest.mark.parametrize(
    ("word", "option"),
    [
        ("kustomize:overlay", ["-k", "overlay"]),
        ("cluster:prod", ["--cluster", "prod"]),
        ("live", ["--live"]),
        ("defaults:1.36", ["-f", "defaults:1.36"]),
    ],
)
@pytest.mark.usefixtures("unchanged_project")
def test_option_is_the_word(
    command: str,
    word: str,
    option: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    by_word = call(COMMANDS[command]((word,)), capsys, monkeypatch)
    by_option = call([*COMMANDS[command](()), *option], capsys, monkeypatch)
    assert by_word[0] == 0
    assert by_word == by_option
    again = call([*COMMANDS[command]((word,)), *option], capsys, monkeypatch)
    if word != "cluster:prod":
        assert again == by_word  # a source that is named twice has the same effect as once


# The commands do not include `test`, whose suites name their manifests, and `doctor`, which needs no manifests.
@pytest.mark.parametrize("command", [command for command in COMMANDS if command not in ("test", "doctor")])
def test_without_words_the_configuration_is_the_cluster_of_the_settings_or_the_current_directory(
    command: str, project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = COMMANDS[command](())

    def describe() -> list[str]:
        code, out, err = call(arguments, capsys, monkeypatch)
        assert code == 0, err
        return re.findall(r"Configuration: ([^.\n]*\.\d\d[^.\n]*)", shown_text(command, out))

    assert describe() == [f"cluster:prod (2 objects) and {BUILT_IN}"]
    (project / "apflint.toml").unlink()
    assert describe() == [f"the current directory (3 objects) and {BUILT_IN}"]
    for name in ("manifests/apf.yaml", "extra.yaml"):
        (project / name).unlink()
    assert describe() == [f"{BUILT_IN}; no objects in the current directory"]


MISSING = "no FlowSchema and no PriorityLevelConfiguration found"
ERRORS: dict[tuple[str, ...], str] = {
    ("empty",): f"empty: {MISSING}",
    ("pod.yaml",): f"pod.yaml: {MISSING}",
    ("empty", "pod.yaml"): f"empty + pod.yaml: {MISSING}",
    ("empty", "defaults:1.36"): f"empty: {MISSING}",
    ("git:main:pod.yaml",): f"git:main:pod.yaml: {MISSING}",
    ("overlay",): f"overlay: {MISSING}. To build the kustomization, write kustomize:overlay.",
    ("nowhere",): "nowhere: No such file or directory.",
    ("1.30",): "1.30: No such file or directory. For the built-in objects of a release, write defaults:1.30.",
    ("main",): "main: No such file or directory. For the git revision, write git:main.",
    ("prod",): "prod: No such file or directory. For the cluster of the settings, write cluster:prod.",
    ("cluster:nope",): 'unknown cluster "nope"',
    ("defaults:9",): '"9" is not a Kubernetes release',
    ("git:nope",): 'git:nope: the repository has no revision "nope".',
    (
        "cluster:prod",
        "kustomize:overlay",
    ): "cluster:prod and kustomize:overlay cannot be combined: each names a cluster",
    (
        "live",
        "defaults:1.36",
    ): "live and defaults:1.36 cannot be combined: a running cluster has its own built-in objects",
    ("kustomize:overlay", "kustomize:other"): "kustomize:overlay and kustomize:other are 2 clusters: name one",
    ("cluster:prod", "cluster:staging"): "cluster:prod and cluster:staging are 2 clusters: name one",
}


@pytest.mark.parametrize(
    ("command", "words"),
    # A side of a comparison is a single source argument, so `SIDES` are not combined with several words.
    [(command, words) for command in (*COMMANDS, *SIDES) for words in ERRORS if command in COMMANDS or len(words) == 1],
    ids=make_id,
)
@pytest.mark.usefixtures("unchanged_project")
def test_words_that_name_no_configuration_are_an_error(
    command: str,
    words: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    message = ERRORS[words]
    code, out, err = call((COMMANDS | SIDES)[command](words), capsys, monkeypatch)
    assert (code, out) == (2, "")
    assert f"apflint: {message}" in err
    assert "internal error" not in err


@pytest.mark.parametrize("command", COMMANDS)
def test_path_of_the_name_live_is_an_error(
    command: str, project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(project / "manifests", project / "live")
    code, out, err = call(COMMANDS[command](("live",)), capsys, monkeypatch)
    assert (code, out) == (2, "")
    assert "live names the running cluster, but a path has the same name. To read the path, write ./live" in err
    code, out, err = call(COMMANDS[command](("./live",)), capsys, monkeypatch)
    assert code == 0, err
    assert f"./live (2 objects) and {BUILT_IN}" in out


@pytest.mark.parametrize("word", ["defaults:1.36", "live"])
@pytest.mark.parametrize(
    "command", ["limits", "graph", "alerts", "dashboard", "explain", "shards", "replay", "simulate"]
)
@pytest.mark.usefixtures("unchanged_project")
def test_built_in_objects_cannot_be_left_out_of_themselves(
    command: str, word: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, err = call([*COMMANDS[command]((word,)), "--no-defaults"], capsys, monkeypatch)
    assert (code, out) == (2, "")
    assert "--no-defaults" in err
    assert "cannot be combined" in err


@pytest.mark.usefixtures("unchanged_project")
def test_file_without_objects_beside_others_is_noted(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, err = call(["limits", "manifests", "pod.yaml"], capsys, monkeypatch)
    assert code == 0
    assert out.splitlines()[1] == f"Configuration: manifests and pod.yaml (2 objects) and {BUILT_IN}"
    assert err == "apflint: pod.yaml: this file contains no FlowSchema and no PriorityLevelConfiguration\n"


@pytest.mark.usefixtures("unchanged_project")
def test_revision_of_a_cluster_has_the_files_of_that_time(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, project: Path
) -> None:
    (project / "manifests/apf.yaml").write_text(LEVEL, encoding="utf-8")
    for words, objects in (
        (("cluster:prod",), 1),
        (("git:main", "cluster:prod"), 2),
        (("cluster:prod", "git:main"), 2),
    ):
        _, out, err = call(["limits", *words, "--format", "json"], capsys, monkeypatch)
        assert err == ""
        assert f"({objects} object" in json.loads(out)["configuration"]
    code, out, _ = call(["diff", "git:main", ".", "--format", "json"], capsys, monkeypatch)
    found = json.loads(out)
    assert code == 1
    assert [(row["change"], row["name"]) for row in found["objects"]] == [("removed", "batch")]
    assert found["configuration"] == (
        f"git:main and cluster:prod (2 objects) and {BUILT_IN} -> cluster:prod (1 object) and {BUILT_IN}"
    )


@pytest.mark.parametrize("word", ["kustomize:overlay", "git:main:manifests", "defaults:1.36"])
def test_suite_names_words(
    word: str, project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "suite.yaml").write_text(f"manifests: ['{word}']\n{SUITE}", encoding="utf-8")
    code, out, err = call(["test", "suite.yaml"], capsys, monkeypatch)
    assert code == 0, err
    assert f"\nConfiguration: {DESCRIPTIONS[word,]}\n" in out
