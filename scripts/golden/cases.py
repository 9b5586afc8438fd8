"""The command lines of a golden run."""

from __future__ import annotations

from itertools import chain, cycle, pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

COMMANDS = (
    *(
        "alerts",
        "check",
        "completion",
        "config",
        "dashboard",
        "defaults",
        "diff",
        "doctor",
        "explain",
        "fix",
        "graph",
        "help",
    ),
    *("limits", "lsp", "migrate", "propose", "replay", "rule", "schema", "shards", "simulate", "test", "why"),
)
RELEASES = tuple(f"1.{minor}" for minor in range(18, 38))
VERSIONS = ("v1alpha1", "v1beta1", "v1beta2", "v1beta3", "v1")
FINDINGS = ("text", "concise", "json", "sarif", "github", "gitlab", "junit", "markdown")
GRAPHS = ("text", "mermaid", "dot", "svg", "html")
REPORTS = ("text", "json", "html", "markdown")
SCHEMAS = (
    *("FlowSchema", "PriorityLevelConfiguration", "FlowSchemaList", "PriorityLevelConfigurationList"),
    *("config", "goals", "load", "test", "report"),
    *(f"{name}-output" for name in ("config", "diff", "doctor", "explain", "limits", "migrate", "propose", "replay")),
    *("rule-output", "shards-output", "simulate-output", "test-output", "why-output"),
)
STORIES = ("small-cluster", "accepted-but-wrong", "many-clusters", "move-ci/before", "move-ci/after")
REQUESTS = (
    "list pods -A --as system:serviceaccount:argo:controller",
    "get nodes node-1 --as system:node:node-1 --as-group system:nodes",
    "update leases.coordination.k8s.io kube-scheduler -n kube-system --as system:kube-scheduler",
    "create jobs.batch -n ci --as system:serviceaccount:ci:runner",
    "watch configmaps -n team-a --as alice --as-group dev",
    "get /healthz --as system:anonymous",
    "get /metrics --as prometheus --as-group system:masters",
    "delete pods/eviction web-0 -n team-a --as bob",
    "--path /api/v1/pods?watch=true --as system:serviceaccount:ci:runner",
    "--path /apis/apps/v1/namespaces/a/deployments/x/scale --method PUT --as carol",
)
SETTINGS = b'kubernetes = "1.30"\nignore = ["APF5"]\nserver-concurrency = 900\n'


class Case(NamedTuple):
    """A command line, and how to run it."""

    arguments: tuple[str, ...]
    directory: str = "here"
    """Directory in which the case runs, relative to the inputs."""
    stdin: bytes = b""
    writes: bool = False
    """Whether the command changes files. Then the case runs in a copy of the directory, and its changes are recorded."""
    new_process: bool = False
    """Whether the case runs in a new interpreter instead of a fork."""

    @property
    def command(self) -> str:
        """The name of the command, or `none` if the command line has none."""
        return self.arguments[0] if self.arguments and self.arguments[0] in COMMANDS else "none"


def list_cases(work: Path) -> Iterator[Case]:
    """Yield all cases for the inputs in `work`, without duplicates."""
    groups = (
        *(general_cases(), information_cases(work), example_cases(work), conformance_cases(work)),
        *(directory_cases(work), configuration_cases(work), explain_cases(work), log_cases(work)),
        *(server_cases(work), simulate_cases(), repository_cases(), live_cases(), input_cases(), error_cases()),
    )
    yield from dict.fromkeys(chain.from_iterable(groups))


def line(text: str, directory: str = "here", stdin: bytes = b"", *, writes: bool = False, new: bool = False) -> Case:
    """Return the case for a command line that is split at spaces. The other parameters are fields of `Case`."""
    return Case(tuple(text.split()), directory, stdin, writes, new)


