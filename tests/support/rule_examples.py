"""Examples in rule pages: fenced manifests below the headings Bad and Good. Markers show the lines with findings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

from apflint.effective_configuration import Renaming
from apflint.releases import parse_release
from apflint.rule_catalogue import MARKER, MARKER_ABOVE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.engine import Options
    from apflint.rule_catalogue import Rule


class Example(NamedTuple):
    """A fenced example of a page, without its markers."""

    kind: Literal["bad", "good"]
    text: str
    file: str
    """File name for reading the example. Its extension distinguishes YAML and JSON."""
    kubernetes: str | None
    """Target release, or None for the newest release."""
    expected: tuple[tuple[str, int], ...]
    """All expected findings, as pairs of rule ID and line of `text` (from 1), sorted by line."""
    page_line: int
    """Line of the opening fence in the page, from 1."""
    prefix: str = ""
    """`namePrefix` of a kustomization that lists the file."""

    def adapt(self, options: Options) -> Options:
        """Return the options for a check of this example.

        The options have the release of the example, and assume a kustomization that adds its name prefix.
        """
        if self.kubernetes:
            options = options._replace(kubernetes=parse_release(self.kubernetes))
        renamings = (Renaming(self.file, "overlay/kustomization.yaml", self.prefix),) if self.prefix else ()
        return options._replace(assumptions=options.assumptions._replace(renamings=renamings))


def parse_examples(rule: Rule) -> list[Example]:
    """Return the `yaml` and `json` fences below the headings Bad and Good, in order.

    Raises ValueError, with page and line, for a fence that is not closed, an unknown option, a misspelled marker, a bad
    example without a marker, or a good example with a marker.
    """
    return list(_parse_examples(rule))


def _parse_examples(rule: Rule) -> Iterator[Example]:
    heading = ""
    lines = iter(enumerate(rule.body.split("\n"), rule.body_line))
    for number, line in lines:
        if line.startswith("## "):
            heading = line[3:].strip().lower()
        fence = re.fullmatch(r"(`{3,})(\w*)(.*)", line)
        if not fence:
            continue
        content: list[str] = []
        for _, inner in lines:
            if inner == fence[1]:
                break
            content.append(inner)
        else:
            raise ValueError(f"rules/{rule.id}.md:{number}: the fence that starts here is not closed.")
        if heading in ("bad", "good") and fence[2] in ("yaml", "json"):
            try:
                yield _example(cast("Literal['bad', 'good']", heading), fence[2], fence[3], content, number)
            except ValueError as error:
                raise ValueError(f"rules/{rule.id}.md:{number}: {error}") from None


def _example(kind: Literal["bad", "good"], language: str, info: str, content: list[str], number: int) -> Example:
    options = dict(option.partition("=")[::2] for option in info.split())
    if unknown := options.keys() - {"kubernetes", "file", "prefix"}:
        raise ValueError(f'"{min(unknown)}" is not an option of an example; use kubernetes=, file= or prefix=.')
    kept: list[str] = []
    expected: list[tuple[str, int]] = []
    for line in content:
        if below := re.match(MARKER_ABOVE, line):
            expected += [(marked, len(kept) + 1) for marked in below[1].split()]
            continue
        if marker := re.search(rf"[ \t]*{MARKER}", line):
            expected += [(marked, len(kept) + 1) for marked in marker[1].split()]
            line = line[: marker.start()]  # noqa: PLW2901  # the line without the marker
        if "# ~" in line:
            raise ValueError(f'"{line.strip()}" has a marker that is misspelled: write `# ~ APF123 APF124`.')
        kept.append(line)
    if (kind == "bad") != bool(expected):
        raise ValueError("a bad example marks its findings, and a good one has none.")
    return Example(
        kind=kind,
        text="".join(f"{line}\n" for line in kept),
        file=options.get("file", f"example.{language}"),
        kubernetes=options.get("kubernetes"),
        expected=tuple(expected),
        page_line=number,
        prefix=options.get("prefix", ""),
    )
