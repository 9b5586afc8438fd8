"""Reports with hostile content, and strategies for them, for the tests of all formats."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st

from apflint.edit_operations import Edit, Fix
from apflint.finding import SEVERITIES, Cause, Finding, ObjectRef, Related, Report, SkippedDocuments
from apflint.load.source_text import Source
from apflint.location import Span
from apflint.output.console import Style

URL = "https://github.com/apflint/apflint/blob/main/rules/"
LEVEL = "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: PriorityLevelConfiguration\nmetadata:\n  name: tenants\nspec:\n  type: Limited\n  limited:\n    limitResponse:\n      type: Queue\n      queuing:\n        queues: 8\n        handSize: 12\n"
SCHEMA = (
    "metadata:\r\n"
    "  name: 開発\u0301チーム  # \u202eevil\x1b[31m\r\n"
    "\tdistinguisherMethod: {type: ByTeam}\r\n"
    "spec:\r\n"
    "  rules:\r\n"
    "  - subjects: []\r\n"
)
ONE_LINE = '{"items":[' + '{"kind":"Pod"},' * 500 + '{"kind":"FlowSchma"},' + '{"kind":"Pod"},' * 500 + "]}"


def finding(rule: str, name: str, message: str, file: str, span: tuple[int, int, int, int]) -> Finding:
    """Return a finding of severity error without optional fields."""
    return Finding(
        rule=rule,
        name=name,
        severity="error",
        message=message,
        file=file,
        span=Span(*span),
        object=None,
        field="",
        apiserver=None,
        related=(),
        fix=None,
        url=f"{URL}{rule}.md",
    )


HOSTILE_FILE = "cluster/evil\n\x1b[2Jname.yaml"
GOLDEN = Report(
    kubernetes="1.36",
    findings=(
        finding(
            "APF305",
            "hand-larger-than-queues",
            "handSize 12 is greater than queues 8",
            "cluster/levels.yaml",
            (12, 19, 12, 21),
        )._replace(
            object=ObjectRef("flowcontrol.apiserver.k8s.io/v1", "PriorityLevelConfiguration", "tenants"),
            field="spec.limited.limitResponse.queuing.handSize",
            apiserver=Cause("FieldValueInvalid", "spec.limited.limitResponse.queuing.handSize"),
            related=(Related("cluster/levels.yaml", Span(11, 17, 11, 18), "the priority level has 8 queues"),),
            fix=Fix("lower handSize to 8", safe=False, edits=(Edit(LEVEL.index("12"), LEVEL.index("12") + 2, "8"),)),
            help="set handSize to 7 or less, or increase queues",
        ),
        finding(
            "APF501",
            "unreachable-flow-schema",
            'unreachable FlowSchema: every request it matches is captured by the FlowSchema "catch-everything"',
            "cluster/levels.yaml",
            (3, 1, 12, 21),
        )._replace(
            severity="warning",
            notes=("A FlowSchema with a lower matchingPrecedence is tried first.",),
            example="apflint explain list pods -n ci --as system:serviceaccount:ci:runner",
            involves=(("FlowSchema", "catch-everything"),),
        ),
        finding(
            "APF103",
            "invalid-metadata",
            'the name "開発\u0301チーム" is not a DNS name.\n::error::\x1b]8;;http://evil\x07 \udcff',
            HOSTILE_FILE,
            (2, 9, 2, 15),
        )._replace(
            object=ObjectRef("flowcontrol.apiserver.k8s.io/v1", "FlowSchema", "開発\u0301チーム"),
            field="metadata.name",
            apiserver=Cause("BadRequest", ""),
        ),
        finding("APF203", "unknown-distinguisher", 'unknown type "ByTeam"', HOSTILE_FILE, (3, 30, 3, 36))._replace(
            fix=Fix("replace it by ByUser", safe=True, edits=(Edit(at := SCHEMA.index("ByTeam"), at + 6, "ByUser"),)),
            notes=("A note with \x1b[31m and \u202e.",),
            help="use ::ByUser or ByNamespace\n::error::",
        ),
        finding("APF001", "syntax-error", "the text ends here", HOSTILE_FILE, (7, 1, 7, 1)),
        finding("APF005", "not-an-apf-object", 'unknown kind "FlowSchma"', "all.json", (1, 7519, 1, 7530))._replace(
            severity="info",
            involves=(),
            more=1234,
            related=(
                Related("all.json", Span(1, 1, 1, 2), "the list starts here"),
                Related("gone.yaml", Span(123456, 7, 123456, 8), "a file without text"),
            ),
        ),
    ),
    files=4,
    objects=3,
    skipped=(
        SkippedDocuments("cluster/levels.yaml", "Pod objects", 2),
        SkippedDocuments("all.json", "Secret objects"),
        SkippedDocuments("chart/templates/flow.yaml", "template or patch, not a manifest yet"),
        SkippedDocuments("notes.yaml", "too \x07 loud"),
    ),
    suppressed=1,
    sources={
        "cluster/levels.yaml": Source("cluster/levels.yaml", LEVEL),
        HOSTILE_FILE: Source(HOSTILE_FILE, SCHEMA),
        "all.json": Source("all.json", ONE_LINE),
    },
)
CLEAN = Report("1.36", (), 3, 5, (), 0, {})


HOSTILE_CHARACTERS = (
    "\n\r\t\x00\x07\x1b\x7f\x85\x9b\xa0\u200b\u2028\u202e\u2066\ufeff\ud800\u0301\u4e2d\u1100\u1161\U0001f600\U000e0001"
)
TEXT = st.text(
    st.one_of(st.sampled_from(HOSTILE_CHARACTERS), st.characters(exclude_categories=()), st.sampled_from("ab: #|"))
)
LAWS = settings(derandomize=True, max_examples=100, deadline=None)


@st.composite
def spans(draw: st.DrawFn) -> Span:
    line, column = draw(st.integers(1, 5)), draw(st.integers(1, 300))
    more = draw(st.integers(0, 2))
    end = draw(st.integers(1, 300)) if more else column + draw(st.integers(0, 200))
    return Span(line, column, line + more, end)


FILES = st.sampled_from(["a.yaml", "b\n\x1b[2J\u202e.json", "no text"])
FINDINGS = st.builds(
    Finding,
    rule=st.sampled_from(["APF101", "APF305"]),
    name=st.sampled_from(["unknown-field", "hand-larger-than-queues"]),
    severity=st.sampled_from(SEVERITIES),
    message=TEXT,
    file=FILES,
    span=spans(),
    object=st.none() | st.builds(ObjectRef, st.just("v1"), TEXT, TEXT),
    field=TEXT,
    apiserver=st.none() | st.builds(Cause, TEXT, TEXT),
    related=st.lists(st.builds(Related, FILES, spans(), TEXT), max_size=2).map(tuple),
    fix=st.none() | st.builds(Fix, TEXT, st.booleans(), st.just(()), st.just(())),
    document=st.none(),
    involves=st.none() | st.lists(st.tuples(st.just("FlowSchema"), TEXT), max_size=2).map(tuple),
    notes=st.lists(TEXT, max_size=2).map(tuple),
    help=st.none() | TEXT,
    example=st.none() | TEXT,
    clusters=st.sampled_from([(), ("prod",), ("prod", "staging")]),
    more=st.sampled_from([0, 0, 0, 1, 4000]),
    url=st.sampled_from(["https://example.com/APF101.md", "https://e/\x1b]0;x\x07", ""]),
)
REPORTS = st.builds(
    Report,
    kubernetes=st.just("1.36"),
    findings=st.lists(FINDINGS, max_size=4).map(tuple),
    files=st.integers(0, 3),
    objects=st.integers(0, 3),
    skipped=st.lists(st.builds(SkippedDocuments, FILES, TEXT, st.integers(1, 3)), max_size=3).map(tuple),
    suppressed=st.integers(0, 2),
    sources=st.fixed_dictionaries(
        {
            "a.yaml": st.lists(TEXT, max_size=5).map(lambda lines: Source("a.yaml", "\n".join(lines))),
            "b\n\x1b[2J\u202e.json": TEXT.map(lambda text: Source("b", text * 50)),
        }
    ),
)
STYLES = st.builds(
    Style,
    width=st.none() | st.integers(1, 220),
    color=st.booleans(),
    hyperlinks=st.booleans(),
    quiet=st.booleans(),
    verbose=st.booleans(),
    statistics=st.booleans(),
)


HOSTILE_TEXTS = (
    "]]>",
    "<!--",
    "<script>alert(1)</script>",
    "\n::error file=x::pwned",
    "::set-output name=a::b",
    "##[error]",
    "%0A::stop-commands::x",
    "\r\n",
    "| a | b |",
    "`code` ``",
    "[x](http://evil)",
    "@everyone",
    "&amp;&#10;",
    "\ufffe\uffff",
    "\x00\x1b[2J\u202e",
    "\ud800",
    "\\",
)
WORDS = st.lists(st.sampled_from(HOSTILE_TEXTS) | TEXT, max_size=4).map("".join)
HOSTILE_REPORTS = st.builds(
    lambda report, messages: report._replace(
        findings=tuple(
            finding._replace(message=finding.message + message)
            for finding, message in zip(report.findings, messages, strict=False)
        )
    ),
    REPORTS,
    st.lists(WORDS, min_size=4, max_size=4),
)
EVERY_HOSTILE_TEXT = CLEAN._replace(
    findings=tuple(finding("APF305", "x", f"a {word} b", "a.yaml", (1, 1, 1, 2)) for word in HOSTILE_TEXTS)
)


def describe_in_one_line(found: Finding) -> str:
    """Return message, help, clusters and number of unreported findings, as formats with a single string for each
    finding print them.

    Lines to copy after a colon, such as a settings table, are left out."""
    help_ = (found.help or "").partition(":\n")[0]
    text = f"{found.message} (help: {help_})" if help_ else found.message
    clusters = {0: "", 1: ". In cluster prod", 2: ". In 2 clusters: prod and staging"}[len(found.clusters)]
    more = (
        f". At least {found.more:,} more findings of {found.rule} in this file are not reported" if found.more else ""
    )
    return f"{text}{clusters}{more}{'.' if clusters or more else ''}"
