"""`apflint rule`: the list of rules, or the page of one, as text ready to print."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from apflint import catalogue
from apflint.output.console import Painter, count_cells, indent_lines, wrap
from apflint.output.sanitize import sanitize
from apflint.wording import pluralize

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.text import Text

    from apflint.catalogue import Rule
    from apflint.output.console import Style

FAMILIES: dict[str, str] = {
    "APF0": "Input",
    "APF1": "Structure and metadata",
    "APF2": "FlowSchema, as the API server validates it",
    "APF3": "PriorityLevelConfiguration, as the API server validates it",
    "APF4": "References and ownership",
    "APF5": "Matching",
    "APF6": "Capacity",
    "APF7": "API versions",
    "APF9": "apflint itself",
}
"""Prefix of ids -> what the rules of the family are about."""

FORMATS = ("text", "json")
WIDTH = 100
"""Cells of a line of a page at most."""


def show(text: str | None, name: str, style: Style) -> str:
    """The list of rules (no `text`), or the page of the rule with that id or name, in the format `name`.

    On a terminal (`style.width` is set) a page is laid out; on a pipe it is plain Markdown. ValueError, with the nearest
    ones, for an unknown rule or format.
    """
    if name not in FORMATS:
        raise ValueError(f'"{name}" is no format of `apflint rule`. The formats are: {", ".join(FORMATS)}.')
    if text is None:
        return (
            _as_json({"rules": [_facts(rule) for rule in catalogue.read_rules()]}) if name == "json" else listing(style)
        )
    rule = catalogue.find_rule(text)
    if name == "json":
        return _as_json({**_facts(rule), "body": catalogue.explain_markers(rule.body)})
    return markdown(rule) if style.width is None else page(rule, style)


def listing(style: Style) -> str:
    """All rules by family: id, default severity, whether there are fixes, name, summary."""
    paint = Painter(color=style.color, hyperlinks=style.hyperlinks)
    rules = catalogue.read_rules()
    longest = max((count_cells(rule.name) for rule in rules), default=0)
    blocks = []
    for prefix in sorted({rule.id[:4] for rule in rules}):
        lines = [paint(FAMILIES.get(prefix, prefix), "bold")]
        for rule in rules:
            if rule.id.startswith(prefix):
                lines += _row(rule, longest, style.width, paint)
        blocks.append("\n".join(lines))
    told = f"{pluralize(len(rules), 'rule')}. `apflint rule APF305`, or a rule's name, shows its page."
    fixable = " `apflint fix` mends what it can of the findings of rules marked `fix`."
    blocks.append(told + (fixable if any(rule.fix for rule in rules) else ""))
    return "\n\n".join(blocks) + "\n"


def _row(rule: Rule, longest: int, width: int | None, paint: Painter) -> list[str]:
    """One rule: a row of a table, or on a narrow terminal its summary below its name."""
    severity = paint(rule.severity, "dim" if rule.severity == "off" else rule.severity)
    fix = paint("fix", "good") if rule.fix else "   "
    gap = " " * (7 - len(rule.severity))
    head = f"  {paint.link(rule.id, rule.url)}  {severity}{gap}  {fix}  {paint(rule.name, 'bold')}"
    column = 2 + len(rule.id) + 2 + 7 + 2 + 3 + 2 + longest + 2
    if width is not None and width - column < 40:
        return [head, *indent_lines(wrap(sanitize(rule.summary), width, 10, 10), " " * 10)]
    first, *rest = wrap(sanitize(rule.summary), None if width is None else min(width, column + WIDTH), column, column)
    return [f"{head}{' ' * (longest - count_cells(rule.name) + 2)}{first}", *indent_lines(rest, " " * column)]


def markdown(rule: Rule) -> str:
    """The page as Markdown: the facts of its front matter as text, and the markers of its examples as plain comments."""
    references = "".join(f"- {reference}\n" for reference in rule.references)
    return f"{_prose(rule)}\n## References\n\n{references}\n{rule.url}\n"


def _prose(rule: Rule) -> str:
    body = catalogue.explain_markers(rule.body)
    return f"# {rule.id} {rule.name}\n\n{rule.summary}\n\n{_severity(rule)} Since apflint {rule.since}.{_fix(rule)}\n\n{body}"


def page(rule: Rule, style: Style) -> str:
    """The page for a terminal of `style.width` cells: headings, wrapped prose, YAML in colors if `style.color`."""
    from io import StringIO  # with rich, over 50 ms that only this command needs to pay

    from rich.console import Console
    from rich.markdown import Heading, Markdown
    from rich.theme import Theme

    class LeftHeading(Heading):
        """Headings at the left edge, where the eye looks for them; rich centres them."""

        def __rich_console__(self, *_: Any) -> Iterator[Text]:
            text = self.text.copy()
            text.justify = "left"
            text.stylize("bold")
            yield text

    class Page(Markdown):
        elements = {**Markdown.elements, "heading_open": LeftHeading}  # noqa: RUF012  # as rich declares it

    out = StringIO()
    console = Console(
        file=out,
        width=min(style.width or WIDTH, WIDTH),
        force_terminal=style.color or style.hyperlinks,
        color_system="standard" if style.color else None,
        no_color=not style.color,
        force_jupyter=False,
        legacy_windows=False,
        theme=Theme({"markdown.code": "bold cyan"}),  # rich's own has a black background, for light terminals too
    )
    console.print(Page(_prose(rule), code_theme="ansi_dark", hyperlinks=style.hyperlinks))
    # Addresses stay whole, so that they can be copied; rich breaks them.
    paint = Painter(color=style.color, hyperlinks=style.hyperlinks)
    references = "".join(f"  {paint.link(sanitize(text), text)}\n" for text in rule.references)
    links = f"\n{paint('References', 'bold')}\n\n{references}  {paint.link(rule.url, rule.url)}\n"
    return _single_spaced(out.getvalue() + links)


def _single_spaced(text: str) -> str:
    """Without blanks at the ends of lines and without two empty lines in a row, both of which rich pads code with."""
    lines = [line.rstrip(" ") for line in text.split("\n")]
    kept = [line for above, line in zip(["", *lines], lines, strict=False) if line or above]
    return "\n".join(kept).strip("\n") + "\n"


def _severity(rule: Rule) -> str:
    """What the rule does when nothing is configured."""
    if rule.severity == "off":
        return "Off by default: `--extend-select` turns it on."
    return f"Severity: {rule.severity}."


_FIXES = {
    "safe": "\n\nFix: `apflint fix` mends such findings where it can.",
    "unsafe": "\n\nFix: `apflint fix --unsafe-fixes` mends such findings where it can.",
}


def _fix(rule: Rule) -> str:
    """A line on what can be fixed, or nothing."""
    return _FIXES[rule.fix] if rule.fix else ""


def _facts(rule: Rule) -> dict[str, Any]:
    """The front matter and the address of a rule."""
    return {
        "id": rule.id,
        "name": rule.name,
        "severity": rule.severity,
        "stage": rule.stage,
        "since": rule.since,
        "summary": rule.summary,
        "fix": rule.fix,
        "references": list(rule.references),
        "url": rule.url,
    }


def _as_json(value: dict[str, Any]) -> str:
    from apflint.output.json_text import to_json  # only for --format json

    return to_json({"schema": 1, **value}, 2)
