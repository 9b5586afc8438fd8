"""Proposals: changes of objects that meet a goal, such as a separate level for a client, with proofs about these changes.

`goals` defines what the user wants, and `changes` defines the allowed changes. `isolation` chooses changes for a goal
without a log. `manifests` writes the changed objects as YAML. `proof` reads this YAML, and proves what applying it
does.
"""
