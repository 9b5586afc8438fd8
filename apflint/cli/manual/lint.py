"""The manual pages of the commands that lint."""

from __future__ import annotations

from apflint.cli.manual import Example, Page
from apflint.cli.manual.phrases import ANSWER, CHECKED, USAGE

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
        exit_status=CHECKED,
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
        exit_status=(("0", "All holds."), ("1", "Something does not hold."), USAGE),
    ),
    "rule": Page(
        about="A page says what the rule finds, why that matters, and shows a bad and a good example.",
        examples=(
            Example("all rules, a line each", "apflint rule"),
            Example("one rule, by its id", "apflint rule APF305"),
            Example("the same, by its name, for a program", "apflint rule hand-larger-than-deck --format json"),
        ),
        exit_status=ANSWER,
    ),
    "config": Page(
        about="Settings come from the closest apflint.toml, .apflint.toml, or [tool.apflint] in pyproject.toml, upwards.",
        examples=(
            Example("the settings of the current folder", "apflint config"),
            Example("those of another file", "apflint config --config ci/apflint.toml"),
        ),
        exit_status=ANSWER,
    ),
}
