"""Selection of the rules to run, by selectors on the command line and in settings files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint import rule_catalogue
from apflint.named_tuple import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence


class RuleSelector(NamedTuple):
    """A rule ID, a prefix of IDs (`APF2`) or a rule name, with the IDs of the selected rules."""

    text: str
    rules: tuple[str, ...]


def parse_selector(text: str) -> RuleSelector:
    """Parse a selector. Raises UserError, which suggests a similar ID or name, if `text` selects no rule."""
    return RuleSelector(text, rule_catalogue.select_ids(text))


def select_rules(
    select: Sequence[RuleSelector] | None = None,
    extend_select: Sequence[RuleSelector] = (),
    ignore: Sequence[RuleSelector] = (),
    off: Collection[str] = (),
) -> tuple[str, ...]:
    """Return the IDs of the rules to run, in the order of `CHECKS`.

    `select` replaces the rules that are enabled by default, and `extend_select` adds rules. If one selector selects a rule, and
    another selector ignores the rule, the longer selector decides, because it is more specific. Rules in `off` never run.
    """
    from apflint.checks import CHECKS, OFF, rules_with  # imported here, because importing all checks takes time

    selected = (*(select or ()), *extend_select)
    rules = set(CHECKS) - rules_with(OFF) if select is None else set()
    rules.update(rule for selector in selected for rule in selector.rules)
    for ignored in ignore:
        more_specific = {
            rule for selector in selected if len(selector.text) > len(ignored.text) for rule in selector.rules
        }
        rules -= set(ignored.rules) - more_specific
    return tuple(rule for rule in CHECKS if rule in rules and rule not in off)
