"""Parsers of requests to classify, from words, HTTP requests, command lines, JSON and audit events."""
