"""List words and names of the project's former private dialect in code and documentation, each with the usual term.

    python scripts/check_language.py            all candidates, many of which are correct in their context
    python scripts/check_language.py --check    only words that are always wrong; the exit status is 1 if there are any

The script searches comments, strings and names of Python code, but only the names in tests and scripts. In Markdown, it
searches the text outside of code blocks. Text in backticks is not searched, so that a page can quote a word.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
PLACES = ("apflint", "rules", "docs", "README.md")
NAME_PLACES = ("scripts", "tests")
"""Directories in which only names are searched, because their strings quote other programs and invalid input."""

CERTAIN = {
    r"told|said": "report, print, show",
    r"mend(s|ed|ing)?": "fix",
    r"heed(s|ed|ing)?": "respect",
    r"gravity|mildest": "severity, lowest severity",
    r"sets? (\w+ )?aside|setting (\w+ )?aside": "suppress",
    r"without a word": "silently",
    r"whole numbers?": "integer",
    r"there (is|are) no [\w ]+ called": "unknown",
    r"(?<!there\s)is no (field|type|name|kind|verb|namespace|path|release|version|resource|text|list|number|key|label|mistake|mapping)": "is not a (valid)",
    r"(is|are|was|were) (no|none of) (YAML|UTF-8|Kubernetes|JSON)": "is not (valid)",
    r"if (that|this) is meant|what is meant": "intended",
    r"by itself|of (its|their|your|one's) own(?=\s*[^\s\w]|\Z)": "on its own, its own",
    r"never decides anything": "is unreachable",
    r"takes all of it|takes everything": "captures, shadows",
    r"leads? to (a|the|this|that|another) (priority )?level": "reference",
    r"held against|holds? \w+ against": "compare, validate",
    r"shelf|shelves|veils?": "(the thing that is kept)",
    r"fit to be shown": "(a message for users)",
}
"""Patterns that are always wrong, with the term to use. The patterns match whole words, in any letter case."""
CANDIDATES = {
    r"tells?|telling": "report, print, show",
    r"(?<!there\s)(is|are) no(?! longer)": "is not a (valid)",
    r"(a|an empty|the) text": "string",
    r"meant|means it": "intended",
    r"so many": "maximum, minimum, at most, at least",
    r"what holds": "effective",
    r"takes?": "capture, match, accept",
    r"comes? first": "precede, shadow",
    r"folders?": "directory",
    r"blanks?": "space",
    r"\d+ %": "94%",
    r"of which|what is left": "(start with a noun or a verb)",
    r"where (none|there is none)": "or None if",
    r"some(body|one) else's|of ours": "(name the owner)",
}
"""Patterns that are wrong in one meaning and correct in another."""
NAMES = frozenset({"told", "said", "given", "held", "made", "whole", "one", "each", "found"})
"""Names of functions and constants, with or without a leading underscore, that are not allowed."""
NAME_PARTS = frozenset({"told", "said", "mend", "mends", "mended", "heed", "heeds", "heeded", "gravity", "mildest"})
"""Parts of any name, between underscores, that are not allowed."""
LOOP_VARIABLES = frozenset({"each", "one", "found", "some", "those"})
"""Names of loop variables for which a noun is better."""


class Match(NamedTuple):
    """A match of a pattern. Line and column start at 1."""

    path: Path
    line: int
    column: int
    text: str
    instead: str
    is_certain: bool

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}:{self.column}: {self.text!r}: write {self.instead}"


def compile_patterns(patterns: dict[str, str]) -> list[tuple[re.Pattern[str], str]]:
    """Compile patterns so that they match whole words of prose, with any white space between words."""
    spaced = {pattern.replace(" ", r"\s+"): instead for pattern, instead in patterns.items()}
    return [
        (re.compile(rf"(?<![\w-])(?:{pattern})(?![\w-])", re.IGNORECASE), instead)
        for pattern, instead in spaced.items()
    ]


PATTERNS = [
    *((pattern, instead, True) for pattern, instead in compile_patterns(CERTAIN)),
    *((pattern, instead, False) for pattern, instead in compile_patterns(CANDIDATES)),
]


def find_in_prose(path: Path, text: str, first_line: int, first_column: int) -> Iterator[Match]:
    """Yield matches in a piece of text that starts at this line and column of a file."""
    # Replace code by spaces of the same length, to preserve positions.
    text = re.sub(r"`[^`\n]+`", lambda code: " " * len(code[0]), text)
    for pattern, instead, is_certain in PATTERNS:
        for match in pattern.finditer(text):
            line = first_line + text.count("\n", 0, match.start())
            start = text.rfind("\n", 0, match.start())
            column = match.start() - start if start >= 0 else first_column + match.start()
            yield Match(path, line, column, " ".join(match[0].split()), instead, is_certain)


def find_in_python(path: Path, text: str) -> Iterator[Match]:
    """Yield matches in comments, strings and names."""
    strings = {tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT or token.type in strings:
            yield from find_in_prose(path, token.string, token.start[0], token.start[1] + 1)
    yield from find_in_names(path, text)


def find_in_names(path: Path, text: str) -> Iterator[Match]:
    """Yield matches in the names of Python code."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME and NAME_PARTS.intersection(token.string.lower().split("_")):
            yield Match(path, token.start[0], token.start[1] + 1, token.string, "another name", is_certain=True)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name.strip("_") in NAMES:
            yield Match(path, node.lineno, node.col_offset + 1, node.name, "a verb phrase", is_certain=True)
        targets = [node.target] if isinstance(node, ast.For | ast.comprehension) else []
        for target in targets:
            for name in ast.walk(target):
                if isinstance(name, ast.Name) and name.id in LOOP_VARIABLES:
                    yield Match(path, name.lineno, name.col_offset + 1, name.id, "a noun", is_certain=False)


def find_in_markdown(path: Path, text: str) -> Iterator[Match]:
    """Yield matches outside of code blocks."""
    prose = re.sub(
        r"^( *`{3,}).*?^\1`*$", lambda block: "\n" * block[0].count("\n"), text, flags=re.MULTILINE | re.DOTALL
    )
    return find_in_prose(path, prose, 1, 1)


def find_matches() -> list[Match]:
    """Search all places, and return the matches in the order of files and lines."""
    matches: list[Match] = []
    for place in PLACES:
        root = ROOT / place
        paths = sorted((*root.rglob("*.py"), *root.rglob("*.md"))) if root.is_dir() else [root]
        for path in paths:
            text = path.read_text(encoding="utf-8")
            matches += (find_in_python if path.suffix == ".py" else find_in_markdown)(path, text)
    for place in NAME_PLACES:
        for path in sorted((ROOT / place).rglob("*.py")):
            matches += find_in_names(path, path.read_text(encoding="utf-8"))
    return sorted(set(matches), key=lambda match: (match.path, match.line, match.column))


def main() -> int:
    """Print the matches, and return the exit status."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument(
        "--check", action="store_true", help="print only what is always wrong, and exit with 1 if there is any"
    )
    is_check: bool = parser.parse_args().check
    matches = [match for match in find_matches() if match.is_certain or not is_check]
    for match in matches:
        sys.stdout.write(f"{match}\n")
    sys.stdout.write(f"{len(matches)} {'words and names to replace' if is_check else 'candidates'}\n")
    return int(is_check and bool(matches))


if __name__ == "__main__":
    sys.exit(main())
