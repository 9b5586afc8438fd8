"""Proofs about all requests: which of them reach which FlowSchemas, rules, subjects and entries.

`one_configuration.Analysis` answers questions about one configuration, `two_configurations.Comparison` about two. Both keep
their formula and their results, so ask the same object again.

A *request* is one that API Priority and Fairness classifies. Long-running requests (`pods/exec`, `pods/log`, verb `proxy`, ...)
are not classified, except watches (`is_seen_by_apf`). Watches count in every release, although servers up to 1.21 skip them,
too. The *world* defines who makes requests:

- `"authenticated"` (default): groups are those that authentication gives. Everybody is in `system:authenticated`, except
  `system:anonymous`, who is only in `system:unauthenticated`. A service account is in its three groups and in no others, and
  nobody else is in groups of service accounts. User names that begin with `system:serviceaccount:` are those of service
  accounts. Everybody else can be in any other group or not: a node can lack `system:nodes`.
- `"any"`: every user name with every set of groups, as impersonation can create many of them.

A part of a FlowSchema *decides* about a request if the FlowSchema captures the request and the part is the first one of its kind
that matches: the first rule, in it the first subject, and the first resource rule or non-resource rule. All parts that never
decide can be removed at once, and every request goes to the same FlowSchema. The reverse is not true: `alice` could be removed
from `[User alice, Group system:authenticated]`, but she decides, so she is not reported.
"""