def general_cases() -> Iterator[Case]:
    """Yield cases for the help of each command, and for each command in a new interpreter."""
    for text in ("", "--help", "-h", "--version", "-V", "help", "--show-completion", "unknown", "chek", "--nope"):
        yield line(text)
    for name in COMMANDS:
        yield line(f"{name} --help", new=True)
        yield line(f"help {name}")
        yield line(f"{name} --nope")
    for shell in ("bash", "zsh", "fish", "csh"):
        yield line(f"completion {shell}", new=shell == "bash")
    story = "fixtures/stories/small-cluster"
    for text in (
        *(f"check {story}", f"fix --diff {story}", f"migrate --diff {story}", f"limits {story}", f"alerts {story}"),
        *("diff fixtures/stories/move-ci/before fixtures/stories/move-ci/after", f"graph {story}", "shards", "rule"),
        *("explain list pods --as alice", "doctor fixtures/live/metrics.txt", "test fixtures/policy/apf-test.yaml"),
        *("defaults", "schema config", "config", "replay fixtures/replay/live/audit.log.gz", "simulate load.yaml"),
    ):
        yield line(text, new=True)


def information_cases(work: Path) -> Iterator[Case]:
    """Yield cases for rules, schemas, built-in objects and tables."""
    rules = sorted({path.name[:6] for path in (work / "examples").iterdir()})
    for rule in (*rules, "APF", "APF5", "APF999", "hand-larger-than-deck", "nope", ""):
        for form in ("text", "json"):
            yield line(f"rule {rule} --format {form}")
    yield line("rule APF305 --color always")
    for name in SCHEMAS:
        yield line(f"schema {name}")
        if name[0].isupper():
            yield from (line(f"schema {name} --api-version {version}") for version in (*VERSIONS, "v2"))
    for release in (*RELEASES, "1.17", "1.99", "x"):
        for form in ("yaml", "json"):
            yield line(f"defaults --kubernetes {release} --format {form}")
    yield from (line(f"defaults --api-version {version}") for version in VERSIONS)
    yield from (line(f"diff defaults:{old} defaults:{new}") for old, new in pairwise(RELEASES))
    yield from (line(f"limits defaults:{release}") for release in RELEASES)
    yield from (line(f"graph defaults:{release} --format mermaid") for release in RELEASES)
    for text in (
        *("--queues 64 --hand-size 8", "--queues 8 --hand-size 9", "--elephants 1,2,3", "--recommend 0.001"),
        *("--recommend 0.1% --elephants 4", "--recommend 2", "--max-queues 64 --recommend 0.01"),
        *("--flow-schema global-default --distinguisher alice", "--flow-schema nope --distinguisher alice"),
        *("--flow-schema catch-all", "--queues 256 --hand-size 6 --flow-schema global-default --distinguisher bob"),
    ):
        for form in ("text", "json"):
            yield line(f"shards {text} --format {form}")


def example_cases(work: Path) -> Iterator[Case]:
    """Yield cases for the bad and good examples of rule pages, each in its own directory."""
    for path in sorted((work / "examples").iterdir()):
        release = path.name.rpartition("-")[2]
        place = f"examples/{path.name}" + (f" --kubernetes {release}" if release != "newest" else "")
        yield line(f"check {place} --extend-select APF")
        if "-bad-" in path.name:
            yield line(f"check {place} --format json --verbose --complete")
            yield line(f"fix --diff --unsafe-fixes {place}")
    for form in FINDINGS:
        yield line(f"check examples --format {form}")
    for options in (
        "--statistics",
        "--statistics --format json",
        "--verbose",
        "--quiet",
        "--fail-on never",
        "--color always",
    ):
        yield line(f"check examples {options}")
    yield line("check examples --select APF5 --fail-on info")
    yield line("fix --diff examples")
    yield line("migrate --diff examples")
    yield from (
        line(f"migrate --plan --range 1.25..1.33 examples {form}")
        for form in ("", "--format json", "--format markdown")
    )


