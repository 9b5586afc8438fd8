"""All manual pages. A test runs every example, and holds the option names against the commands."""

from __future__ import annotations

from apflint.cli.manual import Example, Page, ask, edit, editor, lint
from apflint.cli.manual.phrases import CHECKED

COMMANDS = (
    ("Lint", tuple(lint.PAGES)),
    ("Ask", tuple(ask.PAGES)),
    ("Edit", tuple(edit.PAGES)),
    ("Editor and shell", tuple(editor.PAGES)),
)
"""The commands by what one wants; a command in no group is shown last."""

PROGRAM = Page(
    about="`apflint COMMAND --help` tells more. `apflint rule` lists the rules, and `apflint rule ID` explains one.",
    examples=(
        Example("lint the current folder and all below it", "apflint check"),
        Example("lint what Helm renders", "helm template CHART | apflint check -"),
        Example("say what happens to one request", "apflint explain list pods -n team-a --as alice"),
        Example("say why a rule is there", "apflint rule APF305"),
    ),
    exit_status=CHECKED,
)

PAGES = lint.PAGES | ask.PAGES | edit.PAGES | editor.PAGES
"""Command -> its page."""
