"""Set the version in all files, or check that all files contain the same version.

`apflint/__init__.py` defines the version. Between two releases, it is the version of the next
release with the suffix `.dev0`. The documentation already describes the next release, so pinned
versions in its examples omit the suffix.

python scripts/set_version.py 0.2.0          write this version, date its section in CHANGELOG.md
python scripts/set_version.py 0.3.0.dev0     write this version, after the release of 0.2.0
python scripts/set_version.py --check        fail if a file contains another version
python scripts/set_version.py --check 0.2.0  also fail if the version is not 0.2.0,
                                             or if CHANGELOG.md has no section for 0.2.0
python scripts/set_version.py --notes        print the section of the version in CHANGELOG.md
"""

from __future__ import annotations

import argparse
import datetime as dt
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = "apflint/__init__.py"
FILES = ("README.md", "docs/**/*.md", "docs/**/*.yml", "docs/**/*.yaml", "editors/**/*.md")
"""Glob patterns of files that may repeat the version, in addition to `SOURCE`."""

_RELEASE = r"\d+\.\d+\.\d+"  # without a suffix, because the marketplace of VS Code allows only three numbers
_VERSION = rf"{_RELEASE}(?:\.dev\d+)?"
_SOURCE = re.compile(rf'(?m)^(?P<before>__version__ = ")(?P<version>{_VERSION})')
_PRINTED = re.compile(rf"(?P<before>apflint --version\napflint )(?P<version>{_VERSION})\b")
_PINNED = re.compile(
    r"(?P<before>apflint/apflint[@/]v"  # the GitHub action, and links to files of the repository
    r"|repo: https://github\.com/apflint/apflint(?:\n\s+|, )rev: v"  # configuration of pre-commit
    r"|apflint==|APFLINT_VERSION: \""  # requirement of pip
    r"|\bapflint:)"  # container images
    rf"(?P<version>{_VERSION})\b"
)
_UNRELEASED = "## [Unreleased]\n"


def read_version(root: Path) -> str:
    """Return the version that apflint reports."""
    match = _SOURCE.search((root / SOURCE).read_text("utf-8"))
    if match is None:
        message = f"{SOURCE} has no version"
        raise ValueError(message)
    return match["version"]


def find_release(version: str) -> str:
    """Return the release to which a version belongs: 0.2.0 for both 0.2.0.dev0 and 0.2.0."""
    return version.partition(".dev")[0]


def list_files(root: Path) -> list[Path]:
    """Return the files that may repeat the version."""
    paths = {path for pattern in FILES for path in root.glob(pattern)}
    return sorted(path for path in paths if "node_modules" not in path.parts)


def find_differences(root: Path, version: str) -> list[str]:
    """Return a line `file:line: version` for every place whose version is not `version`."""
    differences = []
    for path in list_files(root):
        text = path.read_text("utf-8")
        expected = dict.fromkeys(_PRINTED.finditer(text), version)
        expected |= {match: find_release(version) for match in _PINNED.finditer(text)}
        for match in sorted(expected, key=re.Match.start):
            if match["version"] != expected[match]:
                line = text.count("\n", 0, match.start("version")) + 1
                differences.append(f"{path.relative_to(root)}:{line}: {match['version']} instead of {expected[match]}")
    return differences


def set_version(root: Path, version: str, date: dt.date) -> None:
    """Write the version to `SOURCE` and to the files that repeat it, such as README.md and the pages in docs/.

    For a release, also insert the heading of the release into CHANGELOG.md.
    """
    release = find_release(version)
    for path in (root / SOURCE, *list_files(root)):
        updated = text = path.read_text("utf-8")
        for pattern, value in ((_SOURCE, version), (_PRINTED, version), (_PINNED, release)):
            updated = pattern.sub(rf"\g<before>{value}", updated)
        if updated != text:
            path.write_text(updated, "utf-8")
    if version != release:
        return
    changelog = root / "CHANGELOG.md"
    text = changelog.read_text("utf-8")
    changelog.write_text(text.replace(_UNRELEASED, f"{_UNRELEASED}\n## [{version}] - {date}\n", 1), "utf-8")


def read_notes(root: Path, version: str) -> str:
    """Return the section of the changelog for a version without its heading, or an empty string."""
    name = version if version == find_release(version) else "Unreleased"
    section = re.search(
        rf"(?ms)^## \[{re.escape(name)}\][^\n]*\n(.*?)(?=^## \[|\Z)", (root / "CHANGELOG.md").read_text("utf-8")
    )
    return section[1].strip() + "\n" if section else ""


def check_version(root: Path, expected: str | None) -> list[str]:
    """Return a line for each mistake, such as `README.md:77: 0.1.0 instead of 0.2.0`.

    Every place must have the version in `SOURCE`, but pinned versions omit `.dev0`. If `expected` is
    not None, `SOURCE` must have this version, and CHANGELOG.md must have a section for it. If nothing
    is wrong, return an empty list.
    """
    version = read_version(root)
    problems = find_differences(root, version)
    if expected not in (None, version):
        problems.append(f"{SOURCE}: {version} instead of {expected}")
    if expected is not None and not read_notes(root, expected):
        problems.append(f"CHANGELOG.md: no section for {expected}")
    return problems


def main() -> int:
    """Set or check the version, or print the notes of the current one. Returns the exit code."""
    parser = argparse.ArgumentParser(description="Set the version, or check every place that repeats it.")
    parser.add_argument("version", nargs="?", help="the version, such as 0.2.0")
    parser.add_argument("--check", action="store_true", help="change nothing; fail if a place has another version")
    parser.add_argument("--notes", action="store_true", help="print the section of the changelog for the version")
    arguments = parser.parse_args()
    if arguments.notes:
        print(read_notes(ROOT, arguments.version or read_version(ROOT)), end="")
        return 0
    if arguments.check:
        problems = check_version(ROOT, arguments.version)
        print("\n".join(problems), end="\n" if problems else "")
        return int(bool(problems))
    if arguments.version is None or not re.fullmatch(_VERSION, arguments.version):
        parser.error("a version such as 0.2.0 or 0.3.0.dev0 is required")
    set_version(ROOT, arguments.version, dt.datetime.now(dt.UTC).date())
    return 0


if __name__ == "__main__":
    sys.exit(main())