def conformance_cases(work: Path) -> Iterator[Case]:
    """Yield cases for recorded manifests: for all manifests of a release together, and for single manifests of a sample."""
    forms = cycle(FINDINGS)
    for number, path in enumerate(sorted((work / "conformance").iterdir())):
        release = path.name.partition("-")[0]
        for form in ("json", "concise"):
            yield line(f"check conformance/{path.name} --kubernetes {release} --ignore APF4,APF5 --format {form}")
        for file in sorted(path.iterdir())[number::20]:
            yield line(f"check conformance/{path.name}/{file.name} --kubernetes {release} --format {next(forms)}")
        for file in sorted(path.iterdir())[number::40]:
            yield line(f"fix --diff --unsafe-fixes conformance/{path.name}/{file.name} --kubernetes {release}")
            yield line(f"migrate --diff --to v1 conformance/{path.name}/{file.name}")


def directory_cases(work: Path) -> Iterator[Case]:
    """Yield the command lines to run on the directories in fixtures/stories, and on the manifests of other projects.

    The manifests of other projects are in the directory `realworld` of `work`. If this directory does
    not exist, yield only the command lines for fixtures/stories.
    """
    for story in STORIES:
        place = f"fixtures/stories/{story}"
        yield from (line(f"check {place} --format {form}") for form in FINDINGS)
        yield from (line(f"graph {place} --format {form}") for form in GRAPHS)
        yield from (line(f"check {place} --kubernetes {release}") for release in RELEASES[::4])
        yield from (
            line(f"limits {place} {options}")
            for options in ("-v", "--format json", "--no-defaults", "--server-concurrency 60")
        )
        yield from (
            line(f"alerts {place} {option}")
            for option in (
                "--selector '' --cluster-label c",
                "--label a=b --threshold wait=2",
                "--tests x --format rules",
            )
        )
        yield from (line(f"alerts {place} --format {form}") for form in ("prometheusrule", "rules"))
        yield from (line(f"dashboard {place} {option}") for option in ("", "--kubernetes 1.25", "--selector x"))
        yield from (line(f"migrate --diff --to {version} {place}") for version in VERSIONS)
        yield from (line(f"migrate --diff --range 1.26..1.31 {place} {option}") for option in ("", "--accept-changes"))
        yield from (
            line(f"{text} {place}") for text in ("fix --diff", "fix --diff --unsafe-fixes", "check --complete -v")
        )
        for text in (
            *("fix .", "fix --unsafe-fixes .", "check --fix .", "migrate .", "migrate --accept-changes --to v1beta3 ."),
            *("check --report sarif=a.sarif --report junit=b.xml .", "check --baseline base.json --write-baseline ."),
        ):
            yield line(text, place, writes=True)
    for path in sorted((work / "realworld").glob("*")):
        yield from (
            line(f"{text} realworld/{path.name}") for text in ("check", "fix --diff --unsafe-fixes", "migrate --diff")
        )
    if (work / "realworld").exists():
        yield from (line(f"check realworld --format {form}") for form in FINDINGS)
        yield line("limits realworld")


def configuration_cases(work: Path) -> Iterator[Case]:
    """Yield cases for the commands that analyze or compare configurations. A case is a command line to run.

    The configurations are those in the directory `configs` of `work`, and some fixtures.
    """
    names = [path.stem for path in sorted((work / "configs").iterdir())]
    forms, graphs, diffs = cycle(FINDINGS), cycle(GRAPHS), cycle(("text", "json", "markdown"))
    for name in names:
        place = f"configs/{name}.json"
        yield line(f"check {place} --format {next(forms)}")
        yield line(f"limits {place}")
        yield line(f"graph {place} --format {next(graphs)}")
        yield line(f"explain -f {place} --requests requests/{name}.jsonl")
        yield line(f"explain -f {place} list pods -n dev --as alice -v --no-defaults")
    yield from (
        line(f"diff configs/{old}.json configs/{new}.json --format {next(diffs)}") for old, new in pairwise(names)
    )
    yield from (line(f"alerts configs/{name}.json") for name in names[::6])
    for form in ("text", "json", "markdown"):
        yield line(f"diff fixtures/stories/move-ci/before fixtures/stories/move-ci/after --format {form}")
        yield line(f"diff defaults:1.33 defaults:1.36 -f fixtures/stories/small-cluster --format {form} --exit-zero")
    for form in ("text", "json", "junit"):
        yield line(f"test fixtures/policy/apf-test.yaml --format {form}")
        yield line(f"test fixtures/policy/apf-test.yaml -f fixtures/policy/careless --format {form}")
    for options in (
        "--quiet",
        "--kubernetes 1.26",
        "--exit-zero -f fixtures/policy/careless",
        "--server-concurrency 60",
    ):
        yield line(f"test fixtures/policy {options}")


