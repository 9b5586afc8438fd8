"""Builds a proposal for a goal: the changes, their YAML, and proofs about this YAML."""

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
    """Changes that meet a goal, their YAML, and the proofs about this YAML."""

    isolation: IsolationProposal
    before: Effective
    after: Effective
    """The configuration that results from the written manifests."""
    manifests: str
    """The new objects as YAML, or "" if there are none."""
    policy_test: str
    """The policy test of the intention as YAML, or "" if there are no new objects."""
    proof: Proof
    cost: Cost

    @property
    def name(self) -> str:
        """Name of the files of the proposal."""
        return self.isolation.name

    @property
    def edits_objects(self) -> bool:
        """Whether the manifests contain changed copies of existing objects.

        This is always False, because the manifests contain only new objects.
        """
        return False


def build_proposal(
    effective: Effective, goal: Isolation, command: str, name_manifests: Callable[[str], tuple[str, ...]], cluster: str
) -> ProvenProposal | NoProposal:
    """Return the smallest proven proposal for a goal, or the reason why there is none.

    `command` is the command line, which a comment in the manifests shows. `name_manifests` gets the name of the new
    objects, and returns the command-line arguments for the configuration with the proposal. `cluster` is a cluster of
    the settings, or "".

    Raises UserError if the goal has more seats than an API server.
    """
    found = propose_isolation(effective, goal)
    if isinstance(found, NoProposal):
        return found
    forbidden = find_forbidden(effective, found.changes)
    if forbidden:
        return NoProposal("; ".join(forbidden))
    text = write_manifests(found, effective, apply_changes(effective, found.changes), command)
    # Read the written YAML back, so that the proofs are about the bytes that a user applies.
    fields = tuple(change for change in found.changes if not isinstance(change, NewLevel | NewFlowSchema))
    after = apply_changes(effective, fields)
    if text:
        after = add_objects(after, [load(f"{found.name}.yaml", text.encode())])
    proof = prove(effective, after, found.find_intention(after))
    if proof.failures:
        return NoProposal("; ".join(proof.failures))
    suite = write_policy_test(found, after, name_manifests(found.name), cluster) if text else ""
    return ProvenProposal(found, effective, after, text, suite, proof, measure(found.changes, effective, after))
