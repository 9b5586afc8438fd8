"""Patterns of users and user agents: names that differ only in a generated part are one client.

Nodes of a cluster, bootstrap tokens, and the pods of a Deployment or Job have generated names. A report with a row for each of
these names would hide the other clients.
"""

from __future__ import annotations

import re
from functools import lru_cache

from apflint.evaluate.authentication import NODE_PREFIX

WILDCARD = "*"
"""Placeholder for the generated part of a name, as in `--where user=system:node:*`."""
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""Characters of generated names. Source: `alphanums` in staging/src/k8s.io/apimachinery/pkg/util/rand/rand.go."""
_BOOTSTRAP_PREFIX = "system:bootstrap:"
# A hash of a pod template is the decimal form of a 32-bit number, with other characters for the digits, so nearly all hashes
# have 8 to 10 characters. Source: `ComputeHash` in pkg/controller/controller_utils.go. CronJobs append the scheduled time in
# minutes, which has 8 digits.
_GENERATED = re.compile(
    r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"
    rf"|(?<=-)(?:[{_ALPHABET}]{{8,10}}|[0-9]{{8,10}})(?:-[{_ALPHABET}]{{5}})?(?![A-Za-z0-9])"
)


@lru_cache(maxsize=65536)
def fold_user(name: str) -> str:
    """Return the pattern of a user name: the name with `*` in place of generated parts."""
    for prefix in (NODE_PREFIX, _BOOTSTRAP_PREFIX):
        if name.startswith(prefix):
            return prefix + WILDCARD
    return _GENERATED.sub(WILDCARD, name)


@lru_cache(maxsize=65536)
def fold_agent(name: str) -> str:
    """Return the pattern of a user agent: the user agent with `*` in place of generated parts.

    The pattern keeps the version of the client, because a new version may explain a difference in
    traffic.
    """
    return _GENERATED.sub(WILDCARD, name)
