"""Proofs about all possible requests: that a FlowSchema captures some request, or that it captures no request.

Use `one_configuration.Analysis` for one configuration, and `two_configurations.ConfigurationComparison` for two. Both
classes cache a formula and results, so reuse their objects. The terms of this package:

- *request*: a request that API Priority and Fairness classifies. Long-running requests (`pods/exec`, verb `proxy`, ...) do
  not count. Watches count if the server classifies them, which releases up to 1.21 do not. In a comparison of two
  configurations, both servers must classify them.
- *requester*: a user name together with the groups of a request by this user.
- *world*: an assumption about which requesters exist. In the world `"authenticated"` (default), users have the groups that
  authentication gives them. `system:anonymous` is only in `system:unauthenticated`. Service accounts are only in their
  three groups. All other users are in `system:authenticated`, and may be in any group except groups of service accounts.
  In the world `"any"`, every user name occurs with every set of groups, because impersonation allows every combination.
- *entry*: a resource rule or non-resource rule of a rule.
- *part* of a FlowSchema: the FlowSchema itself, a rule, or a subject or entry of a rule.
- A part *decides* about a request if its FlowSchema captures the request and the part is the first of its kind that matches:
  the first rule, the first subject of this rule, or the first entry of this rule. If all parts that never decide about any
  request are removed, every request still goes to the same FlowSchema.
- *vocabulary*: the values of request attributes that represent all possible values (module `vocabulary`).
- *literal*: an integer that stands for a condition in a formula, such as "this rule matches". The solver (of Boolean
  satisfiability, SAT) looks for a *model*: values of the variables that make every clause of the formula true. A model
  stands for a request.
- *claim*: a condition on a request that a proof is about, such as "this FlowSchema captures the request".
- *witness*: a request that fulfills a claim, confirmed by the classifier (`apflint.evaluate.classify`).
"""
