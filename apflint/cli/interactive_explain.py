"""The interactive mode of `apflint explain`: asks for the values of a request, prints the explanation, and repeats."""

from __future__ import annotations

import re
import sys
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from apflint.cli.exit_codes import ExitCode
from apflint.evaluate.authentication import ANONYMOUS, AUTHENTICATED, NODES, SERVICE_ACCOUNTS, UNAUTHENTICATED
from apflint.evaluate.match import ALL, SERVICE_ACCOUNT_PREFIX
from apflint.evaluate.resources import RESOURCES
from apflint.output.console import wrap
from apflint.output.explain import report_explanation
from apflint.output.sanitize import sanitize
from apflint.output.text import render as render_text
from apflint.requests.request import COLLECTION_VERBS, VERBS
from apflint.requests.request_words import check_target, check_verb, infer_resource, parse_words
from apflint.string_formats import check_dns_label
from apflint.user_error import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import NoReturn

    from prompt_toolkit.completion import Completer

    from apflint.evaluate.configuration import Configuration
    from apflint.output.console import Style
    from apflint.request_explanation import Explainer
    from apflint.requests.request import Request

    Ask = Callable[["Prompt", str], str]
    """Function that asks the user for the value of a prompt. Its second argument is the default value.

    Raises EOFError (Ctrl-D) or KeyboardInterrupt (Ctrl-C) to leave the interactive mode.
    """

_COMMON_USERS = (
    ANONYMOUS,
    "system:apiserver",
    "system:kube-controller-manager",
    "system:kube-proxy",
    "system:kube-scheduler",
    "system:node:",
    SERVICE_ACCOUNT_PREFIX,
)
_COMMON_GROUPS = (AUTHENTICATED, UNAUTHENTICATED, "system:masters", NODES, SERVICE_ACCOUNTS)
_COMMON_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
_COMMON_PATHS = ("/healthz", "/livez", "/readyz", "/version", "/metrics", "/api", "/apis", "/openapi/v2", "/openapi/v3")
"""The constants from `_COMMON_USERS` to `_COMMON_PATHS` contain users, groups, namespaces and paths of every cluster.

Source: Kubernetes documentation, "Using RBAC Authorization" and "Kubernetes API health endpoints".
"""

CLEAR = "-"
"""Input that makes a value empty. Empty input (Enter) keeps the default value."""

WELCOME = "Which request? Tab completes a word, the arrow keys edit the line and recall earlier lines, Ctrl-D leaves."
_NEXT_REQUEST = f"Another request? Enter keeps the value in brackets, {CLEAR} empties it, Ctrl-D leaves."


class PromptSuggestions(NamedTuple):
    """Values that the prompts suggest, sorted. Values with wildcards or unprintable characters are omitted."""

    users: tuple[str, ...]
    groups: tuple[str, ...]
    namespaces: tuple[str, ...]
    resources: tuple[str, ...]
    """Resources with API group (`deployments.apps`), their subresources (`deployments.apps/scale`), and URL paths."""


class Prompt(NamedTuple):
    """A prompt for one value of a request."""

    label: str
    hint: str
    """Text that is shown while there is no default value."""
    suggestions: tuple[str, ...] = ()
    required_message: str = ""
    """Error message for an empty value, or an empty string if the value is optional."""


class Draft(NamedTuple):
    """The values of a request as the user typed them. These values are the defaults of the next request."""

    user: str = ""
    groups: str = ""
    verb: str = ""
    target: str = ""
    """A resource, such as `pods`, or a URL path."""
    namespace: str = ""
    name: str = ""


def converse(explainer: Explainer, draft: Draft, style: Style) -> int:
    """Ask for requests and explain them, until the user presses Ctrl-D or Ctrl-C. Return the exit code."""
    try:
        answer_requests(_open_prompts(style), explainer, draft, style, sys.stdout.write)
    except EOFError:
        return ExitCode.OK
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED


def _open_prompts(style: Style) -> Ask:
    """Return the function that asks for values on the terminal. Each prompt has a separate input history."""
    from prompt_toolkit import PromptSession
    from prompt_toolkit.output import ColorDepth

    depth = None if style.color else ColorDepth.DEPTH_1_BIT
    sessions: dict[str, PromptSession[str]] = {}

    def ask(prompt: Prompt, default: str) -> str:
        session = sessions.setdefault(prompt.label, PromptSession(color_depth=depth, reserve_space_for_menu=6))
        hint = f" [{sanitize(default)}]" if default else f" ({prompt.hint})"
        message = "\n".join(wrap(f"{prompt.label}{hint}:", style.width))
        typed = session.prompt(f"{message} ", completer=complete_last_word(prompt.suggestions)).strip()
        return "" if typed == CLEAR else typed or default

    return ask


def complete_last_word(suggestions: Sequence[str]) -> Completer:
    """Return a completer for the last value in a list that is separated by commas. The best matches come first."""
    from prompt_toolkit.completion import FuzzyCompleter, WordCompleter

    word = r"[^\s,]*"
    return FuzzyCompleter(WordCompleter([*suggestions], pattern=re.compile(word)), pattern=f"^{word}")


