"""Updates generated files, or checks that they are up to date. All generator scripts use this module."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def update_or_check(files: Mapping[Path, str]) -> int:
    """Write the files whose text differs, compressed if their names end with `.gz`. Return the exit code.

    If the script has the argument `--check`, only print the names of these files.
    """
    outdated = [path for path, text in files.items() if not path.exists() or _read(path) != text]
    if "--check" in sys.argv[1:]:
        for path in outdated:
            print(f"{path} is not up to date: run python scripts/{Path(sys.argv[0]).name}", file=sys.stderr)
        return int(bool(outdated))
    for path in outdated:
        path.parent.mkdir(parents=True, exist_ok=True)
        data = files[path].encode()
        path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
    return 0


def _read(path: Path) -> str:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
