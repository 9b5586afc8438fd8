"""Replay of audit logs: which FlowSchema, priority level and seats the logged requests get under a configuration.

An engine reads the log once into the table `request` (`database_tables`), and lists the distinct attribute tuples: requests with
equal attributes share one. `classification` classifies only these tuples. `statistics` computes the results with SQL,
which is the same for every engine.
"""
