"""Draw docs/images/terminal.svg, the picture of the README, from the output of apflint.

Run `python scripts/generate_terminal_picture.py` after a change of the output of `check` or `explain`. `--check` only
compares, and exits with 1 if the picture differs.
"""

from __future__ import annotations

import io
import os
import shlex
import subprocess
import sys
from pathlib import Path

from generated_files import update_or_check
from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "images" / "terminal.svg"
DIRECTORY = ROOT / "fixtures" / "stories" / "accepted-but-wrong"
COMMANDS = (
    "apflint check ci.yaml",
    "apflint explain list pods -A --as system:serviceaccount:ci:runner -f ci.yaml",
)
COLUMNS = 118

# Background, foreground, and the eight colors of a terminal. The light colors are those of GitHub's code blocks, with a
# contrast of at least 4.5 to the background. The dark colors are those of `scripts/drawing/canvas.py`.
_LIGHT = TerminalTheme(
    (250, 250, 250),
    (31, 35, 40),
    [
        (31, 35, 40),
        (179, 29, 40),
        (17, 99, 41),
        (125, 78, 0),
        (5, 80, 174),
        (110, 50, 160),
        (10, 92, 110),
        (87, 96, 106),
    ],
)
_DARK = TerminalTheme(
    (20, 24, 29),
    (232, 235, 239),
    [
        (232, 235, 239),
        (240, 138, 128),
        (126, 200, 135),
        (227, 179, 101),
        (127, 168, 245),
        (185, 152, 242),
        (76, 192, 194),
        (163, 173, 184),
    ],
)

# The format of rich without web font and window frame, because a picture must not load other files.
_FORMAT = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">
<title>What apflint check and apflint explain print</title>
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: {char_height}px; line-height: {line_height}px; }}
.paper {{ fill: #fafafa; stroke: #d0d7de }}
{styles}
@media (prefers-color-scheme: dark) {{
.paper {{ fill: #14181d; stroke: #48515b }}
DARK_STYLES
}}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal"><rect width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}
</defs>
<rect width="{width}" height="{height}" rx="8" class="paper"/>
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def run(command: str) -> str:
    """Return the output of a command line on a terminal with colors: standard output, then standard error."""
    words = [sys.executable, "-m", *shlex.split(command), "--isolated", "--color", "always"]
    variables = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "NO_COLOR")}
    done = subprocess.run(
        words,
        cwd=DIRECTORY,
        env=variables | {"PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode > 1:
        sys.exit(f"{command}: {done.stderr}")
    return done.stdout + done.stderr


def draw() -> str:
    """Return the picture, with a style sheet for light and dark mode."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    for command in COMMANDS:
        console.print(Text("$ " + command, style="bold"))
        console.print(Text.from_ansi(run(command)))
    # Classes are numbered by first use, so both themes have the same classes.
    dark_styles = console.export_svg(code_format="{styles}", theme=_DARK, unique_id="apflint", title="", clear=False)
    picture = console.export_svg(code_format=_FORMAT, theme=_LIGHT, unique_id="apflint", title="")
    return picture.replace("DARK_STYLES", dark_styles)


def main() -> int:
    """Update or check the picture. Returns the exit code."""
    return update_or_check({PICTURE: draw()})


if __name__ == "__main__":
    sys.exit(main())
