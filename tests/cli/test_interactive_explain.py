"""Prompts of `apflint explain`: values, suggestions, and a dialog on a pseudo-terminal."""

from __future__ import annotations

import os
import pty
import re
import select
import sys
import time
from typing import TYPE_CHECKING

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from support.reading import read_effective

from apflint.cli import interactive_explain
from apflint.cli.interactive_explain import Draft, Prompt, PromptSuggestions
from apflint.output.console import Style
from apflint.releases import parse_release
from apflint.request_explanation import Explainer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CLUSTER = """
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: widgets}
spec:
  priorityLevelConfiguration: {name: exempt}
  matchingPrecedence: 500
  rules:
  - subjects:
    - {kind: User, user: {name: zoe}}
    - {kind: User, user: {name: "e\\x1b[31mvil"}}
    - {kind: Group, group: {name: factory}}
    - {kind: ServiceAccount, serviceAccount: {namespace: plant, name: "*"}}
    - {kind: ServiceAccount, serviceAccount: {namespace: plant, name: robot}}
    resourceRules:
    - {verbs: ["*"], apiGroups: [example.com], resources: [widgets, widgets/scale], namespaces: [yard]}
    - {verbs: ["*"], apiGroups: ["*"], resources: ["*"], namespaces: ["*"]}
    nonResourceRules:
    - {verbs: ["*"], nonResourceURLs: [/custom]}
    - {verbs: ["*"], nonResourceURLs: ["*"]}
"""
NOTHING = PromptSuggestions((), (), (), ())


def explainer(directory: Path) -> Explainer:
    (directory / "apf.yaml").write_text(CLUSTER)
    return Explainer(read_effective([str(directory)], parse_release("1.36")))


def test_suggestions_are_names_of_the_manifests_and_of_every_cluster(tmp_path: Path) -> None:
    found = interactive_explain.collect_vocabulary(explainer(tmp_path).known.configuration)
    assert {"zoe", "system:serviceaccount:plant:", "system:serviceaccount:plant:robot", "system:anonymous"} <= set(
        found.users
    )
    assert {"factory", "system:masters", "system:authenticated"} <= set(found.groups)
    assert {"plant", "yard", "kube-system", "default"} <= set(found.namespaces)
    assert {"widgets.example.com", "widgets.example.com/scale", "/custom", "pods", "pods/log", "/healthz"} <= set(
        found.resources
    )
    for offers in found:
        assert all(offer.isprintable() and "*" not in offer for offer in offers)
        assert list(offers) == sorted(set(offers))


@pytest.mark.parametrize(
    ("typed", "size", "suggestions"),
    [
        ("", 0, ["dev", "ops-dev", "other"]),
        ("DE", 2, ["dev", "ops-dev"]),
        ("other, de", 2, ["dev", "ops-dev"]),
        ("other,o", 1, ["ops-dev", "other"]),
        ("od", 2, ["ops-dev"]),
        ("x", 1, []),
    ],
)
def test_best_suggestions_come_first(typed: str, size: int, suggestions: list[str]) -> None:
    completer = interactive_explain.complete_last_word(("dev", "ops-dev", "other"))
    found = list(completer.get_completions(Document(typed), CompleteEvent()))
    assert [completion.text for completion in found] == suggestions
    assert {completion.start_position for completion in found} <= {-size}


class Script:
    """Answers prompts with prepared answers, in order. An empty answer keeps the default."""

    def __init__(self, *typed: str) -> None:
        self.typed = iter(typed)
        self.asked: list[tuple[str, str]] = []

    def __call__(self, prompt: Prompt, default: str) -> str:
        self.asked.append((prompt.label, default))
        try:
            answer = next(self.typed)
        except StopIteration:
            raise EOFError from None
        return "" if answer == interactive_explain.CLEAR else answer or default


def test_values_of_the_last_request_are_defaults() -> None:
    last = Draft("alice", "dev", "get", "pods", "team-a", "web-0")
    script = Script("", "", "list", "", "")
    assert interactive_explain.ask_for_request(script, last, NOTHING) == Draft(
        "alice", "dev", "list", "pods", "team-a", ""
    )
    assert script.asked == [
        ("User", "alice"),
        ("Groups", "dev"),
        ("Verb", "get"),
        ("Resource or path", "pods"),
        ("Namespace", "team-a"),
    ]


def test_values_that_no_longer_fit_are_not_defaults() -> None:
    last = Draft("alice", "dev", "get", "pods", "team-a", "web-0")
    script = Script("bob", "", "", "services", "", "")
    assert interactive_explain.ask_for_request(script, last, NOTHING) == Draft(
        "bob", "", "get", "services", "team-a", ""
    )
    path = interactive_explain.ask_for_request(Script("", "-", "", "/healthz"), last, NOTHING)
    assert path == Draft("alice", "", "get", "/healthz", "team-a", "")
    assert interactive_explain.parse_draft(path).info.path == "/healthz"


