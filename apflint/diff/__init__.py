"""Comparison of two configurations: which requests, priority levels and objects change."""
