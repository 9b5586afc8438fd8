"""Requests to classify, and their parsers: for words, HTTP requests, command lines, JSON and audit events."""