def test_prompts_depend_on_verb_and_resource() -> None:
    def labels(*typed: str) -> list[str]:
        script = Script("a", "", *typed, "", "")
        interactive_explain.ask_for_request(script, Draft(), NOTHING)
        return [label for label, _ in script.asked[4:]]

    assert labels("get", "nodes") == ["Name"]
    assert labels("list", "nodes") == []
    assert labels("get", "pods") == ["Namespace", "Name"]
    assert labels("create", "pods") == ["Namespace"]
    assert labels("create", "pods/eviction") == ["Namespace", "Name"]
    assert labels("list", "widgets.example.com") == ["Namespace"]
    assert labels("get", "/healthz") == []


def test_user_verb_and_resource_are_required() -> None:
    script = Script("", "  ".strip(), "alice", "", "", "list", "", "nodes")
    assert interactive_explain.ask_for_request(script, Draft(), NOTHING) == Draft("alice", "", "list", "nodes", "", "")


@pytest.mark.parametrize(
    ("before", "wrong", "message", "right"),
    [
        ((), "", "Name a user.", ("alice", "", "list", "nodes")),
        (("alice", ""), "", "Name a verb: get, list,", ("list", "nodes")),
        (("alice", ""), "lst", '"lst" is not a verb of resource requests.', ("list", "nodes")),
        (("alice", ""), "describe", '"describe" sends "get"', ("list", "nodes")),
        (("alice", "", "list"), "", "Name a resource or a path.", ("nodes",)),
        (("alice", "", "list"), "po\x1b[31m", "is not a resource of Kubernetes itself", ("nodes",)),
        (("alice", "", "list"), "widgets", 'name its API group too: "widgets.example.com"', ("nodes",)),
        (("alice", "", "post"), "nodes", '"post" is an HTTP method, and "nodes" is not a path.', ("list", "nodes")),
        (("alice", "", "list", "pods"), "Team_A", '"Team_A" is not a valid name of a namespace', ("team-a",)),
        (("alice", "", "get", "nodes"), "a/b", '"a/b" is not a valid name of an object', ("a",)),
        (("alice", "", "get", "nodes"), "..", '".." is not a valid name of an object', ("a",)),
    ],
)
def test_invalid_value_is_explained_and_prompted_again(
    before: tuple[str, ...], wrong: str, message: str, right: tuple[str, ...], tmp_path: Path
) -> None:
    shown: list[str] = []
    script = Script(*before, wrong, *right)
    with pytest.raises(EOFError):
        interactive_explain.answer_requests(script, explainer(tmp_path), Draft(), Style(), shown.append)
    assert message in shown[1]
    assert "Request  " in shown[2]
    assert "\x1b" not in "".join(shown)
    if message.startswith('"post"'):
        return  # the verb is asked for again before the target
    asked = [label for label, _ in script.asked]
    assert asked[len(before)] == asked[len(before) + 1]


@pytest.mark.parametrize("verb", ["post", "GET", "Watch", "proxy", "head"])
def test_path_accepts_http_methods_and_verbs(verb: str, tmp_path: Path) -> None:
    shown: list[str] = []
    with pytest.raises(EOFError):
        interactive_explain.answer_requests(
            Script("alice", "", verb, "/healthz"), explainer(tmp_path), Draft(), Style(), shown.append
        )
    assert "Request  " in shown[1]


def test_messages_are_wrapped_between_words(tmp_path: Path) -> None:
    shown: list[str] = []
    with pytest.raises(EOFError):
        interactive_explain.answer_requests(
            Script("alice", "", "lst"), explainer(tmp_path), Draft(), Style(width=40), shown.append
        )
    for text in shown:
        assert all(len(line) <= 40 for line in text.splitlines())
    assert shown[0].split() == interactive_explain.WELCOME.split()


