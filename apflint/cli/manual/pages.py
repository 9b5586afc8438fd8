"""The texts of the manual pages. A test runs every example, and holds the option names against the commands."""

from __future__ import annotations

from apflint.cli.manual import Example, Page

COMMANDS = (
    ("Lint", ("check", "test", "rule", "config")),
    ("Ask", ("explain", "limits", "diff", "defaults", "shards", "graph")),
    ("Edit", ("fix", "migrate")),
    ("Editor and shell", ("lsp", "schema", "completion")),
)
"""The commands by what one wants; a command in no group is shown last."""

_USAGE = ("2", "Wrong usage or configuration, something cannot be read or written, or an internal error.")
_ANSWER = (("0", "The answer was printed."), _USAGE)
_SERVER = (
    "The API server",
    (
        "--kubernetes",
        "--no-defaults",
        "--server-concurrency",
        "--max-requests-inflight",
        "--max-mutating-requests-inflight",
    ),
)
_BUILT_IN = (
    "The objects that every API server creates by itself are part of the configuration, unless the manifests define them"
    " or --no-defaults is given."
)

PROGRAM = Page(
    about="`apflint COMMAND --help` tells more. `apflint rule` lists the rules, and `apflint rule ID` explains one.",
    examples=(
        Example("lint the current folder and all below it", "apflint check"),
        Example("lint what Helm renders", "helm template CHART | apflint check -"),
        Example("say what happens to one request", "apflint explain list pods -n team-a --as alice"),
        Example("say why a rule is there", "apflint rule APF305"),
    ),
    exit_status=(
        ("0", "Nothing was found at or above --fail-on."),
        ("1", "Something was found: by default, an error."),
        _USAGE,
    ),
)

