"""The playground in headless Chromium: it shows the same output as the command line, and sends no data to any host."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
import zlib
from typing import TYPE_CHECKING, Literal, NamedTuple
from urllib.parse import urlsplit

import pytest
from support.playground import show, wait_for, wait_for_results
from support.rule_examples import parse_examples

from apflint.releases import NEWEST
from apflint.rule_catalogue import read_rule

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, BrowserContext, Page
    from support.browser import Server

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo terminal to print as in the page"),
]

STORIES = ("accepted-but-wrong", "small-cluster", "move-ci/before", "move-ci/after")
RULES = ("APF001", "APF101", "APF305", "APF501", "APF503", "APF507", "APF601")
"""Rules of all stages: syntax, schema, values, and proofs by the solver."""
REQUESTS = (
    "list pods -n team-a --as alice",
    "update leases.coordination.k8s.io -n kube-system --as system:kube-scheduler",
    "get /healthz --as system:anonymous",
    "apflint explain list pods --as alice",  # a command as users copy it from the documentation
    "list pods",
    "list nothing --as alice",
    "list pods --as alice --bogus",
)
ESCAPE = re.compile(r"\x1b\[[\d;]*m|\x1b\]8;;[^\x1b]*\x1b\\")
LINE_COLUMN = re.compile(r"manifests\.yaml:(\d+):(\d+)")


def read_story(root: Path, story: str) -> str:
    """Return the manifests of a story in one text."""
    paths = sorted((root / "fixtures" / "stories" / story).rglob("*.yaml"))
    return "---\n".join(path.read_text("utf-8") for path in paths)


class Printed(NamedTuple):
    """The output of a process, without colors."""

    output: str
    notes: str


def run_in_terminal(arguments: list[str], directory: Path, columns: str) -> Printed:
    """Run a real apflint process, whose standard output is a terminal of this width."""
    import pty  # not available on Windows

    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": columns, "TERM": "xterm"}
    command = [sys.executable, "-m", "apflint", *arguments]
    with subprocess.Popen(
        command, cwd=directory, env=environment, stdout=theirs, stderr=subprocess.PIPE, text=True
    ) as process:
        os.close(theirs)
        printed = b""
        while chunk := read_chunk(ours):
            printed += chunk
        os.close(ours)
        _, notes = process.communicate()
        assert process.returncode in (0, 1, 2)
    return Printed(ESCAPE.sub("", printed.decode()).replace("\r\n", "\n"), ESCAPE.sub("", notes).strip())


def read_chunk(descriptor: int) -> bytes:
    """Return the next output, or empty bytes at the end. Linux reports the end of a terminal as an error."""
    try:
        return os.read(descriptor, 65536)
    except OSError:
        return b""


def read_findings(page: Page) -> str:
    """Return the text of all findings, as `check` prints it."""
    return "".join(f"{text}\n\n" for text in page.locator("#check .findings li").all_text_contents()).strip("\n")


def check_in_terminal(page: Page, manifests: str, directory: Path) -> str:
    """Return what `apflint check` prints for the manifests, at the width of the page."""
    (directory / "manifests.yaml").write_text(manifests, "utf-8")
    arguments = ["check", "--isolated", "--color", "always", "manifests.yaml"]
    columns = page.get_attribute("#check .output", "data-columns") or ""
    printed = run_in_terminal(arguments, directory, columns).output.strip("\n")
    # The page has neither the option --context nor the command migrate.
    printed = re.sub(r"(apflint\s+migrate\s+--to\s+\w+)", r"\1 (on the command line)", printed)
    return re.sub(r"(add\s+that\s+file\s+)with\s+--context", r"\1to the manifests", printed)


@pytest.mark.parametrize("story", STORIES)
def test_findings_of_stories_are_those_of_the_command_line(
    open_page: Page, root: Path, tmp_path: Path, story: str
) -> None:
    manifests = read_story(root, story)
    show(open_page, "check", manifests)
    expected = check_in_terminal(open_page, manifests, tmp_path)
    assert read_findings(open_page) == expected
    assert "^" in expected


@pytest.mark.parametrize("rule", RULES)
def test_findings_of_rules_are_those_of_the_command_line(open_page: Page, tmp_path: Path, rule: str) -> None:
    example = next(example for example in parse_examples(read_rule(rule)) if example.kind == "bad")
    show(open_page, "check", example.text)
    expected = check_in_terminal(open_page, example.text, tmp_path)
    assert f"[{rule}]" in expected
    assert read_findings(open_page) == expected


def test_click_on_a_place_selects_it(open_page: Page, root: Path) -> None:
    show(open_page, "check", read_story(root, "small-cluster"))
    assert "[APF306]" in read_findings(open_page)
    place = open_page.locator("#check .place", has_text=LINE_COLUMN).first
    place.click()
    line, column = map(int, LINE_COLUMN.fullmatch(place.inner_text()).groups())  # type: ignore[union-attr]
    text = open_page.input_value("#manifests")
    selected = open_page.evaluate("[manifests.selectionStart, document.activeElement.id]")
    assert selected == [sum(len(before) + 1 for before in text.split("\n")[: line - 1]) + column - 1, "manifests"]


READ_LINES = """() => ({
    shown: [...document.querySelectorAll("#check .findings li")].map((item) =>
        [Number(/--> manifests.yaml:(\\d+)/.exec(item.textContent)[1]), item.className]),
    busy: document.querySelector("#check .output").ariaBusy,
    marked: [...document.querySelectorAll("#gutter span")].map((mark) => [Number(mark.textContent), mark.className]),
})"""
"""JavaScript that returns line and severity of each finding and of each mark next to the text, and whether the findings
are outdated."""
ADD_LINE = "manifests.value = '# line\\n' + manifests.value; manifests.dispatchEvent(new Event('input'));"


def test_marks_are_those_of_the_findings_also_while_typing(open_page: Page, root: Path) -> None:
    show(open_page, "check", read_story(root, "small-cluster"))
    before = open_page.evaluate(READ_LINES)
    most_severe = dict(reversed(before["shown"]))  # the mark of a line is that of its first finding
    assert sorted(most_severe.items()) == [(line, severity) for line, severity in before["marked"]]
    assert {"error", "warning"} <= set(most_severe.values())
    assert before.pop("busy") == "false"
    while_typing = open_page.evaluate(f"() => {{ {ADD_LINE} return ({READ_LINES})(); }}")
    assert while_typing == before | {"busy": "true"}
    wait_for_results(open_page)
    moved = {name: [[line + 1, severity] for line, severity in lines] for name, lines in before.items()}
    assert open_page.evaluate(READ_LINES) == moved | {"busy": "false"}


def test_graph_is_that_of_the_command_line(open_page: Page, root: Path, tmp_path: Path) -> None:
    manifests = read_story(root, "move-ci/after")
    (tmp_path / "manifests.yaml").write_text(manifests, "utf-8")
    show(open_page, "graph", manifests)
    expected = run_in_terminal(["graph", "--isolated", "--format", "svg", "manifests.yaml"], tmp_path, "100").output

    def download() -> str:
        with open_page.expect_download() as downloading:
            open_page.click("#graph a[download]")
        text: str = downloading.value.path().read_text("utf-8")
        return text

    assert download() == expected
    wait_for(lambda: open_page.evaluate("document.querySelector('#graph img').naturalWidth > 500"), wanted=True)


@pytest.mark.parametrize("request_words", REQUESTS)
def test_explanation_is_that_of_the_command_line(
    open_page: Page, root: Path, tmp_path: Path, request_words: str
) -> None:
    manifests = read_story(root, "move-ci/after")
    (tmp_path / "manifests.yaml").write_text(manifests, "utf-8")
    show(open_page, "explain", manifests, request=request_words)
    columns = open_page.get_attribute("#check .output", "data-columns") or ""
    words = request_words.removeprefix("apflint explain ").split()
    expected = run_in_terminal(["explain", "--isolated", "-f", "manifests.yaml", *words], tmp_path, columns)
    answer = open_page.locator("#explain .output pre")
    assert answer.all_text_contents() == list(expected)
    assert any(expected)


def test_older_releases_have_other_findings(open_page: Page, root: Path) -> None:
    findings = {}
    for release in (NEWEST.name, "1.29"):
        show(open_page, "check", read_story(root, "small-cluster"), kubernetes=release)
        assert f"for Kubernetes {release}." in open_page.inner_text("#status")
        findings[release] = read_findings(open_page)
    assert findings[NEWEST.name] != findings["1.29"]


@pytest.mark.parametrize(
    ("manifests", "words"),
    [
        ("", "no FlowSchema and no PriorityLevelConfiguration"),
        ("hello", "no FlowSchema and no PriorityLevelConfiguration"),
        ("apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: FlowSchema\nspec: [a\n", "this `[` is not closed"),
        ("apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: FlowSchema\nspec: @a\n", "cannot start a value"),
        (f"apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: FlowSchema\nspec: {'[' * 9999}", "levels deep"),
        ("x" * 1_000_001, "The playground checks at most 1,000,000 characters."),
    ],
    ids=["empty", "no object", "not closed", "wrong character", "deep", "large"],
)
def test_text_without_objects_gets_a_sentence(open_page: Page, manifests: str, words: str) -> None:
    show(open_page, "check", manifests)
    assert words in open_page.inner_text("#check")


def test_manifests_are_never_html(open_page: Page) -> None:
    name = "<img src=x onerror=alert(1)>"
    manifest = (
        f'apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: FlowSchema\nmetadata: {{name: "{name}"}}\nspec: {{}}\n'
    )
    show(open_page, "check", manifest)
    assert name in open_page.inner_text("#check")
    assert open_page.locator("#check img").count() == 0


def test_shared_link_restores_the_page(open_page: Page, context: BrowserContext, root: Path) -> None:
    manifests = read_story(root, "move-ci/before") + "# Grüße 🚦\n"
    show(open_page, "explain", manifests, kubernetes="1.31", request="list pods -A --as alice")
    assert "Kubernetes 1.31" in open_page.inner_text("#explain .output")
    open_page.click("#share")
    wait_for(lambda: "Everybody with the link" in open_page.inner_text("#status"), wanted=True)
    link = open_page.url
    other = context.new_page()
    other.goto(link)
    other.wait_for_selector("#explain .output[data-exit-code='0'][aria-busy=false]")
    assert other.input_value("#manifests") == manifests
    assert other.input_value("#kubernetes") == "1.31"
    assert other.input_value("#request") == "list pods -A --as alice"
    assert other.inner_text("#explain .output") == open_page.inner_text("#explain .output")
    other.close()


def test_link_that_would_be_too_long_is_not_made(open_page: Page) -> None:
    noise = base64.b64encode(os.urandom(40_000)).decode()
    before = open_page.url
    show(open_page, "check", noise)
    open_page.click("#share")
    wait_for(lambda: "more than 32,000. Share fewer manifests." in open_page.inner_text("#status"), wanted=True)
    assert open_page.url == before


def make_fragment(state: object) -> str:
    """Return the fragment of a link with this state."""
    packer = zlib.compressobj(wbits=-15)
    packed = packer.compress(json.dumps(state).encode()) + packer.flush()
    return "#1." + base64.urlsafe_b64encode(packed).decode().rstrip("=")


DAMAGED = "The link is damaged or incomplete"


@pytest.mark.parametrize(
    ("fragment", "words"),
    [
        ("#x", DAMAGED),
        ("#1.", DAMAGED),
        ("#1.AAAA", DAMAGED),
        ("#1.%00<script>", DAMAGED),
        ("#9.AAAA", "another version"),
        (make_fragment(None), DAMAGED),
        (make_fragment([]), DAMAGED),
        (make_fragment({"manifests": 5, "kubernetes": {}, "request": [], "view": None}), DAMAGED),
        (make_fragment({"manifests": "a" * 50_000_000}), "more than 1,000,000 characters"),
    ],
    ids=["text", "nothing", "bytes", "markup", "version", "null", "list", "types", "bomb"],
)
def test_damaged_links_get_a_sentence(open_page: Page, root: Path, fragment: str, words: str) -> None:
    open_page.evaluate("fragment => { location.hash = fragment; }", fragment)
    wait_for(lambda: words in open_page.inner_text("#notice"), wanted=True)
    show(open_page, "check", read_story(root, "small-cluster"))  # the page still works
    assert "[APF306]" in read_findings(open_page)
    assert not open_page.is_visible("#notice")


def test_damaged_link_in_a_new_page_keeps_its_sentence(context: BrowserContext, site: Server) -> None:
    page = context.new_page()
    page.goto(f"{site.url}#1.AAAA")
    wait_for(lambda: DAMAGED in page.inner_text("#notice"), wanted=True)
    page.wait_for_selector("#check .output[data-exit-code]")
    assert DAMAGED in page.inner_text("#notice")
    page.close()


def test_stopped_job_does_not_start_again_until_the_manifests_change(context: BrowserContext, site: Server) -> None:
    page = context.new_page()
    page.goto(site.url)
    page.wait_for_selector("#check .output[data-exit-code]")
    rule = "  - {subjects: [{kind: User, user: {name: a}}]}\n"
    start = "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: FlowSchema\nmetadata: {name: a}\nspec:\n  rules:\n"
    # Filling in the text is faster than typing.
    enter = "text => { manifests.value = text; manifests.dispatchEvent(new Event('input')); }"
    page.evaluate(enter, start + rule * 20_000)
    page.click("#stop")  # appears when a job takes long
    stopped = "Stopped. Change the manifests to check them."
    wait_for(lambda: page.inner_text("#status"), stopped)
    page.wait_for_selector("body[data-busy='']")
    assert page.inner_text("#status") == stopped
    assert not page.is_visible("#stop")
    page.evaluate(enter, start + rule)
    wait_for_results(page)
    assert "1 object" in page.inner_text("#status")
    page.close()


def test_link_with_unknown_release_and_view_uses_the_defaults(open_page: Page) -> None:
    show(open_page, "explain", "")
    state = {"manifests": "a: b", "kubernetes": "9.99", "request": "", "view": "__proto__"}
    open_page.evaluate("fragment => { location.hash = fragment; }", make_fragment(state))
    wait_for(lambda: open_page.input_value("#manifests"), "a: b")
    assert open_page.input_value("#kubernetes") == NEWEST.name
    assert open_page.get_attribute("#tab-check", "aria-selected") == "true"


def test_missing_packages_are_named(open_page: Page) -> None:
    """Only the dialog names the missing packages, because few users need them."""
    open_page.click("#about-open")
    wait_for(lambda: "libyaml is missing." in open_page.inner_text("#missing"), True)
    assert "The Python parser of PyYAML reads YAML instead." in open_page.inner_text("#about")
    assert "python-sat" in open_page.inner_text("#packages")
    open_page.click("#about button")
    assert "libyaml" not in open_page.inner_text("body")


def test_safe_fixes_are_applied(open_page: Page, tmp_path: Path) -> None:
    example = next(example for example in parse_examples(read_rule("APF302")) if "type: limited" in example.text)
    show(open_page, "check", example.text)
    wait_for(lambda: open_page.inner_text("#fix"), "Apply 1 safe fix")
    open_page.click("#fix")
    wait_for(lambda: open_page.is_visible("#fix"), False)
    wait_for_results(open_page)
    file = tmp_path / "manifests.yaml"
    file.write_text(example.text, "utf-8")
    command = [sys.executable, "-m", "apflint", "fix", "--isolated", str(file)]
    subprocess.run(command, check=False, capture_output=True)
    assert open_page.input_value("#manifests") == file.read_text("utf-8") != example.text
    assert "APF302" not in read_findings(open_page)
    assert open_page.inner_text("#notice") == "fixed 1 finding in 1 file"
    assert open_page.locator(".gutter .error, #gutter .error").count() == 0


def test_unsafe_fixes_have_no_button(open_page: Page) -> None:
    example = next(example for example in parse_examples(read_rule("APF303")) if "type: Reject\n" in example.text)
    text = example.text.replace("type: Limited", "type: Exempt").replace("type: Reject", "type: Queue")
    show(open_page, "check", text)
    assert open_page.locator("#check .findings li").count() > 0
    assert not open_page.is_visible("#fix")


def test_advice_can_be_followed_in_the_page(open_page: Page) -> None:
    """Advice on the page names only what it has: no files, and the commands check, fix, graph and explain."""
    unknown = """\
