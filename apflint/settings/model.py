"""The settings of a run, combined from the settings file, the command line and the defaults."""

from __future__ import annotations

import os
from functools import cache, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from apflint.named_tuple import NamedTuple
from apflint.releases import NEWEST, SERVER_CONCURRENCY
from apflint.rule_selection import RuleSelector, select_rules
from apflint.settings.patterns import PathMatcher, Patterns
from apflint.user_error import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Literal

    from apflint.engine import Options
    from apflint.finding import Finding, Severity
    from apflint.releases import Release
    from apflint.settings.clusters import ClusterSettings

    FailOn = Severity | Literal["never"]

_EMPTY: Mapping[Any, Any] = MappingProxyType({})


class Settings(NamedTuple):
    """The settings of a run, with parsed values."""

    select: tuple[RuleSelector, ...] | None = None
    """Rules to run instead of the rules that are enabled by default, or None to run the default rules."""
    extend_select: tuple[RuleSelector, ...] = ()
    ignore: tuple[RuleSelector, ...] = ()
    severity: Mapping[str, Severity | Literal["off"]] = _EMPTY
    """Severity of rules. The keys are rule IDs. `off` disables a rule."""
    per_file_ignores: Mapping[str, tuple[str, ...]] = _EMPTY
    """IDs of ignored rules for each file pattern. Patterns are relative to the directory of the settings file."""
    fail_on: FailOn = "error"
    kubernetes: Release = NEWEST
    exclude: Patterns = Patterns()
    context: tuple[str, ...] = ()
    complete: bool = False
    server_concurrency: int = SERVER_CONCURRENCY
    format: str = "text"
    cluster: tuple[ClusterSettings, ...] = ()
    """The clusters of the project. If there are none, all manifests belong to one cluster."""
    path: str | None = None
    """The settings file, relative to the current directory, or None if no settings file is used."""
    origins: Mapping[str, str] = _EMPTY
    """Source of each field that is set: the path of the settings file, or `command line`. Other fields have defaults."""

    def prepare_options(self, *, suppressions: bool = True) -> Callable[[], Options]:
        """Return a function without arguments that returns the options for checking manifests (`to_options`).

        The returned function computes the options at its first call. A run without APF objects does not
        call the function, and so does not import the checks.

        If the settings exclude rules, `prepare_options` itself computes the options, so that an error is
        raised early. Raises UserError if no rule is left to run.
        """
        if self.select == () or self.ignore or "off" in self.severity.values():
            options = self.to_options(suppressions=suppressions)
            return lambda: options
        return cache(partial(self.to_options, suppressions=suppressions))

    def to_options(self, *, suppressions: bool = True) -> Options:
        """Return the options for checking manifests. If `suppressions` is false, the check ignores suppressions.

        Raises UserError if no rule is left to run.
        """
        from apflint.checks import OFF, rules_with
        from apflint.effective_configuration import Assumptions
        from apflint.engine import Options

        # If the settings contain a severity for a rule that is off by default, the severity also enables the rule.
        with_severity = (RuleSelector(rule, (rule,)) for rule, level in self.severity.items() if level != "off")
        rules = select_rules(
            self.select,
            (*self.extend_select, *(selector for selector in with_severity if selector.text in rules_with(OFF))),
            self.ignore,
            off=[rule for rule, level in self.severity.items() if level == "off"],
        )
        if not rules:
            raise UserError("No rule is left to run: every selected rule is ignored.")
        return Options(
            kubernetes=self.kubernetes,
            rules=rules,
            assumptions=Assumptions(complete=self.complete, server_concurrency=self.server_concurrency),
            suppressions=suppressions,
            adjust=self._adjustment(),
        )

    def _adjustment(self) -> Callable[[Finding], Finding | None] | None:
        """Return a function that applies `severity` and `per_file_ignores`, or None if both settings are empty.

        The function takes a finding. It returns the finding with the severity of the settings, or None if the finding
        is ignored.
        """
        if not self.severity and not self.per_file_ignores:
            return None
        directory = os.path.realpath(os.path.dirname(os.path.abspath(self.path or "")))
        any_file = PathMatcher(Patterns(tuple(self.per_file_ignores), directory))
        matchers = [(PathMatcher(Patterns((glob,), directory)), rules) for glob, rules in self.per_file_ignores.items()]

        @cache  # computed once for each file, because a file may have thousands of findings
        def ignored_rules(file: str) -> frozenset[str]:
            if not any_file.matches_or_parent(file):
                return frozenset()
            return frozenset(rule for matcher, rules in matchers if matcher.matches_or_parent(file) for rule in rules)

        def adjust(finding: Finding) -> Finding | None:
            if finding.rule in ignored_rules(finding.file):
                return None
            severity = self.severity.get(finding.rule, "off")
            return finding if severity == "off" else finding._replace(severity=severity)

        return adjust


KEYS = {field.replace("_", "-"): field for field in Settings._fields if field not in ("path", "origins")}
"""Keys of a settings file, with the field of `Settings` for each key: `{"extend-select": "extend_select", ...}`."""
