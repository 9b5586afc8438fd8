"""A configuration as a formula. Each model of the formula stands for a request, made of the values of a vocabulary.

Each value of an attribute has a variable. In a model, exactly one variable of an attribute is true. Each group has a variable.
Each subject, list, rule and FlowSchema has a literal that is true if and only if it matches the request (Tseitin's encoding,
both directions). Equal rules share a literal. The claim "the third FlowSchema captures the request" needs two assumptions:
the third FlowSchema matches, and no earlier FlowSchema matches.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING
from weakref import finalize

from apflint.evaluate.authentication import (
    ANONYMOUS,
    AUTHENTICATED,
    NODES,
    SERVICE_ACCOUNTS,
    UNAUTHENTICATED,
    single_user,
)
from apflint.evaluate.configuration import CATCH_ALL
from apflint.evaluate.match import ALL, SERVICE_ACCOUNT_PREFIX
from apflint.model import ResourcePolicyRule
from apflint.proofs.request_space import (
    ANYBODY,
    LIST_VERBS,
    SERVICE_ACCOUNTS_OF,
    SYSTEM_PREFIX,
    Point,
    cluster_scoped_groups,
    is_free_group,
    is_long_running_path,
    is_ordinary_user,
    resource_traits,
    usual_groups,
)
from apflint.proofs.vocabulary import scope

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from apflint.evaluate.configuration import Configuration
    from apflint.model import FlowSchema, NonResourcePolicyRule, PolicyRulesWithSubjects, Subject
    from apflint.proofs.request_space import Requesters
    from apflint.proofs.vocabulary import Axis, Vocabulary

_MAX_PAIRWISE = 6
"""Maximum number of variables for which "at most one is true" is encoded by one clause per pair. More variables use a ladder."""


class Formula:
    """Clauses over numbered variables, and a solver. A literal is the number of a variable, negative for its negation."""

    def __init__(self) -> None:
        # This import takes 20 ms, and most runs do not need the solver.
        from pysat.solvers import MainThread, Solver  # type: ignore[import-untyped]

        # Disable the Ctrl-C handling of python-sat, which leaves its C++ code by longjmp. The longjmp may crash the
        # process, and raises a RuntimeError. Python then handles Ctrl-C after the call of the solver, which takes
        # milliseconds.
        MainThread.check = staticmethod(lambda: False)
        self._solver = Solver(name="minisat22")
        # Delete the solver before the interpreter unloads modules. Afterwards, the __del__ of python-sat would print an
        # error.
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
        """Require that at least one of the literals is true."""
        self._new_clauses.append(list(literals))

    def any_of(self, literals: Iterable[int]) -> int:
        """Return a literal that is true if and only if at least one of the given literals is true."""
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
        """Return a literal that is true if and only if all of the given literals are true."""
        return -self.any_of(-literal for literal in literals)

    def implying(self, literals: Iterable[int]) -> int:
        """Return a new variable. If the variable is true, all of the given literals are true.

        The reverse is not required.
        """
        variable = self.add_variable()
        for literal in literals:
            self.add_clause(-variable, literal)
        return variable

    def exactly_one(self, variables: Sequence[int]) -> None:
        """Require that exactly one of the variables is true.

        For more than `_MAX_PAIRWISE` variables, use a ladder encoding, in which the number of clauses grows linearly.
        """
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
        """Return whether a model exists in which all assumptions are true."""
        if self._new_clauses:
            self._solver.append_formula(self._new_clauses)
            self._new_clauses = []
        return bool(self._solver.solve(assumptions=list(assumptions)))

    def model(self) -> list[int]:
        """Return the last model as a list: the literal of variable n is at index n - 1."""
        model: list[int] = self._solver.get_model()
        return model

    def false_in_model(self, literals: Iterable[int]) -> list[int]:
        """Return those of the literals that are false in the last model."""
        model = self.model()
        return [literal for literal in literals if model[abs(literal) - 1] != literal]

    def core(self) -> frozenset[int]:
        """Return assumptions of the last `solve` that are together unsatisfiable. The last `solve` must have returned False."""
        return frozenset(self._solver.get_core() or ())


class Attribute:
    """The variables for the values of an attribute. In each model, exactly one variable is true."""

    def __init__(self, formula: Formula, axis: Axis) -> None:
        self._formula = formula
        self._axis = axis
        self.variables = {value: formula.add_variable() for value in axis.values}
        self._by_index = tuple(self.variables.values())
        formula.exactly_one(self._by_index)

    def covered(self, key: object) -> int:
        """Return a literal that is true if a list in a rule matches the value of this attribute in the request.

        `key` is the key of the list in `Axis.covers`.
        """
        indices = self._axis.covers.get(key, ())
        if len(indices) == len(self._by_index):
            return self._formula.true
        return self._formula.any_of(self._by_index[at] for at in indices)

    def chosen(self, model: Sequence[int]) -> str:
        """Return the value of the attribute whose variable is true in `model`, which is a model of the solver."""
        return next(value for value, variable in self.variables.items() if model[variable - 1] > 0)


class Encoding:
    """A formula whose solutions are the possible requests, which consist of the values of a vocabulary.

    The methods return literals of the formula. The literal of a subject, rule or FlowSchema is true if
    the subject, rule or FlowSchema matches the request.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.formula = Formula()
        self.world = vocabulary.world
        self._literals: dict[Hashable, int] = {}
        self._is_resource = self.formula.add_variable()
        self._users = Attribute(self.formula, vocabulary.users)
        self._groups = {group: self.formula.add_variable() for group in vocabulary.groups}
        axes = (vocabulary.verbs, vocabulary.api_groups, vocabulary.resources, vocabulary.namespaces)
        self._of_resources = tuple(Attribute(self.formula, axis) for axis in axes)
        self._of_paths = tuple(Attribute(self.formula, axis) for axis in (vocabulary.http_verbs, vocabulary.paths))
        self._exclude_impossible_pairs()
        if self.world == "authenticated":
            self._constrain_groups()

    def schema(self, schema: FlowSchema) -> int:
        """Return the literal that is true if the FlowSchema matches the request."""
        return self.formula.any_of(map(self.rule, schema.spec.rules))

    def rule(self, rule: PolicyRulesWithSubjects) -> int:
        """Return the literal that is true if the rule matches the request."""
        literal = self._literals.get(rule)
        if literal is None:
            request = self.formula.any_of(self.entry(entry) for entries in rule[1:] for entry in entries)
            requester = self.formula.any_of(map(self.subject, rule.subjects))
            literal = self._literals[rule] = self.formula.all_of((requester, request))
        return literal

    def subject(self, subject: Subject) -> int:
        """Return the literal that is true if the subject matches the requester."""
        name = single_user(subject)
        if name is not None:
            return self._users.variables.get(name, self.formula.false)
        if subject.kind == "User":
            return self.formula.true if subject.user == ALL else self.formula.false
        if subject.kind == "Group" and subject.group is not None:
            return self.formula.true if subject.group == ALL else self._groups[subject.group]
        if subject.kind == "ServiceAccount" and subject.service_account is not None:
            return self._any_account(subject.service_account.namespace)
        return self.formula.false

    def entry(self, entry: ResourcePolicyRule | NonResourcePolicyRule) -> int:
        """Return the literal that is true if the entry matches the attributes of the request other than the requester."""
        literal = self._literals.get(entry)
        if literal is None:
            if isinstance(entry, ResourcePolicyRule):
                attributes, is_of_type = self._of_resources, self._is_resource
                lists: Iterable[object] = (entry.verbs, entry.api_groups, entry.resources, scope(entry))
            else:
                attributes, is_of_type, lists = self._of_paths, -self._is_resource, entry
            covered = (attribute.covered(key) for attribute, key in zip(attributes, lists, strict=True))
            literal = self._literals[entry] = self.formula.all_of((is_of_type, *covered))
        return literal

    def requesters(self, requesters: Requesters) -> int:
        """Return a literal that is true only if a requester in the set `requesters` sends the request.

        Do not negate the literal: it may be false even if a requester in the set sends the request. In the
        world `any`, which makes no assumption about the groups of users, system users have no usual groups.
        So the literal for the set `SYSTEM` is always false in this world.
        """
        if requesters == ANYBODY:
            return self.formula.true
        literal = self._literals.get(requesters)
        if literal is None:
            if requesters.kind == "ordinary":
                system = [
                    variable for user, variable in self._users.variables.items() if user.startswith(SYSTEM_PREFIX)
                ]
                system += [self._groups[NODES]] if NODES in self._groups else []
                literal = self.formula.implying((-self._out_of_scope, *(-variable for variable in system)))
            elif self.world == "any":
                literal = self.formula.false
            else:
                users = self.formula.any_of(
                    self.formula.all_of((variable, self._own_groups(user)))
                    for user, variable in self._users.variables.items()
                    if user.startswith(SYSTEM_PREFIX)
                    and requesters.user in (None, user)
                    and not user.startswith(requesters.without)
                )
                literal = self.formula.all_of((users, -self._out_of_scope))
            self._literals[requesters] = literal
        return literal

    def solve(self, *assumptions: int, by: Requesters = ANYBODY) -> Point | None:
        """Return a request by a requester in `by` for which the assumptions are true, or None if no such request exists."""
        return self._point() if self.formula.solve((*assumptions, self.requesters(by))) else None

    def _point(self) -> Point:
        """Return the request that the latest solution of the SAT solver describes."""
        model = self.formula.model()
        user = self._users.chosen(model)
        groups = [group for group, variable in self._groups.items() if model[variable - 1] > 0]
        if self.world == "authenticated":
            # Add the usual groups of the user, so that the example is realistic. A group that is not in `self._groups` is in no
            # FlowSchema, so the same FlowSchemas match the request with this group and without it.
            groups += (group for group in usual_groups(user) if group not in self._groups)
        if model[self._is_resource - 1] > 0:
            return Point(user, tuple(groups), True, *(attribute.chosen(model) for attribute in self._of_resources))
        verb, path = (attribute.chosen(model) for attribute in self._of_paths)
        return Point(user, tuple(groups), False, verb, path=path)

    @cached_property
    def _out_of_scope(self) -> int:
        """The literal that is true if the request is for a cluster-scoped resource in a namespace (`is_in_scope`)."""
        _, api_groups, resources, namespaces = (attribute.variables for attribute in self._of_resources)
        pairs = [
            self.formula.all_of((resource, api_groups[group]))
            for value, resource in resources.items()
            for group in sorted(cluster_scoped_groups(value).intersection(api_groups))
        ]
        return self.formula.all_of((self._is_resource, -namespaces[""], self.formula.any_of(pairs)))

    def _own_groups(self, user: str) -> int:
        """Return a literal that restricts the groups of the request to the usual groups of a user.

        If the literal is true, the request has all usual groups of the user, and no other groups. The usual
        groups are the groups that authentication adds and, for a node, `system:nodes`.
        """
        if not is_ordinary_user(user):
            # The formula always restricts the anonymous user and service accounts to their usual groups, so no
            # assumption is necessary.
            return self.formula.true
        own = frozenset(usual_groups(user))
        literal = self._literals.get(own)
        if literal is None:
            literal = self._literals[own] = self.formula.implying(
                variable if group in own else -variable
                for group, variable in self._groups.items()
                if is_free_group(group)
            )
        return literal

    def _any_account(self, namespace: str) -> int:
        return self._users.covered(f"{SERVICE_ACCOUNT_PREFIX}{namespace}:")

    def _exclude_impossible_pairs(self) -> None:
        """Add clauses that exclude the pairs of values that no possible request has.

        The clauses also apply to unused attributes, such as the resource of a non-resource request. Nothing reads them.
        """
        verbs, _, resources, namespaces = (attribute.variables for attribute in self._of_resources)
        for value, resource in resources.items():
            traits = resource_traits(value)
            if traits.watch_only:
                self.formula.add_clause(-resource, verbs.get("watch", self.formula.false))
            if traits.no_namespace:
                self.formula.add_clause(-resource, namespaces[""])
            for verb in LIST_VERBS if traits.no_collection else ():
                if verb in verbs:
                    self.formula.add_clause(-resource, -verbs[verb])
        methods, paths = (attribute.variables for attribute in self._of_paths)
        for value, path in paths.items():
            if is_long_running_path(value):
                self.formula.add_clause(-path, methods.get("watch", self.formula.false))

    def _constrain_groups(self) -> None:
        """Require that the user of the request can have the groups of the request (`has_authentic_groups`)."""
        users = self._users.variables
        anonymous = users.get(ANONYMOUS, self.formula.false)
        account = self.formula.any_of(
            variable for user, variable in users.items() if user != ANONYMOUS and not is_ordinary_user(user)
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
    """For each FlowSchema of one configuration, the literal that is true if the FlowSchema captures the request."""

    def __init__(self, encoding: Encoding, configuration: Configuration) -> None:
        self._encoding = encoding
        self._order = configuration.order
        any_of = encoding.formula.any_of
        self.captured_before = [encoding.formula.false]
        """Item n is the literal that is true if one of the first n FlowSchemas matches the request."""
        for schema in self._order:
            self.captured_before.append(any_of((self.captured_before[-1], encoding.schema(schema))))
        self._fallback = max((at for at, schema in enumerate(self._order) if schema.name == CATCH_ALL), default=None)

    def at(self, position: int) -> int:
        """Return the literal that is true if the FlowSchema at this position captures the request."""
        formula = self._encoding.formula
        captured = formula.all_of((self._encoding.schema(self._order[position]), -self.captured_before[position]))
        if position != self._fallback:
            return captured
        return formula.any_of((captured, -self.captured_before[-1]))

    def among(self, positions: Iterable[int]) -> int:
        """Return the literal that is true if a FlowSchema at one of these positions captures the request."""
        return self._encoding.formula.any_of(map(self.at, positions))
