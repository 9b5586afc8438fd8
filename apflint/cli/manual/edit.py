"""The manual pages of the commands that edit manifests."""

from __future__ import annotations

from apflint.cli.manual import Example, Page
from apflint.cli.manual.phrases import USAGE

PAGES = {
    "fix": Page(
        about=(
            "Only the places of the findings are edited; comments, quotes, order and line endings stay. A safe fix keeps"
            " what the author plainly meant; one that changes what the object means needs --unsafe-fixes. After fixing, the"
            " file is checked again: a fix that does not remove its finding, or brings another, is not made, and apflint"
            " says so."
        ),
        groups=(
            ("What to do", ("--diff", "--unsafe-fixes")),
            (
                "What to fix",
                (
                    "--kubernetes",
                    "--select",
                    "--extend-select",
                    "--ignore",
                    "--context",
                    "--baseline",
                    "--exclude",
                    "--force-exclude",
                    "--stdin-filename",
                ),
            ),
            ("Output", ("--quiet",)),
            ("Configuration", ("--config", "--isolated")),
        ),
        examples=(
            Example("show what would change, as a diff", "apflint fix --diff manifests/"),
            Example("change the files", "apflint fix manifests/"),
            Example("one rule only", "apflint fix --select APF101 manifests/"),
            Example("as a filter", "apflint fix - < old.yaml > new.yaml"),
        ),
        exit_status=(
            ("0", "Everything that can be fixed is fixed, or there is nothing to fix. Other findings do not count."),
            ("1", "Something that can be fixed was not: it was refused, or --diff only showed it."),
            USAGE,
        ),
    ),
    "migrate": Page(
        about=(
            "Only the places that must change are edited; comments, quotes, order and line endings stay. What changes in"
            " meaning is told with file and line. An object that cannot mean the same is refused, and its file stays as"
            " it is."
        ),
        groups=(
            ("To which version", ("--to", "--kubernetes", "--range")),
            ("What to do", ("--write", "--diff", "--accept-changes")),
            ("What to read", ("--exclude", "--force-exclude")),
            ("Configuration", ("--config", "--isolated")),
        ),
        examples=(
            Example("show what would change, as a diff", "apflint migrate --to v1 manifests/"),
            Example("change the files", "apflint migrate --to v1 --write manifests/"),
            Example(
                "for an upgrade: a version that all these releases serve", "apflint migrate --range 1.26..1.31 old.yaml"
            ),
            Example("as a filter", "apflint migrate --to v1 - < old.yaml > new.yaml"),
        ),
        exit_status=(
            ("0", "Done, or nothing to do."),
            ("1", "Something was refused; the other files were migrated."),
            USAGE,
        ),
    ),
}