def explain_cases(work: Path) -> Iterator[Case]:
    """Yield cases for requests in each notation, with each story."""
    for request in REQUESTS:
        for options in (
            "",
            "-v",
            "--format json",
            "--kubernetes 1.20",
            "--no-defaults",
            "--metrics fixtures/live/metrics.txt",
        ):
            yield line(f"explain {request} {options}")
        for story in STORIES:
            yield line(f"explain {request} -f fixtures/stories/{story}")
    requests = (work / "requests/c000.jsonl").read_bytes()
    for options in ("-v", "--format json", "--format text"):
        yield line(f"explain --requests - {options}", stdin=requests)
    for path in sorted((work / "fixtures/replay/envelopes").iterdir()):
        for form in ("text", "json"):
            yield line(f"explain --event fixtures/replay/envelopes/{path.name} --format {form}")
    log = "--event fixtures/server-log/httplog.txt -f fixtures/server-log/objects.json --server-concurrency 30"
    yield from (line(f"explain {log} --format {form}") for form in ("text", "json"))
    for text in ("--flow-schema-uid x", "--priority-level-uid x", "list", "list pods -n a -A", "frob pods --as a"):
        yield line(f"explain {text}")


def log_cases(work: Path) -> Iterator[Case]:
    """Yield cases of `replay` for audit logs."""
    live = "fixtures/replay/live"
    log = f"replay {live}/audit.log.gz"
    objects = (f"-f {live}/objects-begin.json", f"--compare {live}/objects-end.json")
    for form in REPORTS:
        yield line(f"{log} --format {form}")
        yield line(f"{log} {' '.join(objects)} --format {form}")
        yield line(f"replay fixtures/server-log/httplog.txt -f fixtures/server-log/objects.json --format {form}")
        for path in sorted((work / "fixtures/replay/envelopes").iterdir()):
            yield line(f"replay fixtures/replay/envelopes/{path.name} --format {form}")
    for options in (
        *("--by user", "--by user,verb --top 3", "--by nope", "--each", "--since 10s", "--until 10s", "--exit-zero"),
        *("--where user=admin", "--where verb!=watch", "--where nope=1", "--kubernetes 1.33 --compare defaults:1.36"),
        *(
            "--server-concurrency 60",
            "--no-defaults",
            "--metrics fixtures/live/0-idle.metrics.txt.gz",
            "--objects pods=5000:4000",
        ),
        *("--engine duckdb", "--engine duckdb --format json", "--engine duckdb --by flow", "--engine python --by flow"),
    ):
        yield line(f"{log} {objects[0]} {options}")
    yield line("replay - --format json", stdin=(work / "fixtures/replay/envelopes/bare.jsonl").read_bytes())


def server_cases(work: Path) -> Iterator[Case]:
    """Yield cases for metrics and dumps of servers."""
    live = work / "fixtures/live"
    for metrics in sorted(path.name for path in live.glob("*metrics.txt*")):
        moment = metrics.partition(".")[0]
        dumps = " ".join(
            f"--dump fixtures/live/{path.name}" for path in sorted(live.glob(f"{moment}.*")) if path.name != metrics
        )
        for options in ("", dumps, f"-f fixtures/live/objects.json {dumps}", "--fail-on info", "--kubernetes 1.30"):
            yield line(f"doctor fixtures/live/{metrics} {options}")
        for form in (*FINDINGS, "html"):
            yield line(f"doctor fixtures/live/{metrics} {dumps} --format {form}")
        yield line(f"explain list pods -n a --as alice -v --metrics fixtures/live/{metrics} {dumps}")
    for form in (*FINDINGS, "html"):
        yield line(
            f"doctor fixtures/live/1-varied.metrics.txt.gz fixtures/live/2-slow-a.metrics.txt.gz --format {form}"
        )
    yield line("doctor fixtures/live")
    yield line("doctor -", stdin=(live / "metrics.txt").read_bytes())


