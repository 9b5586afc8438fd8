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
    from collections.abc import Iterator
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


def run_for_page(page: Page, arguments: list[str], directory: Path, **texts: str) -> Printed:
    """Return what a command prints at the width of the page. `texts` are the texts of the editors."""
    for name, text in texts.items():
        (directory / f"{name}.yaml").write_text(text, "utf-8")
    columns = page.get_attribute("#check .output", "data-columns") or ""
    return run_in_terminal([*arguments, "--isolated", "--color", "always"], directory, columns)


def check_in_terminal(page: Page, manifests: str, directory: Path) -> str:
    """Return what `apflint check` prints for the manifests, at the width of the page."""
    printed = run_for_page(page, ["check", "manifests.yaml"], directory, manifests=manifests).output.strip("\n")
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
    assert answer.all_text_contents() == [text.replace(" Try `apflint explain --help`.", "") for text in expected]
    assert any(expected)


def read_output(page: Page, tab: str) -> Printed:
    """Return the text of a tab: the output of a command, and below it its errors and notes."""
    output, notes = page.locator(f"#{tab} .output > pre").all_text_contents()
    return Printed(output, notes)


def test_limits_are_those_of_the_command_line(open_page: Page, root: Path, tmp_path: Path) -> None:
    manifests = read_story(root, "move-ci/after")
    show(open_page, "limits", manifests, seats="1600+400")
    expected = run_for_page(
        open_page,
        ["limits", "--verbose", "--server-concurrency", "1600+400", "manifests.yaml"],
        tmp_path,
        manifests=manifests,
    )
    assert read_output(open_page, "limits") == expected
    assert "server concurrency limit 2,000" in expected.output


@pytest.mark.parametrize("seats", ["0", "--kubernetes 1.29"])
def test_wrong_number_of_seats_gets_a_sentence(open_page: Page, seats: str) -> None:
    show(open_page, "check", "", seats=seats)
    sentence = f"Invalid value for '--server-concurrency': \"{seats}\" is not an integer from 1"
    assert sentence in re.sub(r"\s+", " ", open_page.inner_text("#check"))
    assert "--help" not in open_page.inner_text("#check")


def read_old_and_new(root: Path) -> tuple[str, str]:
    return read_story(root, "move-ci/before"), read_story(root, "move-ci/after")


def test_differences_are_those_of_the_command_line(open_page: Page, root: Path, tmp_path: Path) -> None:
    old, new = read_old_and_new(root)
    show(open_page, "diff", new, old=old)
    command = ["diff", "--kubernetes", NEWEST.name, "old.yaml", "manifests.yaml"]  # the page always states the release
    expected = run_for_page(open_page, command, tmp_path, old=old, manifests=new)
    assert read_output(open_page, "diff") == expected
    assert "reporting -> ci" in expected.output


def test_manifests_are_compared_with_built_in_objects_without_old_manifests(
    open_page: Page, root: Path, tmp_path: Path
) -> None:
    manifests = read_story(root, "move-ci/after")
    show(open_page, "diff", manifests, kubernetes="1.31", old=" \n")
    arguments = ["diff", "defaults:1.31", "manifests.yaml", "--kubernetes", "1.31"]
    expected = run_for_page(open_page, arguments, tmp_path, manifests=manifests)
    assert read_output(open_page, "diff") == expected
    assert "added: FlowSchema ci-runner" in expected.output


def test_old_manifests_without_objects_get_a_sentence(open_page: Page, root: Path) -> None:
    show(open_page, "diff", read_story(root, "move-ci/after"), old="kind: FlowSchema\nspec: [a\n")
    assert read_output(open_page, "diff").notes.startswith("apflint: old.yaml: no FlowSchema")
    assert "swap the texts to see the findings" in read_output(open_page, "diff").notes


def test_click_on_a_place_selects_it_in_the_old_manifests(open_page: Page, root: Path) -> None:
    old, new = read_old_and_new(root)
    show(
        open_page,
        "diff",
        new,
        old=old.replace("    nominalConcurrencyShares: 20\n", "    nominalConcurrencyShares: -1\n"),
    )
    place = open_page.locator("#diff .place").first
    assert place.inner_text().startswith("old.yaml:")
    place.click()
    assert open_page.evaluate("document.activeElement.id") == "old"
    line = int(place.inner_text().split(":")[1])
    assert open_page.evaluate("old.selectionStart") == sum(len(text) + 1 for text in old.split("\n")[: line - 1])


