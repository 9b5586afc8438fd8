"""Reads audit logs in object storage and from web servers: lists objects, and reads their bytes.

The library fsspec accesses the storage, with the credentials of the environment. The library is imported only if a path
names an object.
"""

from __future__ import annotations

import fnmatch
import os
import re
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, BinaryIO

from apflint.named_tuple import NamedTuple
from apflint.sources.log_names import StoredObject
from apflint.user_error import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator

_WEB_SCHEMES = ("https", "http")
_URL = re.compile("(s3|gs|az|https|http)://", re.IGNORECASE)
_PATTERN = re.compile(r"[*?[]")
_SMALL_BYTES = 8 * 1024 * 1024
"""Maximum size of an object that is read with one request. Larger objects are read in pieces of this size."""
_FIRST_BYTES = 256 * 1024
"""Size of the first piece, which is often enough to recognize a format."""


class _Service(NamedTuple):
    """A kind of storage, and the Python class that reads this kind of storage."""

    extra: str
    """The extra of apflint that installs the library."""
    module: str
    name: str
    """Name of the class in `module`."""
    credentials: str
    """What to check if access is denied: the settings of the environment that the library reads."""


_WEB = _Service("https", "fsspec.implementations.http", "HTTPFileSystem", "the URL may have expired")
_SERVICES = {
    "s3": _Service(
        "s3", "s3fs", "S3FileSystem", "set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or use a role"
    ),
    "gs": _Service(
        "gs",
        "gcsfs",
        "GCSFileSystem",
        "set GOOGLE_APPLICATION_CREDENTIALS, or run gcloud auth application-default login",
    ),
    "az": _Service(
        "az",
        "adlfs",
        "AzureBlobFileSystem",
        "set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY, or run az login",
    ),
    "https": _WEB,
    "http": _WEB,
}


def is_object_url(path: str) -> bool:
    """Return whether a path is a URL, such as `s3://bucket/key`, of an object that apflint can read without Spark."""
    return _URL.match(path) is not None


def is_web_url(path: str) -> bool:
    """Return whether a path is the URL of a file on a web server. Such a URL cannot be a prefix or a pattern."""
    return _scheme(path) in _WEB_SCHEMES


def hide_secrets(url: str) -> str:
    """Return a web URL without its user, password and parameters, which may be secret.

    Return any other URL unchanged. For example, `s3://bucket/path` cannot contain these parts.
    """
    if not is_web_url(url):
        return url
    scheme, _, rest = re.split(r"[?#]", url, maxsplit=1)[0].partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"


def find_prefix(url: str) -> str:
    """Return the prefix that all objects of a URL have: the URL itself, or the part before its first wildcard."""
    match = None if is_web_url(url) else _PATTERN.search(url)
    return url[: match.start()] if match else url


def list_objects(url: str) -> list[StoredObject]:
    """Return the objects that a URL names: an object, all objects below a prefix, or those that match a pattern.

    Objects are in the order of their names. Raises UserError if the library is not installed, or if the storage cannot
    be read.
    """
    scheme, path = _split(url)
    files = _open_storage(url)
    try:
        if scheme in _WEB_SCHEMES:
            return [StoredObject(url, int(files.info(path).get("size") or 0))]
        if not path.endswith("/") and (found := _find_object(files, path)) is not None:
            return [StoredObject(url, found)]
        is_pattern = _PATTERN.search(path) is not None
        start = find_prefix(url).partition("://")[2] if is_pattern else f"{path.rstrip('/')}/"
        directory, _, prefix = start.rpartition("/")
        # `glob` of fsspec is not used, because names of objects may contain wildcards, and empty components as in
        # `a//b`.
        listed = files.find(directory, prefix=prefix, detail=True)
    except Exception as error:  # noqa: BLE001  # each library has its own exceptions
        raise UserError(f"{hide_secrets(url)}: {_describe(error, url)}") from None
    matches = _compile_pattern(path) if is_pattern else re.compile(re.escape(start))
    return [
        StoredObject(f"{scheme}://{name}", int(entry.get("size") or 0))
        for name, entry in sorted(listed.items())
        if entry.get("type") == "file" and not name.endswith("/") and matches.match(name)
    ]


def _find_object(files: Any, path: str) -> int | None:
    """Return the size in bytes of the object `path`, or None if there is no object with this name."""
    try:
        entry = files.info(path)
    except FileNotFoundError:
        return None
    return int(entry.get("size") or 0) if entry.get("type") == "file" else None


