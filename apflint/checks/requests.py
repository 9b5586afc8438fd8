"""APF206 and APF209 to APF214: which requests a rule of a FlowSchema covers (`ValidateFlowSchemaResourcePolicyRule` and kin)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint import formats
from apflint.finding import Cause, Problem
from apflint.fixes import suggestions
from apflint.location import Place, field_path
from apflint.record import NamedTuple
from apflint.wording import listed, nearest, placeholder_hint, quote, several

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.fix import Fix
    from apflint.load.document import Document
    from apflint.location import Path
    from apflint.model import ResourcePolicyRule
    from apflint.workspace import Workspace

VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "proxy")
"""What the API server takes as a verb, in rules for resources and in others."""
_RBAC_VERBS = ("use", "bind", "escalate", "impersonate", "approve", "sign", "attest")
_SHOWN = 10
"""How many wrong verbs of a list are named one by one."""
_METHODS = {"post": "create", "put": "update", "head": "get", "options": "*"}


class _List(NamedTuple):
    document: Document
    path: Path
    items: tuple[str, ...]

    @property
    def name(self) -> str:
        return str(self.path[-1])

    @property
    def field(self) -> str:
        return field_path(self.path)


def _lists(workspace: Workspace) -> Iterator[_List]:
    """All lists of words of all rules, but for the namespaces."""
    for schema in workspace.flow_schemas:
        for i, rule in enumerate(schema.spec.rules):
            for j, part in enumerate(rule.resource_rules):
                path: Path = ("spec", "rules", i, "resourceRules", j)
                yield _List(schema.document, (*path, "verbs"), part.verbs)
                yield _List(schema.document, (*path, "apiGroups"), part.api_groups)
                yield _List(schema.document, (*path, "resources"), part.resources)
            for j, other in enumerate(rule.non_resource_rules):
                path = ("spec", "rules", i, "nonResourceRules", j)
                yield _List(schema.document, (*path, "verbs"), other.verbs)
                yield _List(schema.document, (*path, "nonResourceURLs"), other.non_resource_urls)


def _resource_rules(workspace: Workspace) -> Iterator[tuple[Document, Path, ResourcePolicyRule]]:
    for schema in workspace.flow_schemas:
        for i, rule in enumerate(schema.spec.rules):
            for j, part in enumerate(rule.resource_rules):
                yield schema.document, ("spec", "rules", i, "resourceRules", j), part


def rule_without_requests(workspace: Workspace) -> Iterator[Problem]:
    """APF206."""
    for schema in workspace.flow_schemas:
        for number, rule in enumerate(schema.spec.rules):
            if not rule.resource_rules and not rule.non_resource_rules:
                path = ("spec", "rules", number)
                message = "rule has subjects but no resourceRules or nonResourceRules. Add at least one of them"
                yield Problem(Place(schema.document, path), message, Cause("FieldValueRequired", field_path(path)))


_ALL = {
    "verbs": "verbs",
    "apiGroups": "API groups",
    "resources": "resources",
    "nonResourceURLs": "paths",
}


def empty_match_list(workspace: Workspace) -> Iterator[Problem]:
    """APF209."""
    for found in _lists(workspace):
        if not found.items:
            core = ' For the core group (pods, services, nodes) write [""].' if found.name == "apiGroups" else ""
            message = f"{found.name} is missing or empty: the rule would match nothing.{core} For all {_ALL[found.name]} write ['*']"
            yield Problem(Place(found.document, found.path), message, Cause("FieldValueRequired", found.field))


def wildcard_with_others(workspace: Workspace) -> Iterator[Problem]:
    """APF210."""
    namespaces = (
        _List(doc, (*path, "namespaces"), rule.namespaces)
        for doc, path, rule in _resource_rules(workspace)
        if rule.namespaces
    )
    for found in (*_lists(workspace), *namespaces):
        if "*" in found.items and len(found.items) > 1:
            star = found.items.index("*")
            what = "leave the others out, or the '*'" if set(found.items) != {"*"} else "it is here twice"
            message = f"'*' stands for all {found.name} and must be alone in its list: {what}"
            others = [number for number, _ in enumerate(found.items) if number != star]
            fix = suggestions.remove_items(found.path, found.items, others, 'beside "*"', safe=True)
            place = Place(found.document, (*found.path, star))
            yield Problem(place, message, Cause("FieldValueInvalid", found.field), fix=fix)


def unknown_verb(workspace: Workspace) -> Iterator[Problem]:
    """APF211. The server names the whole list in one cause, so this is one finding, at the first wrong verb.

    But those that are mended in another way than the rest are one of their own: what is misspelt need not wait for them.
    """
    for found in _lists(workspace):
        if found.name != "verbs" or "*" in found.items:
            continue
        for wrong, fix in _verbs_by_fix(found):
            said = several([quote(found.items[number]) for number in wrong], _SHOWN)
            hint = _verb_hint(found.items[wrong[0]], resources="resourceRules" in found.path)
            message = (
                f"{said}: no such {'verb' if len(wrong) == 1 else 'verbs'}. Verbs are {listed(VERBS, 'and')}.{hint}"
            )
            cause = Cause("FieldValueNotSupported", found.field)
            yield Problem(Place(found.document, (*found.path, wrong[0])), message, cause, fix=fix)


def _verbs_by_fix(found: _List) -> Iterator[tuple[list[int], Fix | None]]:
    """The wrong verbs of a list, by position: those that are misspelt, those that are HTTP methods, those that can be anything."""
    wrong = {number: verb for number, verb in enumerate(found.items) if verb not in VERBS}
    methods: dict[int, str] = {}
    if "resourceRules" in found.path:
        # The server makes these verbs of the methods; GET and HEAD may be list and watch as well (RequestInfoFactory).
        methods = {number: _METHODS[verb.lower()] for number, verb in wrong.items() if verb.lower() in ("post", "put")}
    near = {number: suggestions.find_intended(verb, VERBS) for number, verb in wrong.items() if number not in methods}
    misspelt = {number: verb for number, verb in near.items() if verb is not None}
    for right, safe in ((misspelt, True), (methods, False)):
        if right:
            yield list(right), suggestions.replace_items(found.path, found.items, right, safe=safe)
    if others := [number for number, verb in near.items() if verb is None]:
        yield others, None


def _verb_hint(verb: str, *, resources: bool) -> str:
    if "," in verb or " " in verb.strip():
        return " Write each verb as an item of its own."
    if near := nearest(verb, VERBS):
        return f" Did you mean {quote(near)}?"
    if verb.lower() == "all":
        return " For all verbs write ['*']."
    if verb in _RBAC_VERBS:
        return f" {quote(verb)} is a verb of RBAC only."
    method = _METHODS.get(verb.lower())
    if method is None:
        return ""
    if not resources:
        return " Requests with other methods than GET, PATCH and DELETE can only be matched by ['*']."
    return f" The HTTP method {verb.upper()} on a resource is the verb {quote(method)}." if method != "*" else ""


def no_namespace_nor_cluster_scope(workspace: Workspace) -> Iterator[Problem]:
    """APF212."""
    for document, path, rule in _resource_rules(workspace):
        if not rule.namespaces and not rule.cluster_scope:
            at = (*path, "namespaces")
            message = (
                "this rule covers no request: it has no namespaces and not `clusterScope: true`. Write `namespaces: ['*']` for"
                " requests in any namespace, `clusterScope: true` for those outside (nodes, or a list over all namespaces), or both"
            )
            yield Problem(Place(document, at), message, Cause("FieldValueRequired", field_path(at)))


def invalid_namespace(workspace: Workspace) -> Iterator[Problem]:
    """APF213."""
    for document, path, rule in _resource_rules(workspace):
        if "*" in rule.namespaces:
            continue
        there = frozenset(rule.namespaces)
        for number, namespace in enumerate(rule.namespaces):
            if wrong := formats.check_dns_label(namespace):
                at = (*path, "namespaces", number)
                if namespace:
                    message = f"{quote(namespace)} is no namespace: {wrong}.{_namespace_hint(namespace)}"
                else:
                    message = (
                        "a namespace is empty. For requests outside of namespaces write `clusterScope: true`, for all"
                        " namespaces ['*']"
                    )
                fix = None
                if namespace and formats.check_dns_label(namespace.lower()) is None:
                    fix = suggestions.replace_item(at, namespace, namespace.lower(), there, safe=False)
                yield Problem(Place(document, at), message, Cause("FieldValueInvalid", field_path(at)), fix=fix)


def _namespace_hint(namespace: str) -> str:
    if "*" in namespace:
        return " Names are compared as they are: there are no patterns."
    if formats.check_dns_label(namespace.lower()) is None:
        return f" Did you mean {quote(namespace.lower())}?"
    return placeholder_hint(namespace)


def invalid_non_resource_url(workspace: Workspace) -> Iterator[Problem]:
    """APF214."""
    for found in _lists(workspace):
        if found.name != "nonResourceURLs" or "*" in found.items:
            continue
        there = frozenset(found.items)
        for number, url in enumerate(found.items):
            if wrong := _url_fault(url):
                path = (*found.path, number)
                message = f"{quote(url)} is no path that the server accepts: {wrong}"
                fix = None
                if url and _url_fault(f"/{url}") is None:
                    fix = suggestions.replace_item(path, url, f"/{url}", there, safe=False)
                place = Place(found.document, path)
                yield Problem(place, message, Cause("FieldValueInvalid", field_path(path)), fix=fix)


def _url_fault(url: str) -> str | None:
    """What is wrong with a non-resource URL: the first failing test of `ValidateNonResourceURLPath`."""
    if not url:
        return "it is empty. Write the path, or remove the entry"
    if url == "/":
        return None
    if not url.startswith("/"):
        return "it must start with `/`" + (". Write the path only, without the host" if "://" in url else "")
    if " " in url:
        return "it has a blank in it"
    if "//" in url:
        return "it has `//` in it"
    if url.count("*") > 1 or ("*" in url and not url.endswith("/*")):
        return "`*` may stand once, at the end, after a `/` (`/healthz/*`)"
    return None