def test_buttons_copy_and_swap_the_compared_texts(open_page: Page, root: Path) -> None:
    old, new = read_old_and_new(root)
    show(open_page, "diff", old, old="")
    open_page.click("#copy")
    wait_for_results(open_page)
    assert "No request changes its FlowSchema" in read_output(open_page, "diff").output
    open_page.fill("#manifests", new)
    wait_for_results(open_page)
    forward = read_output(open_page, "diff").output
    assert "reporting -> ci" in forward
    open_page.click("#swap")
    wait_for_results(open_page)
    assert (open_page.input_value("#manifests"), open_page.input_value("#old")) == (old, new)
    assert "ci -> reporting" in read_output(open_page, "diff").output


def read_load(root: Path) -> str:
    """Return the load of the examples."""
    return (root / "docs" / "playground" / "load.yaml").read_text("utf-8")


SIMULATE = ["simulate", "load.yaml", "-f", "manifests.yaml"]


@pytest.mark.parametrize(("story", "seats"), [("move-ci/before", ""), ("move-ci/after", "300")])
def test_simulation_is_that_of_the_command_line(
    open_page: Page, root: Path, tmp_path: Path, story: str, seats: str
) -> None:
    texts = {"manifests": read_story(root, story), "load": read_load(root)}
    show(open_page, "simulate", texts["manifests"], load=texts["load"], seats=seats)
    options = ["--server-concurrency", seats] if seats else []
    expected = run_for_page(open_page, [*SIMULATE, *options], tmp_path, **texts)
    download = re.sub(r"(all\s+percentiles:)\s+--verbose", r"\1 download", expected.output)
    assert read_output(open_page, "simulate") == expected._replace(output=download)
    assert "reports waits up to" in download


BUSY_LOAD = """\
duration: 10s
objects: {pods: 100}
warmup: 0s
clients:
  - {name: heavy, as: analyst, groups: [analysts], request: list pods -n a, rate: 200/s, service: 2s}
  - {name: light, as: "user-{n}", groups: [analysts], request: get pods x -n a, count: 9, rate: 1/s, service: 1s}
"""
"""A load with a busy flow, which the legend of the charts names."""


def test_charts_are_those_of_the_report(open_page: Page, root: Path, tmp_path: Path) -> None:
    texts = {"manifests": read_story(root, "move-ci/before"), "load": BUSY_LOAD}
    show(open_page, "simulate", texts["manifests"], load=texts["load"])
    report = run_for_page(open_page, [*SIMULATE, "--format", "html"], tmp_path, **texts).output
    with open_page.expect_download() as downloading:
        open_page.click("#simulate a[download]")
    assert downloading.value.path().read_text("utf-8") == report
    headings = [re.sub("<.*?>", "", text) for text in re.findall("<h[23]>(.*?)</h[23]>", report)]
    assert open_page.locator("#simulate .charts :is(h2, h3)").all_text_contents() == headings
    images = open_page.locator("#simulate .drawing img")
    names = re.findall('aria-label="(.*?)"', report)
    assert len(names) == images.count() > 1
    assert all(image.get_attribute("alt").startswith(name) for image, name in zip(images.all(), names, strict=True))  # type: ignore[union-attr]
    sizes = "[...document.querySelectorAll('#simulate .drawing img')].map((image) => image.naturalWidth)"
    wait_for(lambda: open_page.evaluate(sizes), [1080] * len(names))
    assert "mostly busy flows: heavy (analyst)" in open_page.inner_text("#simulate .legend >> nth=-1")


@pytest.mark.parametrize(
    ("load", "words"),
    [
        ("", "Enter a load"),
        ("hello", "a load is a mapping"),
        ("duration: 1m\nclients: [{name: a, request: get pods -A, rate: 1/x, service: 1s}]\n", "load.yaml:2:"),
        (
            "duration: 999h\nclients: [{name: a, as: b, request: list pods -A, rate: 9999/s, service: 1s}]\n",
            "maximum of",
        ),
    ],
    ids=["empty", "no load", "mistake", "large"],
)
def test_load_with_mistakes_gets_a_sentence(open_page: Page, root: Path, load: str, words: str) -> None:
    show(open_page, "simulate", read_story(root, "move-ci/after"), load=load)
    assert words in open_page.inner_text("#simulate .output")
    assert open_page.locator("#simulate img").count() == 0
    if words == "load.yaml:2:":
        open_page.locator("#simulate .place").first.click()
        assert open_page.evaluate("document.activeElement.id") == "load"


