"""The configuration as a drawing: the matching order, the priority level of each FlowSchema, and unreachable FlowSchemas.

`content` builds the `Picture`. The modules `mermaid`, `dot`, `svg` and `html_page` each have a function `render(picture) ->
str`. The result is printable ASCII, so that the encoding of a pipe does not matter. Text from manifests
is escaped.
"""