PAGES = {
    "check": Page(
        about=(
            "Finds what the kube-apiserver of a release would refuse, at the same field, and what it accepts without a word"
            " and you would not want: FlowSchemas that never match, references to levels that do not exist, queues that"
            " do not keep clients apart. All manifests are looked at together, with the objects that every server creates."
            "\n\nFiles without an object of the group flowcontrol.apiserver.k8s.io are passed over. Settings come from the"
            " closest apflint.toml, .apflint.toml, or [tool.apflint] in pyproject.toml; the command line takes precedence."
        ),
        groups=(
            (
                "What to check",
                (
                    "--kubernetes",
                    "--context",
                    "--complete",
                    "--server-concurrency",
                    "--exclude",
                    "--force-exclude",
                    "--stdin-filename",
                    "--require-objects",
                ),
            ),
            (
                "Rules",
                (
                    "--select",
                    "--extend-select",
                    "--ignore",
                    "--fail-on",
                    "--baseline",
                    "--write-baseline",
                    "--no-ignores",
                ),
            ),
            ("Fix", ("--fix", "--unsafe-fixes", "--diff")),
            ("Output", ("--format", "--report", "--color", "--quiet", "--verbose", "--statistics")),
            ("Configuration", ("--config", "--isolated")),
        ),
        examples=(
            Example("a folder and all below it", "apflint check manifests/"),
            Example("what Helm renders; findings name the templates", "helm template CHART | apflint check -"),
            Example("what Kustomize builds", "kustomize build overlays/prod | apflint check -"),
            Example("for the release that the cluster runs", "apflint check --kubernetes 1.29 manifests/"),
            Example(
                "on GitHub, with a file for code scanning",
                "apflint check --format github --report sarif=apflint.sarif manifests/",
            ),
            Example("some rules only: by id, by the start of an id, by name", "apflint check --select APF2,APF3 ."),
            Example("warnings end with 1 as well", "apflint check --fail-on warning ."),
            Example("mend what can be mended safely, and tell the rest", "apflint check --fix manifests/"),
            Example(
                "take what is found now as known; from then on tell only what is new",
                "apflint check --baseline known.json --write-baseline .",
            ),
        ),
        exit_status=PROGRAM.exit_status,
    ),
    "rule": Page(
        about="A page says what the rule finds, why that matters, and shows a bad and a good example.",
        examples=(
            Example("all rules, a line each", "apflint rule"),
            Example("one rule, by its id", "apflint rule APF305"),
            Example("the same, by its name, for a program", "apflint rule hand-larger-than-deck --format json"),
        ),
        exit_status=_ANSWER,
    ),
    "config": Page(
        about="Settings come from the closest apflint.toml, .apflint.toml, or [tool.apflint] in pyproject.toml, upwards.",
        examples=(
            Example("the settings of the current folder", "apflint config"),
            Example("those of another file", "apflint config --config ci/apflint.toml"),
        ),
        exit_status=_ANSWER,
    ),
    "schema": Page(
        about=(
            "The YAML support of editors reads it: fields are completed and explained, and mistakes are marked."
            " `config` is for apflint.toml, and `test` for the files of `apflint test`."
        ),
        examples=(
            Example("into a file that the editor's settings name", "apflint schema FlowSchema > flowschema.json"),
            Example(
                "of an older API version",
                "apflint schema PriorityLevelConfiguration --api-version v1beta3 > levels.json",
            ),
            Example("of apflint's own settings", "apflint schema config > apflint-config.json"),
        ),
        exit_status=_ANSWER,
    ),
    "defaults": Page(
        about="The mandatory objects, which a server always keeps as they are, and the suggested ones, which you may change.",
        examples=(
            Example("those of the newest release, as YAML", "apflint defaults"),
            Example("those of a release, in the API version that it prefers", "apflint defaults --kubernetes 1.28"),
            Example("what an upgrade changes", "apflint defaults --diff 1.28 1.36"),
        ),
        exit_status=_ANSWER,
    ),
    "explain": Page(
        about=(
            "The request is written as for `kubectl auth can-i`, or as HTTP with --method and --path, or comes from an audit"
            " event. Without any request, apflint asks for one, if this is a terminal. " + _BUILT_IN + "\n\nThe groups"
            " that authentication adds, such as system:authenticated, are added, and the answer says so."
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
            _SERVER,
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
        exit_status=_ANSWER,
    ),
    "limits": Page(
        about=_BUILT_IN,
        groups=(("What to compare", ("--compare",)), _SERVER, ("Output", ("--format", "--color"))),
        examples=(
            Example("the levels of the manifests and the built-in ones", "apflint limits manifests/"),
            Example("for larger API servers", "apflint limits --server-concurrency 3000 manifests/"),
            Example("who gains and who loses by an upgrade", "apflint limits --compare defaults:1.28 defaults:1.36"),
        ),
        exit_status=_ANSWER,
    ),
    "diff": Page(
        about=_BUILT_IN + " Every change is shown with a request that proves it, as `apflint explain` takes it.",
        groups=(_SERVER, ("Output", ("--format", "--exit-zero", "--color"))),
        examples=(
            Example("two checkouts", "apflint diff main/ branch/"),
            Example("an upgrade of Kubernetes", "apflint diff defaults:1.33 defaults:1.36 --exit-zero"),
            Example("for a comment on a pull request", "apflint diff --format markdown old.yaml new.yaml"),
        ),
        exit_status=(
            ("0", "No request and no level fares differently, or --exit-zero."),
            ("1", "Something fares differently."),
            _USAGE,
        ),
    ),
    "shards": Page(
        about=(
            "A flow that fills all its queues (an elephant) also holds up each small flow (a mouse) whose queues are among"
            " them. The table says how probable that is."
        ),
        groups=(
            ("The table", ("--hand-size", "--queues", "--elephants")),
            ("The hand of one flow", ("--flow-schema", "--distinguisher")),
            ("A recommendation", ("--recommend", "--max-queues")),
            ("Output", ("--format", "--color")),
        ),
        examples=(
            Example("the table of the documentation", "apflint shards"),
            Example("one pair", "apflint shards --hand-size 8 --queues 64"),
            Example("pairs that are good enough", "apflint shards --recommend 0.001 --elephants 4"),
            Example(
                "the queues that one flow is dealt",
                "apflint shards --flow-schema global-default --distinguisher alice --queues 128 --hand-size 6",
            ),
        ),
        exit_status=_ANSWER,
    ),
    "graph": Page(
        about=_BUILT_IN,
        groups=(_SERVER, ("Output", ("--format",))),
        examples=(
            Example("Mermaid, which GitHub and GitLab draw in a block of Markdown", "apflint graph manifests/"),
            Example("a page for the browser", "apflint graph --format html manifests/ > apf.html"),
            Example("with Graphviz", "apflint graph --format dot manifests/ | dot -Tpdf > apf.pdf"),
        ),
        exit_status=_ANSWER,
    ),
    "test": Page(
        about=(
            "A suite names its manifests, and lists requests with where they must go, and properties that must hold of every"
            " request there can be. What does not hold is shown with a request that proves it."
        ),
        examples=(
            Example("one suite", "apflint test apf-test.yaml"),
            Example("all suites, for a CI system", "apflint test --format junit policy/*.yaml > results.xml"),
            Example("the same suite for another release", "apflint test --kubernetes 1.33 apf-test.yaml"),
        ),
        exit_status=(("0", "All holds."), ("1", "Something does not hold."), _USAGE),
    ),
    "fix": Page(
        about=(
            "Only the places of the findings are edited; comments, quotes, order and line endings stay. A safe fix keeps"
            " what the author plainly meant; one that changes what the object means needs --unsafe-fixes. After fixing, the"
            " file is checked again: a fix that does not remove its finding, or brings another, is not made, and apflint"
            " says so."
        ),
        groups=(
            ("What to do", ("--diff", "--unsafe-fixes")),
            (
                "What to fix",
                (
                    "--kubernetes",
                    "--select",
                    "--extend-select",
                    "--ignore",
                    "--context",
                    "--exclude",
                    "--force-exclude",
                    "--stdin-filename",
                ),
            ),
            ("Output", ("--quiet",)),
            ("Configuration", ("--config", "--isolated")),
        ),
        examples=(
            Example("show what would change, as a diff", "apflint fix --diff manifests/"),
            Example("change the files", "apflint fix manifests/"),
            Example("one rule only", "apflint fix --select APF101 manifests/"),
            Example("as a filter", "apflint fix - < old.yaml > new.yaml"),
        ),
        exit_status=(
            ("0", "Everything that can be fixed is fixed, or there is nothing to fix. Other findings do not count."),
            ("1", "Something that can be fixed was not: it was refused, or --diff only showed it."),
            _USAGE,
        ),
    ),
    "migrate": Page(
        about=(
            "Only the places that must change are edited; comments, quotes, order and line endings stay. What changes in"
            " meaning is told with file and line. An object that cannot mean the same is refused, and its file stays as"
            " it is."
        ),
        groups=(
            ("To which version", ("--to", "--kubernetes", "--range")),
            ("What to do", ("--write", "--diff", "--accept-changes")),
        ),
        examples=(
            Example("show what would change, as a diff", "apflint migrate --to v1 manifests/"),
            Example("change the files", "apflint migrate --to v1 --write manifests/"),
            Example(
                "for an upgrade: a version that all these releases serve", "apflint migrate --range 1.26..1.31 old.yaml"
            ),
            Example("as a filter", "apflint migrate --to v1 - < old.yaml > new.yaml"),
        ),
        exit_status=(
            ("0", "Done, or nothing to do."),
            ("1", "Something was refused; the other files were migrated."),
            _USAGE,
        ),
    ),
    "lsp": Page(
        about=(
            "Speaks the Language Server Protocol on standard input and output; an editor starts it. Findings appear while"
            " you type, with what can be fixed, and fields and rules are explained where the pointer rests. In the folder"
            " that is open it finds what `apflint check` finds, with the settings of apflint.toml."
            "\n\nTell the editor to run `apflint lsp` for YAML and JSON. Neovim: vim.lsp.config('apflint', {cmd ="
            " {'apflint', 'lsp'}, filetypes = {'yaml', 'json'}}). Emacs: (add-to-list 'eglot-server-programs '(yaml-mode ."
            ' ("apflint" "lsp"))). docs/language-server.md has more, for VS Code and Helix too.'
        ),
        examples=(Example("what an editor runs; it waits for the editor's messages", "apflint lsp"),),
        exit_status=(
            ("0", "The editor ended the session."),
            ("1", "The editor went away without a word."),
            _USAGE,
        ),
    ),
    "completion": Page(
        about=(
            "It completes commands, options and their values: rule ids, releases of Kubernetes, API versions, formats."
            " Nothing is installed: the script goes to standard output."
        ),
        examples=(
            Example("bash: now, and for good in ~/.bashrc", 'eval "$(apflint completion bash)"'),
            Example("zsh: a file in a folder of $fpath, before compinit", "apflint completion zsh > _apflint"),
            Example("fish: in ~/.config/fish/completions", "apflint completion fish > apflint.fish"),
        ),
        exit_status=_ANSWER,
    ),
}
