"""Texts for reports, such as "limit its rate". Each text says what the owner of a client can change.

A change of the client is an alternative to a change of FlowSchemas and priority levels.
"""

from __future__ import annotations

LIMIT_RATE = "limit its rate"
"""For a client that sends more requests than its level executes: QPS and burst of client-go, or the same of another client library."""
HONOR_RETRY_AFTER = "wait for Retry-After"
"""For a client with rejected requests: the response 429 has the header `Retry-After`, with seconds."""
USE_INFORMER = "use an informer (list once, then watch), or list one namespace"
"""For a client that lists the same objects again and again."""
