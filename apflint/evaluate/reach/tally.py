"""Of which parts it is known that they decide about something: a byte for each, however many thousands there are."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from apflint.evaluate.index import Index
    from apflint.evaluate.reach.parts import Key
    from apflint.evaluate.resolve import Configuration, Resolution


class Tally:
    """The parts of all FlowSchemas of a configuration."""

    def __init__(self, configuration: Configuration, index: Index) -> None:
        self._order = configuration.order
        self._first_rule = index.first_rule
        self._schemas = bytearray(len(self._order))
        self._starts = array("L", [0])
        for schema in self._order:
            for rule in schema.spec.rules:
                entries = len(rule.subjects) + len(rule.resource_rules) + len(rule.non_resource_rules)
                self._starts.append(self._starts[-1] + 1 + entries)
        self._parts = bytearray(self._starts[-1])

    def note(self, resolution: Resolution) -> None:
        """All parts that decide about a request."""
        position, found = resolution.position, resolution.matched_by
        self._schemas[position] = 1
        if found is None:
            return
        start = self._starts[self._first_rule[position] + found.rule]
        rule = self._order[position].spec.rules[found.rule]
        self._parts[start] = 1
        start += 1
        self._parts[start + found.subject] = 1
        start += len(rule.subjects)
        if found.resource_rule is not None:
            self._parts[start + found.resource_rule] = 1
        elif found.non_resource_rule is not None:
            self._parts[start + len(rule.resource_rules) + found.non_resource_rule] = 1

    def complete(self, position: int) -> bool:
        """Whether all parts of a FlowSchema are known to decide."""
        first, end = self._starts[self._first_rule[position]], self._starts[self._first_rule[position + 1]]
        return bool(self._schemas[position]) and self._parts.find(0, first, end) < 0

    def __contains__(self, key: Key) -> bool:
        position, at, member, entry = key
        if at is None:
            return bool(self._schemas[position])
        number = self._starts[self._first_rule[position] + at]
        if entry is not None:
            rule = self._order[position].spec.rules[at]
            number += 1 + entry
            number += len(rule.subjects) if member != "subjects" else 0
            number += len(rule.resource_rules) if member == "nonResourceRules" else 0
        return bool(self._parts[number])
