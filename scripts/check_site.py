"""Check a built site without a network: every link, anchor and picture has a target, and nothing loads from other hosts.

python scripts/check_site.py DIR
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

LOADED = {
    ("script", "src"),
    ("img", "src"),
    ("iframe", "src"),
    ("source", "src"),
    ("object", "data"),
    ("image", "href"),
}
"""Elements and attributes for which a browser loads another file, in addition to `link`."""
LINKED_NOT_LOADED = {"canonical", "prev", "next", "edit", "alternate"}
"""Values of `rel` in `link` elements that a browser does not load."""
BASE = "/apflint/"
"""Path of the site on its host. Only 404.html has absolute links, because a server shows this page at any address."""


class Page(HTMLParser):
    """Links, anchors and loaded files of an HTML page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect the attributes of an element."""
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag == "link" and values.get("rel", "") not in LINKED_NOT_LOADED:
            self.loaded.append(values.get("href", ""))
        self.loaded += [values[name] for element, name in LOADED if element == tag and name in values]
        # For this class, Zensical's script would load a renderer of diagrams from another host.
        if tag in ("pre", "div") and "mermaid" in values.get("class", "").split():
            self.loaded.append("https://mermaid")


def is_external(link: str) -> bool:
    """Return whether a link points to another host or scheme."""
    parts = urlsplit(link)
    return bool(parts.netloc) or parts.scheme not in ("", "data")


def find_file(site: Path, page: Path, link: str) -> Path:
    """Return the path of the file that a server sends for a link on a page. The file need not exist."""
    own = "/" + page.relative_to(site).as_posix()
    path = unquote(urlsplit(urljoin(own, link.removeprefix(BASE[:-1]) if link.startswith(BASE) else link)).path)
    target = site / path.lstrip("/")
    return target / "index.html" if path.endswith("/") or target.is_dir() else target


def find_problems(site: Path) -> list[str]:
    """Return a line for each link whose target is missing, and for each file that is loaded from another host."""
    pages = {path: Page(path.read_text("utf-8")) for path in sorted(site.rglob("*.html"))}
    problems = []
    for path, page in pages.items():
        name = path.relative_to(site).as_posix()
        problems += [f"{name}: loads {link} from another host" for link in page.loaded if is_external(link)]
        for link in (*page.links, *page.loaded):
            if is_external(link) or link.startswith("data:"):
                continue
            target, anchor = find_file(site, path, link), unquote(urlsplit(link).fragment)
            if not target.is_file():
                problems.append(f"{name}: {link} has no target")
            elif anchor and target in pages and anchor not in pages[target].anchors:
                problems.append(f"{name}: {link} has no anchor in {target.relative_to(site).as_posix()}")
    for style in sorted(site.rglob("*.css")):
        problems += [
            f"{style.relative_to(site).as_posix()}: loads {link} from another host"
            for link in re.findall(r"""(?:url\(|@import )["']?((?:https?:)?//[^"')]+)""", style.read_text("utf-8"))
        ]
    return problems


def main() -> int:
    """Print the problems of a site. Returns the exit code."""
    problems = find_problems(Path(sys.argv[1]).resolve())
    print("\n".join(problems) or "no problems")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
