"""Policy tests (`apflint test`): requirements on a configuration. apflint proves them for all requests, or finds a counterexample.

Data flow: text -> parser -> Suite -> running -> Result -> apflint.output.policy
"""