class Terminal:
    """`apflint explain` on a pseudo-terminal: waits for text, then types."""

    def __init__(self, directory: Path, *options: str) -> None:
        self.seen = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:  # pragma: no cover  # the child process
            try:
                os.chdir(directory)
                environment = os.environ | {
                    "PROMPT_TOOLKIT_NO_CPR": "1",  # the test does not answer requests for the cursor position
                    "TERM": "xterm",
                    "COLUMNS": "100",
                    "NO_COLOR": "1",
                }
                command = [sys.executable, "-m", "apflint", "explain", "--kubernetes", "1.36", *options]
                os.execve(sys.executable, command, environment)
            finally:
                os._exit(127)

    def wait_for(self, text: str, seconds: float = 30) -> str:
        """Read until the text is shown.

        Return the output up to the end of this text. The next call returns the following output.
        """
        end = time.monotonic() + seconds
        while text not in self.plain():
            assert time.monotonic() < end, f"no {text!r} in {self.plain()!r}"
            if not self._read(0.2):
                assert text in self.plain(), f"process ended without {text!r}: {self.plain()!r}"
        plain = self.plain()
        at = plain.index(text) + len(text)
        self.seen = plain[at:]
        return plain[:at]

    def plain(self) -> str:
        """Return what was read, without complete control sequences of the terminal."""
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|[\r\x07\x08]", "", self.seen)

    def _read(self, seconds: float) -> bool:
        if select.select([self.fd], [], [], seconds)[0]:
            try:
                data = os.read(self.fd, 65536)
            except OSError:  # Linux raises OSError if the process has ended
                return False
            self.seen += data.decode("utf-8", "replace")
            return bool(data)
        return True

    def type(self, prompt: str, keys: str) -> str:
        """Wait for a prompt, then type."""
        before = self.wait_for(prompt.rstrip())  # prompt_toolkit moves the cursor instead of writing the last space
        os.write(self.fd, keys.encode())
        return before

    def end(self, seconds: float = 30) -> tuple[int, str]:
        """Wait for the end of the process. Return (exit code, rest of the output)."""
        end = time.monotonic() + seconds
        while self._read(0.2):
            assert time.monotonic() < end, f"process does not end: {self.plain()!r}"
        _, status = os.waitpid(self.pid, 0)
        self.pid = 0
        return os.waitstatus_to_exitcode(status), self.plain()

    def close(self) -> None:
        os.close(self.fd)
        if self.pid:
            os.kill(self.pid, 9)
            os.waitpid(self.pid, 0)


@pytest.fixture
def terminals(tmp_path: Path) -> Iterator[list[Terminal]]:
    (tmp_path / "apf.yaml").write_text(CLUSTER)
    opened: list[Terminal] = []
    yield opened
    for terminal in opened:
        terminal.close()


def opened(terminals: list[Terminal], directory: Path, *options: str) -> Terminal:
    terminals.append(Terminal(directory, *options))
    return terminals[-1]


def test_conversation_on_a_terminal(tmp_path: Path, terminals: list[Terminal]) -> None:
    terminal = opened(terminals, tmp_path)
    terminal.type("User (such as alice): ", "bobb\x1b[D\x1b[3~\r")  # the arrow key and Delete leave "bob"
    terminal.type("Groups (with commas, or none): ", "fact")
    terminal.type("factory", "\t")  # the suggestion is shown, and Tab accepts it
    terminal.type("ory", "\r")
    terminal.type("Verb (such as list): ", "list\r")
    terminal.type("Resource or path (such as pods or /healthz): ", "widgets.example.com\r")
    terminal.type("Namespace (none: all): ", "yard\r")
    answer = terminal.wait_for("Another request?")
    assert 'FlowSchema "widgets" -> priority level "exempt" (apf.yaml:4)' in answer
    assert 'Request  list widgets.example.com in namespace "yard" as "bob" in factory' in answer
    assert "Traceback" not in answer
    # In the second request, the user keeps the user name, groups and resource. In the third request,
    # the arrow key recalls the verb of the first request.
    terminal.type("User [bob]: ", "\r")
    terminal.type("Groups [factory]: ", "\r")
    terminal.type("Verb [list]: ", "watch\r")
    terminal.type("Resource or path [widgets.example.com]: ", "\r")
    terminal.type("Namespace [yard]: ", "-\r")
    assert "Request  watch widgets.example.com, cluster-wide" in terminal.wait_for("Another request?")
    terminal.type("User [bob]: ", "\r")
    terminal.type("Groups [factory]: ", "\r")
    terminal.type("Verb [watch]: ", "\x1b[A\x1b[A\r")
    terminal.type("Resource or path [widgets.example.com]: ", "\r")
    terminal.type("Namespace (none: all): ", "\r")
    assert "Request  list widgets.example.com, cluster-wide" in terminal.wait_for("Another request?")
    terminal.type("User [bob]: ", "\x04")
    status, rest = terminal.end()
    assert status == 0
    assert "Traceback" not in rest


@pytest.mark.parametrize(("key", "status"), [("\x03", 130), ("\x04", 0)])
def test_conversation_ends_silently(key: str, status: int, tmp_path: Path, terminals: list[Terminal]) -> None:
    terminal = opened(terminals, tmp_path, "--as", "zoe", "--as-group", "factory", "-n", "yard")
    terminal.type("User [zoe]: ", "\r")
    terminal.type("Groups [factory]: ", key)
    found, rest = terminal.end()
    assert found == status
    assert "Traceback" not in rest
    assert "rror" not in rest
