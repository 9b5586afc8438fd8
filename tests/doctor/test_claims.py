"""What the causes say about clients, which only a dump of requests shows, and about servers that have just started."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from support.incidents import NAMES, find_files

from apflint.doctor.causes import conclude
from apflint.doctor.causes.measurements import measure
from apflint.doctor.causes.servers import RESTART_SECONDS, describe_start
from apflint.doctor.level_state import compute_state
from apflint.doctor.snapshot import group_servers
from apflint.sources.server_state_files import read_parts
from apflint.wording import format_duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.doctor.causes import Conclusion

CLAIM = re.compile(
    r"their load is normal|no (other|single) client|(?<!Exempting )other clients\b|requests of one client|^one client|this client,"
    r"|requests of others|the client sends",
    re.IGNORECASE,
)
"""Claims about clients that need a dump. "Probably one client" is none."""


def read(name: str, *, dumps: bool) -> Conclusion:
    return conclude([*map(compute_state, group_servers(read_parts(map(str, find_files(name, "12", dumps=dumps)))))])


def list_texts(conclusion: Conclusion) -> Iterator[str]:
    for cause in conclusion.causes:
        yield from (cause.message, *cause.evidence, *cause.would_not_help)


@pytest.mark.parametrize("name", NAMES)
def test_metrics_alone_claim_nothing_about_clients(name: str) -> None:
    assert not [text for text in list_texts(read(name, dumps=False)) if CLAIM.search(text)]


def test_dumps_show_clients() -> None:
    """The claims are there if a dump shows the clients, so the expression of the other test finds them."""
    texts = [text for name in NAMES for text in list_texts(read(name, dumps=True))]
    found = {match[0].lower() for text in texts if (match := CLAIM.search(text)) is not None}
    assert {"their load is normal", "no single client", "requests of others", "other clients"} <= found


def test_server_that_has_just_started() -> None:
    (state,) = map(compute_state, group_servers(read_parts(map(str, find_files("small-level", "2", dumps=False)))))
    load = measure(state)
    for age, is_young in ((24.0, True), (RESTART_SECONDS, True), (RESTART_SECONDS + 1, False), (None, False)):
        warning = describe_start(load._replace(age=age))
        assert (warning is not None) == is_young
        assert warning is None or str(warning).startswith(
            f"the server started {format_duration((age or 0) * 1e6)} ago: "
        )


def test_start_is_a_warning_unless_it_is_the_cause() -> None:
    warned = {name for name in NAMES if any(" started " in text for text in read(name, dumps=False).limits)}
    assert "small-level" in warned
    assert "restart" not in warned
