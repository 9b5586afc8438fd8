"""Edits of manifests at exact places: everything else stays byte for byte, comments included.

- `text_edits` applies edits to a text. `line_diff` shows the difference, and `files` replaces a file.
- `operations` carries out the operations of a fix as edits (`replacement`, `insertion`, `removal`, `nesting`, all with `entries`),
  and proves the edited text by reading it.
- `fixing` applies the fixes of findings, and compares the findings before and after; `fix_edits` edits the texts.
- `migrate` moves objects to another API version: `migration_target` chooses it, `version_semantics` knows what an object means there.
"""
