"""The manual pages of the commands that answer questions."""

from __future__ import annotations

from apflint.cli.manual import Example, Page
from apflint.cli.manual.phrases import ANSWER, BUILT_IN, SERVER, USAGE

PAGES = {
    "explain": Page(
        about=(
            "The request is written as for `kubectl auth can-i`, or as HTTP with --method and --path, or comes from an audit"
            " event. Without any request, apflint asks for one, if this is a terminal. " + BUILT_IN + "\n\nThe groups"
            " that authentication adds, such as system:authenticated, are added, and the answer says so. Lines of --requests"
            " that already have system:authenticated or system:unauthenticated are used unchanged, and so are audit events."
        ),
        groups=(
            (
                "The request",
                (
                    "--as",
                    "--as-group",
                    "--namespace",
                    "--all-namespaces",
                    "--method",
                    "--path",
                    "--event",
                    "--requests",
                    "--flow-schema-uid",
                    "--priority-level-uid",
                ),
            ),
            ("Manifests", ("--filename",)),
            SERVER,
            ("Output", ("--format", "--verbose", "--color")),
        ),
        examples=(
            Example(
                "a user in a group lists the pods of a namespace",
                "apflint explain list pods -n team-a --as alice --as-group dev",
            ),
            Example("a probe from outside", "apflint explain get /healthz --as system:anonymous"),
            Example(
                "an HTTP request of a service account",
                "apflint explain --method GET --path '/api/v1/pods?watch=true' --as system:serviceaccount:ci:runner",
            ),
            Example("an event of the audit log", "apflint explain --event event.json"),
            Example(
                "many requests, one JSON answer a line",
                "apflint explain -f manifests/ --requests requests.jsonl --format json",
            ),
            Example(
                "the FlowSchema of a response, from its header X-Kubernetes-PF-FlowSchema-UID",
                "apflint explain -f live.yaml --flow-schema-uid 6f9a4d3e-0c5b-4b7e-9a51-3f2d8a1c7e60",
            ),
        ),
        exit_status=ANSWER,
    ),
    "limits": Page(
        about=BUILT_IN,
        groups=(("What to compare", ("--compare",)), SERVER, ("Output", ("--format", "--color"))),
        examples=(
            Example("the levels of the manifests and the built-in ones", "apflint limits manifests/"),
            Example("for larger API servers", "apflint limits --server-concurrency 3000 manifests/"),
            Example("who gains and who loses by an upgrade", "apflint limits --compare defaults:1.28 defaults:1.36"),
        ),
        exit_status=ANSWER,
    ),
    "diff": Page(
        about=BUILT_IN + " Every change is shown with a request that proves it, as `apflint explain` takes it.",
        groups=(SERVER, ("Output", ("--format", "--exit-zero", "--color"))),
        examples=(
            Example("two checkouts", "apflint diff main/ branch/"),
            Example("an upgrade of Kubernetes", "apflint diff defaults:1.33 defaults:1.36 --exit-zero"),
            Example("for a comment on a pull request", "apflint diff --format markdown old.yaml new.yaml"),
        ),
        exit_status=(
            ("0", "No request and no level fares differently, or --exit-zero."),
            ("1", "Something fares differently."),
            USAGE,
        ),
    ),
    "defaults": Page(
        about="The mandatory objects, which a server always keeps as they are, and the suggested ones, which you may change.",
        examples=(
            Example("those of the newest release, as YAML", "apflint defaults"),
            Example("those of a release, in the API version that it prefers", "apflint defaults --kubernetes 1.28"),
            Example("what an upgrade changes", "apflint defaults --diff 1.28 1.36"),
        ),
        exit_status=ANSWER,
    ),
    "shards": Page(
        about=(
            "A flow that fills all its queues (an elephant) also holds up each small flow (a mouse) whose queues are among"
            " them. The table says how probable that is."
        ),
        groups=(
            ("The table", ("--hand-size", "--queues", "--elephants")),
            ("The hand of one flow", ("--flow-schema", "--distinguisher", "--filename")),
            ("A recommendation", ("--recommend", "--max-queues")),
            ("Output", ("--format", "--color")),
        ),
        examples=(
            Example("the table of the documentation", "apflint shards"),
            Example("one pair", "apflint shards --hand-size 8 --queues 64"),
            Example("pairs that are good enough", "apflint shards --recommend 0.001 --elephants 4"),
            Example(
                "the queues that one flow is dealt, at the level of its FlowSchema",
                "apflint shards --flow-schema global-default --distinguisher alice",
            ),
            Example(
                "the same with other queues",
                "apflint shards --flow-schema global-default --distinguisher alice --queues 256 --hand-size 6",
            ),
        ),
        exit_status=ANSWER,
    ),
    "graph": Page(
        about=BUILT_IN,
        groups=(SERVER, ("Output", ("--format",))),
        examples=(
            Example("Mermaid, which GitHub and GitLab draw in a block of Markdown", "apflint graph manifests/"),
            Example("a page for the browser", "apflint graph --format html manifests/ > apf.html"),
            Example("with Graphviz", "apflint graph --format dot manifests/ | dot -Tpdf > apf.pdf"),
        ),
        exit_status=ANSWER,
    ),
}