def simulate_cases() -> Iterator[Case]:
    """Yield cases of `simulate` for loads, and for the requests of a log."""
    for form in REPORTS:
        yield line(f"simulate load.yaml --format {form} --verbose")
        yield line(
            f"simulate load.yaml --format {form} -f fixtures/stories/move-ci/after --compare fixtures/stories/move-ci/before"
        )
        yield line(f"simulate --from-audit fixtures/replay/live/audit.log.gz --format {form}")
    for options in (
        "--scale 2",
        "--seed 7",
        "--set workload-low.queues=64",
        "--set nope.queues=1",
        "--kubernetes 1.26",
    ):
        yield line(f"simulate load.yaml {options}")
    yield line("simulate -", stdin=b"duration: 1m\nclients: [{name: a}]\n")
    yield line("simulate odd/broken.yaml")


def repository_cases() -> Iterator[Case]:
    """Yield cases for a git repository with two clusters."""
    for text in (
        *(
            "config",
            "config --format json",
            "config --suggest-clusters",
            "config --isolated",
            "check",
            "check --isolated",
        ),
        *(
            "check --cluster prod",
            "check --cluster staging --cluster prod",
            "check --cluster nope",
            "check clusters/prod",
        ),
        *(
            "check --format json",
            "check --context apf/base clusters/prod --isolated",
            "check --exclude clusters --isolated",
        ),
        *("limits", "limits --cluster prod", "limits --cluster prod --format json", "graph --cluster staging"),
        *(
            "alerts --cluster prod",
            "explain --cluster prod create jobs.batch -n ci --as system:serviceaccount:ci:runner",
        ),
        *("explain create jobs.batch -n ci --as system:serviceaccount:ci:runner", "check -k clusters/prod"),
        *("check -k clusters/staging --isolated", "limits -k clusters/prod --isolated", "check -k apf", "fix --diff"),
        *("migrate --diff", "fix --diff --cluster prod", "test ../fixtures/policy/apf-test.yaml --cluster prod"),
        *("replay ../fixtures/replay/live/audit.log.gz --cluster prod", "simulate ../load.yaml --cluster staging"),
        *("replay ../fixtures/replay/live/audit.log.gz --cluster prod --compare cluster:staging",),
        *("replay ../fixtures/replay/live/audit.log.gz --cluster prod --compare git:HEAD --exit-zero",),
        *(
            "doctor ../fixtures/live/metrics.txt --cluster prod",
            "simulate ../load.yaml --cluster prod --compare git:HEAD~1",
        ),
    ):
        yield line(text, "gitops")
    for sides in (
        *(
            "cluster:staging cluster:prod",
            "cluster:staging cluster:nope",
            "git:main .",
            "git:v1 git:main",
            "git:HEAD~1 .",
        ),
        *("git:nope .", "git:main:clusters/prod clusters/prod", "git:main:nope .", "--cluster prod git:main ."),
        *(
            "--cluster prod git:HEAD~1 git:main",
            "--cluster prod git:v1 .",
            "git: .",
            "cluster:prod live",
            "--cluster prod live .",
        ),
    ):
        for form in ("text", "json", "markdown"):
            yield line(f"diff {sides} --format {form}", "gitops")
    yield line("diff git:main .")
    yield line("config", "gitops/clusters/prod")


