"""Which requests reach what: an exact decision procedure over all requests that there can be.

`single.Analysis` answers questions about one configuration, `pair.Comparison` questions about two. Both keep what they work
out, so ask the same object again.

What a *request* is here: one that API Priority and Fairness classifies. Long-running ones (`pods/exec`, `pods/log`, verb
`proxy`, ...) never are, watches excepted (`seen_by_apf`). Watches count in every release, although servers up to 1.21 skip
them too. `world` says who may ask:

- `"authenticated"` (default): groups are what authentication gives. Everybody is in `system:authenticated`, but
  `system:anonymous` in `system:unauthenticated` and nowhere else; a service account is in its three groups and in no
  other, and nobody else is in groups of service accounts; user names that begin with `system:serviceaccount:` are those
  of service accounts. All other groups may be anybody else's, or not: a node may lack `system:nodes`.
- `"any"`: every user name with every set of groups, as impersonation can make many of them.

A part of a FlowSchema *decides* about a request when the FlowSchema takes it (the first in the order that matches) and
`apflint.evaluate.classify.matched_by` names the part: the first rule that matches, in it the first subject, and the first
resource rule or non-resource rule. A part that never decides can be removed, and all such parts at once, without any
request going elsewhere. The reverse does not hold: in `[User alice, Group system:authenticated]` alice could be removed,
but she does decide, so nothing is said about her.
"""
