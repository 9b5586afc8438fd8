"""Edits of manifests at exact places: everything else stays byte for byte, comments included.

text_edits         applies edits to a text
operations         operations on an object, as edits and on the decoded value; with places (keys and values), insertion,
removal and nesting, which use lines
proof              proves by reading the edited text that only the operations were carried out
fixing             applies the fixes of findings; with aliases and original_lines
migrate            moves objects to another API version; with version_semantics
line_diff, files   show changes, and replace files
"""
