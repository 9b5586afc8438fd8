"""Style sheet of the SVG, for light and dark mode. It has no CSS variables, because few SVG viewers support them."""

from __future__ import annotations

_HUES = (
    ("#2f63c9", "#7fa8f5"),
    ("#0b7d7f", "#4cc0c2"),
    ("#7a4cc4", "#b998f2"),
    ("#2f7d36", "#79cb80"),
    ("#b02f7b", "#ee8cc0"),
    ("#84642f", "#d2b06e"),
    ("#50688a", "#9bb4d6"),
    ("#5d6b00", "#b9c552"),
)
"""Colors of levels and the arrows to them, in light and dark mode. Red and amber are reserved for problems."""
HUES = len(_HUES)

# Items: selectors, property, color in light mode, color in dark mode. Later items override earlier items.
_COLORS = (
    (".paper", "fill", "#ffffff", "#14181d"),
    ("text", "fill", "#1c2127", "#e8ebef"),
    (".dim", "fill", "#57606a", "#a3adb8"),
    (".card", "fill", "#f7f8f9", "#1d2329"),
    (".card", "stroke", "#c3cad2", "#48515b"),
    *((f".h{at} .arrow,.h{at} .strip", "stroke", *hue) for at, hue in enumerate(_HUES)),
    *((f".h{at} .bar,.tip{at}", "fill", *hue) for at, hue in enumerate(_HUES)),
    (".problem", "fill", "#7d4f00", "#f0c067"),
    (".own .card", "fill", "#e9f1ff", "#172a4a"),
    (".own .card", "stroke", "#2f63c9", "#7fa8f5"),
    (".own .badge", "fill", "#1f4fae", "#a9c6ff"),
    (".unreachable .card", "fill", "#fff1ef", "#35191a"),
    (".unreachable .card,.unreachable .arrow,.captured", "stroke", "#c0362c", "#f08a80"),
    (".unreachable .problem", "fill", "#a3261d", "#ffa198"),
    (".captured-tip", "fill", "#c0362c", "#f08a80"),
    (".dangling .card", "fill", "#fff6e2", "#33260c"),
    (".dangling .card,.dangling .arrow", "stroke", "#9a6200", "#e3ad4d"),
    (".dangling-tip", "fill", "#9a6200", "#e3ad4d"),
    (".track", "fill", "#e1e5ea", "#333b44"),
    (".attainable", "stroke", "#57606a", "#a3adb8"),
)

_SHAPES = """\
svg.apf text{font:12px system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
svg.apf .name{font:600 13px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}
svg.apf .title{font-size:17px;font-weight:600}
svg.apf .heading{font-weight:600}
svg.apf .number{font-variant-numeric:tabular-nums}
svg.apf .end{text-anchor:end}
svg.apf .card{stroke-width:1}
svg.apf .own .card,svg.apf .unreachable .card,svg.apf .dangling .card{stroke-width:1.5}
svg.apf .unreachable .card{stroke-dasharray:6 3}
svg.apf .dangling .card{stroke-dasharray:2 3}
svg.apf .unreachable .name{text-decoration:line-through}
svg.apf .strip{stroke-width:4}
svg.apf .arrow,svg.apf .captured{fill:none;stroke-width:1.5}
svg.apf .unreachable .arrow,svg.apf .dangling .arrow,svg.apf .last-resort .arrow{stroke-dasharray:5 4}
svg.apf .captured{stroke-dasharray:1 4;stroke-linecap:round;stroke-width:2}
svg.apf .lent{fill-opacity:.4}
svg.apf .attainable{stroke-width:1.5}
svg.apf .flow:hover .arrow,svg.apf .flow:hover .captured,svg.apf .flow:focus-within .arrow{stroke-width:3.5}
svg.apf a:hover text,svg.apf a:focus text{text-decoration:underline}
svg.apf .level:target .card{stroke-width:4}
"""


def render_style(levels: int) -> str:
    """Render the style sheet for this number of levels. Hovering over a level fades the arrows to all other levels."""
    fading = "".join(
        f"svg.apf:has(#apf-l{at}:hover) .flow:not(.to{at}) .arrow{{stroke-opacity:.12}}\n" for at in range(levels)
    )
    light, dark = ("".join(_rule(*rule[:2], rule[scheme]) for rule in _COLORS) for scheme in (2, 3))
    return f"{_SHAPES}{fading}{light}@media (prefers-color-scheme:dark){{\n{dark}}}\n"


def _rule(selectors: str, name: str, color: str) -> str:
    return ",".join(f"svg.apf {selector}" for selector in selectors.split(",")) + f"{{{name}:{color}}}\n"
