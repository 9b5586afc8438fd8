"""Draw the pictures of docs/concepts/ from what apflint computes.

python scripts/generate_pictures.py            write docs/images/*.svg
python scripts/generate_pictures.py --check    fail if a picture is not up to date
"""

from __future__ import annotations

import sys
from pathlib import Path

from drawing.concepts import PICTURES

DIRECTORY = Path(__file__).resolve().parent.parent / "docs" / "images"


def main() -> int:
    """Write or check the pictures. Returns the exit code."""
    outdated = []
    for name, draw in PICTURES.items():
        path, text = DIRECTORY / f"{name}.svg", draw().render()
        if path.exists() and path.read_text("utf-8") == text:
            continue
        outdated.append(path)
        if "--check" not in sys.argv[1:]:
            path.write_text(text, "utf-8", newline="\n")
    if "--check" in sys.argv[1:]:
        for path in outdated:
            print(f"{path} is not up to date: run python scripts/generate_pictures.py", file=sys.stderr)
        return int(bool(outdated))
    return 0


if __name__ == "__main__":
    sys.exit(main())
