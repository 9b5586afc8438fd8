"""`apflint explain` without a request, on a terminal: asks step by step, answers, and asks again.

What is asked and what is offered is worked out here without a terminal; `_Prompts` alone knows prompt_toolkit, which is
imported only for a conversation.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from apflint.evaluate.authentication import ANONYMOUS, AUTHENTICATED, NODES, SERVICE_ACCOUNTS, UNAUTHENTICATED
from apflint.evaluate.match import ALL, SERVICE_ACCOUNT_PREFIX
from apflint.evaluate.resources import RESOURCES
from apflint.formats import check_dns_label
from apflint.output.console import wrap
from apflint.output.sanitize import sanitize
from apflint.output.story import story
from apflint.requests.request import COLLECTION_VERBS, VERBS
from apflint.requests.words import check_target, check_verb, infer_resource, parse_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import NoReturn

    from apflint.cli.ask import Question
    from apflint.evaluate.configuration import Configuration
    from apflint.model import PolicyRulesWithSubjects, Subject
    from apflint.output.console import Style
    from apflint.output.explain import Explainer
    from apflint.requests.request import Request

    Ask = Callable[["Step", str], str]
    """Asks for one thing; the second argument is what counts where nothing is typed. Returns what counts.

    Raises EOFError or KeyboardInterrupt where whoever is asked wants to leave."""

_USERS = (
    ANONYMOUS,
    "system:apiserver",
    "system:kube-controller-manager",
    "system:kube-proxy",
    "system:kube-scheduler",
    "system:node:",
    SERVICE_ACCOUNT_PREFIX,
)
_GROUPS = (AUTHENTICATED, UNAUTHENTICATED, "system:masters", NODES, SERVICE_ACCOUNTS)
_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
_PATHS = ("/healthz", "/livez", "/readyz", "/version", "/metrics", "/api", "/apis", "/openapi/v2", "/openapi/v3")
"""What every cluster has. Source: Kubernetes documentation, "Using RBAC Authorization" and "Kubernetes API health endpoints"."""

NOTHING = "-"
"""Typed for nothing at all, where Enter would keep what was there."""

_WELCOME = "Which request? Tab completes, the arrow keys edit and recall, Ctrl-D leaves."
_AGAIN = f"Another request? Enter keeps what is in brackets, {NOTHING} empties it, Ctrl-D leaves."


class Vocabulary(NamedTuple):
    """What completion offers for each thing that is asked, sorted."""

    users: tuple[str, ...]
    groups: tuple[str, ...]
    namespaces: tuple[str, ...]
    resources: tuple[str, ...]
    """Resources with their group and subresources, and paths."""


class Step(NamedTuple):
    """One thing to ask for."""

    label: str
    hint: str
    """What is to be typed, for people; shown where there is nothing from the last request."""
    offers: tuple[str, ...] = ()
    several: bool = False
    """More than one may be named, with commas between them."""
    needed: str = ""
    """What to say if nothing is typed; empty if an answer is not needed."""


class Draft(NamedTuple):
    """A request as far as it was typed: what the next one starts from."""

    user: str = ""
    groups: str = ""
    verb: str = ""
    what: str = ""
    namespace: str = ""
    name: str = ""


def converse(explainer: Explainer, question: Question, style: Style) -> int:
    """Asks and answers until Ctrl-D (status 0) or Ctrl-C (130). `question` has what the command line says already."""
    start = Draft(
        user=question.user or "",
        groups=", ".join(question.groups),
        namespace=question.namespace or "",
    )
    try:
        _talk(_Prompts(color=style.color, width=style.width).ask, explainer, start, style, sys.stdout.write)
    except EOFError:
        return 0
    except KeyboardInterrupt:
        return 130


def _talk(ask: Ask, explainer: Explainer, draft: Draft, style: Style, write: Callable[[str], object]) -> NoReturn:
    """The conversation. It ends only by what `ask` raises."""
    words = vocabulary(explainer.configuration)

    def tell(text: str) -> None:
        write("\n".join(wrap(sanitize(text), style.width)) + "\n")

    tell(_WELCOME)
    while True:
        draft = ask_for_draft(ask, draft, words, tell)
        try:
            asked = request(draft)
        except ValueError as error:
            tell(str(error))
            continue
        write(f"\n{story(explainer.explain(asked), explainer, style)}\n")
        tell(_AGAIN)


def ask_for_draft(ask: Ask, draft: Draft, words: Vocabulary, tell: Callable[[str], object] = str) -> Draft:
    """Ask for a whole request. What the last one had is the default of each step, unless it no longer fits.

    Each answer is checked when it is given: `tell` gets what is wrong with it, and the step is asked again.
    """

    def checked(step: Step, default: str, check: Callable[[str], object] = str) -> str:
        while True:
            answer = ask(step, default)
            problem = _problem(check, answer) if answer else step.needed
            if not problem:
                return answer
            tell(problem)

    user = checked(Step("User", "such as alice", words.users, needed="Name a user."), draft.user)
    # Groups belong to a user: another one has others.
    groups = draft.groups if user == draft.user or not draft.user else ""
    groups = checked(Step("Groups", "with commas, or none", words.groups, several=True), groups)
    verb_step = Step("Verb", "such as list", VERBS, needed=f"Name a verb: {', '.join(VERBS)}, or an HTTP method.")
    what_step = Step(
        "Resource or path", "such as pods or /healthz", words.resources, needed="Name a resource or a path."
    )
    verb, what = draft.verb, draft.what
    while True:
        verb = checked(verb_step, verb, check_verb)
        what = checked(what_step, what, partial(_check_target, verb))
        if what.startswith("/") or _is_resource_verb(verb):
            break
        # Which of the two is wrong, the user knows.
        tell(f'"{verb}" is an HTTP method, and "{what}" is not a path. Verbs for resources are {", ".join(VERBS)}.')
    new = Draft(user, groups, verb, what, draft.namespace, draft.name if what == draft.what else "")
    if what.startswith("/"):
        return new._replace(name="")
    if _namespaced(what):
        hint = "none: all" if verb.lower() in COLLECTION_VERBS else "none: default"
        namespace = checked(Step("Namespace", hint, words.namespaces), new.namespace, _check_namespace)
        new = new._replace(namespace=namespace)
    if "/" in what or verb.lower() not in (*COLLECTION_VERBS, "create"):
        return new._replace(name=checked(Step("Name", "of the object", ()), new.name, _check_name))
    return new._replace(name="")


def _problem(check: Callable[[str], object], answer: str) -> str:
    """What is wrong with an answer; empty if nothing is."""
    try:
        check(answer)
    except ValueError as error:
        return str(error)
    return ""


def _is_resource_verb(verb: str) -> bool:
    return not _problem(partial(check_target, verb), "pods")


def _check_target(verb: str, what: str) -> None:
    check_target(verb if _is_resource_verb(verb) else VERBS[0], what)


def _check_namespace(name: str) -> None:
    if name and (problem := check_dns_label(name)):
        raise ValueError(f'"{name}" is not a valid name of a namespace: {problem}')


def _check_name(name: str) -> None:
    """Source: `IsValidPathSegmentName` in staging/src/k8s.io/apimachinery/pkg/api/validation/path/name.go."""
    if name in (".", "..") or "/" in name or "%" in name:
        raise ValueError(
            f'"{name}" is not a valid name of an object: it may not be "." or "..", nor contain "/" or "%"'
        )


def request(draft: Draft) -> Request:
    """The request of a draft. ValueError, fit to be shown, for what is none."""
    namespace = None if draft.what.startswith("/") or not _namespaced(draft.what) else draft.namespace or None
    return parse_words(
        (draft.verb, draft.what, *([draft.name] if draft.name else [])),
        user=draft.user,
        groups=tuple(group for part in draft.groups.split(",") if (group := part.strip())),
        namespace=namespace,
    )


def _namespaced(what: str) -> bool:
    """Whether to ask for a namespace: for all but what is known to be cluster-scoped."""
    try:
        known = infer_resource(what.partition("/")[0]).known
    except ValueError:  # it is told when the request is made
        return True
    return known is None or known.namespaced


def vocabulary(configuration: Configuration) -> Vocabulary:
    """The names in the FlowSchemas of a configuration, and those that every cluster has."""
    rules = [rule for schema in (*configuration.order, *configuration.dangling) for rule in schema.spec.rules]
    subjects = [subject for rule in rules for subject in rule.subjects]
    return Vocabulary(
        users=_offers(_USERS, (name for subject in subjects for name in _users(subject))),
        groups=_offers(_GROUPS, (subject.group or "" for subject in subjects)),
        namespaces=_offers(_NAMESPACES, (name for rule in rules for name in _namespaces(rule))),
        resources=_offers(_known_resources(), (name for rule in rules for name in _targets(rule)), _PATHS),
    )


def _offers(*names: Iterable[str]) -> tuple[str, ...]:
    """What can be typed: no wildcards, nothing that a terminal cannot show."""
    return tuple(sorted({name for some in names for name in some if name and ALL not in name and name.isprintable()}))


def _users(subject: Subject) -> Iterator[str]:
    account = subject.service_account
    if subject.user:
        yield subject.user
    if account is not None and account.namespace != ALL:
        yield f"{SERVICE_ACCOUNT_PREFIX}{account.namespace}:{'' if account.name == ALL else account.name}"


def _namespaces(rule: PolicyRulesWithSubjects) -> Iterator[str]:
    for subject in rule.subjects:
        if subject.service_account is not None:
            yield subject.service_account.namespace
    for each in rule.resource_rules:
        yield from each.namespaces


def _known_resources() -> Iterator[str]:
    for resource in RESOURCES:
        yield resource.qualified_name
        for subresource in resource.subresources:
            yield f"{resource.qualified_name}/{subresource}"


def _targets(rule: PolicyRulesWithSubjects) -> Iterator[str]:
    for each in rule.resource_rules:
        for group in each.api_groups:
            for name in each.resources:
                resource, slash, subresource = name.partition("/")
                yield f"{resource}.{group}{slash}{subresource}" if group else name
    for other in rule.non_resource_rules:
        yield from (url for url in other.non_resource_urls if url.startswith("/"))


def matching(typed: str, step: Step) -> tuple[int, list[str]]:
    """What may complete the text, and how many of its last characters that replaces. Beginnings come before the rest."""
    word = typed.rpartition(",")[2].lstrip() if step.several else typed
    lower = word.lower()
    found = [offer for offer in step.offers if lower in offer.lower() and offer != word]
    return len(word), sorted(found, key=lambda offer: not offer.lower().startswith(lower))


class _Prompts:
    """Prompts on the terminal; each kind of step has a history of its own."""

    def __init__(self, *, color: bool, width: int | None) -> None:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.output import ColorDepth

        self._session: Callable[[], PromptSession[str]] = lambda: PromptSession(
            color_depth=None if color else ColorDepth.DEPTH_1_BIT,
            complete_while_typing=True,
            reserve_space_for_menu=6,
        )
        self._width = width
        self._sessions: dict[str, PromptSession[str]] = {}

    def ask(self, step: Step, default: str) -> str:
        from prompt_toolkit.completion import Completer, Completion

        if TYPE_CHECKING:
            from prompt_toolkit.completion import CompleteEvent
            from prompt_toolkit.document import Document

        class Offers(Completer):
            def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:  # noqa: ARG002  # as prompt_toolkit calls it
                size, found = matching(document.text_before_cursor, step)
                return (Completion(offer, start_position=-size) for offer in found)

        session = self._sessions.get(step.label)
        if session is None:
            session = self._sessions[step.label] = self._session()
        hint = f" ({step.hint})" if not default else ""
        kept = f" [{sanitize(default)}]" if default else ""
        message = "\n".join(wrap(f"{step.label}{hint}{kept}:", self._width))
        typed = session.prompt(f"{message} ", completer=Offers()).strip()
        return "" if typed == NOTHING else typed or default
