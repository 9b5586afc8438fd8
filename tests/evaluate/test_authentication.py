"""Groups that authentication adds, and user names of service accounts."""

from __future__ import annotations

import pytest

from apflint.evaluate.authentication import complete_groups, has_fixed_groups, parse_service_account, single_user
from apflint.model import ServiceAccountSubject, Subject


@pytest.mark.parametrize(
    ("user", "groups", "effective"),
    [
        ("alice", (), ("system:authenticated",)),
        ("alice", ("dev",), ("dev", "system:authenticated")),
        ("alice", ("system:authenticated", "dev"), ("system:authenticated", "dev")),
        ("alice", ("system:unauthenticated",), ("system:unauthenticated",)),
        ("system:anonymous", (), ("system:unauthenticated",)),
        ("system:node:n1", (), ("system:nodes", "system:authenticated")),
        ("system:node:n1", ("x",), ("x", "system:authenticated")),
        ("system:apiserver", (), ("system:masters", "system:authenticated")),
        ("system:apiserver", ("x",), ("x", "system:authenticated")),
        (
            "system:serviceaccount:ci:runner",
            (),
            ("system:serviceaccounts", "system:serviceaccounts:ci", "system:authenticated"),
        ),
        (
            "system:serviceaccount:ci:runner",
            ("x",),
            ("x", "system:serviceaccounts", "system:serviceaccounts:ci", "system:authenticated"),
        ),
        ("system:serviceaccount:ci:", (), ("system:authenticated",)),
        ("system:serviceaccount:ci:a:b", (), ("system:authenticated",)),
        ("system:serviceaccount:ci:UPPER", (), ("system:authenticated",)),
    ],
)
def test_authentication_adds_groups(user: str, groups: tuple[str, ...], effective: tuple[str, ...]) -> None:
    found, notes = complete_groups(user, groups)
    assert found == effective
    assert bool(notes) is (len(effective) > len(groups))
    for name in effective[len(groups) :]:
        assert any(f'"{name}"' in note for note in notes)


def test_added_groups_are_noted() -> None:
    runner = "system:serviceaccount:ci:runner"
    assert complete_groups("system:anonymous", ("system:unauthenticated",)) == (("system:unauthenticated",), ())
    assert complete_groups(runner, ("x",))[1] == (
        'Authentication adds the groups "system:serviceaccounts", "system:serviceaccounts:ci" and "system:authenticated".',
        "(With kubectl --as and --as-group, the server does not add the two groups of a service account.)",
    )
    assert complete_groups(runner, ())[1] == (
        'Authentication adds the groups "system:serviceaccounts", "system:serviceaccounts:ci" and "system:authenticated".',
    )
    assert complete_groups("system:serviceaccount:ci:UPPER", ())[1] == (
        'Authentication adds the group "system:authenticated".',
        '"system:serviceaccount:ci:UPPER" is not a valid name of a service account, so it gets no groups of service accounts.',
    )


def test_namespace_and_name_of_a_service_account_are_noted() -> None:
    """A user of apflint may write `ci/runner` instead of the user name of the service account."""
    assert complete_groups("ci/runner", ()) == (
        ("system:authenticated",),
        (
            'Authentication adds the group "system:authenticated".',
            'The user name of a service account is "system:serviceaccount:ci:runner".',
        ),
    )
    for user in ("runner", "ci/", "/runner", "ci/Runner", "a/b/c"):
        assert len(complete_groups(user, ())[1]) == 1


def test_service_account_is_parsed() -> None:
    assert parse_service_account("system:serviceaccount:kube-system:a.b-c") == ("kube-system", "a.b-c")
    for bad in (
        "alice",
        "system:serviceaccount:a.b:c",
        f"system:serviceaccount:{'a' * 64}:b",
        f"system:serviceaccount:a:{'b' * 254}",
    ):
        assert parse_service_account(bad) is None


@pytest.mark.parametrize(("user", "is_fixed"), [
    ("system:serviceaccount:ci:runner", True),
    ("system:serviceaccount:ci", False),
    ("system:node:a", True),
    ("system:nodes", False),
    ("system:apiserver", True),
    ("system:anonymous", True),
    ("system:kube-scheduler", False),
    ("alice", False),
])  # fmt: skip
def test_users_with_fixed_groups(user: str, is_fixed: bool) -> None:
    assert has_fixed_groups(user) is is_fixed


RUNNER = ServiceAccountSubject("ci", "runner")


@pytest.mark.parametrize(("subject", "user"), [
    (Subject("User", "alice", None, None), "alice"),
    (Subject("User", "*", None, None), None),
    (Subject("Group", None, "dev", None), None),
    (Subject("Group", "alice", "dev", None), None),
    (Subject("ServiceAccount", None, None, RUNNER), "system:serviceaccount:ci:runner"),
    (Subject("ServiceAccount", None, None, ServiceAccountSubject("ci", "*")), None),
    (Subject("ServiceAccount", None, None, None), None),
    (Subject("User", "alice", None, RUNNER), "alice"),
])  # fmt: skip
def test_only_user_of_a_subject(subject: Subject, user: str | None) -> None:
    assert single_user(subject) == user
