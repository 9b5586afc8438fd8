"""Policy tests (`apflint test`): requirements on a configuration that apflint proves for all requests, or refutes by example.

text -> parser -> Suite -> running -> Result -> apflint.output.policy
"""
