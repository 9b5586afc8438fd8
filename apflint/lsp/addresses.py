"""Addresses of documents (`file:///a/b%20c.yaml`, `untitled:Untitled-1`), and paths."""

from __future__ import annotations

import os
from urllib.parse import quote, unquote, urlsplit

from apflint.inputs.files import SUFFIXES

_LANGUAGES = ("json", "jsonc", "helm")


def path(uri: str) -> str | None:
    """The path of a `file:` address; None for others and for what is no address."""
    try:
        parts = urlsplit(uri)
        name = unquote(parts.path, errors="strict")
    except ValueError:
        return None
    # A `?` or `#` in a name is to be written as an escape; some clients don't.
    name += f"?{unquote(parts.query)}" if parts.query else ""
    name += f"#{unquote(parts.fragment)}" if parts.fragment else ""
    if parts.scheme != "file" or not name.startswith("/") or "\0" in name:
        return None
    if os.name == "nt":  # /C:/a, and //host/share
        name = f"//{parts.netloc}{name}" if parts.netloc else name.removeprefix("/")
    elif parts.netloc not in ("", "localhost"):
        return None
    return os.path.normpath(name)


def uri(name: str) -> str:
    """The address of a file."""
    name = os.path.abspath(name).replace(os.sep, "/")
    return "file://" + quote(name if name.startswith("/") else f"/{name}", errors="surrogateescape")


def is_untitled(uri: str) -> bool:
    """Whether a document has no file yet."""
    return uri.startswith("untitled:")


def is_ours(uri: str, language: str) -> bool:
    """Whether a document may be a manifest: from its name, or from the language that the editor takes it for."""
    if path(uri) is None and not is_untitled(uri):
        return False  # the old side of a diff, the output of a command
    return uri.endswith(SUFFIXES) or "yaml" in language.lower() or language.lower() in _LANGUAGES


def is_json(uri: str) -> bool:
    """Whether a document is read as JSON, as `apflint check` does: by its name alone."""
    return uri.endswith(".json")
