"""Which files are left out: shell patterns against paths from the current directory."""

from __future__ import annotations

import os
import re
from fnmatch import translate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def excluder(patterns: Iterable[str]) -> Callable[[str], bool] | None:
    """Whether a path from the current directory is excluded; `None` where no pattern was given."""
    whole: list[str] = []
    last: list[str] = []
    for given in patterns:
        pattern = given.removeprefix("./").rstrip("/").removesuffix("/**") or given
        (whole if "/" in pattern else last).append(pattern)
        if pattern.startswith("**/"):  # any depth, none included
            rest = pattern[3:]
            (whole if "/" in rest else last).append(rest)
    if not whole and not last:
        return None
    anywhere = re.compile("|".join(map(translate, whole)) if whole else r"(?!)").match
    basename = re.compile("|".join(map(translate, last)) if last else r"(?!)").match
    here = os.getcwd().rstrip("/") + "/" if any(pattern.startswith("/") for pattern in whole) else ""

    def excluded(relative: str) -> bool:
        return bool(
            anywhere(relative) or (here and anywhere(here + relative)) or basename(relative[relative.rfind("/") + 1 :])
        )

    return excluded


def excluded_upwards(relative: str, excluded: Callable[[str], bool]) -> bool:
    """Whether a path or a directory above it is excluded, as it would be in a walk from the current directory."""
    while relative and relative != "/":
        if excluded(relative):
            return True
        relative = os.path.dirname(relative)
    return False
