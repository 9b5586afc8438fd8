"""Reads configurations and logs from files, git revisions, kustomizations and running clusters.

Commands read configurations only through `inputs.read_inputs`. Most other modules of the package read one kind of
source, and `read_inputs` calls them.
"""
