"""Replay of audit logs: which FlowSchema, priority level and seats the logged requests get under a configuration.

An engine reads the log once into the table `request` (`tables`), and lists the distinct attribute tuples. Only these are
classified (`classification`). Then SQL computes the statistics (`statistics`), the same SQL on every engine.
"""