apiVersion: flowcontrol.apiserver.k8s.io/v1beta3
kind: FlowSchema
metadata: {name: x}
spec: {matchingPrecedence: 500, priorityLevelConfiguration: {name: unknown-level}}
"""
    show(open_page, "check", unknown)
    found = open_page.inner_text("#check")
    assert "APF401" in found
    assert "--context" not in found
    assert "add that file to the manifests" in re.sub(r"\s+", " ", found)
    assert "can be fixed: apflint fix" not in found
    assert re.search(r"apflint\s+migrate\s+--to\s+v1\s+\(on the command line\)", found)


def test_tabs_work_with_the_keyboard(open_page: Page) -> None:
    open_page.click("#tab-check")
    open_page.keyboard.press("ArrowRight")
    assert open_page.evaluate("document.activeElement.id") == "tab-graph"
    assert open_page.is_visible("#graph")
    assert not open_page.is_visible("#check")
    open_page.keyboard.press("ArrowLeft")
    assert open_page.evaluate("document.activeElement.id") == "tab-check"


def test_page_says_first_that_nothing_leaves_the_browser(open_page: Page) -> None:
    assert open_page.inner_text("header p").startswith("Nothing leaves this browser.")


def test_no_request_goes_to_another_host(open_page: Page, site: Server, requested: list[str]) -> None:
    assert open_page.is_visible("#manifests")
    hosts = {urlsplit(url).netloc for url in requested if not url.startswith(("blob:", "data:"))}
    assert hosts == {urlsplit(site.url).netloc}
    assert any(url.endswith("/packages.zip") for url in requested), "requests of the worker are recorded, too"


def test_policy_blocks_requests_to_another_host(
    open_page: Page, browser: Browser, other_host: Server, site: Server
) -> None:
    send = "url => fetch(url).then(() => 'sent', () => 'blocked')"
    (worker,) = open_page.workers
    assert worker.evaluate(send, site.url) == "sent"
    assert open_page.evaluate(send, other_host.url) == "blocked"
    assert worker.evaluate(send, other_host.url) == "blocked"
    assert other_host.paths == []
    unprotected = browser.new_page()  # control: without the content security policy, the same request arrives
    unprotected.goto(other_host.url)
    assert unprotected.evaluate(send, other_host.url) == "sent"
    unprotected.close()
    assert len(other_host.paths) >= 2


def test_missing_file_gets_a_sentence_and_a_second_try(browser: Browser, site: Server) -> None:
    context = browser.new_context()
    context.set_default_timeout(90_000)
    context.route("**/packages.zip", lambda route: route.fulfill(status=404))
    page = context.new_page()
    page.goto(site.url)
    page.wait_for_selector("#stop:visible")
    assert page.inner_text("#status") == "apflint stopped: packages.zip: HTTP status 404"
    context.unroute("**/packages.zip")
    page.click("#stop")
    page.wait_for_selector("#check .findings li")
    context.close()


def test_narrow_window_needs_no_horizontal_scrolling(browser: Browser, site: Server) -> None:
    context = browser.new_context(viewport={"width": 360, "height": 740})
    context.set_default_timeout(90_000)
    page = context.new_page()
    page.goto(site.url)
    page.wait_for_selector("#check .findings li")
    schemes: tuple[tuple[Literal["light", "dark"], str], ...]
    schemes = (("light", "rgb(255, 255, 255)"), ("dark", "rgb(20, 24, 29)"))
    for scheme, background in schemes:
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == background
    context.close()
