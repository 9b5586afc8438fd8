"""Builds a proposal for a goal: the changes, their text, and the proofs about the text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.load import load
from apflint.named_tuple import NamedTuple
from apflint.propose.changes import Cost, NewFlowSchema, NewLevel, add_objects, apply_changes, find_forbidden, measure
from apflint.propose.isolation import IsolationProposal, NoProposal, propose_isolation
from apflint.propose.manifests import write_manifests, write_policy_test
from apflint.propose.proof import Proof, prove

if TYPE_CHECKING:
    from collections.abc import Callable

    from apflint.effective_configuration import Effective
    from apflint.propose.goals import Isolation


class ProvenProposal(NamedTuple):
    """Changes that meet a goal, as text, with the proofs about this text."""

    isolation: IsolationProposal
    before: Effective
    after: Effective
    """The configuration with the manifests as they are written."""
    manifests: str
    """The new objects as YAML, or "" if there are none."""
    policy_test: str
    """A suite that pins the intention, or "" if there are no new objects."""
    proof: Proof
    cost: Cost


def build_proposal(
    effective: Effective, goal: Isolation, command: str, name_manifests: Callable[[str], tuple[str, ...]], cluster: str
) -> ProvenProposal | NoProposal:
    """Return the smallest proven proposal for a goal, or why there is none.

    `command` is the command line, for a comment. `name_manifests` returns the words that name the configuration with the
    proposal in the policy test, if the objects have a certain name. `cluster` is a cluster of the settings, or "".

    Raises UserError as `propose_isolation` does.
    """
    found = propose_isolation(effective, goal)
    if isinstance(found, NoProposal):
        return found
    forbidden = find_forbidden(effective, found.changes)
    if forbidden:
        return NoProposal("; ".join(forbidden))
    text = write_manifests(found, effective, apply_changes(effective, found.changes), command)
    # The proofs are about the bytes that a user applies, read as a file.
    fields = tuple(change for change in found.changes if not isinstance(change, NewLevel | NewFlowSchema))
    after = apply_changes(effective, fields)
    name = found.flow_schema.name if found.flow_schema is not None else ""
    if text:
        after = add_objects(after, [load(f"{name}.yaml", text.encode())])
    proof = prove(effective, after, found.find_intention(after))
    if proof.failures:
        return NoProposal("; ".join(proof.failures))
    suite = write_policy_test(found, after, name_manifests(name), cluster) if text else ""
    return ProvenProposal(found, effective, after, text, suite, proof, measure(found.changes, effective, after))
