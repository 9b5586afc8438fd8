"""Comparison of two simulations: the figures of levels and clients on both sides."""

from __future__ import annotations

from support.simulations import Options, client, load, simulate

from apflint.simulate.comparison import FigureDifference, Figures, compare
from apflint.simulate.load import SECOND, Burst, ServiceTime

from .test_simulation import level

REJECT = "{type: Reject}"


def test_every_difference_has_the_figures_of_both_sides() -> None:
    """The user u2 is at the level `b`, or at `a` if `b` does not exist. The user u1 is always at `a`, whose seats differ."""
    burst, service = (Burst(0, 3),), ServiceTime(SECOND)
    wanted = load(
        client("one", user="u1", groups=("a",), bursts=burst, service=service),
        client("two", user="u2", groups=("b", "a"), bursts=burst, service=service),
    )
    both = level("a", 1, REJECT) + "---" + level("b", 1, REJECT).replace("Precedence: 1000", "Precedence: 999")
    old, new = simulate(wanted, Options(both, seats=1)), simulate(wanted, Options(level("a", 1), seats=1))
    assert compare(old, new).differences == (
        FigureDifference("one", ("a", "a"), Figures(3, 2, 2, 0, SECOND), Figures(3, 0, 0, 3 * SECOND, 4 * SECOND)),
        FigureDifference("two", ("b", "a"), Figures(3, 2, 2, 0, SECOND), Figures(3, 0, 0, 5 * SECOND, 6 * SECOND)),
        FigureDifference("a", None, Figures(3, 2, 2, 0, SECOND), Figures(6, 0, 0, 5 * SECOND, 6 * SECOND)),
        FigureDifference("b", None, Figures(3, 2, 2, 0, SECOND), None),
    )
    reverse = compare(new, old).differences
    assert [(item.name, item.levels, item.old, item.new) for item in reverse] == [
        (item.name, item.levels and item.levels[::-1], item.new, item.old) for item in compare(old, new).differences
    ]


def test_client_at_several_levels_and_client_without_requests() -> None:
    """The first instance of the client `both` is at the level `b`. In `empty`, the client sends no requests."""
    burst, service = (Burst(0, 6),), ServiceTime(SECOND)
    both = client("both", user="u{n}", groups=("a",), instances=2, bursts=burst, service=service)
    manifests = level("a", 1, REJECT) + "---" + level("b", 1)
    manifests = manifests.replace("Precedence: 1000", "Precedence: 999").replace(
        "Precedence: 999", "Precedence: 1000", 1
    )
    manifests = manifests.replace("kind: Group, group: {name: b}", "kind: User, user: {name: u1}")
    split = simulate(load(both), Options(manifests, seats=1))
    joined = simulate(load(both), Options(level("a", 1), seats=1))
    empty = simulate(load(both._replace(bursts=(Burst(0, 0),))), Options(manifests, seats=1))
    (found,) = (item for item in compare(split, joined).differences if item.name == "both")
    # At `b`, the requests wait up to 2 s; at `a`, two of three are rejected.
    assert found == FigureDifference(
        "both", ("a + b", "a"), Figures(6, 2, 2, 2 * SECOND, 3 * SECOND), Figures(6, 0, 0, 5 * SECOND, 6 * SECOND)
    )
    (found,) = (item for item in compare(empty, split).differences if item.name == "both")
    assert found == FigureDifference("both", ("-", "a + b"), None, Figures(6, 2, 2, 2 * SECOND, 3 * SECOND))


def test_other_names_of_flow_schemas_are_no_difference() -> None:
    wanted = load(client("one", groups=("a",), bursts=(Burst(0, 3),)))
    first = simulate(wanted, Options(level("a"), seats=9))
    renamed = simulate(
        wanted, Options(level("a").replace("{name: a}\nspec:\n  matching", "{name: z}\nspec:\n  matching"), seats=9)
    )
    rows = [[row for item in result.levels for row in item.clients] for result in (first, renamed)]
    assert rows[0] != rows[1]
    assert (compare(first, renamed).differences, compare(first, renamed).is_equal) == ((), True)
