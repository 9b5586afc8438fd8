"""Draw the pictures of docs/concepts/ from results of apflint.

python scripts/generate_pictures.py            write docs/images/*.svg
python scripts/generate_pictures.py --check    fail if a picture is not up to date
"""

from __future__ import annotations

import sys
from pathlib import Path

from drawing.concepts import PICTURES
from generated_files import update_or_check

DIRECTORY = Path(__file__).resolve().parent.parent / "docs" / "images"


def main() -> int:
    """Update or check the pictures. Returns the exit code."""
    return update_or_check({DIRECTORY / f"{name}.svg": draw().render() for name, draw in PICTURES.items()})


if __name__ == "__main__":
    sys.exit(main())
