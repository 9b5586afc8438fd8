"""Options and arguments that several commands share: type, parser, completion, help panel and help text.

A command uses a shared option as the type of a parameter, such as `options.Kubernetes`. An option of a single command
is defined with `option`.
"""

from __future__ import annotations

import os
import re
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any, Literal, Unpack

from apflint.cli import completers
from apflint.cli.command_definitions import Definition
from apflint.named_tuple import NamedTuple
from apflint.releases import NEWEST, RELEASES, Release, parse_release
from apflint.user_error import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from apflint.cli.command_definitions import ParameterSettings
    from apflint.rule_selection import RuleSelector
    from apflint.settings.model import Settings
    from apflint.sources.input_types import InputRequest
    from apflint.sources.kubectl import KubectlOptions

CLUSTER = "Cluster"
FIXES = "Fixes"
INPUT = "Input"
OUTPUT = "Output"
RULES = "Rules"
SETTINGS = "Settings"

_MIN_WATCH_SECONDS, _MAX_WATCH_SECONDS = 1, 600
_MAX_SEATS = 2**31 - 1
"""Maximum number of seats of an API server. The flags that set the seats are 32-bit integers."""


def option(panel: str | None, text: str, *names: str, **settings: Unpack[ParameterSettings]) -> Definition:
    """Return the definition of an option with the help text `text`. `--help` shows the option in the panel `panel`."""
    return Definition("option", text, settings, names, panel)


def argument(text: str, **settings: Unpack[ParameterSettings]) -> Definition:
    """Return the definition of an argument with the help text `text`."""
    return Definition("argument", text, settings)


def _rules_option(text: str) -> Definition:
    return option(RULES, text, metavar="RULES", autocompletion=completers.complete_rules)


def parse_number(text: str | float) -> float:
    """Parse a number, such as `0.001` or `0.1%`. Raises UserError if the text is not a number."""
    if isinstance(text, float):  # typer also calls this function with default values
        return text
    digits, percent = text.strip().removesuffix("%"), text.strip().endswith("%")
    try:
        return float(digits) / 100 if percent else float(digits)
    except ValueError as error:
        raise UserError(f'"{text}" is not a number, such as 0.5 or 50%') from error


def parse_integer(text: str | int) -> int:
    """Parse an integer. Raises UserError if the text is not an integer."""
    if isinstance(text, int):  # typer also calls this function with default values, which are integers
        return text
    if not re.fullmatch(r"[+-]?\d{1,20}", text.strip(), re.ASCII):
        raise UserError(f'"{text}" is not an integer')
    return int(text)


def parse_memory(text: str) -> str:
    """Return a size that DuckDB accepts as a limit, such as `256MB`, `1.5GiB` or `80%`. Raises UserError for another form.

    Only DuckDB uses the limit, but an invalid size is an error for every engine.
    """
    size = text.strip()
    if not re.fullmatch(r"(?=.*[1-9])\d{0,12}(\.\d{1,9})?(?<=\d) ?([kmgt]i?b?|%)", size, re.ASCII | re.IGNORECASE):
        raise UserError(f'"{text}" is not a size such as 256MB or 4GB')
    return size


def parse_seats(text: str) -> int:
    """Parse the seats of an API server: an integer, or the values of both inflight flags, such as `400+200`.

    The flags are --max-requests-inflight and --max-mutating-requests-inflight. Raises UserError if the text does not have this
    form, or if the sum is less than 1 or greater than `_MAX_SEATS`.
    """
    match = re.fullmatch(r"(\d{1,20})(?:\+(\d{1,20}))?", text.strip(), re.ASCII)
    seats = int(match[1]) + int(match[2] or 0) if match else 0
    if not 1 <= seats <= _MAX_SEATS:
        raise UserError(
            f'"{text}" is not an integer from 1 to {_MAX_SEATS}, or the sum of the two inflight flags of kube-apiserver,'
            " such as 400+200"
        )
    return seats


