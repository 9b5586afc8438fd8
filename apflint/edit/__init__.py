"""Edits manifests at exact places. The rest of a file, including comments, stays unchanged byte for byte.

- `text_edits` applies edits to a text. `line_diff` shows the difference, and `file_content` replaces a file.
- `object_edits` turns the operations of a fix into edits, and proves the edited text by parsing it. `object_edits` uses
  `replacement`, `insertion`, `removal`, `move_into_mapping` and `entry_locations`.
- `fixing` applies the fixes of findings, and compares the findings before and after. `fix_batch` edits the texts.
- `migration` moves objects to another API version. `migration_target` chooses the version, and `version_semantics`
  preserves the meaning of the objects.
"""
