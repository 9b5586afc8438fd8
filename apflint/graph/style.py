"""Colours of the drawing, for light and for dark. Written out instead of CSS variables, which few readers of SVG know."""

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
"""Of levels and the arrows to them; red and amber are kept for what is wrong."""
HUES = len(_HUES)

# Later rules win. Of each: selector, declarations, and the colours that {} stands for: in light, in dark.
_RULES: tuple[tuple[str, str, tuple[str, ...], tuple[str, ...]], ...] = (
    (".paper", "fill:{}", ("#ffffff",), ("#14181d",)),
    ("text", "fill:{}", ("#1c2127",), ("#e8ebef",)),
    (".dim", "fill:{}", ("#57606a",), ("#a3adb8",)),
    (".card", "fill:{};stroke:{}", ("#f7f8f9", "#c3cad2"), ("#1d2329", "#48515b")),
    *((f".h{at} .arrow,.h{at} .strip", "stroke:{}", (light,), (dark,)) for at, (light, dark) in enumerate(_HUES)),
    *((f".h{at} .bar,.tip{at}", "fill:{}", (light,), (dark,)) for at, (light, dark) in enumerate(_HUES)),
    (".said", "fill:{}", ("#7d4f00",), ("#f0c067",)),
    (".own .card", "fill:{};stroke:{}", ("#e9f1ff", "#2f63c9"), ("#172a4a", "#7fa8f5")),
    (".own .badge", "fill:{}", ("#1f4fae",), ("#a9c6ff",)),
    (".dead .card", "fill:{};stroke:{}", ("#fff1ef", "#c0362c"), ("#35191a", "#f08a80")),
    (".dead .said", "fill:{}", ("#a3261d",), ("#ffa198",)),
    (".gone .card", "fill:{};stroke:{}", ("#fff6e2", "#9a6200"), ("#33260c", "#e3ad4d")),
    (".taken", "stroke:{}", ("#c0362c",), ("#f08a80",)),
    (".taken-tip", "fill:{}", ("#c0362c",), ("#f08a80",)),
    (".dead .arrow", "stroke:{}", ("#c0362c",), ("#f08a80",)),
    (".gone .arrow", "stroke:{}", ("#9a6200",), ("#e3ad4d",)),
    (".gone-tip", "fill:{}", ("#9a6200",), ("#e3ad4d",)),
    (".track", "fill:{}", ("#e1e5ea",), ("#333b44",)),
    (".reach", "stroke:{}", ("#57606a",), ("#a3adb8",)),
)

_SHAPES = """\
svg.apf text{font:12px system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
svg.apf .name{font:600 13px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}
svg.apf .title{font-size:17px;font-weight:600}
svg.apf .heading{font-weight:600}
svg.apf .number{font-variant-numeric:tabular-nums}
svg.apf .end{text-anchor:end}
svg.apf .card{stroke-width:1}
svg.apf .own .card,svg.apf .dead .card,svg.apf .gone .card{stroke-width:1.5}
svg.apf .dead .card{stroke-dasharray:6 3}
svg.apf .gone .card{stroke-dasharray:2 3}
svg.apf .dead .name{text-decoration:line-through}
svg.apf .strip{stroke-width:4}
svg.apf .arrow,svg.apf .taken{fill:none;stroke-width:1.5}
svg.apf .dead .arrow,svg.apf .gone .arrow,svg.apf .spare .arrow{stroke-dasharray:5 4}
svg.apf .taken{stroke-dasharray:1 4;stroke-linecap:round;stroke-width:2}
svg.apf .lent{fill-opacity:.4}
svg.apf .reach{stroke-width:1.5}
svg.apf .flow:hover .arrow,svg.apf .flow:hover .taken,svg.apf .flow:focus-within .arrow{stroke-width:3.5}
svg.apf a:hover text,svg.apf a:focus text{text-decoration:underline}
svg.apf .level:target .card{stroke-width:4}
"""


def style(levels: int) -> str:
    """The style sheet of a drawing with so many levels. Pointing at a level fades the arrows to others."""
    faded = "".join(
        f"svg.apf:has(#apf-l{at}:hover) .flow:not(.to{at}) .arrow{{stroke-opacity:.12}}\n" for at in range(levels)
    )
    return f"{_SHAPES}{faded}{_colours(0)}@media (prefers-color-scheme:dark){{\n{_colours(1)}}}\n"


def _colours(scheme: int) -> str:
    lines = []
    for selectors, declarations, *colours in _RULES:
        selector = ",".join(f"svg.apf {each}" for each in selectors.split(","))
        lines.append(f"{selector}{{{declarations.format(*colours[scheme])}}}\n")
    return "".join(lines)