def parse_watch(text: str) -> float:
    """Parse the time between two snapshots, such as `60s`. Raises UserError for another form."""
    from apflint.evaluate.request_outcomes import parse_duration

    seconds = parse_duration(text)
    if seconds is None or not _MIN_WATCH_SECONDS <= seconds <= _MAX_WATCH_SECONDS:
        raise UserError(f'"{text}" is not a time from 1s to 10m, such as 60s')
    return seconds


def parse_selectors(values: Iterable[str]) -> tuple[RuleSelector, ...]:
    """Parse lists of rules that are separated by commas, such as `APF1,APF305`. Raises UserError for an unknown rule."""
    from apflint.rule_selection import parse_selector

    words = (word.strip() for value in values for word in value.split(","))
    return tuple(parse_selector(word) for word in words if word)


def chain_paths(*paths: list[str] | None) -> tuple[str, ...]:
    """Return the paths in all lists as one tuple. A list is None if its argument or option is absent."""
    return tuple(chain(*filter(None, paths)))


def join_settings(config: str | None, isolated: bool, **options: object) -> Settings:
    """Return the effective settings. Options of the command line take precedence over the settings file.

    `options` maps fields of `Settings` to values of the command line. The value of an absent option is None, false or
    empty. Raises UserError and OSError as `resolve_settings` does.
    """
    from apflint.settings.patterns import Patterns
    from apflint.settings.resolution import resolve_settings

    parsers: dict[str, Callable[[Any], object]] = {
        **dict.fromkeys(("select", "extend_select", "ignore"), parse_selectors),
        "exclude": lambda globs: Patterns(tuple(globs)),
        "context": tuple,
    }
    given = {name: parsers[name](value) if name in parsers else value for name, value in options.items() if value}
    return resolve_settings(given, config, isolated=isolated)


def reject_combinations(first: dict[str, object], second: dict[str, object]) -> None:
    """Raise UserError if an option in `first` and an option in `second` are set, because they cannot be combined.

    Options that are not set have the value None, false or empty.
    """
    for name, value in first.items():
        for other, other_value in second.items():
            if value and other_value:
                raise UserError(f"{name} and {other} cannot be combined")


def reject_kube_context(context: list[str] | None, advice: str) -> None:
    """Raise UserError if a path in --context does not exist and may be the name of a kubeconfig context.

    kubectl's option --context takes the name of a context. On Amazon EKS, this name contains `/` and `:`. `advice` is the
    last part of the message, with `{}` for the name.
    """
    from apflint.sources.discovery import SUFFIXES

    for path in context or ():
        if path != "-" and not path.endswith(SUFFIXES) and "\0" not in path and not os.path.lexists(path):
            raise UserError(
                f"--context {path}: no such file or directory. In apflint, --context names manifests. {advice.format(path)}"
            )


_PATHS_HELP = (
    "Files, directories (the *.yaml, *.yml and *.json files below), - for standard input, or other sources:"
    " git:REVISION[:PATH], kustomize:DIR, cluster:NAME of the settings, live for the running cluster, defaults:X.Y."
)
_FILENAME_HELP = "Files, directories, - for standard input, or another source, such as git:main; repeatable."
_KUSTOMIZE_HELP = "Kustomization to build with kustomize or kubectl; repeatable."
_EXCLUDE_HELP = "Ignore files and directories that match GLOB, unless the command line names them; repeatable."
_CONTEXT_HELP = "Manifests that are also in the cluster, but are not checked; repeatable."
_SELECT_HELP = "Run only these rules: ids, prefixes of ids, or names, separated by commas."
_KUBERNETES_HELP = f"Kubernetes release, {RELEASES[0].name} to {NEWEST.name}."
_SEATS_HELP = (
    "Seats of one API server: the sum of its flags --max-requests-inflight and --max-mutating-requests-inflight."
)
_COLOR_HELP = "Color the output. auto: on a terminal or with FORCE_COLOR, but never with NO_COLOR."