def test_simulation_of_an_old_release_gets_a_sentence(open_page: Page, root: Path) -> None:
    show(open_page, "simulate", read_story(root, "move-ci/after"), load=read_load(root), kubernetes="1.29")
    assert read_output(open_page, "simulate").notes.endswith("differs: choose a later release")


def test_simulations_start_only_on_request(open_page: Page, root: Path) -> None:
    show(open_page, "simulate", read_story(root, "move-ci/after"), load=read_load(root))
    before = read_output(open_page, "simulate")
    assert open_page.inner_text("#changed") == ""
    open_page.fill("#load", read_load(root).replace("requests: 150", "requests: 300"))
    assert open_page.inner_text("#changed") == "The texts have changed. Simulate them again."
    wait_for_results(open_page)
    assert read_output(open_page, "simulate") == before
    open_page.press("#load", "Control+Enter")
    wait_for_results(open_page)
    assert read_output(open_page, "simulate") != before
    assert open_page.inner_text("#changed") == ""


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
        ("x" * 1_000_001, "The playground reads at most 1,000,000 characters."),
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


def test_names_in_charts_are_never_html(open_page: Page, root: Path) -> None:
    name = "<img src=x onerror=alert(1)></title><script>alert(2)</script>"
    load = BUSY_LOAD.replace("name: heavy", f"name: '{name}'")
    show(open_page, "simulate", read_story(root, "move-ci/before"), load=load)
    assert name in open_page.inner_text("#simulate .legend >> nth=-1")
    assert open_page.locator("#simulate script").count() == 0
    assert open_page.evaluate("[...document.images].every((image) => image.src.startsWith('blob:'))")


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


def test_shared_link_has_all_texts_and_choices(open_page: Page, root: Path) -> None:
    old, new = read_old_and_new(root)
    show(open_page, "diff", new, old=old)
    load = read_load(root) + "# Grüße\n"
    show(open_page, "simulate", new, load=load, kubernetes="1.33", seats="300")
    simulated = read_output(open_page, "simulate")
    open_page.click("#share")
    wait_for(lambda: "Everybody with the link" in open_page.inner_text("#status"), wanted=True)
    fragment = open_page.evaluate("location.hash")
    open_page.evaluate("history.replaceState(null, '', location.pathname)")
    show(open_page, "diff", "", old="", seats="")
    open_page.evaluate("fragment => { location.hash = fragment; }", fragment)
    wait_for(lambda: open_page.input_value("#manifests"), new)
    wait_for_results(open_page)
    entered = [open_page.input_value(f"#{name}") for name in ("old", "load", "kubernetes", "seats")]
    assert entered == [old, load, "1.33", "300"]
    assert read_output(open_page, "simulate") == simulated
    assert "Kubernetes 1.33" in simulated.output
    assert open_page.locator("#simulate .charts img").count() > 1


def test_link_from_before_the_load_gets_that_of_the_examples(open_page: Page, root: Path) -> None:
    state = {
        "manifests": read_story(root, "move-ci/after"),
        "kubernetes": "1.36",
        "request": "list pods",
        "view": "check",
    }
    open_page.evaluate("fragment => { location.hash = fragment; }", make_fragment(state))
    wait_for(lambda: open_page.input_value("#manifests"), state["manifests"])
    entered = [open_page.input_value(f"#{name}") for name in ("old", "load", "kubernetes", "seats", "request")]
    assert entered == ["", read_load(root), "1.36", "", "list pods"]


def test_link_that_would_be_too_long_is_not_made(open_page: Page) -> None:
    noise = base64.b64encode(os.urandom(40_000)).decode()
    before = open_page.url
    show(open_page, "check", noise)
    open_page.click("#share")
    wait_for(
        lambda: "more than 32,000. Shorten the texts, or send them as files." in open_page.inner_text("#status"),
        wanted=True,
    )
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
        (make_fragment({"manifests": "", "kubernetes": "", "request": "", "view": "", "load": 1}), DAMAGED),
        (make_fragment({"manifests": "a" * 50_000_000}), "more than 1,000,000 characters"),
    ],
    ids=["text", "nothing", "bytes", "markup", "version", "null", "list", "types", "type of load", "bomb"],
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


