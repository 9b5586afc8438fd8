"""Suppressions: comments and annotations that suppress findings.

    type: ByFoo  # apflint: ignore[APF203] reason      what starts on this line
    # apflint: ignore[APF207, APF208] reason           the next node and everything below it
    # apflint: file-ignore[APF603] reason              the whole file
    apflint/ignore.APF203: "reason"                    an annotation of the object: the object

Only text that contains the word `apflint` is searched.
"""

from __future__ import annotations

UNUSED, INVALID, UNEXPLAINED = "APF901", "APF902", "APF903"
SUPPRESSION_RULES = frozenset({UNUSED, INVALID, UNEXPLAINED})
"""The rules about suppressions. Suppressions do not apply to them, but `ignore` in the settings does."""
