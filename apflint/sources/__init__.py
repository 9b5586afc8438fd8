"""Reads configurations and logs from files, git revisions, kustomizations and running clusters.

Commands read configurations through `inputs.read_inputs` only; most other modules read one kind of source for it.
"""