def answer_requests(
    ask: Ask, explainer: Explainer, draft: Draft, style: Style, write: Callable[[str], object]
) -> NoReturn:
    """Ask for requests, and write their explanations, until `ask` raises an exception."""
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
        write(f"\n{render_text(report_explanation(explainer.explain(request), style), style)}\n")
        show(_NEXT_REQUEST)


def ask_for_request(
    ask: Ask, draft: Draft, vocabulary: PromptSuggestions, show: Callable[[str], object] = str
) -> Draft:
    """Ask for the values of a request. The values of `draft` are the defaults, unless a previous answer excludes them.

    If a value is invalid, pass the error message to `show` and repeat the prompt.
    """

    def ask_valid(prompt: Prompt, default: str, check: Callable[[str], object] = str) -> str:
        while True:
            value = ask(prompt, default)
            mistake = _find_mistake(check, value) if value else prompt.required_message
            if not mistake:
                return value
            show(mistake)

    user = ask_valid(Prompt("User", "such as alice", vocabulary.users, "Name a user."), draft.user)
    # The groups of the draft belong to the user of the draft, so they are the default only for the same user.
    groups = draft.groups if user == draft.user or not draft.user else ""
    groups = ask_valid(Prompt("Groups", "with commas, or none", vocabulary.groups), groups)
    verb_prompt = Prompt("Verb", "such as list", VERBS, f"Name a verb: {', '.join(VERBS)}, or an HTTP method.")
    target_prompt = Prompt(
        "Resource or path", "such as pods or /healthz", vocabulary.resources, "Name a resource or a path."
    )
    verb, target = draft.verb, draft.target
    while True:
        verb = ask_valid(verb_prompt, verb, check_verb)
        is_method = _find_mistake(partial(check_target, verb), "pods") != ""
        target = ask_valid(target_prompt, target, partial(check_target, VERBS[0] if is_method else verb))
        if target.startswith("/") or not is_method:
            break
        # Either the verb or the target is wrong, so ask again for both.
        show(f'"{verb}" is an HTTP method, and "{target}" is not a path. Verbs for resources are {", ".join(VERBS)}.')
    new = Draft(user, groups, verb, target, draft.namespace)
    if target.startswith("/"):
        return new
    if _may_be_namespaced(target):
        hint = "none: all" if verb.lower() in COLLECTION_VERBS else "none: default"
        namespace = ask_valid(Prompt("Namespace", hint, vocabulary.namespaces), new.namespace, _check_namespace)
        new = new._replace(namespace=namespace)
    if "/" in target or verb.lower() not in (*COLLECTION_VERBS, "create"):
        name = draft.name if target == draft.target else ""
        return new._replace(name=ask_valid(Prompt("Name", "of the object"), name, _check_name))
    return new


def _find_mistake(check: Callable[[str], object], value: str) -> str:
    try:
        check(value)
    except UserError as error:
        return str(error)
    return ""


def _check_namespace(name: str) -> None:
    if problem := check_dns_label(name):
        raise UserError(f'"{name}" is not a valid name of a namespace: {problem}')


def _check_name(name: str) -> None:
    """Raise UserError for an invalid object name. Source: `IsValidPathSegmentName` in apimachinery/pkg/api/validation/path."""
    if name in (".", "..") or "/" in name or "%" in name:
        raise UserError(f'"{name}" is not a valid name of an object: it must not be "." or "..", or contain "/" or "%"')


def parse_draft(draft: Draft) -> Request:
    """Return the request that the user typed as separate values. Raises UserError if the request is invalid."""
    is_namespaced = not draft.target.startswith("/") and _may_be_namespaced(draft.target)
    return parse_words(
        (draft.verb, draft.target, *([draft.name] if draft.name else [])),
        user=draft.user,
        groups=tuple(group for part in draft.groups.split(",") if (group := part.strip())),
        namespace=(draft.namespace or None) if is_namespaced else None,
    )


def _may_be_namespaced(target: str) -> bool:
    """Return False if the resource is known to be cluster-scoped. Return True for namespaced and unknown resources."""
    known = infer_resource(target.partition("/")[0]).known
    return known is None or known.namespaced


def collect_vocabulary(configuration: Configuration) -> PromptSuggestions:
    """Return the values to suggest: names in the FlowSchemas of a configuration, and names that every cluster has."""
    users, groups, namespaces = {*_COMMON_USERS}, {*_COMMON_GROUPS}, {*_COMMON_NAMESPACES}
    targets = {*_COMMON_PATHS, *(resource.qualified_name for resource in RESOURCES)}
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
    return PromptSuggestions(
        *(
            tuple(sorted(name for name in names if name and ALL not in name and name.isprintable()))
            for names in (users, groups, namespaces, targets)
        )
    )


def _qualify(resource: str, group: str) -> str:
    """Add the API group to a resource: `deployments/scale` and `apps` become `deployments.apps/scale`."""
    name, slash, subresource = resource.partition("/")
    return f"{name}.{group}{slash}{subresource}" if group else resource
