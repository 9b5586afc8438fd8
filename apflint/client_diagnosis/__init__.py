"""Answers for one client: whether API Priority and Fairness delays or rejects its requests, the cause, and what to do."""
