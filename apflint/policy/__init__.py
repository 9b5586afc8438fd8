"""What must hold of a configuration, written down by a team and tested: `apflint test`.

A suite is a small YAML file (docs/policy-tests.md) with examples, of which each is one request, and properties, which
the decision procedure of `apflint.proofs` proves for all requests or refutes with one of them.

    text → reading → Suite → running → Outcome → output/policy
"""
