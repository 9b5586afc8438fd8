"""A small SVG document: text, shapes, and a style sheet for light and dark mode.

The drawing has its own background, so it is legible on any page. The drawing follows the color scheme of the system,
because a page cannot style pictures in `<img>` elements.
"""

from __future__ import annotations

from typing import NamedTuple

from apflint.output.sanitize import escape_xml

WIDTH, MARGIN = 640, 20
"""Width of all drawings, and space around the content, in pixels."""
CHARACTER_WIDTHS = {"name": 7.85, "heading": 8.0, "": 7.3}
"""Width of a character in pixels, for each kind of text.

A width is the average of a wide font, so that most text is narrower.
"""
_ASCENT, _DESCENT = 11, 4
"""Height of text above and below its baseline, in pixels."""

_ROLE = 'role="img" aria-labelledby="title description"'
_SHAPES = """\
text{font:13px system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
.name{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}
.heading{font-weight:600}
.end{text-anchor:end}
.middle{text-anchor:middle}
.line,.ring,.divider{fill:none;stroke-width:1.5}
"""
# Tuples of selectors, property, color in light mode, and color in dark mode. The colors are those of `apflint graph`.
_COLORS = (
    (".paper", "fill", "#ffffff", "#14181d"),
    (".paper,.divider", "stroke", "#c3cad2", "#48515b"),
    ("text", "fill", "#1c2127", "#e8ebef"),
    (".dim", "fill", "#57606a", "#a3adb8"),
    (".track", "fill", "#e1e5ea", "#333b44"),
    (".line,.ring", "stroke", "#57606a", "#a3adb8"),
    (".tip", "fill", "#57606a", "#a3adb8"),
    (".blue", "fill", "#2f63c9", "#7fa8f5"),
    (".teal", "fill", "#0b7d7f", "#4cc0c2"),
    (".purple", "fill", "#7a4cc4", "#b998f2"),
    (".red", "fill", "#c0362c", "#f08a80"),
    (".on", "fill", "#ffffff", "#14181d"),
)


class TextBox(NamedTuple):
    """The estimated rectangle of a text."""

    text: str
    left: float
    top: float
    right: float
    bottom: float


class Canvas:
    """A drawing. An element covers the elements that were added before."""

    def __init__(self, title: str, description: str, height: int) -> None:
        self.title, self.description, self.height = title, description, height
        self.texts: list[TextBox] = []
        self._lines: list[str] = []

    def add_text(self, x: float, y: float, text: str, kinds: str = "") -> None:
        """Write text with its baseline at `y`. `kinds` are CSS classes, separated by spaces.

        The text begins at `x`. With the class `end`, it ends at `x`, and with the class `middle`, its middle is at `x`.
        """
        words = kinds.split()
        width = len(text) * next((CHARACTER_WIDTHS[word] for word in words if word in CHARACTER_WIDTHS), 7.3)
        left = x - width if "end" in words else x - width / 2 if "middle" in words else x
        self.texts.append(TextBox(text, left, y - _ASCENT, left + width, y + _DESCENT))
        attribute = f' class="{kinds}"' if kinds else ""
        self._lines.append(f'<text{attribute} x="{x:g}" y="{y:g}">{escape_xml(text)}</text>')

    def add_box(self, x: float, y: float, width: float, height: float, kind: str, radius: float = 2) -> None:
        """Draw a rectangle with round corners."""
        size = f'width="{width:g}" height="{height:g}"'
        self._lines.append(f'<rect class="{kind}" x="{x:g}" y="{y:g}" {size} rx="{radius:g}"/>')

    def add_path(self, data: str, kind: str) -> None:
        """Draw a path."""
        self._lines.append(f'<path class="{kind}" d="{data}"/>')

    def add_circle(self, x: float, y: float, radius: float, kind: str) -> None:
        """Draw a circle."""
        self._lines.append(f'<circle class="{kind}" cx="{x:g}" cy="{y:g}" r="{radius:g}"/>')

    def add_squares(self, x: float, y: float, count: int, kind: str, *, size: float = 9, per_row: int = 40) -> None:
        """Draw `count` squares in rows, as one path, with a gap of 2 pixels."""
        places = [(x + at % per_row * (size + 2), y + at // per_row * (size + 2)) for at in range(count)]
        data = "".join(f"M{left:g} {top:g}h{size:g}v{size:g}h-{size:g}z" for left, top in places)
        self.add_path(data, kind)

    def add_arrow(self, x: float, top: float, bottom: float) -> None:
        """Draw an arrow down."""
        self.add_path(f"M{x:g} {top:g}V{bottom - 6:g}", "line")
        self.add_path(f"M{x - 5:g} {bottom - 8:g}h10l-5 8z", "tip")

    def render(self) -> str:
        """Return the SVG document."""
        size = f'width="{WIDTH}" height="{self.height}"'
        colors = ["".join(f"{rule[0]}{{{rule[1]}:{rule[scheme]}}}\n" for rule in _COLORS) for scheme in (2, 3)]
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {WIDTH} {self.height}" {_ROLE}>',
            f'<title id="title">{escape_xml(self.title)}</title>',
            f'<desc id="description">{escape_xml(self.description)}</desc>',
            f"<style>\n{_SHAPES}{colors[0]}@media (prefers-color-scheme:dark){{\n{colors[1]}}}\n</style>",
            f'<rect class="paper" x=".5" y=".5" width="{WIDTH - 1}" height="{self.height - 1}" rx="8"/>',
        )
        return "".join(f"{line}\n" for line in (*head, *self._lines, "</svg>"))
