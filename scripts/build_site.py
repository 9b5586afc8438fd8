"""Build the documentation site from docs/ and rules/ with Zensical, and check the result.

python scripts/build_site.py --out DIR                     replaces DIR, a new directory or an earlier site
python scripts/build_site.py --out DIR --playground DIR2   includes the output of scripts/build_playground.py in DIR2

Markdown in docs/ and rules/ is also for GitHub, so its links are relative to files in the checkout. This script copies
the pages to one directory, adapts their links, and runs Zensical in strict mode. `zensical.toml` contains the
navigation. View the site with `python -m http.server -d DIR`, because search needs a server.
"""

from __future__ import annotations

import argparse
import json
import os
import posixpath
import re
import shutil
import subprocess
import sys
import tempfile
from itertools import groupby
from pathlib import Path

from check_site import find_problems

from apflint import rule_catalogue
from apflint.output.rule_page import FAMILIES

ROOT = Path(__file__).resolve().parent.parent
SOURCES = "https://github.com/apflint/apflint"
FIXES = {"safe": "`apflint fix`", "unsafe": "`apflint fix --unsafe-fixes`", None: "by hand"}
NAVIGATION_OF_RULES = "    # rules/\n"
"""Line of zensical.toml that the script replaces by the list of all rule pages."""
WITHOUT_PLAYGROUND = """\
<!doctype html>
<html lang="en">
<title>Playground</title>
<p>This copy of the site has no playground. <code>python scripts/build_playground.py</code> builds it.</p>
<p><a href="../contributing/playground/">How to build it</a></p>
</html>
"""
"""Page that replaces the playground if the playground is not built."""

_FENCE = re.compile(r"^ *(`{3,}|~{3,})")
_CODE_SPAN = re.compile(r"(`+[^`]+`+)")
_ROOT_PROMPT = re.compile(r'^<span class="gp">(# ?)</span>(.*)$', re.MULTILINE)
_LINK = re.compile(r'(\]\(|(?:src|href)=")([^)\s"]+)')


class BuildError(Exception):
    """Raised if a link has no target, or Zensical or the check of the site reports a problem."""


def site_path(source: str) -> str | None:
    """Return the path in the site of a file in the checkout, or None if the site does not contain the file."""
    if source == "CHANGELOG.md":
        return "changelog.md"
    directory, _, rest = source.partition("/")
    return {"docs": rest, "rules": source}.get(directory) if rest else None


def find_target(link: str, source: str) -> str:
    """Return a link for the site: a relative link if the site contains the target, or else a link to GitHub."""
    path, hash_sign, anchor = link.partition("#")
    if not path or re.match(r"[a-z]+:", link):
        return link
    target = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
    page, new = site_path(source), site_path(target)
    # Links to directories go to GitHub. Only a link to the playground, which another script builds, stays in the site.
    if not (ROOT / target).exists():
        raise BuildError(f"{source}: the link {link} has no target")
    if page is None or new is None or ((ROOT / target).is_dir() and new != "playground"):
        kind = "tree" if (ROOT / target).is_dir() else "blob"
        return f"{SOURCES}/{kind}/main/{target}{hash_sign}{anchor}"
    return posixpath.relpath(new, posixpath.dirname(page) or ".") + hash_sign + anchor


def adapt_line(line: str, source: str) -> str:
    """Return a line of prose with links for the site.

    In code in tables, also remove backslashes before pipes, which Python-Markdown would show.
    """
    in_table = line.lstrip().startswith("|")
    parts = _CODE_SPAN.split(line)
    for number, part in enumerate(parts):
        if number % 2:
            parts[number] = part.replace(r"\|", "|") if in_table else part
        else:
            parts[number] = _LINK.sub(lambda match: match[1] + find_target(match[2], source), part)
    return "".join(parts)


def adapt_page(text: str, source: str) -> str:
    """Return the Markdown of a page for the site. Code blocks are not changed."""
    lines, fence = [], ""
    for line in text.splitlines(keepends=True):
        if fence:
            fence = "" if line.strip() == fence else fence
        elif opened := _FENCE.match(line):
            fence = opened[1]
        else:
            line = adapt_line(line, source)  # noqa: PLW2901  # code lines are not adapted
        lines.append(line)
    return "".join(lines)