@pytest.fixture(scope="module")
def stopping_page(context: BrowserContext, site: Server) -> Iterator[Page]:
    """A page whose jobs the tests stop, and whose clock they set forward."""
    page = context.new_page()
    page.clock.install()
    page.goto(site.url)
    page.wait_for_selector("#check .output[data-exit-code]")
    yield page
    page.close()


def test_long_simulation_is_stopped_with_a_sentence(stopping_page: Page, root: Path) -> None:
    page, load = stopping_page, read_load(root).replace("rate: 10/s", "rate: 30000/s")
    page.click("#tab-simulate")
    page.fill("#manifests", read_story(root, "move-ci/after"))
    page.fill("#load", load)
    page.click("#run")
    page.wait_for_selector("body[data-busy=simulate]")
    page.clock.fast_forward(20_000)
    sentence = "Stopped: the simulation took more than 20 seconds."
    wait_for(lambda: sentence in page.inner_text("#simulate .output"), wanted=True)
    page.wait_for_selector("body[data-busy='']")  # a new worker has replaced the stopped one
    assert sentence in page.inner_text("#simulate .output")
    assert page.get_attribute("#simulate .output", "aria-busy") == "false"
    page.fill("#load", read_load(root))
    page.click("#run")
    wait_for_results(page)
    assert "Nobody else is rejected or waits." in page.inner_text("#simulate .output")


def test_error_of_python_gets_a_sentence_and_a_second_try(stopping_page: Page, root: Path) -> None:
    page = stopping_page
    show(page, "check", read_story(root, "small-cluster"))
    (worker,) = page.workers
    worker.evaluate("onmessage({data: {command: 'check'}})")  # raises KeyError, because the job has no manifests
    wait_for(lambda: page.inner_text("#status"), "apflint stopped: KeyError: 'manifests'")
    page.click("#stop")
    wait_for_results(page)
    assert "[APF306]" in read_findings(page)


def test_stopped_job_does_not_start_again_until_the_manifests_change(stopping_page: Page) -> None:
    page = stopping_page
    rule = "  - {subjects: [{kind: User, user: {name: a}}]}\n"
    start = "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: FlowSchema\nmetadata: {name: a}\nspec:\n  rules:\n"
    # Filling in the text is faster than typing.
    enter = "text => { manifests.value = text; manifests.dispatchEvent(new Event('input')); }"
    page.evaluate(enter, start + rule * 20_000)
    page.click("#stop")  # the button appears only if a job takes long
    stopped = "Stopped. Change the manifests to check them."
    wait_for(lambda: page.inner_text("#status"), stopped)
    page.wait_for_selector("body[data-busy='']")
    assert page.inner_text("#status") == stopped
    assert not page.is_visible("#stop")
    page.evaluate(enter, start + rule)
    wait_for_results(page)
    assert "1 object" in page.inner_text("#status")


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
    """Help on the page does not suggest files or commands that the page does not have."""
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
    open_page.keyboard.press("End")
    assert open_page.evaluate("document.activeElement.id") == "tab-simulate"
    open_page.keyboard.press("ArrowRight")
    assert open_page.evaluate("document.activeElement.id") == "tab-check"


def test_controls_have_names(open_page: Page) -> None:
    """Screen readers read these names. Panels and tabs refer to each other."""
    nameless = """[...document.querySelectorAll("button, select, input, textarea")].filter((control) =>
        !control.textContent.trim() && !control.labels?.length && !control.ariaLabel).map((control) => control.id)"""
    assert open_page.evaluate(nameless) == []
    for tab in open_page.locator("[role=tab]").all():
        panel = open_page.locator(f"#{tab.get_attribute('aria-controls')}")
        assert panel.get_attribute("aria-labelledby") == tab.get_attribute("id")


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
        for tab in ("diff", "simulate", "check"):
            page.click(f"#tab-{tab}")
            wait_for_results(page)
            assert page.evaluate("document.documentElement.scrollWidth") <= 360
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == background
    context.close()
