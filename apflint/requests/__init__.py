"""Requests to classify, and parsers that read them from words, HTTP requests, command lines, JSON and audit events."""
