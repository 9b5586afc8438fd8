"""The documentation site builds without a warning, has targets for all links, and loads nothing from other hosts."""

from __future__ import annotations

import json
import re
import tomllib
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal

import build_site
import pytest
from build_site import BuildError, adapt_page, find_target, mark_comments_as_output
from generate_rule_index import PAGE, update
from support.browser import Server, launch_chromium
from support.built_site import PLAYGROUND, build_once

from apflint import rule_catalogue

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser

needs_zensical = pytest.mark.skipif(
    find_spec("zensical") is None, reason="Zensical is not installed: pip install -r requirements/dev.txt"
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_once(tmp_path_factory)


def read_html(site: Path, page: str) -> str:
    return (site / page / "index.html").read_text(encoding="utf-8")


@needs_zensical
@pytest.mark.slow
def test_site_has_every_page(site: Path, root: Path) -> None:
    pages = {path.relative_to(root / "docs").with_suffix("").as_posix() for path in (root / "docs").rglob("*.md")}
    pages |= {f"rules/{rule_id}" for rule_id in rule_catalogue.list_ids()} | {"changelog"}
    for page in pages:
        assert (site / page.removesuffix("index") / "index.html").is_file(), page
    assert read_html(site, "playground") == PLAYGROUND
    assert not (site / "theme").exists()


@needs_zensical
@pytest.mark.slow
def test_page_of_a_rule_has_title_severity_and_markers_for_readers(site: Path) -> None:
    html = read_html(site, "rules/APF305")
    assert re.search(r"<h1[^>]*>APF305 hand-larger-than-deck", html)
    assert re.search(r"<td>error</td>\s*<td><code>apflint fix</code></td>\s*<td>apflint 0.1.0</td>", html)
    text = re.sub(r"<[^>]+>", "", html)
    assert "# &lt;- APF305" in text
    assert "# ~ APF305" not in text
    assert "https://github.com/apflint/apflint/edit/main/rules/APF305.md" in html


@needs_zensical
@pytest.mark.slow
def test_search_finds_rules_guides_and_commands(site: Path, root: Path) -> None:
    items = json.loads((site / "search.json").read_text(encoding="utf-8"))["items"]
    found = {item["location"]: item["title"] for item in items}
    assert found["rules/APF305/"] == "APF305 hand-larger-than-deck"
    for page in ("guides/gitlab/", "commands/fix/"):
        heading = (root / "docs" / f"{page[:-1]}.md").read_text(encoding="utf-8").splitlines()[0]
        assert f"# {found[page]}" == heading


@needs_zensical
@pytest.mark.slow
def test_site_asks_no_other_host_for_stars_or_statistics(site: Path) -> None:
    for path in site.rglob("*.html"):
        html = path.read_text(encoding="utf-8")
        assert (
            'data-md-component="source"' not in html
        )  # this attribute makes a script of the theme send requests to GitHub
        assert "googletagmanager" not in html


def test_output_that_looks_like_the_prompt_of_root_is_not_a_command() -> None:
    html = """<code><span class="gp">$ </span>apflint<span class="w"> </span>rule
<span class="gp"># </span>APF305<span class="w"> </span>name
<span class="gp">#</span>## a</code></pre>
<span class="go"># b</span>
"""
    assert (
        mark_comments_as_output(html)
        == """<code><span class="gp">$ </span>apflint<span class="w"> </span>rule
<span class="go"># APF305 name</span>
<span class="go">### a</span></code></pre>
<span class="go"># b</span>
"""
    )


@needs_zensical
@pytest.mark.slow
def test_copy_button_copies_commands_only(browser: Browser, site: Path) -> None:
    server = Server(site)
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(f"{server.url}commands/defaults/")
    page.locator(".highlight:has(.gp) button").first.click()
    page.wait_for_function("navigator.clipboard.readText()")
    assert page.evaluate("navigator.clipboard.readText()").strip() == "apflint defaults"
    context.close()
    server.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    yield from launch_chromium()


@needs_zensical
@pytest.mark.slow
@pytest.mark.parametrize("width", [1400, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_reader_finds_a_rule_by_its_name(
    browser: Browser, site: Path, width: int, scheme: Literal["light", "dark"]
) -> None:
    """Search works, no page is wider than the window, and nothing is requested from other hosts."""
    server = Server(site)
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    requests: list[str] = []
    problems: list[str] = []
    context.on("request", lambda request: requests.append(request.url))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(server.url)
    assert page.locator("body").get_attribute("data-md-color-scheme") == ("slate" if scheme == "dark" else "default")
    page.locator("label[for=__search]:visible, .md-search__button:visible").first.click()
    page.keyboard.type("hand-larger-than-deck")
    page.locator("a[href*='rules/APF305/']:visible").first.click()
    page.wait_for_url("**/rules/APF305/**")
    assert page.locator("h1").inner_text().startswith("APF305 hand-larger-than-deck")
    for name in ("", "concepts/shares/", "commands/explain/", "reference/rules/", "performance/"):
        page.goto(server.url + name)
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), name
        assert page.evaluate("[...document.images].every(image => image.naturalWidth > 0)"), name
    assert problems == []
    assert [url for url in requests if not url.startswith((server.url, "data:", "blob:"))] == []
    context.close()
    server.close()


def test_directory_that_is_not_a_site_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "thesis.md").write_text("work of years", encoding="utf-8")
    with pytest.raises(BuildError, match="not a site"):
        build_site.build(tmp_path)
    assert (tmp_path / "thesis.md").exists()


@needs_zensical
@pytest.mark.slow
def test_broken_link_fails_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The site of the test has two pages and no rules, because Zensical, not apflint, finds the link."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# A\n\n[B](b.md#heading)\n", encoding="utf-8")
    (tmp_path / "docs" / "b.md").write_text("# B\n\n## Heading\n", encoding="utf-8")
    (tmp_path / "CHANGELOG.md").write_text("# Changes\n", encoding="utf-8")
    pages = '"index.md", "b.md", "changelog.md"'
    settings = f'[project]\nsite_name = "a"\nnav = [\n    {pages},\n{build_site.NAVIGATION_OF_RULES}]\n'
    (tmp_path / "zensical.toml").write_text(settings, encoding="utf-8")
    monkeypatch.setattr(build_site, "ROOT", tmp_path)
    monkeypatch.setattr(rule_catalogue, "read_rules", list)
    monkeypatch.setattr(build_site, "find_problems", lambda _: [])  # the theme of this site loads fonts
    build_site.build(tmp_path / "good")
    assert (tmp_path / "good" / "playground" / "index.html").is_file()
    (tmp_path / "docs" / "b.md").write_text("# B\n\n[C](index.md#no-such-heading)\n\n## Heading\n", encoding="utf-8")
    with pytest.raises(BuildError, match="no-such-heading"):
        build_site.build(tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("link", "source", "target"),
    [
        ("../rules/APF305.md#why", "docs/performance.md", "rules/APF305.md#why"),
        ("../../rules/APF305.md", "docs/reference/rules.md", "../rules/APF305.md"),
        ("APF306.md", "rules/APF305.md", "APF306.md"),
        ("../docs/reference/settings.md", "rules/APF305.md", "../reference/settings.md"),
        ("../CHANGELOG.md", "docs/index.md", "changelog.md"),
        ("docs/reference/settings.md", "CHANGELOG.md", "reference/settings.md"),
        ("../pyproject.toml", "docs/index.md", "https://github.com/apflint/apflint/blob/main/pyproject.toml"),
        ("../fixtures/conformance", "docs/index.md", "https://github.com/apflint/apflint/tree/main/fixtures/conformance"),
        ("https://kubernetes.io/", "docs/index.md", "https://kubernetes.io/"),
        ("#bounds", "docs/index.md", "#bounds"),
    ],
)  # fmt: skip
def test_links_fit_the_site(link: str, source: str, target: str) -> None:
    assert find_target(link, source) == target


