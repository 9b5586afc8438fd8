"""Generate apflint/cli/help_pages/: the help of apflint and of each command, as typer prints it in a pipe.

python scripts/generate_help_pages.py            update the pages
python scripts/generate_help_pages.py --check    fail if a page is missing or not up to date
"""

from __future__ import annotations

import io
import os
import sys
from contextlib import redirect_stdout
from pathlib import Path
from unittest.mock import patch

from generated_files import update_or_check

from apflint.cli import app, help_page
from apflint.cli.help_page import LAYOUT_VARIABLES, PROGRAM

DIRECTORY = Path(help_page.__file__).parent / "help_pages"


def render_page(name: str) -> str:
    """Return the help that typer prints for a command, or for the program, in 80 columns without colors."""
    variables = {key: value for key, value in os.environ.items() if key not in LAYOUT_VARIABLES}
    arguments = ["--help"] if name == PROGRAM else [name, "--help"]
    with (
        patch.dict(os.environ, variables | {"COLUMNS": "80"}, clear=True),
        patch.object(sys, "argv", [PROGRAM]),
        redirect_stdout(io.StringIO()) as shown,
    ):
        assert app.run(arguments) == 0
    return shown.getvalue()


def main() -> int:
    """Update or check the pages. Returns the exit code."""
    return update_or_check({DIRECTORY / f"{name}.txt": render_page(name) for name in (PROGRAM, *app.COMMANDS)})


if __name__ == "__main__":
    sys.exit(main())
