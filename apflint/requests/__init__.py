"""Requests to classify, parsed from words, HTTP, command lines, JSON or audit events."""
