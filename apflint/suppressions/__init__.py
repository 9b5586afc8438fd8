"""Suppressions: comments and annotations that suppress findings.

    type: ByFoo  # apflint: ignore[APF203] reason      comment for everything that starts on this line
    # apflint: ignore[APF207, APF208] reason           comment for the next node, including its content
    # apflint: file-ignore[APF603] reason              comment for the whole file
    apflint/ignore.APF203: "reason"                    annotation for an object

Only files that contain the word `apflint` are searched for suppressions.
"""

from __future__ import annotations

UNUSED, INVALID, UNEXPLAINED = "APF901", "APF902", "APF903"
SUPPRESSION_RULES = frozenset({UNUSED, INVALID, UNEXPLAINED})
"""IDs of the rules about suppressions. Suppression comments cannot suppress these rules, but the setting `ignore` can.
"""