def _compile_pattern(pattern: str) -> re.Pattern[str]:
    """Return a regular expression for a shell pattern: `*` and `?` do not match `/`, and `**` matches any characters."""
    parts = re.split(r"(\*\*/?|\*|\?|\[!?\]?[^\]/]*\])", pattern)
    other = {"**": ".*", "**/": "(.*/)?", "*": "[^/]*", "?": "[^/]"}
    return re.compile(
        "".join(
            re.escape(part) if at % 2 == 0 else other.get(part) or fnmatch.translate(part)[4:-3]
            for at, part in enumerate(parts)
        )
        + r"\Z",
        re.DOTALL,
    )


def read_object(url: str, size: int) -> Iterator[bytes]:
    """Yield the bytes of an object. `size` is the size of the object in bytes when it was listed, or 0 if unknown.

    Raises UserError if the object cannot be read. The message does not contain the name of the object.
    """
    try:
        if 0 < size <= _SMALL_BYTES:
            yield _read_small(url, size)
            return
        with open_object(url, size) as stream:
            amount = _FIRST_BYTES
            while piece := stream.read(amount):
                yield piece
                amount = _SMALL_BYTES
    except UserError:
        raise
    except Exception as error:  # noqa: BLE001  # each library has its own exceptions, as above
        raise UserError(_describe(error, url)) from None


@lru_cache(maxsize=1)
def _read_small(url: str, size: int) -> bytes:
    """Return the content of a small object. The result is cached, because an object is often read twice.

    The first read recognizes the format of the log, and the second one reads its requests.
    """
    content: bytes = _open_storage(url).cat_file(_split(url)[1])
    if len(content) != size:
        raise UserError(
            f"the object has {len(content):,} bytes now, but had {size:,} when it was listed, so it was replaced: try again"
        )
    return content


def open_object(url: str, size: int) -> BinaryIO:
    """Open an object as a binary stream. If the object is replaced while it is read, reading fails."""
    options = {"size": size} if is_web_url(url) else {}
    files = _open_storage(url)
    stream: BinaryIO = files.open(_split(url)[1], "rb", cache_type="readahead", block_size=_SMALL_BYTES, **options)
    return stream


def _scheme(url: str) -> str:
    return url.partition("://")[0].lower()


def _split(url: str) -> tuple[str, str]:
    """Return (scheme, path) of a URL. For a web server, the path is the whole URL, as fsspec expects."""
    scheme, _, path = url.partition("://")
    return scheme.lower(), url if is_web_url(url) else path


def _open_storage(url: str) -> Any:
    """Return the file system with which to read a URL of object storage.

    Raises UserError if the library for the URL scheme is not installed, or if it reports an error.
    """
    scheme = _scheme(url)
    service = _SERVICES[scheme]
    try:
        library = getattr(import_module(service.module), service.name)
        return library(use_listings_cache=False, **_choose_options(scheme))
    except ImportError:
        raise UserError(
            f"{hide_secrets(url)}: {scheme}:// needs the extra {service.extra}: pip install 'apflint[{service.extra}]'"
        ) from None
    except Exception as error:  # noqa: BLE001  # such as a profile that does not exist
        raise UserError(f"{hide_secrets(url)}: {_describe(error, url)}") from None


def _choose_options(scheme: str) -> dict[str, Any]:
    if scheme == "az":  # without this option, adlfs would not use the credentials of a role or of `az login`
        return {"anon": os.environ.get("AZURE_STORAGE_ANON", "false").lower() in ("1", "true")}
    if scheme in _WEB_SCHEMES:
        return {"client_kwargs": {"trust_env": True}}  # uses the proxies in the environment variables
    return {}


def _describe(error: Exception, url: str) -> str:
    """Return a clause that states the reason of an error. Secrets in the URL are removed."""
    service = _SERVICES[_scheme(url)]
    text = next(iter(str(error).replace(url, hide_secrets(url)).strip().splitlines()), "").rstrip(".")
    # HTTPFileSystem raises FileNotFoundError for every failure. Its cause is the real error, so look for the status
    # there, too.
    status = next((found for part in (error, error.__cause__) if (found := getattr(part, "status", None))), None)
    kind = type(error).__name__
    if status == 404 or (isinstance(error, FileNotFoundError) and status is None):
        reason = text if " " in text else ""
        return f"no such object{f' ({reason})' if reason else ''}"
    if "Credential" in kind or "Profile" in kind or "credentials" in text.lower():
        return f"no valid credentials ({text or kind}); {service.credentials}"
    if isinstance(error, PermissionError) or status in (401, 403):
        return f"access denied ({f'HTTP status {status}' if status else text}); {service.credentials}"
    if isinstance(status, int):
        return f"HTTP status {status}"
    return text or kind