def live_cases() -> Iterator[Case]:
    """Yield cases for a running cluster, which a stand-in for kubectl reads."""
    for text in (
        *("check --live", "check --live --format json", "check --live fixtures/stories/small-cluster", "limits --live"),
        *(
            "limits --live --format json -v",
            "graph --live --format mermaid",
            "graph --live --format html",
            "alerts --live",
        ),
        *("explain --live list pods -n a --as alice", "explain --live list pods --as alice --format json -v"),
        *(
            "doctor --live",
            "doctor --live --format json",
            "diff live fixtures/stories/small-cluster",
            "diff defaults:1.36 live",
        ),
        *(
            "check --live --kube-context forbidden",
            "limits --live --kubeconfig nope.yaml",
            "test --live fixtures/policy/apf-test.yaml",
        ),
        *("replay fixtures/replay/live/audit.log.gz --live", "simulate load.yaml --live", "check --kube-context a"),
        *("explain --live --flow-schema-uid x", "limits --live --kubernetes 1.30", "replay odd/empty.yaml --live"),
    ):
        yield line(text)


def input_cases() -> Iterator[Case]:
    """Yield cases for standard input, and for files that are not manifests."""
    manifest = (
        b"apiVersion: flowcontrol.apiserver.k8s.io/v1beta2\nkind: PriorityLevelConfiguration\nmetadata: {name: a}\nspec:\n"
        b"  type: Limited\n  limited:\n    assuredConcurrencyShares: 5 # few\n    limitResponse: {type: Reject, queuing: {queues: 4}}\n"
    )
    for text in (
        *(
            "check -",
            "check",
            "check - --stdin-filename a/b.yaml --format json",
            "fix -",
            "fix - --diff",
            "migrate -",
            "limits -",
        ),
        *(
            "migrate - --to v1beta3",
            "migrate - --diff",
            "graph -",
            "alerts -",
            "diff - defaults:1.36",
            "explain list pods --as a -f -",
        ),
        *("fix --unsafe-fixes -", "check - -", "test -", "shards --flow-schema a --distinguisher b -f -"),
    ):
        for stdin in (manifest, b"", b"a: [", b"\xff\xfe\x00"):
            yield line(text, "odd" if text == "check" else "here", stdin)
    for settings in (SETTINGS, b"nope = 1\n", b"[["):
        yield line("check fixtures/stories/small-cluster --config /dev/stdin", stdin=settings)
        yield line("config --config /dev/stdin", stdin=settings)
    for name in ("check", "fix", "migrate", "limits", "graph", "alerts", "test", "doctor", "replay", "simulate"):
        for file in ("empty.yaml", "broken.yaml", "binary.yaml", "missing.yaml", "nope/missing.yaml"):
            yield line(f"{name} odd/{file}")
    yield line("check odd --require-objects")


def error_cases() -> Iterator[Case]:
    """Yield cases for wrong usage."""
    for name in COMMANDS:
        if name != "lsp":
            yield from (
                line(f"{name} {text}")
                for text in ("--format nope", "--kubernetes", "a b c d e", "--color nope", "--config nope.toml")
            )
    for text in (
        *(
            "check --select NOPE",
            "check --ignore APF9999",
            "check --fail-on bad",
            "check --kubernetes 1.99 odd",
            "check --server-concurrency x",
        ),
        *(
            "check --baseline missing.json odd",
            "check --write-baseline odd",
            "check --report nope odd",
            "check --report sarif=/nope/x odd",
        ),
        *(
            "limits --server-concurrency 0",
            "migrate --to v9 odd",
            "migrate --range 1.31..1.26 odd",
            "migrate --to v1 --range 1.26..1.31 odd",
        ),
        *(
            "diff odd",
            "diff odd missing",
            "schema",
            "schema nope",
            "rule a b",
            "fix --select APF305 --ignore APF305 odd",
            "test",
            "replay",
        ),
        *(
            "replay fixtures --engine nope",
            "replay fixtures --since yesterday",
            "shards --queues 0",
            "shards --queues x",
            "simulate",
        ),
        *(
            "simulate load.yaml --scale x",
            "doctor --watch 60s",
            "check --fix --diff odd",
            "explain --event missing.json",
            "limits --cluster a",
        ),
    ):
        yield line(text)
