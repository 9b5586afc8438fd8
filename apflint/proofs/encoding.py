"""A configuration as a formula. Its models are the requests that the values of a vocabulary make up.

Each attribute of a request has a variable for each value, and exactly one of them is true. Each group is a variable. Every
subject, list, rule and FlowSchema is a literal that is true if and only if it matches (Tseitin's encoding, both directions);
equal ones share a literal. That "the third FlowSchema captures a request" is then two assumptions, whatever precedes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import finalize

from apflint.evaluate.authentication import ANONYMOUS, AUTHENTICATED, NODES, SERVICE_ACCOUNTS, UNAUTHENTICATED
from apflint.evaluate.configuration import CATCH_ALL
from apflint.evaluate.match import ALL, SERVICE_ACCOUNT_PREFIX
from apflint.proofs.request_space import (
    ANYBODY,
    SERVICE_ACCOUNTS_OF,
    SYSTEM_PREFIX,
    Point,
    is_free_group,
    is_ordinary_user,
    path_traits,
    resource_traits,
    usual_groups,
    verb_traits,
)
from apflint.proofs.vocabulary import scope

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from apflint.evaluate.configuration import Configuration
    from apflint.model import FlowSchema, NonResourcePolicyRule, PolicyRulesWithSubjects, ResourcePolicyRule, Subject
    from apflint.proofs.request_space import Requesters
    from apflint.proofs.vocabulary import Axis, Vocabulary

_MAX_PAIRWISE = 6
"""Number of values up to which "at most one" is a clause for each pair."""


class Formula:
    """Clauses over numbered variables, and a solver for them. Literals are signed numbers, as in DIMACS."""

    def __init__(self) -> None:
        from pysat.solvers import Solver  # type: ignore[import-untyped]  # 20 ms that most runs do not need

        self._solver = Solver(name="minisat22")
        # Before the interpreter unloads modules: the __del__ of python-sat fails after that, and prints so.
        finalize(self, self._solver.delete)
        self._new_clauses: list[list[int]] = []
        self._disjunctions: dict[frozenset[int], int] = {}
        self._variables = 0
        self.true = self.add_variable()
        self.false = -self.true
        self.add_clause(self.true)

    def add_variable(self) -> int:
        """Return a new variable."""
        self._variables += 1
        return self._variables

    def add_clause(self, *literals: int) -> None:
        """Require that one of the literals is true."""
        self._new_clauses.append(list(literals))

    def any_of(self, literals: Iterable[int]) -> int:
        """Return a literal that is true if and only if one of these is."""
        disjunction = frozenset(literals)
        if self.true in disjunction:
            return self.true
        disjunction -= {self.false}
        if len(disjunction) < 2:
            return next(iter(disjunction), self.false)
        variable = self._disjunctions.get(disjunction)
        if variable is None:
            variable = self._disjunctions[disjunction] = self.add_variable()
            self._new_clauses.append([-variable, *disjunction])
            self._new_clauses += ([-literal, variable] for literal in disjunction)
        return variable

    def all_of(self, literals: Iterable[int]) -> int:
        """Return a literal that is true if and only if all of these are."""
        return -self.any_of(-literal for literal in literals)

    def implying(self, literals: Iterable[int]) -> int:
        """Return a new variable that, if it is true, makes all of these true."""
        variable = self.add_variable()
        for literal in literals:
            self.add_clause(-variable, literal)
        return variable

    def exactly_one(self, variables: Sequence[int]) -> None:
        """Require that exactly one of the variables is true. For many, the number of clauses is linear (a ladder)."""
        self.add_clause(*variables)
        if len(variables) <= _MAX_PAIRWISE:
            self._new_clauses += (
                [-variable, -other] for at, variable in enumerate(variables) for other in variables[:at]
            )
            return
        before = variables[0]
        for variable in variables[1:]:
            so_far = self.add_variable()
            self._new_clauses += ([-before, -variable], [-before, so_far], [-variable, so_far])
            before = so_far

    def solve(self, assumptions: Iterable[int]) -> bool:
        """Return whether there is a model in which all of these are true."""
        if self._new_clauses:
            self._solver.append_formula(self._new_clauses)
            self._new_clauses = []
        return bool(self._solver.solve(assumptions=list(assumptions)))

    def model(self) -> list[int]:
        """Return the last model: the literal of variable n at index n - 1."""
        model: list[int] = self._solver.get_model()
        return model

    def core(self) -> frozenset[int]:
        """Return assumptions of the last `solve` that have no model."""
        return frozenset(self._solver.get_core() or ())


class Encoding:
    """The literals of subjects, rules and FlowSchemas over one vocabulary."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.formula = Formula()
        self.vocabulary = vocabulary
        self._literals: dict[Hashable, int] = {}
        self._is_resource = self.formula.add_variable()
        self._users = self._add_values(vocabulary.users)
        self._user = dict(zip(vocabulary.users, self._users, strict=True))
        self._groups = {group: self.formula.add_variable() for group in vocabulary.groups}
        self._verbs = self._add_values(vocabulary.verbs.values)
        self._api_groups = self._add_values(vocabulary.api_groups.values)
        self._resources = self._add_values(vocabulary.resources.values)
        self._namespaces = self._add_values(vocabulary.namespaces.values)
        self._http_verbs = self._add_values(vocabulary.http_verbs.values)
        self._paths = self._add_values(vocabulary.paths.values)
        self._constrain_resources()
        if vocabulary.world == "authenticated":
            self._constrain_groups()

    def schema(self, schema: FlowSchema) -> int:
        """Return the literal that the FlowSchema matches."""
        return self.formula.any_of(self.rule(rule) for rule in schema.spec.rules)

    def rule(self, rule: PolicyRulesWithSubjects) -> int:
        """Return the literal that the rule matches."""
        literal = self._literals.get(rule)
        if literal is None:
            entries = [self.resource_rule(entry) for entry in rule.resource_rules]
            entries += [self.non_resource_rule(entry) for entry in rule.non_resource_rules]
            requester = self.formula.any_of(self.subject(subject) for subject in rule.subjects)
            literal = self._literals[rule] = self.formula.all_of((requester, self.formula.any_of(entries)))
        return literal

    def subject(self, subject: Subject) -> int:
        """Return the literal that the subject matches, whatever the request is for."""
        if subject.kind == "User" and subject.user is not None:
            return self.formula.true if subject.user == ALL else self._user.get(subject.user, self.formula.false)
        if subject.kind == "Group" and subject.group is not None:
            return self.formula.true if subject.group == ALL else self._groups[subject.group]
        if subject.kind == "ServiceAccount" and subject.service_account is not None:
            namespace, name = subject.service_account
            if name == ALL:
                return self._any_account(namespace)
            return self._user.get(f"{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}", self.formula.false)
        return self.formula.false

    def resource_rule(self, rule: ResourcePolicyRule) -> int:
        """Return the literal that the entry matches, whoever makes the request."""
        literal = self._literals.get(rule)
        if literal is None:
            words = self.vocabulary
            literal = self._literals[rule] = self.formula.all_of(
                (
                    self._is_resource,
                    self._any_value(words.verbs, rule.verbs, self._verbs),
                    self._any_value(words.api_groups, rule.api_groups, self._api_groups),
                    self._any_value(words.resources, rule.resources, self._resources),
                    self._any_value(words.namespaces, scope(rule), self._namespaces),
                )
            )
        return literal

    def non_resource_rule(self, rule: NonResourcePolicyRule) -> int:
        """Return the literal that the entry matches, whoever makes the request."""
        literal = self._literals.get(rule)
        if literal is None:
            literal = self._literals[rule] = self.formula.all_of(
                (
                    -self._is_resource,
                    self._any_value(self.vocabulary.http_verbs, rule.verbs, self._http_verbs),
                    self._any_value(self.vocabulary.paths, rule.non_resource_urls, self._paths),
                )
            )
        return literal

    def requesters(self, requesters: Requesters) -> int:
        """Return an assumption: one of these users makes the request. Its negation has no meaning.

        In the world `any` nobody is one of the system users, because groups do not come with a user there.
        """
        if requesters == ANYBODY:
            return self.formula.true
        literal = self._literals.get(requesters)
        if literal is None:
            if requesters.kind == "ordinary":
                system = [variable for user, variable in self._user.items() if user.startswith(SYSTEM_PREFIX)]
                system += [self._groups[NODES]] if NODES in self._groups else []
                literal = self.formula.implying(-variable for variable in system)
            elif self.vocabulary.world == "any":
                literal = self.formula.false
            else:
                literal = self.formula.any_of(
                    self.formula.all_of((variable, self._own_groups(user)))
                    for user, variable in self._user.items()
                    if user.startswith(SYSTEM_PREFIX) and requesters.user in (None, user)
                )
            self._literals[requesters] = literal
        return literal

    def solve(self, *assumptions: int, by: Requesters = ANYBODY) -> Point | None:
        """Return a request by one of these users for which the assumptions are true, or None if there is none."""
        return self._point() if self.formula.solve((*assumptions, self.requesters(by))) else None

    def solve_among(self, among: Sequence[Requesters], *assumptions: int) -> Point | None:
        """Return such a request by a user of the earliest set that has one.

        Most questions have no answer at all, so all users are tried first: that costs one call instead of one for each set.
        """
        point = self.solve(*assumptions)
        if point is None or among[0].include(point.user, point.groups):
            return point
        for requesters in among:
            if requesters == ANYBODY:
                return point
            if (better := self.solve(*assumptions, by=requesters)) is not None:
                return better
        return None

    def _point(self) -> Point:
        """Return the request of the last model."""
        model = self.formula.model()
        words = self.vocabulary
        user = _chosen(words.users, self._users, model)
        groups = [group for group, variable in self._groups.items() if model[variable - 1] > 0]
        if words.world == "authenticated":
            # Groups that no FlowSchema names change nothing; show the usual ones.
            groups += (group for group in usual_groups(user) if group not in self._groups)
        if model[self._is_resource - 1] < 0:
            verb = _chosen(words.http_verbs.values, self._http_verbs, model)
            path = _chosen(words.paths.values, self._paths, model)
            return Point(user, tuple(groups), False, verb, path=path)
        return Point(
            user,
            tuple(groups),
            True,
            _chosen(words.verbs.values, self._verbs, model),
            _chosen(words.api_groups.values, self._api_groups, model),
            _chosen(words.resources.values, self._resources, model),
            _chosen(words.namespaces.values, self._namespaces, model),
        )

    def _own_groups(self, user: str) -> int:
        """Return an assumption: the request has the usual groups of this user, and no others."""
        if not is_ordinary_user(user):
            return self.formula.true  # their groups are forced
        own = frozenset(usual_groups(user))
        literal = self._literals.get(own)
        if literal is None:
            literal = self._literals[own] = self.formula.implying(
                variable if group in own else -variable
                for group, variable in self._groups.items()
                if is_free_group(group)
            )
        return literal

    def _add_values(self, values: Sequence[str]) -> list[int]:
        variables = [self.formula.add_variable() for _ in values]
        self.formula.exactly_one(variables)
        return variables

    def _any_value(self, axis: Axis, key: object, variables: list[int]) -> int:
        """Return the literal that a list covers the value of an attribute."""
        covered = axis.covers[key]
        if len(covered) == len(variables):
            return self.formula.true
        return self.formula.any_of(variables[at] for at in covered)

    def _any_account(self, namespace: str) -> int:
        prefix = f"{SERVICE_ACCOUNT_PREFIX}{namespace}:"
        return self.formula.any_of(self._users[at] for at in self.vocabulary.by_prefix.get(prefix, ()))

    def _constrain_resources(self) -> None:
        """Exclude the pairs of attributes that no request has. Values of attributes that do not apply stay free."""
        words, add_clause = self.vocabulary, self.formula.add_clause
        verbs = [
            (verb_traits(value), variable) for value, variable in zip(words.verbs.values, self._verbs, strict=True)
        ]
        for value, resource in zip(words.resources.values, self._resources, strict=True):
            traits = resource_traits(value)
            if traits.watch_only:
                add_clause(-resource, *(verb for allowed, verb in verbs if allowed.watch_only))
            if traits.no_namespace:
                add_clause(-resource, self._namespaces[words.namespaces.values.index("")])
            if traits.no_collection:
                for excluded, verb in verbs:
                    if excluded.no_collection:
                        add_clause(-resource, -verb)
        watch = self._http_verbs[words.http_verbs.values.index("watch")]
        for value, path in zip(words.paths.values, self._paths, strict=True):
            if path_traits(value).watch_only:
                add_clause(-path, watch)

    def _constrain_groups(self) -> None:
        """Give users the groups that authentication gives them (`request_space.has_authentic_groups`)."""
        anonymous = self._user.get(ANONYMOUS, self.formula.false)
        account = self.formula.any_of(
            variable for user, variable in self._user.items() if user != ANONYMOUS and not is_ordinary_user(user)
        )
        forced = {AUTHENTICATED: -anonymous, UNAUTHENTICATED: anonymous, SERVICE_ACCOUNTS: account}
        for group, variable in self._groups.items():
            if is_free_group(group):
                self.formula.add_clause(-variable, -account)
                self.formula.add_clause(-variable, -anonymous)
                continue
            members = forced.get(group)
            if members is None:
                members = self._any_account(group.removeprefix(SERVICE_ACCOUNTS_OF))
            self.formula.add_clause(-variable, members)
            self.formula.add_clause(variable, -members)


