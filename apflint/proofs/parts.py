"""The parts of a FlowSchema that may or may not decide about a request, and how a request that proves it is told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from apflint.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from apflint.evaluate.match import RequestDigest
    from apflint.location import Path
    from apflint.model import FlowSchema, PolicyRulesWithSubjects

World = Literal["authenticated", "any"]
"""Which requests there are: those whose groups authentication gives, or those with any user and any groups at all."""
Member = Literal["subjects", "resourceRules", "nonResourceRules"]

Key = tuple[int, int | None, Member | None, int | None]
"""A part by number: position of the FlowSchema in the order, rule, member, entry."""


class Part(NamedTuple):
    """A FlowSchema (`rule` is None), one of its rules (`member` is None), or an entry of a list of that rule."""

    schema: FlowSchema
    rule: int | None = None
    member: Member | None = None
    entry: int | None = None

    @property
    def path(self) -> Path:
        """The field: `("spec", "rules", 0, "subjects", 1)`; `("metadata", "name")` for the FlowSchema as a whole."""
        if self.rule is None:
            return ("metadata", "name")
        if self.member is None or self.entry is None:
            return ("spec", "rules", self.rule)
        return ("spec", "rules", self.rule, self.member, self.entry)


_SIBLING_WORK = 8
"""Cost of a rule or entry beside a part in a proof, in units of the cost of a FlowSchema."""


def proof_work(schemas: int, part: Part) -> int:
    """Return what a proof about a part costs among this number of FlowSchemas, in units of `MAX_REACHABILITY_WORK`."""
    if part.rule is None:
        return schemas
    rule = part.schema.spec.rules[part.rule]
    entries = {
        "subjects": rule.subjects,
        "resourceRules": rule.resource_rules,
        "nonResourceRules": rule.non_resource_rules,
    }
    siblings = part.rule + (0 if part.member is None else len(entries[part.member]))
    return schemas + _SIBLING_WORK * siblings


def only(part: Part) -> PolicyRulesWithSubjects:
    """Return a rule that matches what a rule or an entry matches. `part` must not be a whole FlowSchema."""
    assert part.rule is not None
    rule = part.schema.spec.rules[part.rule]
    if part.entry is None:
        return rule
    if part.member == "subjects":
        return rule._replace(subjects=(rule.subjects[part.entry],))
    if part.member == "resourceRules":
        return rule._replace(resource_rules=(rule.resource_rules[part.entry],), non_resource_rules=())
    return rule._replace(resource_rules=(), non_resource_rules=(rule.non_resource_rules[part.entry],))


class Witness(NamedTuple):
    """A request that proves a claim: held against the configuration it gives exactly what was claimed."""

    digest: RequestDigest
    words: tuple[str, ...] | None
    """The arguments that `apflint explain` takes for it: `("list", "pods", "-n", "dev", "--as", "alice")`.

    None where it takes groups that authentication would not give, which happens only in the world `any`: the command
    line adds what authentication adds. Then `record` says it.
    """
    record: Mapping[str, object]
    """The same as a line of a file for `apflint explain --requests`, where groups are taken as given."""

    @property
    def command(self) -> str:
        """The request as a command to try: `apflint explain list pods -n dev --as alice`. The record if no words give it."""
        import shlex

        return f"apflint explain {shlex.join(self.words)}" if self.words is not None else f"{self.record}"


class Move(NamedTuple):
    """Requests that go elsewhere in another configuration."""

    from_schema: FlowSchema
    to_schema: FlowSchema
    from_level: str
    to_level: str
    witness: Witness
