"""Finds the user that a word on the command line of `apflint why` names, such as `alice` or `NAMESPACE/NAME`."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from apflint.evaluate.authentication import AUTHENTICATED, MASTERS, NODES, SERVICE_ACCOUNTS, UNAUTHENTICATED
from apflint.evaluate.match import SERVICE_ACCOUNT_PREFIX
from apflint.requests.request import HTTP_METHODS, VERBS
from apflint.sources.discovery import SUFFIXES
from apflint.sources.log_names import LOG_NAME
from apflint.string_formats import check_dns_label, check_dns_subdomain
from apflint.user_error import UserError
from apflint.wording import quote

if TYPE_CHECKING:
    from collections.abc import Sequence

_GROUPS = frozenset((AUTHENTICATED, MASTERS, NODES, SERVICE_ACCOUNTS, UNAUTHENTICATED))
"""Groups that no user has as a name."""
_USER_PREFIX, _GROUP_PREFIX, _ACCOUNT_PREFIX, _AGENT_PREFIX = "user:", "group:", "serviceaccount:", "useragent:"
_VERSION = re.compile(r"[^/\s]+/v?[0-9]|.*[()]", re.ASCII)
"""User agent: a program with its version, or with its platform in parentheses."""
_PATH_STARTS = ("/", "./", "../", "~")


def is_client_name(word: str) -> bool:
    """Return whether a word can be the name of a client.

    The word must not be the name of an existing file. Return False if the word is a verb or an option,
    or looks like a path or the name of a log.
    """
    is_verb = word.lower() in VERBS or word.upper() in HTTP_METHODS
    is_path = word.startswith(_PATH_STARTS) or word.endswith(SUFFIXES) or LOG_NAME.search(word) is not None
    return not (is_verb or is_path or word.startswith("-"))


def find_user(word: str, logs: Sequence[str]) -> str:
    """Return the user name of the client that `word` names.

    `word` is `alice`, `user:alice`, `NAMESPACE/NAME` or `serviceaccount:NAMESPACE/NAME`. Raises UserError for a group or a
    user agent. The error message contains a command that lists the users in the audit logs `logs`.
    """
    lower = word.lower()
    if lower.startswith(_USER_PREFIX):
        return word[len(_USER_PREFIX) :]
    if lower.startswith(_ACCOUNT_PREFIX):
        word = word[len(_ACCOUNT_PREFIX) :]
        if (user := _parse_account(word)) is None:
            raise UserError(f"{quote(word)} is not a service account: write {_ACCOUNT_PREFIX}NAMESPACE/NAME")
        return user
    if lower.startswith(_GROUP_PREFIX):
        raise _reject("group", word[len(_GROUP_PREFIX) :], logs)
    if word in _GROUPS or word.startswith(f"{SERVICE_ACCOUNTS}:"):
        raise _reject("group", word, logs)
    if lower.startswith(_AGENT_PREFIX):
        raise _reject("userAgent", word[len(_AGENT_PREFIX) :], logs)
    if _VERSION.match(word):
        raise _reject("userAgent", word, logs)
    return _parse_account(word) or word


def write_listing(dimension: str, value: str, logs: Sequence[str]) -> str:
    """Return an `apflint replay` command that lists the users in `logs` with the group or user agent `value`."""
    return shlex.join(
        ("apflint", "replay", *(logs or ["audit.log"]), "--where", f"{dimension}={value}", "--by", "user")
    )


def _parse_account(word: str) -> str | None:
    namespace, slash, name = word.partition("/")
    if not slash or check_dns_label(namespace) or check_dns_subdomain(name):
        return None
    return f"{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}"


def _reject(dimension: str, value: str, logs: Sequence[str]) -> UserError:
    """Return the error for a group or a user agent that was given instead of a user.

    `apflint why` answers only for a single user. The message suggests a command that lists the users.
    """
    command = write_listing(dimension, value, logs)
    what = "group" if dimension == "group" else "user agent"
    source = "" if logs else " in an audit log"
    user = f" --as-group {shlex.quote(value)}" if dimension == "group" else ""
    return UserError(
        f"{quote(value)} is a {what}, not a user. Name one user: apflint why --as USER{user}. To list the users of the"
        f" {what}{source}: {command}"
    )
