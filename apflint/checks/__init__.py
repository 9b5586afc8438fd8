"""The rule table: the function, the phase and the tags of each rule.

A new rule needs a page in `rules/`, a function and an entry of this table.

A check is a pure function that yields Problems. Checks of the phase `validation` read a `Workspace`, which contains
only the manifests. Checks of the other phases read an `Effective`, which contains the configuration of the API server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from apflint.checks import (
    capacity,
    decoding,
    distinguisher,
    duplicate_and_built_in_objects,
    exemption,
    metadata,
    missed_requests,
    outsiders_in_reserved_levels,
    policy_rules,
    precedence,
    priority_level,
    reachability,
    redundant_flow_schemas,
    references,
    subjects,
    system_traffic,
    version_differences,
)
from apflint.named_tuple import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from apflint.effective_configuration import Effective
    from apflint.finding import Problem
    from apflint.workspace import Workspace

Phase = Literal["validation", "consistency", "analysis", "runtime"]
"""`validation` finds reasons why the API server rejects an object. `consistency` checks objects as they are written,
including rejected objects, and their references to each other. `analysis` checks the effects of accepted objects in a
cluster. `runtime` finds what a running server reports about itself; only `apflint doctor` runs these rules."""

OFF = "off"
"""The rule is off by default: it runs only if the user selects it. The rule page states this, too. The tag exists
because it would take time to read all rule pages."""
DECODING = "decoding"
"""The rule finds objects that the API server cannot decode. The server then does not validate the object."""
SELECTS_FIELDS = "selects-fields"
"""The rule is about the `type` of a level or limitResponse, or the `kind` of a subject. Depending on this value, the
API server validates different fields of the object."""
SINGLE_VALUE = "single-value"
"""A rule of the phase `analysis` that checks each value on its own. Such a rule also checks rejected objects, because
its findings stay true after the object is corrected. Only findings about a rejected value are omitted."""
ABOUT_CAPTURED_REQUESTS = "about-captured-requests"
"""The rule is about an effect on captured requests. The rule does not report unreachable FlowSchemas, because APF501
reports them."""
ABOUT_TAKEN_SEATS = "about-taken-seats"
"""The rule is about seats that a level takes from other levels. The rule does not report unused levels, because APF403
reports them."""
DEPENDS_ON_OTHERS = "depends-on-others"
"""Objects in other files can disprove a finding of the rule. For rules of the phase `analysis`, this is always assumed,
even without the tag."""
UNNECESSARY = "unnecessary"
"""The rule is about text without effect, which editors show faded."""
DEPRECATED = "deprecated"
"""The rule is about a deprecated or removed version or field, which editors strike out."""


class Check(NamedTuple):
    """An entry of `CHECKS`: the function that finds the problems of a rule, and the phase and tags of the rule."""

    find: Callable[[Effective], Iterable[Problem]]
    phase: Phase
    tags: frozenset[str]


def validation(find: Callable[[Workspace], Iterable[Problem]], *tags: str) -> Check:
    """Return the entry in `CHECKS` for a rule of the phase `validation`. `find` yields the problems of the rule."""
    return Check(lambda effective: find(effective.workspace), "validation", frozenset(tags))


def consistency(find: Callable[[Effective], Iterable[Problem]], *tags: str) -> Check:
    """Return the entry in `CHECKS` for a rule of the phase `consistency`. `find` yields the problems of the rule."""
    return Check(find, "consistency", frozenset(tags))


def analysis(find: Callable[[Effective], Iterable[Problem]], *tags: str) -> Check:
    """Return the entry of `CHECKS` for a rule of the phase `analysis`. `find` finds the problems of the rule."""
    return Check(find, "analysis", frozenset(tags))


def runtime() -> Check:
    """Return the entry for a rule of the phase `runtime`, which checks the state of a running API server.

    The `find` function of the entry yields nothing, because `apflint.doctor.rules` has the functions of
    these rules.
    """
    return Check(lambda _: (), "runtime", frozenset())


def _found_by_suppressions(_effective: Effective) -> Iterable[Problem]:
    """Return no problems. This function is the placeholder for APF901 to APF903 in the rule table.

    `apflint.suppressions` finds the problems of these rules after all other rules have run.
    """
    return ()


CHECKS: dict[str, Check] = {
    "APF001": validation(decoding.syntax_error),
    "APF002": validation(decoding.duplicate_key, DECODING),
    "APF003": validation(decoding.unrendered_template),
    "APF004": validation(decoding.unsafe_document),
    "APF005": validation(decoding.not_an_apf_object),
    "APF101": validation(decoding.unknown_field, DECODING),
    "APF102": validation(decoding.wrong_type, DECODING),
    "APF103": validation(metadata.invalid_metadata),
    "APF104": validation(metadata.namespace_on_cluster_scoped),
    "APF105": validation(metadata.server_populated_field, UNNECESSARY),
    "APF106": validation(metadata.duplicate_list_entry, UNNECESSARY),
    "APF201": validation(precedence.precedence_out_of_range),
    "APF202": validation(precedence.reserved_precedence),
    "APF203": validation(distinguisher.unknown_distinguisher),
    "APF204": validation(references.invalid_level_reference),
    "APF205": validation(subjects.rule_without_subjects),
    "APF206": validation(policy_rules.rule_without_requests),
    "APF207": validation(subjects.mismatched_subject, SELECTS_FIELDS),
    "APF208": validation(subjects.invalid_subject_name),
    "APF209": validation(policy_rules.empty_match_list),
    "APF210": validation(policy_rules.wildcard_with_others),
    "APF211": validation(policy_rules.unknown_verb),
    "APF212": validation(policy_rules.no_namespace_nor_cluster_scope),
    "APF213": validation(policy_rules.invalid_namespace),
    "APF214": validation(policy_rules.invalid_non_resource_url),
    "APF215": validation(duplicate_and_built_in_objects.mandatory_flow_schema_changed),
    "APF301": validation(priority_level.exempt_level_mismatch),
    "APF302": validation(priority_level.mismatched_level_type, SELECTS_FIELDS),
    "APF303": validation(priority_level.mismatched_limit_response, SELECTS_FIELDS),
    "APF304": validation(priority_level.shares_out_of_range),
    "APF305": validation(priority_level.hand_larger_than_deck),
    "APF306": validation(priority_level.shuffle_entropy_too_high),
    "APF307": validation(priority_level.queue_count_out_of_range),
    "APF308": validation(priority_level.queue_length_out_of_range),
    "APF309": validation(priority_level.hand_size_out_of_range),
    "APF310": validation(priority_level.percent_out_of_range),
    "APF311": validation(duplicate_and_built_in_objects.mandatory_level_changed),
    "APF312": validation(priority_level.forbidden_annotation),
    "APF401": consistency(references.dangling_priority_level, DEPENDS_ON_OTHERS),
    "APF402": consistency(duplicate_and_built_in_objects.duplicate_object),
    "APF403": consistency(references.unused_priority_level, DEPENDS_ON_OTHERS, UNNECESSARY),
    "APF404": consistency(duplicate_and_built_in_objects.suggested_object_overwritten),
    "APF405": consistency(duplicate_and_built_in_objects.object_deleted_by_server),
    "APF406": consistency(references.level_after_flow_schema),
    "APF407": consistency(references.traffic_to_catch_all, ABOUT_CAPTURED_REQUESTS),
    "APF408": consistency(references.reference_not_renamed),
    "APF501": analysis(reachability.shadowed_flow_schema, UNNECESSARY),
    "APF502": analysis(reachability.shadowed_rule, UNNECESSARY),
    "APF503": analysis(precedence.precedence_tie, ABOUT_CAPTURED_REQUESTS),
    "APF504": analysis(policy_rules.impossible_match, SINGLE_VALUE),
    "APF505": analysis(missed_requests.cluster_scope_missed, ABOUT_CAPTURED_REQUESTS),
    "APF506": analysis(policy_rules.namespaced_rule_for_cluster_resource),
    "APF507": analysis(system_traffic.system_traffic_captured, ABOUT_CAPTURED_REQUESTS),
    "APF508": analysis(missed_requests.non_resource_requests_missed, ABOUT_CAPTURED_REQUESTS),
    "APF509": analysis(precedence.implicit_precedence, SINGLE_VALUE, ABOUT_CAPTURED_REQUESTS),
    "APF510": analysis(distinguisher.single_flow, ABOUT_CAPTURED_REQUESTS),
    "APF511": analysis(distinguisher.idle_distinguisher, ABOUT_CAPTURED_REQUESTS, UNNECESSARY),
    "APF512": analysis(subjects.unlisted_subject, SINGLE_VALUE, ABOUT_CAPTURED_REQUESTS),
    "APF513": analysis(missed_requests.namespaced_requests_missed, ABOUT_CAPTURED_REQUESTS),
    "APF514": analysis(redundant_flow_schemas.captured_method, ABOUT_CAPTURED_REQUESTS),
    "APF515": analysis(system_traffic.discovery_captured, ABOUT_CAPTURED_REQUESTS),
    "APF516": analysis(redundant_flow_schemas.redundant_flow_schema, ABOUT_CAPTURED_REQUESTS, UNNECESSARY),
    "APF517": analysis(system_traffic.built_in_flow_schema_narrowed),
    "APF518": analysis(outsiders_in_reserved_levels.outsiders_in_reserved_level, ABOUT_CAPTURED_REQUESTS),
    "APF601": analysis(exemption.broad_exemption, SINGLE_VALUE, ABOUT_CAPTURED_REQUESTS),
    "APF602": analysis(capacity.zero_share_level, SINGLE_VALUE, ABOUT_CAPTURED_REQUESTS),
    "APF603": analysis(capacity.seats_taken, ABOUT_CAPTURED_REQUESTS, ABOUT_TAKEN_SEATS),
    "APF604": analysis(capacity.critical_level_lends, SINGLE_VALUE, ABOUT_CAPTURED_REQUESTS),
    "APF605": analysis(capacity.weak_isolation, ABOUT_CAPTURED_REQUESTS),
    "APF606": analysis(capacity.single_seat_level, ABOUT_CAPTURED_REQUESTS),
    "APF607": analysis(capacity.oversized_queues, SINGLE_VALUE, ABOUT_CAPTURED_REQUESTS),
    "APF608": analysis(capacity.queues_lowered),
    "APF609": analysis(capacity.unlimited_borrowing, ABOUT_CAPTURED_REQUESTS),
    "APF701": consistency(version_differences.removed_api_version, DEPRECATED),
    "APF702": consistency(version_differences.deprecated_api_version, DEPRECATED),
    "APF703": validation(decoding.renamed_field, DECODING, DEPRECATED),
    "APF704": consistency(version_differences.share_default_differs),
    "APF705": consistency(version_differences.default_object_gone, ABOUT_CAPTURED_REQUESTS),
    "APF801": runtime(),
    "APF802": runtime(),
    "APF803": runtime(),
    "APF804": runtime(),
    "APF805": runtime(),
    "APF806": runtime(),
    "APF807": runtime(),
    "APF808": runtime(),
    "APF809": runtime(),
    "APF810": runtime(),
    "APF811": runtime(),
    "APF812": runtime(),
    "APF813": runtime(),
    "APF814": runtime(),
    "APF815": runtime(),
    "APF816": runtime(),
    "APF817": runtime(),
    "APF818": runtime(),
    "APF819": runtime(),
    "APF820": runtime(),
    "APF821": runtime(),
    "APF901": consistency(_found_by_suppressions, DEPENDS_ON_OTHERS, UNNECESSARY),
    "APF902": consistency(_found_by_suppressions),
    "APF903": consistency(_found_by_suppressions, OFF),
}


def rules_of(phase: Phase) -> frozenset[str]:
    """Return the IDs of the rules that run in a phase, such as `validation` (see `Phase`)."""
    return frozenset(rule for rule, check in CHECKS.items() if check.phase == phase)


def rules_with(tag: str) -> frozenset[str]:
    """Return the IDs of the rules with a tag."""
    return frozenset(rule for rule, check in CHECKS.items() if tag in check.tags)
