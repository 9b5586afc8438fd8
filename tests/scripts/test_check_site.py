"""The check of a built site finds broken links, missing targets and other faults."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from check_site import find_problems

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "rules" / "APF305").mkdir(parents=True)
    (tmp_path / "rules" / "APF305" / "index.html").write_text('<h2 id="why">Why</h2>', encoding="utf-8")
    (tmp_path / "picture.svg").write_text("<svg/>", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("html", "problem"),
    [
        ('<a href="rules/APF305/#why">', None),
        ('<a href="rules/APF305">', None),
        ('<a href="/apflint/rules/APF305/#why">', None),
        ('<a href="https://kubernetes.io/no-such-page">', None),
        ('<a href="mailto:someone@example.com">', None),
        ('<a href="">', None),
        ('<img src="picture.svg"><img src="data:image/png;base64,AA==">', None),
        ('<link rel="canonical" href="https://apflint.github.io/apflint/">', None),
        ('<a href="rules/APF305/?example=1#why">', None),
        ('<a href="rules/APF306/">', "index.html: rules/APF306/ has no target"),
        ('<a href="rules/APF305/#how">', "index.html: rules/APF305/#how has no anchor in rules/APF305/index.html"),
        ('<a href="#top">', "index.html: #top has no anchor in index.html"),
        ('<img src="other.svg">', "index.html: other.svg has no target"),
        ('<script src="gone.js"></script>', "index.html: gone.js has no target"),
        ('<script src="https://host.example/a.js"></script>', "index.html: loads https://host.example/a.js from another host"),
        ('<img src="//host.example/a.png">', "index.html: loads //host.example/a.png from another host"),
        ('<link rel="stylesheet" href="https://h.example/a.css">', "index.html: loads https://h.example/a.css from another host"),
        ('<pre class="mermaid">graph LR</pre>', "index.html: loads https://mermaid from another host"),
    ],
)  # fmt: skip
def test_problems_of_a_page(html: str, problem: str | None, site: Path) -> None:
    (site / "index.html").write_text(html, encoding="utf-8")
    assert find_problems(site) == ([problem] if problem else [])


def test_styles_load_nothing_from_other_hosts(site: Path) -> None:
    style = site / "site.css"
    style.write_text('a { background: url("data:image/png;base64,AA==") } b { background: url(picture.svg) }', "utf-8")
    assert find_problems(site) == []
    style.write_text('@import "https://fonts.example/f.css"; b { background: url(//host.example/b.png) }', "utf-8")
    assert find_problems(site) == [
        "site.css: loads https://fonts.example/f.css from another host",
        "site.css: loads //host.example/b.png from another host",
    ]
