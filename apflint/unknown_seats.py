"""Advice for users who have not stated the number of seats of an API server."""

from __future__ import annotations

SEATS_URL = "https://github.com/apflint/apflint/blob/main/docs/guides/server-seats.md"
"""Page of the documentation that shows how to find the number of seats, also on managed clusters."""
FIND_SEATS = (
    "State the number of seats of an API server, with --metrics FILE (saved metrics of the server) or --server-concurrency N."
    f" How to find N: {SEATS_URL}"
)


def describe_assumed_seats(seats: int) -> str:
    """Return a comment for a generated file whose numbers depend on the default number of seats, `seats`."""
    return f"This file assumes {seats} seats in each API server, the default. Set another number with --server-concurrency: {SEATS_URL}"
