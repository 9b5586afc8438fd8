"""Reads the style sheets of HTML reports and drawings from the `.css` files of this package."""

from __future__ import annotations

import re
from functools import cache

from apflint.package_data import read_text

_VARIABLE = re.compile(r"var\(--([a-z-]+)\)")


@cache
def read_style_sheet(name: str, package: str = "output") -> str:
    """Return the rules of a `.css` file of a package, without comments."""
    return re.sub(r"/\*.*?\*/\n?", "", read_text(f"{package}/{name}"), flags=re.DOTALL)


@cache
def read_palette() -> tuple[dict[str, str], dict[str, str]]:
    """Return two mappings from names to colors: for light mode and for dark mode."""
    light, _, dark = read_style_sheet("palette.css").partition("@media")
    modes = (dict(re.findall(r"--([a-z-]+):(#[0-9a-f]{6});", part)) for part in (light, dark))
    return next(modes), next(modes)


def render_page_style() -> str:
    """Return the CSS rules of an HTML page: the palette and the style of the page."""
    return read_style_sheet("palette.css") + read_style_sheet("page.css")


def resolve_colors(rules: str) -> str:
    """Return CSS rules in which variables are replaced by the colors for light and dark mode.

    Few SVG viewers support variables. Each rule must be one line. The rules for dark mode come after the rules for light mode,
    because later rules take precedence.
    """

    def resolve(colors: dict[str, str]) -> str:
        return _VARIABLE.sub(lambda found: colors[found[1]], rules)

    light, dark = map(resolve, read_palette())
    return f"{light}@media (prefers-color-scheme:dark){{\n{dark}}}\n"
