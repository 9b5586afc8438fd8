"""A configuration as a formula whose models are the requests that the values of a vocabulary make up.

Each attribute is one variable for each value, of which exactly one is true; each group is a variable. Every subject,
list, rule and FlowSchema is a literal that is true just when it matches (Tseitin's encoding, both directions), and equal
ones share it. `taken` of a position is true when one of the FlowSchemas up to there matches, so that "the third decides"
is two assumptions, whatever comes before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import finalize

from apflint.evaluate.authentication import AUTHENTICATED, NODES, SERVICE_ACCOUNTS, UNAUTHENTICATED
from apflint.evaluate.match import ALL, SERVICE_ACCOUNT_PREFIX
from apflint.proofs.request_space import (
    free_group,
    path_traits,
    resource_traits,
    user_kind,
    usual_groups,
    verb_traits,
)
from apflint.proofs.requesters import SYSTEM_PREFIX
from apflint.proofs.vocabulary import scope
from apflint.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from apflint.model import FlowSchema, NonResourcePolicyRule, PolicyRulesWithSubjects, ResourcePolicyRule, Subject
    from apflint.proofs.requesters import Requesters
    from apflint.proofs.vocabulary import Axis, Vocabulary

_FEW = 6
"""Up to so many values, "at most one" is said of each pair."""


class Point(NamedTuple):
    """A request of the vocabulary: all that FlowSchemas look at. What does not apply is empty."""

    user: str
    groups: tuple[str, ...]
    is_resource: bool
    verb: str
    api_group: str = ""
    resource: str = ""
    """With its subresource: `pods/log`."""
    namespace: str = ""
    path: str = ""


class Formula:
    """Clauses over numbered variables, and a solver for them. Literals are signed numbers, as in DIMACS."""

    def __init__(self) -> None:
        from pysat.solvers import Solver  # type: ignore[import-untyped]  # 20 ms that most runs do not need

        self._solver = Solver(name="minisat22")
        # Before the interpreter takes its modules apart: python-sat's own __del__ fails after that, and says so.
        finalize(self, self._solver.delete)
        self._new: list[list[int]] = []
        self._known: dict[tuple[str, frozenset[int]], int] = {}
        self._count = 0
        self.true = self.variable()
        self.clause(self.true)

    def variable(self) -> int:
        """A new variable."""
        self._count += 1
        return self._count

    def clause(self, *literals: int) -> None:
        """One of the literals is true."""
        self._new.append(list(literals))

    def any_of(self, literals: Iterable[int]) -> int:
        """A literal that is true just when one of them is."""
        given = frozenset(literals)
        if self.true in given:
            return self.true
        given -= {-self.true}
        if len(given) < 2:
            return next(iter(given), -self.true)
        key = ("or", given)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self.variable()
            self._new.append([-known, *given])
            self._new += ([-each, known] for each in given)
        return known

    def all_of(self, literals: Iterable[int]) -> int:
        """A literal that is true just when all of them are."""
        return -self.any_of(-literal for literal in literals)

    def exactly_one(self, variables: Sequence[int]) -> None:
        """One of the variables is true and no other. With many, through a ladder: linear in their number."""
        self.clause(*variables)
        if len(variables) <= _FEW:
            self._new += ([-one, -other] for at, one in enumerate(variables) for other in variables[:at])
            return
        before = variables[0]
        for each in variables[1:]:
            so_far = self.variable()
            self._new += ([-before, -each], [-before, so_far], [-each, so_far])
            before = so_far

    def solve(self, assumptions: Iterable[int]) -> bool:
        """Whether there is a model in which all of these hold."""
        if self._new:
            self._solver.append_formula(self._new)
            self._new = []
        return bool(self._solver.solve(assumptions=list(assumptions)))

    def model(self) -> list[int]:
        """The model that `solve` found: the literal of variable n at index n - 1."""
        model: list[int] = self._solver.get_model()
        return model

    def core(self) -> frozenset[int]:
        """Assumptions of the last `solve` that by themselves have no model."""
        return frozenset(self._solver.get_core() or ())


class Encoding:
    """The literals of subjects, rules and FlowSchemas over one vocabulary."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.formula = Formula()
        self.vocabulary = vocabulary
        self._cache: dict[Hashable, int] = {}
        self._resource = self.formula.variable()
        self._users = self._one_of(vocabulary.users)
        self._user = dict(zip(vocabulary.users, self._users, strict=True))
        self._groups = {group: self.formula.variable() for group in vocabulary.groups}
        self._verbs = self._one_of(vocabulary.verbs.values)
        self._api_groups = self._one_of(vocabulary.api_groups.values)
        self._resources = self._one_of(vocabulary.resources.values)
        self._namespaces = self._one_of(vocabulary.namespaces.values)
        self._http_verbs = self._one_of(vocabulary.http_verbs.values)
        self._paths = self._one_of(vocabulary.paths.values)
        self._constrain_resources()
        if vocabulary.world == "authenticated":
            self._constrain_groups()

    def schema(self, schema: FlowSchema) -> int:
        """True when the FlowSchema matches."""
        return self.formula.any_of(self.rule(rule) for rule in schema.spec.rules)

    def taken(self, order: Sequence[FlowSchema]) -> list[int]:
        """For each position: true when a FlowSchema before it matches; one more at the end."""
        before = [-self.formula.true]
        for schema in order:
            before.append(self.formula.any_of((before[-1], self.schema(schema))))
        return before

    def rule(self, rule: PolicyRulesWithSubjects) -> int:
        """True when the rule matches."""
        known = self._cache.get(rule)
        if known is None:
            what = [self.resource_rule(each) for each in rule.resource_rules]
            what += [self.non_resource_rule(each) for each in rule.non_resource_rules]
            who = self.formula.any_of(self.subject(each) for each in rule.subjects)
            known = self._cache[rule] = self.formula.all_of((who, self.formula.any_of(what)))
        return known

    def subject(self, subject: Subject) -> int:
        """True when the subject matches, whatever is asked for."""
        no = -self.formula.true
        if subject.kind == "User" and subject.user is not None:
            return self.formula.true if subject.user == ALL else self._user.get(subject.user, no)
        if subject.kind == "Group" and subject.group is not None:
            return self.formula.true if subject.group == ALL else self._groups[subject.group]
        if subject.kind == "ServiceAccount" and subject.service_account is not None:
            namespace, name = subject.service_account
            prefix = f"{SERVICE_ACCOUNT_PREFIX}{namespace}:"
            if name != ALL:
                return self._user.get(prefix + name, no)
            return self.formula.any_of(self._users[at] for at in self.vocabulary.by_prefix.get(prefix, ()))
        return no

    def resource_rule(self, rule: ResourcePolicyRule) -> int:
        """True when the rule covers what is asked for, whoever asks."""
        known = self._cache.get(rule)
        if known is None:
            words = self.vocabulary
            known = self._cache[rule] = self.formula.all_of(
                (
                    self._resource,
                    self._covered(words.verbs, rule.verbs, self._verbs),
                    self._covered(words.api_groups, rule.api_groups, self._api_groups),
                    self._covered(words.resources, rule.resources, self._resources),
                    self._covered(words.namespaces, scope(rule), self._namespaces),
                )
            )
        return known

    def non_resource_rule(self, rule: NonResourcePolicyRule) -> int:
        """True when the rule covers what is asked for, whoever asks."""
        known = self._cache.get(rule)
        if known is None:
            known = self._cache[rule] = self.formula.all_of(
                (
                    -self._resource,
                    self._covered(self.vocabulary.http_verbs, rule.verbs, self._http_verbs),
                    self._covered(self.vocabulary.paths, rule.non_resource_urls, self._paths),
                )
            )
        return known

    def requesters(self, requesters: Requesters) -> int:
        """An assumption: one of these users makes the request. Its negation says nothing.

        In the world `any` nobody is one of the system users, because no groups come with a user there.
        """
        if requesters.kind == "anybody":
            return self.formula.true
        known = self._cache.get(requesters)
        if known is None:
            if requesters.kind == "ordinary":
                system = [variable for user, variable in self._user.items() if user.startswith(SYSTEM_PREFIX)]
                system += [self._groups[NODES]] if NODES in self._groups else []
                known = self._implying(-variable for variable in system)
            elif self.vocabulary.world == "any":
                known = -self.formula.true
            else:
                known = self.formula.any_of(
                    self.formula.all_of((variable, self._own_groups(user)))
                    for user, variable in self._user.items()
                    if user.startswith(SYSTEM_PREFIX) and requesters.user in (None, user)
                )
            self._cache[requesters] = known
        return known

    def point(self) -> Point:
        """The request of the model that was found last."""
        model = self.formula.model()
        words = self.vocabulary
        user = _chosen(words.users, self._users, model)
        groups = [group for group, variable in self._groups.items() if model[variable - 1] > 0]
        if words.world == "authenticated":
            # What is not mentioned changes nothing; a node is shown in the group that it has usually.
            groups += (group for group in usual_groups(user) if group not in self._groups)
        if model[self._resource - 1] < 0:
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
        """An assumption: the request has the groups that come with this user, and no others."""
        if user_kind(user) != "ordinary":
            return self.formula.true  # which is so in this world anyway
        own = frozenset(usual_groups(user))
        known = self._cache.get(own)
        if known is None:
            known = self._cache[own] = self._implying(
                variable if group in own else -variable for group, variable in self._groups.items() if free_group(group)
            )
        return known

    def _implying(self, literals: Iterable[int]) -> int:
        """A new variable that makes all of these true when it is."""
        known = self.formula.variable()
        for each in literals:
            self.formula.clause(-known, each)
        return known

    def _one_of(self, values: Sequence[str]) -> list[int]:
        variables = [self.formula.variable() for _ in values]
        self.formula.exactly_one(variables)
        return variables

    def _covered(self, axis: Axis, key: object, variables: list[int]) -> int:
        covered = axis.covers[key]
        if len(covered) == len(variables):
            return self.formula.true
        return self.formula.any_of(variables[at] for at in covered)

    def _constrain_resources(self) -> None:
        """The pairs of attributes that no request has. Of what does not apply, the values are free: no request is lost."""
        words, clause = self.vocabulary, self.formula.clause
        verbs = [
            (verb_traits(value), variable) for value, variable in zip(words.verbs.values, self._verbs, strict=True)
        ]
        for value, variable in zip(words.resources.values, self._resources, strict=True):
            traits = resource_traits(value)
            if traits.watch_only:
                clause(-variable, *(each for trait, each in verbs if trait.watch_only))
            if traits.no_namespace:
                clause(-variable, self._namespaces[words.namespaces.values.index("")])
            if traits.no_collection:
                for trait, each in verbs:
                    if trait.no_collection:
                        clause(-variable, -each)
        watch = self._http_verbs[words.http_verbs.values.index("watch")]
        for value, variable in zip(words.paths.values, self._paths, strict=True):
            if path_traits(value).watch_only:
                clause(-variable, watch)

    def _constrain_groups(self) -> None:
        """Groups as authentication gives them (`apflint.proofs.request_space.authentic`)."""
        either, clause = self.formula.any_of, self.formula.clause
        kinds = [(user_kind(user), variable) for user, variable in self._user.items()]
        anonymous = either(variable for kind, variable in kinds if kind == "anonymous")
        account = either(variable for kind, variable in kinds if kind == "account")
        for group, variable in self._groups.items():
            if free_group(group):
                clause(-variable, -account)
                clause(-variable, -anonymous)
                continue
            if group == AUTHENTICATED:
                same = -anonymous
            elif group == UNAUTHENTICATED:
                same = anonymous
            elif group == SERVICE_ACCOUNTS:
                same = account
            else:
                same = self._accounts_in(group)
            clause(-variable, same)
            clause(variable, -same)

    def _accounts_in(self, group: str) -> int:
        prefix = f"{SERVICE_ACCOUNT_PREFIX}{group.removeprefix(f'{SERVICE_ACCOUNTS}:')}:"
        return self.formula.any_of(self._users[at] for at in self.vocabulary.by_prefix.get(prefix, ()))


def _chosen(values: Sequence[str], variables: Sequence[int], model: Sequence[int]) -> str:
    return next(value for value, variable in zip(values, variables, strict=True) if model[variable - 1] > 0)
