"""Diagnosis of a running API server from its metrics and its debug dumps."""
