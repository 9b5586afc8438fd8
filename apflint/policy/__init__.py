"""Policy tests (`apflint test`): what a team requires of a configuration, proven for all requests or refuted by one.

text -> parser -> Suite -> running -> Result -> apflint.output.policy
"""
