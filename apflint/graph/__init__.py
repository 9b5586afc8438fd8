"""Draws a configuration: FlowSchemas in matching order, their priority levels, and which FlowSchemas are unreachable.

`content` builds the `Picture`. The modules `mermaid`, `dot`, `svg` and `html_page` each have a function `render(picture) ->
str`. The result is printable ASCII, so that the encoding of a pipe does not matter. Text from manifests
is escaped.
"""
