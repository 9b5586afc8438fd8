"""Updates generated files, or checks that they are up to date. All generator scripts use this module."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def update_or_check(files: Mapping[Path, str]) -> int:
    """Write the files whose text differs. With the argument `--check`, only print their names. Return the exit code."""
    outdated = [path for path, text in files.items() if not path.exists() or path.read_text("utf-8") != text]
    if "--check" in sys.argv[1:]:
        for path in outdated:
            print(f"{path} is not up to date: run python scripts/{Path(sys.argv[0]).name}", file=sys.stderr)
        return int(bool(outdated))
    for path in outdated:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(files[path], "utf-8", newline="\n")
    return 0
