"""Replay of audit logs: which FlowSchema, priority level and seats the logged requests get under a configuration.

An engine reads the log once into the table `request` (`database_tables`), and collects the distinct attribute tuples.
Requests with equal attributes share a tuple, and `classification` classifies each tuple only once. `statistics`
computes the results with SQL, which is the same for every engine.
"""