def test_link_without_a_target_is_an_error() -> None:
    with pytest.raises(BuildError, match=re.escape("docs/index.md: the link ../rules/APF999.md has no target")):
        find_target("../rules/APF999.md", "docs/index.md")


def test_code_stays_as_it_is() -> None:
    page = "[a](../rules/APF305.md) `[a](../rules/APF305.md)`\n\n```md\n[a](../rules/APF305.md)\n| `a\\|b` |\n```\n| `a\\|b` |\n"
    assert adapt_page(page, "docs/index.md") == (
        "[a](rules/APF305.md) `[a](../rules/APF305.md)`\n\n```md\n[a](../rules/APF305.md)\n| `a\\|b` |\n```\n| `a|b` |\n"
    )


def test_every_page_is_in_the_navigation(root: Path) -> None:
    def list_pages(items: list[Any]) -> list[str]:
        return [
            page
            for item in items
            for value in (item.values() if isinstance(item, dict) else [item])
            for page in (list_pages(value) if isinstance(value, list) else [value])
        ]

    nav = list_pages(tomllib.loads((root / "zensical.toml").read_text(encoding="utf-8"))["project"]["nav"])
    pages = {path.relative_to(root / "docs").as_posix() for path in (root / "docs").rglob("*.md")}
    assert len(nav) == len(set(nav))
    assert {page for page in nav if page.endswith(".md")} == pages | {"changelog.md"}


def test_rule_index_is_up_to_date_and_has_every_rule() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert update(page) == page
    for rule in rule_catalogue.read_rules():
        assert f"| [{rule.id}](../../rules/{rule.id}.md) | `{rule.name}` | {rule.severity} |" in page
    assert update(page.replace("`hand-larger-than-deck`", "`old-name`")) == page
