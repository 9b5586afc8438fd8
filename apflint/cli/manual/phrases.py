"""What several manual pages say alike."""

from __future__ import annotations

USAGE = ("2", "Wrong usage or configuration, something cannot be read or written, or an internal error.")
ANSWER = (("0", "The answer was printed."), USAGE)
CHECKED = (
    ("0", "Nothing was found at or above --fail-on."),
    ("1", "Something was found: by default, an error."),
    USAGE,
)
SERVER = (
    "The API server",
    (
        "--kubernetes",
        "--no-defaults",
        "--server-concurrency",
    ),
)
BUILT_IN = (
    "The objects that every API server creates by itself are part of the configuration, unless the manifests define them"
    " or --no-defaults is given."
)
