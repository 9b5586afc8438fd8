"""The configuration as a picture: who is tried in which order, which level takes whom, and what is shadowed.

`picture` works it out once; each writer (`mermaid`, `dot`, `svg`, `page`) is a function `Picture -> str` that gives
printable ASCII, so it does not matter how a pipe encodes text. Text from manifests is data in all of them.
"""