class Destinations:
    """The literals for the FlowSchemas that capture a request in one configuration."""

    def __init__(self, encoding: Encoding, configuration: Configuration) -> None:
        self._encoding = encoding
        self._order = configuration.order
        any_of = encoding.formula.any_of
        self.captured_before = [encoding.formula.false]
        """By position: the literal that an earlier FlowSchema matches. The last item is for all FlowSchemas."""
        for schema in self._order:
            self.captured_before.append(any_of((self.captured_before[-1], encoding.schema(schema))))
        self._fallback = max((at for at, schema in enumerate(self._order) if schema.name == CATCH_ALL), default=None)

    def at(self, position: int) -> int:
        """Return the literal that the FlowSchema at this position captures the request."""
        formula = self._encoding.formula
        captured = formula.all_of((self._encoding.schema(self._order[position]), -self.captured_before[position]))
        if position != self._fallback:
            return captured
        return formula.any_of((captured, -self.captured_before[-1]))

    def among(self, positions: Iterable[int]) -> int:
        """Return the literal that one of the FlowSchemas at these positions captures the request."""
        return self._encoding.formula.any_of(map(self.at, positions))


def _chosen(values: Sequence[str], variables: Sequence[int], model: Sequence[int]) -> str:
    return next(value for value, variable in zip(values, variables, strict=True) if model[variable - 1] > 0)
