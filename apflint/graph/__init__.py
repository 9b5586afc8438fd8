"""The configuration as a drawing: the matching order, the priority level of each FlowSchema, and unreachable FlowSchemas.

`picture` builds the `Picture`; each writer (`mermaid`, `dot`, `svg`, `page`) is a function `render(picture) -> str`
that returns printable ASCII, so the encoding of a pipe does not matter. Text from manifests is data in all of them.
"""
