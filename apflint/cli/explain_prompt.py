"""Interactive prompts of `apflint explain`: ask for a request step by step, answer it, and ask for another.

Prompts and suggestions are worked out without a terminal. Only `TerminalPrompts` uses prompt_toolkit, which is imported
only for a conversation.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from apflint.cli.exit_codes import ExitCode
from apflint.errors import UserError
from apflint.evaluate.authentication import ANONYMOUS, AUTHENTICATED, NODES, SERVICE_ACCOUNTS, UNAUTHENTICATED
from apflint.evaluate.match import ALL, SERVICE_ACCOUNT_PREFIX
from apflint.evaluate.resources import RESOURCES
from apflint.formats import check_dns_label
from apflint.output.console import wrap
from apflint.output.explain.text import render_explanation
from apflint.output.sanitize import sanitize
from apflint.requests.request import COLLECTION_VERBS, VERBS
from apflint.requests.words import check_target, check_verb, infer_resource, parse_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import NoReturn

    from apflint.evaluate.configuration import Configuration
    from apflint.explainer import Explainer
    from apflint.output.console import Style
    from apflint.requests.request import Request

    Ask = Callable[["Prompt", str], str]
    """Asks for one value; the second argument is the default. Returns the value.

    Raises EOFError or KeyboardInterrupt if the user wants to leave."""

COMMON_USERS = (
    ANONYMOUS,
    "system:apiserver",
    "system:kube-controller-manager",
    "system:kube-proxy",
    "system:kube-scheduler",
    "system:node:",
    SERVICE_ACCOUNT_PREFIX,
)
COMMON_GROUPS = (AUTHENTICATED, UNAUTHENTICATED, "system:masters", NODES, SERVICE_ACCOUNTS)
COMMON_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
COMMON_PATHS = ("/healthz", "/livez", "/readyz", "/version", "/metrics", "/api", "/apis", "/openapi/v2", "/openapi/v3")
"""Values of every cluster. Source: Kubernetes documentation, "Using RBAC Authorization" and "Kubernetes API health endpoints"."""

CLEAR = "-"
"""Typed to empty a value. Enter keeps the default."""

WELCOME = "Which request? Tab completes, the arrow keys edit and recall, Ctrl-D leaves."
NEXT_REQUEST = f"Another request? Enter keeps the value in brackets, {CLEAR} empties it, Ctrl-D leaves."


class Vocabulary(NamedTuple):
    """Suggested values, sorted."""

    users: tuple[str, ...]
    groups: tuple[str, ...]
    namespaces: tuple[str, ...]
    resources: tuple[str, ...]
    """Resources with their group and subresources, and paths."""


class Prompt(NamedTuple):
    """A value to ask for."""

    label: str
    hint: str
    """Shown if there is no default."""
    suggestions: tuple[str, ...] = ()
    is_list: bool = False
    """Whether several values may be given, separated by commas."""
    required_message: str = ""
    """What to print if nothing is typed; empty if the value is optional."""


class Draft(NamedTuple):
    """The values of a request, which are the defaults of the next one."""

    user: str = ""
    groups: str = ""
    verb: str = ""
    target: str = ""
    """Resource or path."""
    namespace: str = ""
    name: str = ""


def converse(explainer: Explainer, draft: Draft, style: Style) -> int:
    """Ask and answer until Ctrl-D or Ctrl-C. Return the exit code."""
    ask = TerminalPrompts(color=style.color, width=style.width).ask
    try:
        answer_requests(ask, explainer, draft, style, sys.stdout.write)
    except EOFError:
        return ExitCode.OK
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED


def answer_requests(
    ask: Ask, explainer: Explainer, draft: Draft, style: Style, write: Callable[[str], object]
) -> NoReturn:
    """Ask and answer until `ask` raises an exception."""
    vocabulary = collect_vocabulary(explainer.known.configuration)

    def show(text: str) -> None:
        write("\n".join(wrap(sanitize(text), style.width)) + "\n")

    show(WELCOME)
    while True:
        draft = ask_for_request(ask, draft, vocabulary, show)
        try:
            request = parse_draft(draft)
        except UserError as error:
            show(str(error))
            continue
        write(f"\n{render_explanation(explainer.explain(request), style)}\n")
        show(NEXT_REQUEST)


def ask_for_request(ask: Ask, draft: Draft, vocabulary: Vocabulary, show: Callable[[str], object] = str) -> Draft:
    """Ask for all values of a request. The values of `draft` are the defaults, unless they no longer fit.

    Each value is checked when it is given: `show` receives the mistake, and the prompt is repeated.
    """

    def ask_valid(prompt: Prompt, default: str, check: Callable[[str], object] = str) -> str:
        while True:
            value = ask(prompt, default)
            mistake = _find_mistake(check, value) if value else prompt.required_message
            if not mistake:
                return value
            show(mistake)

    user = ask_valid(Prompt("User", "such as alice", vocabulary.users, required_message="Name a user."), draft.user)
    groups = draft.groups if user == draft.user or not draft.user else ""  # another user has other groups
    groups = ask_valid(Prompt("Groups", "with commas, or none", vocabulary.groups, is_list=True), groups)
    verb_prompt = Prompt(
        "Verb", "such as list", VERBS, required_message=f"Name a verb: {', '.join(VERBS)}, or an HTTP method."
    )
    target_prompt = Prompt(
        "Resource or path",
        "such as pods or /healthz",
        vocabulary.resources,
        required_message="Name a resource or a path.",
    )
    verb, target = draft.verb, draft.target
    while True:
        verb = ask_valid(verb_prompt, verb, check_verb)
        target = ask_valid(target_prompt, target, partial(_check_target, verb))
        if target.startswith("/") or _is_resource_verb(verb):
            break
        # Only the user knows which of the two is wrong.
        show(f'"{verb}" is an HTTP method, and "{target}" is not a path. Verbs for resources are {", ".join(VERBS)}.')
    new = Draft(user, groups, verb, target, draft.namespace, draft.name if target == draft.target else "")
    if target.startswith("/"):
        return new._replace(name="")
    if _may_be_namespaced(target):
        hint = "none: all" if verb.lower() in COLLECTION_VERBS else "none: default"
        prompt = Prompt("Namespace", hint, vocabulary.namespaces)
        new = new._replace(namespace=ask_valid(prompt, new.namespace, _check_namespace))
    if "/" in target or verb.lower() not in (*COLLECTION_VERBS, "create"):
        return new._replace(name=ask_valid(Prompt("Name", "of the object"), new.name, _check_name))
    return new._replace(name="")


def _find_mistake(check: Callable[[str], object], value: str) -> str:
    try:
        check(value)
    except UserError as error:
        return str(error)
    return ""


def _is_resource_verb(verb: str) -> bool:
    return not _find_mistake(partial(check_target, verb), "pods")


def _check_target(verb: str, target: str) -> None:
    check_target(verb if _is_resource_verb(verb) else VERBS[0], target)


def _check_namespace(name: str) -> None:
    if name and (problem := check_dns_label(name)):
        raise UserError(f'"{name}" is not a valid name of a namespace: {problem}')


def _check_name(name: str) -> None:
    """Source: `IsValidPathSegmentName` in staging/src/k8s.io/apimachinery/pkg/api/validation/path/name.go."""
    if name in (".", "..") or "/" in name or "%" in name:
        raise UserError(f'"{name}" is not a valid name of an object: it must not be "." or "..", or contain "/" or "%"')


def parse_draft(draft: Draft) -> Request:
    """Return the request of a draft. Raises UserError if it is invalid."""
    is_namespaced = not draft.target.startswith("/") and _may_be_namespaced(draft.target)
    return parse_words(
        (draft.verb, draft.target, *([draft.name] if draft.name else [])),
        user=draft.user,
        groups=tuple(group for part in draft.groups.split(",") if (group := part.strip())),
        namespace=(draft.namespace or None) if is_namespaced else None,
    )


def _may_be_namespaced(target: str) -> bool:
    """Return whether to ask for a namespace: for all resources except those known to be cluster-scoped."""
    try:
        known = infer_resource(target.partition("/")[0]).known
    except UserError:  # reported when the request is parsed
        return True
    return known is None or known.namespaced


def collect_vocabulary(configuration: Configuration) -> Vocabulary:
    """Collect the names in the FlowSchemas of a configuration, and those of every cluster."""
    users, groups, namespaces = {*COMMON_USERS}, {*COMMON_GROUPS}, {*COMMON_NAMESPACES}
    targets = {*COMMON_PATHS, *(resource.qualified_name for resource in RESOURCES)}
    targets |= {f"{resource.qualified_name}/{name}" for resource in RESOURCES for name in resource.subresources}
    rules = (rule for schema in (*configuration.order, *configuration.dangling) for rule in schema.spec.rules)
    for rule in rules:
        for subject in rule.subjects:
            users.add(subject.user or "")
            groups.add(subject.group or "")
            if (account := subject.service_account) is not None:
                namespaces.add(account.namespace)
                name = "" if account.name == ALL else account.name
                users.add(f"{SERVICE_ACCOUNT_PREFIX}{account.namespace}:{name}")
        for resource_rule in rule.resource_rules:
            namespaces.update(resource_rule.namespaces)
            for group in resource_rule.api_groups:
                targets.update(_qualify(name, group) for name in resource_rule.resources)
        for non_resource_rule in rule.non_resource_rules:
            targets.update(url for url in non_resource_rule.non_resource_urls if url.startswith("/"))
    return Vocabulary(*map(_sort_printable, (users, groups, namespaces, targets)))


def _qualify(resource: str, group: str) -> str:
    """Return `deployments.apps/scale` for `deployments/scale` and `apps`."""
    name, slash, subresource = resource.partition("/")
    return f"{name}.{group}{slash}{subresource}" if group else resource


def _sort_printable(names: set[str]) -> tuple[str, ...]:
    """Sort the names that have no wildcards and no characters that a terminal cannot show."""
    return tuple(sorted(name for name in names if name and ALL not in name and name.isprintable()))


def find_suggestions(typed: str, prompt: Prompt) -> tuple[int, list[str]]:
    """Return how many of the last typed characters to replace, and the suggestions. Those with the same start come first."""
    word = typed.rpartition(",")[2].lstrip() if prompt.is_list else typed
    lower = word.lower()
    suggestions = [value for value in prompt.suggestions if lower in value.lower() and value != word]
    return len(word), sorted(suggestions, key=lambda value: not value.lower().startswith(lower))


class TerminalPrompts:
    """Prompts on the terminal. Each kind of prompt has its own history."""

    def __init__(self, *, color: bool, width: int | None) -> None:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.output import ColorDepth

        self._new_session: Callable[[], PromptSession[str]] = lambda: PromptSession(
            color_depth=None if color else ColorDepth.DEPTH_1_BIT, complete_while_typing=True, reserve_space_for_menu=6
        )
        self._width = width
        self._sessions: dict[str, PromptSession[str]] = {}

    def ask(self, prompt: Prompt, default: str) -> str:
        """Ask for a value, and return it, or the default if nothing is typed."""
        from prompt_toolkit.completion import Completer, Completion

        if TYPE_CHECKING:
            from prompt_toolkit.completion import CompleteEvent
            from prompt_toolkit.document import Document

        class Suggestions(Completer):
            def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:  # noqa: ARG002  # prompt_toolkit's signature
                size, values = find_suggestions(document.text_before_cursor, prompt)
                return (Completion(value, start_position=-size) for value in values)

        if prompt.label not in self._sessions:
            self._sessions[prompt.label] = self._new_session()
        suffix = f" [{sanitize(default)}]" if default else f" ({prompt.hint})"
        message = "\n".join(wrap(f"{prompt.label}{suffix}:", self._width))
        typed = self._sessions[prompt.label].prompt(f"{message} ", completer=Suggestions()).strip()
        return "" if typed == CLEAR else typed or default
