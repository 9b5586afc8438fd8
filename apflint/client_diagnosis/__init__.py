"""The view of a client: whether API Priority and Fairness slows or rejects its requests, who or what causes it, and what to do."""