Paths = Annotated[
    list[str] | None,
    argument(
        _PATHS_HELP,
        metavar="[PATH]...",
        show_default="the clusters of the settings, or the current directory",
        autocompletion=completers.complete_configuration,
    ),
]
Filenames = Annotated[list[str] | None, option(INPUT, _FILENAME_HELP, "--filename", "-f", metavar="PATH")]
Kustomize = Annotated[list[str] | None, option(INPUT, _KUSTOMIZE_HELP, "--kustomize", "-k", metavar="DIR")]
Exclude = Annotated[list[str] | None, option(INPUT, _EXCLUDE_HELP, metavar="GLOB")]
ForceExclude = Annotated[bool, option(INPUT, "Apply --exclude to named files, too.", "--force-exclude")]
StdinFilename = Annotated[str | None, option(INPUT, "Name to show for standard input.", metavar="FILE")]
Context = Annotated[list[str] | None, option(INPUT, _CONTEXT_HELP, metavar="PATH")]

_METRICS_HELP = "Metrics of an API server: a file (also gzip), a directory, or - for standard input; repeatable."
_DUMP_HELP = "Debug dump of an API server: a file (also gzip) or a directory; repeatable."
Metrics = Annotated[list[str] | None, option(INPUT, _METRICS_HELP, "--metrics", metavar="FILE")]
Dumps = Annotated[list[str] | None, option(INPUT, _DUMP_HELP, "--dump", metavar="FILE")]

Select = Annotated[list[str] | None, _rules_option(_SELECT_HELP)]
ExtendSelect = Annotated[
    list[str] | None, _rules_option("Additional rules to run, such as rules that are off by default.")
]
Ignore = Annotated[list[str] | None, _rules_option("Do not run these rules.")]
Baseline = Annotated[str | None, option(RULES, "Hide findings recorded in this file.", metavar="FILE")]

Kubernetes = Annotated[
    Release | None,
    option(
        CLUSTER,
        _KUBERNETES_HELP,
        metavar="X.Y",
        show_default="the newest",
        parser=parse_release,
        autocompletion=completers.complete_releases,
    ),
]
Live = Annotated[
    bool, option(CLUSTER, "Read the objects and the release of the running cluster with kubectl.", "--live")
]
Kubeconfig = Annotated[
    str | None, option(CLUSTER, "With --live: kubeconfig file of the cluster.", "--kubeconfig", metavar="FILE")
]
KubeContext = Annotated[
    str | None, option(CLUSTER, "With --live: context in the kubeconfig.", "--kube-context", metavar="NAME")
]
NoDefaults = Annotated[bool, option(CLUSTER, "Leave out the built-in objects of the release.", "--no-defaults")]
ServerConcurrency = Annotated[
    int | None, option(CLUSTER, _SEATS_HELP, metavar="N[+N]", show_default="400+200", parser=parse_seats)
]
Cluster = Annotated[
    str | None,
    option(
        CLUSTER,
        "Use the manifests, release and seats that the settings have for this cluster.",
        "--cluster",
        metavar="NAME",
        autocompletion=completers.complete_clusters,
    ),
]
Clusters = Annotated[
    list[str] | None,
    option(
        CLUSTER,
        "Use only this cluster of the settings; repeatable.",
        "--cluster",
        metavar="NAME",
        show_default="all",
        autocompletion=completers.complete_clusters,
    ),
]

Render = Annotated[
    bool,
    option(
        CLUSTER,
        "Render clusters of the settings with the programs that the settings name, and let kustomize use the network."
        " APFLINT_RENDER=1 does the same.",
        "--render",
    ),
]

UnsafeFixes = Annotated[bool, option(FIXES, "Include fixes that may change the meaning of objects.", "--unsafe-fixes")]
Diff = Annotated[bool, option(FIXES, "Show the edits instead of making them.", "--diff")]

Threshold = Literal["error", "warning", "info", "never"]
FailOn = Annotated[
    Threshold | None,
    option(OUTPUT, "Exit with 1 if there are findings of this severity or higher.", "--fail-on", show_default="error"),
]
Format = Annotated[Literal["text", "json"], option(OUTPUT, "Output format.", "--format")]
ExitZero = Annotated[bool, option(OUTPUT, "Exit with 0 instead of 1. Errors still exit with 2.", "--exit-zero")]
Color = Annotated[Literal["auto", "always", "never"], option(OUTPUT, _COLOR_HELP)]