def mark_comments_as_output(html: str) -> str:
    """Return an HTML page in which lines of output that begin with `#` are marked as output.

    Pygments marks such lines as commands after a root prompt, and the copy button would copy them.
    """

    def to_output(line: re.Match[str]) -> str:
        text, tag, rest = re.sub(r"</?span[^>]*>", "", line[1] + line[2]).partition("</code>")
        return f'<span class="go">{text}</span>{tag}{rest}'

    return _ROOT_PROMPT.sub(to_output, html)


def render_rule_page(rule: rule_catalogue.Rule) -> str:
    """Return the page of a rule with a title and a table in place of its front matter."""
    severity = "off: `--extend-select` turns it on" if rule.severity == "off" else rule.severity
    references = "".join(f"- <{reference}>\n" for reference in rule.references)
    # Without this change, search would list the good example of each rule next to the bad one.
    body = rule_catalogue.explain_markers(rule.body).replace("## Good\n", "## Good { data-search-exclude }\n")
    return f"""---
title: {rule.id} {rule.name}
description: {json.dumps(rule.summary)}
---

# {rule.id} {rule.name}

{rule.summary}

| severity | fix | since |
|---|---|---|
| {severity} | {FIXES[rule.fix]} | apflint {rule.since} |

{body}
## References {{ data-search-exclude }}

{references}"""


def render_navigation() -> str:
    """Return the entries of all rule pages for `nav` in zensical.toml, in a section for each family."""
    lines = []
    for prefix, rules in groupby(rule_catalogue.read_rules(), key=lambda rule: rule.id[:4]):
        pages = ", ".join(json.dumps(f"rules/{rule.id}.md") for rule in rules)
        title = FAMILIES[prefix].partition(",")[0]
        lines.append(f"    {{ {json.dumps(title)} = [{pages}] }},\n")
    return "".join(lines)


def assemble(directory: Path) -> None:
    """Write the input of Zensical: its settings, and in `directory`/docs the pages with their pictures."""
    docs = directory / "docs"
    shutil.copytree(ROOT / "docs", docs, ignore=shutil.ignore_patterns("playground", "*.md"))
    pages = {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in (ROOT / "docs").rglob("*.md")}
    pages |= {f"rules/{rule.id}.md": render_rule_page(rule) for rule in rule_catalogue.read_rules()}
    pages["CHANGELOG.md"] = (ROOT / "CHANGELOG.md").read_text("utf-8")
    for source, text in pages.items():
        page = docs / (site_path(source) or "")
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(adapt_page(text, source), "utf-8")
    settings = (ROOT / "zensical.toml").read_text("utf-8")
    if NAVIGATION_OF_RULES not in settings:
        raise BuildError("zensical.toml: there is no place for the pages of the rules")
    (directory / "zensical.toml").write_text(settings.replace(NAVIGATION_OF_RULES, render_navigation()), "utf-8")


def build(out: Path, playground: Path | None = None) -> None:
    """Build the site, check it, and move it to `out`.

    Raises BuildError if Zensical reports a warning, a link has no target, or a page loads a resource from another host,
    and if `out` is not empty and not a site.
    """
    if out.exists() and not (out / "sitemap.xml").is_file() and any(out.iterdir()):
        raise BuildError(f"{out} is not empty and not a site, so it is not replaced")
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        assemble(directory)
        command = [sys.executable, "-m", "zensical", "build", "--strict"]
        environment = os.environ | {"NO_COLOR": "1"}
        done = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise BuildError(re.sub(r"\x1b\[[\d;]*m", "", done.stdout + done.stderr))
        site = directory / "site"
        for page in site.rglob("*.html"):
            page.write_text(mark_comments_as_output(page.read_text("utf-8")), "utf-8")
        if playground:
            shutil.copytree(playground, site / "playground")
        else:
            (site / "playground").mkdir()
            (site / "playground" / "index.html").write_text(WITHOUT_PLAYGROUND, "utf-8")
        if problems := find_problems(site):
            raise BuildError("\n".join(problems))
        shutil.rmtree(out, ignore_errors=True)
        shutil.move(site, out)


def main() -> int:
    """Build the site. Returns the exit code."""
    parser = argparse.ArgumentParser(description="Build the documentation site.")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="directory to replace with the site")
    parser.add_argument("--playground", type=Path, metavar="DIR", help="the playground, built")
    arguments = parser.parse_args()
    try:
        build(arguments.out, arguments.playground)
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
