"""Proposals: objects that meet a goal, such as a separate level for a client, with proofs about them.

`goals` says what is wanted, `changes` what may be changed, `isolation` chooses changes for a goal without a log, `manifests` writes
them, and `proof` proves what the result does. The proofs are about the text that was written.
"""
