"""Every rule and the function that finds it. A new rule is a page in `rules/`, a function here, and a line below.

A check is a pure function: it reads the Workspace and yields Problems, each a message about a place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.checks import (
    capacity,
    discovery,
    exemption,
    exports,
    flow_schema,
    flows,
    matching,
    metadata,
    missed_requests,
    objects,
    precedence,
    priority_level,
    queuing,
    reachability,
    redundancy,
    references,
    requests,
    seats,
    structure,
    subjects,
    system_traffic,
    text,
    unlisted_subjects,
    versions,
)
from apflint.finding import Place

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from apflint.finding import Problem
    from apflint.workspace import Workspace

    Check = Callable[[Workspace], Iterable[Problem]]

CHECKS: dict[str, Check] = {
    "APF001": text.syntax_error,
    "APF002": structure.duplicate_key,
    "APF003": text.unrendered_template,
    "APF004": text.unsafe_document,
    "APF005": text.not_an_apf_object,
    "APF101": structure.unknown_field,
    "APF102": structure.wrong_type,
    "APF103": metadata.invalid_metadata,
    "APF104": metadata.namespace_on_cluster_scoped,
    "APF105": exports.server_populated_field,
    "APF106": metadata.duplicate_list_entry,
    "APF201": flow_schema.precedence_out_of_range,
    "APF202": flow_schema.reserved_precedence,
    "APF203": flow_schema.unknown_distinguisher,
    "APF204": flow_schema.invalid_level_reference,
    "APF205": subjects.rule_without_subjects,
    "APF206": requests.rule_without_requests,
    "APF207": subjects.mismatched_subject,
    "APF208": subjects.invalid_subject_name,
    "APF209": requests.empty_match_list,
    "APF210": requests.wildcard_with_others,
    "APF211": requests.unknown_verb,
    "APF212": requests.no_namespace_nor_cluster_scope,
    "APF213": requests.invalid_namespace,
    "APF214": requests.invalid_non_resource_url,
    "APF215": flow_schema.mandatory_flow_schema_changed,
    "APF301": priority_level.exempt_level_mismatch,
    "APF302": priority_level.mismatched_level_type,
    "APF303": priority_level.mismatched_limit_response,
    "APF304": priority_level.shares_out_of_range,
    "APF305": queuing.hand_larger_than_deck,
    "APF306": queuing.shuffle_entropy_too_high,
    "APF307": queuing.queue_count_out_of_range,
    "APF308": queuing.queue_length_out_of_range,
    "APF309": queuing.hand_size_out_of_range,
    "APF310": priority_level.percent_out_of_range,
    "APF311": priority_level.mandatory_level_changed,
    "APF312": priority_level.forbidden_annotation,
    "APF401": references.dangling_priority_level,
    "APF402": objects.duplicate_object,
    "APF403": references.unused_priority_level,
    "APF404": objects.suggested_object_overwritten,
    "APF405": objects.object_deleted_by_server,
    "APF406": references.level_after_flow_schema,
    "APF407": references.traffic_to_catch_all,
    "APF501": reachability.shadowed_flow_schema,
    "APF502": reachability.shadowed_rule,
    "APF503": precedence.precedence_tie,
    "APF504": matching.impossible_match,
    "APF505": missed_requests.cluster_scope_missed,
    "APF506": matching.namespaced_rule_for_cluster_resource,
    "APF507": system_traffic.system_traffic_captured,
    "APF508": missed_requests.non_resource_requests_missed,
    "APF509": flows.implicit_precedence,
    "APF510": flows.single_flow,
    "APF511": flows.idle_distinguisher,
    "APF512": unlisted_subjects.unlisted_subject,
    "APF513": missed_requests.namespaced_requests_missed,
    "APF514": redundancy.captured_method,
    "APF515": discovery.discovery_captured,
    "APF516": redundancy.redundant_flow_schema,
    "APF517": system_traffic.built_in_flow_schema_narrowed,
    "APF601": exemption.broad_exemption,
    "APF602": capacity.zero_share_level,
    "APF603": seats.seats_taken,
    "APF604": capacity.critical_level_lends,
    "APF605": capacity.weak_isolation,
    "APF606": capacity.single_seat_level,
    "APF607": capacity.oversized_queues,
    "APF701": versions.removed_api_version,
    "APF702": versions.deprecated_api_version,
    "APF703": structure.renamed_field,
    "APF704": versions.share_default_differs,
    "APF705": references.default_object_gone,
    "APF901": text.about_suppressions,
    "APF902": text.about_suppressions,
    "APF903": text.about_suppressions,
}

OFF = frozenset({"APF903"})
"""Rules that run only when they are selected. Their pages say `off`; this saves reading them."""

VALIDATION = frozenset(rule for rule in CHECKS if rule < "APF4") | {"APF703"}
"""Rules of which some findings mean that the API server rejects the object."""
ANALYSIS = frozenset(rule for rule in CHECKS if "APF5" <= rule < "APF7")
"""Rules about what objects do in a cluster: they see only those that the API server accepts, except for `SINGLE_VALUES`."""
SINGLE_VALUES = frozenset({"APF504", "APF509", "APF512", "APF601", "APF602", "APF604", "APF607"})
"""Rules of `ANALYSIS` that judge single values of an object, whatever else there is. They see rejected objects, too: what
they report there is as true when the object is accepted. Only what the API server rejects about the same value is left out."""
_ABOUT_REQUESTS = (ANALYSIS | {"APF407"}) - {"APF501", "APF502", "APF504", "APF506"}
"""Rules about how the requests of a FlowSchema are treated; not those that report why it gets none."""


def is_explained(workspace: Workspace, rule: str, problem: Problem, rules: Collection[str]) -> bool:
    """Whether a finding says nothing new beside another one: how the requests of a FlowSchema are treated that gets none.

    `workspace` has only accepted objects, `rules` are those that run. Nothing is proved as long as there is no such finding.
    """
    if rule not in _ABOUT_REQUESTS or "APF501" not in rules or not isinstance(problem.place, Place):
        return False
    document = problem.place.document
    return document.kind == "FlowSchema" and id(document) in reachability.unreachable_documents(workspace)