Config = Annotated[str | None, option(SETTINGS, "Settings file to use instead of the closest one.", metavar="FILE")]
Isolated = Annotated[bool, option(SETTINGS, "Ignore settings files.", "--isolated")]


class SourceOptions(NamedTuple):
    """Options that name the sources of a configuration, and describe the cluster."""

    filename: Filenames = None
    kustomize: Kustomize = None
    cluster: Cluster = None
    live: Live = False
    kubeconfig: Kubeconfig = None
    kube_context: KubeContext = None
    kubernetes: Kubernetes = None
    no_defaults: NoDefaults = False
    server_concurrency: ServerConcurrency = None
    render: Render = False
    config: Config = None
    isolated: Isolated = False

    def select(self, paths: list[str] | None = None, compared: str | None = None) -> InputRequest:
        """Return an input request for the sources in the options and `paths`. Raises UserError for contradictory options.

        `compared` is the source argument of the other side of a comparison, or None. If `compared` is `live`, --kubeconfig and
        --kube-context are allowed, because they apply to the other side.
        """
        from apflint.sources.input_types import create_request
        from apflint.sources.source_arguments import LIVE

        reject_combinations({"--live": self.live, "--kustomize": self.kustomize}, {"--cluster": self.cluster})
        clusters = [self.cluster] if self.cluster is not None else None
        words = list_words(paths, self.filename, kustomize=self.kustomize, clusters=clusters, live=self.live)
        return create_request(
            words,
            self.kubernetes,
            self.server_concurrency,
            config=self.config,
            isolated=self.isolated,
        )._replace(
            defaults=not self.no_defaults,
            kubectl=parse_kubectl(
                LIVE in (*words, compared), self.kubeconfig, self.kube_context, no_defaults=self.no_defaults
            ),
            may_render=may_render(self.render),
        )


def list_words(
    *paths: list[str] | None, kustomize: list[str] | None = None, clusters: list[str] | None = None, live: bool = False
) -> tuple[str, ...]:
    """Return the source arguments that options and paths stand for: `-k DIR` is `kustomize:DIR`, and `--live` is `live`."""
    from apflint.sources.source_arguments import CLUSTER_PREFIX, KUSTOMIZE_PREFIX, LIVE

    return (
        *([LIVE] if live else ()),
        *chain_paths(*paths),
        *(KUSTOMIZE_PREFIX + directory for directory in kustomize or ()),
        *(CLUSTER_PREFIX + name for name in clusters or ()),
    )


def reject_other_sources(command: str, words: tuple[str, ...]) -> None:
    """Raise UserError if a source argument does not name files or a cluster in the settings, because `command` edits files."""
    from apflint.sources.source_arguments import BUILT_IN_PREFIX, LIVE, parse_words

    parsed = parse_words(words)
    others = (*parsed.revisions, *parsed.built, *([LIVE] if parsed.is_live else ()))
    if parsed.release is not None:
        others = (*others, BUILT_IN_PREFIX + parsed.release.name)
    if others:
        raise UserError(f"{others[0]}: {command} edits files. Name the files that this source is read from")


def may_render(render: bool) -> bool:
    """Return whether apflint may run the programs that the settings name: with --render, or if APFLINT_RENDER is 1."""
    return render or os.environ.get("APFLINT_RENDER") == "1"


def parse_kubectl(
    is_live: bool, kubeconfig: str | None, kube_context: str | None, *, no_defaults: bool = False
) -> KubectlOptions | None:
    """Return the options of kubectl for reading the running cluster, or None if `is_live` (`--live`) is false.

    Raises UserError for `kubeconfig` or `kube_context` without `--live`, and for `--live` with
    `--no-defaults`.
    """
    for name, is_given in (("--kubeconfig", kubeconfig is not None), ("--kube-context", kube_context is not None)):
        if is_given and not is_live:
            raise UserError(f"{name} requires --live")
    if not is_live:
        return None
    if no_defaults:
        raise UserError(
            "--live and --no-defaults cannot be combined: the objects of a running cluster include the built-in objects"
        )
    from apflint.sources.kubectl import KubectlOptions

    return KubectlOptions(kubeconfig, kube_context)
