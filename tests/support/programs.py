"""Stand-ins for programs in the documentation that need a cluster, a network or an editor, or take minutes.

`python programs.py PROGRAM ARGUMENT...` is run in place of `PROGRAM ARGUMENT...`. Arguments that `USAGES` does not list
are errors, so that a wrong option on a page fails its test. Python is not replaced, except for the scripts that
`run_python` lists.
"""
# ruff: noqa: T201  # stand-ins print what programs print

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable
    from unittest.mock import MagicMock

LIVE = Path(__file__).resolve().parents[2] / "fixtures" / "live"
SCRIPTS_TO_RUN = (
    "synthesize_audit_log.py --seed 1 --bytes 10MB",
    "generate_command_options.py",
    "generate_schemas.py",
    "generate_terminal_picture.py",
    "set_version.py",
)
"""Prefixes of command lines of scripts to run, because they need no network and take only seconds. For all other
command lines of scripts, only the arguments are parsed."""
PYTEST_PATH = "tests/checks/test_rule_pages.py"
"""Path for pytest in commands without a path, and in place of directories. Collecting all tests takes 15 seconds."""


def fail(message: str) -> NoReturn:
    """Print an error, and exit with the exit code for wrong usage."""
    print(message, file=sys.stderr)
    raise SystemExit(2)


def call(*command: str, **options: Any) -> None:
    """Run a program, and exit with its exit code if it fails."""
    if code := subprocess.run(command, check=False, **options).returncode:
        raise SystemExit(code)


def show(name: str) -> Callable[..., None]:
    """Return a function that prints an example file of the directory in which a page runs."""
    return lambda *_: print((Path(os.environ["APFLINT_EXAMPLE"]) / name).read_text(encoding="utf-8"), end="")


def succeed(*_: str) -> None:
    """Do nothing, in place of a program that succeeds without output."""


def download_manifest(url: str) -> None:
    """Write an example manifest to a file with the name that curl gives it."""
    example = Path(os.environ["APFLINT_EXAMPLE"], "manifests", "schema.yaml")
    shutil.copy(example, Path(url).name)


def read_objects(file: str) -> list[dict[str, Any]]:
    """Return the objects of a YAML file."""
    import yaml  # imported here, because only a few stand-ins need yaml

    return [value for value in yaml.safe_load_all(Path(file).read_text(encoding="utf-8")) if value]


def apply_objects(file: str) -> None:
    """Store the file for `get_flow_schema`, and print the output of `kubectl apply`."""
    for value in read_objects(file):
        print(f"{value['kind'].lower()}.flowcontrol.apiserver.k8s.io/{value['metadata']['name']} created")
    shutil.copy(file, Path.home() / "applied.yaml")


def get_flow_schema(name: str) -> None:
    """Print an applied FlowSchema as a table with the columns of kubectl."""
    objects = read_objects(str(Path.home() / "applied.yaml"))
    levels = {value["metadata"]["name"] for value in objects if value["kind"] == "PriorityLevelConfiguration"}
    (spec,) = (v["spec"] for v in objects if v["kind"] == "FlowSchema" and v["metadata"]["name"] == name)
    level = spec["priorityLevelConfiguration"]["name"]
    rows = [
        ("NAME", "PRIORITYLEVEL", "MATCHINGPRECEDENCE", "DISTINGUISHERMETHOD", "AGE", "MISSINGPL"),
        (
            name,
            level,
            str(spec["matchingPrecedence"]),
            spec["distinguisherMethod"]["type"],
            "2s",
            str(level not in levels),
        ),
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def show_recording(name: str) -> Callable[..., None]:
    """Return a function that prints a recorded response of a server. The busy level is renamed to `reports`, as on pages."""

    def show(*_: str) -> None:
        data = (LIVE / name).read_bytes()
        text = (gzip.decompress(data) if name.endswith(".gz") else data).decode()
        print(re.sub(r"\bslow(-writes)?\b", "reports", text), end="")

    return show


def show_openapi(*_: str) -> None:
    """Print an OpenAPI document with the recorded structure of the objects."""
    print((LIVE.parent / "openapi" / "1.36-v1.json").read_text(encoding="utf-8"))


def show_answer(path: str) -> None:
    """Print the response of a recorded server for a path, as JSON."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from support.api_server import recorded_answers  # imported here, because `api_server` imports this module

    if path not in recorded_answers():
        fail("Error from server (NotFound): the server could not find the requested resource")
    print(json.dumps(recorded_answers()[path][1]))


def run_apflint(*arguments: str) -> None:
    """Run apflint in the current directory, with the standard input of this process."""
    call("apflint", *arguments)


def run_container(mount: str) -> None:
    """Run `apflint check` on the current directory if the container mounts this directory."""
    if mount != f"{Path.cwd()}:/work:ro":
        fail(f"the container would not see this directory: {mount}")
    run_apflint("check")


def install_checkout(project: str) -> None:
    """Check that the extras in `.[test,lint]` exist."""
    named = re.fullmatch(r"\.\[([\w,]+)\]", project)
    defined = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    if named is None or not set(named[1].split(",")) <= set(defined):
        fail(f"unknown extras: {project}")


def install_packages(*_: str) -> None:
    """Check that a lock file exists, which `npm ci` needs."""
    if not Path("package-lock.json").is_file():
        fail("npm ci needs package-lock.json")


def run_npm_script(name: str) -> None:
    """Fail if package.json does not define the script. For the script `package`, write an empty extension."""
    if name not in json.loads(Path("package.json").read_text(encoding="utf-8"))["scripts"]:
        fail(f"package.json has no script {name}")
    if name == "package":
        Path("apflint-9.9.9.vsix").touch()


def download_wheel(*_: str) -> None:
    """Write an empty wheel."""
    Path("apflint-9.9.9-py3-none-any.whl").touch()


def validate_report(schema: str, file: str) -> None:
    """Validate a file as check-jsonschema does."""
    import jsonschema  # imported here, because importing jsonschema takes time

    values = [json.loads(Path(name).read_text(encoding="utf-8")) for name in (file, schema)]
    jsonschema.validate(*values)
    print("ok -- validation done")


def draw_graph(*_: str) -> None:
    """Check that the input is a graph in DOT."""
    if not sys.stdin.read().startswith("digraph"):
        fail("syntax error in line 1")


def sign(*_: str) -> None:
    """Print the output of GnuPG when git signs a tag."""
    sys.stdin.read()
    print("\n[GNUPG:] SIG_CREATED D", file=sys.stderr)
    print("-----BEGIN PGP SIGNATURE-----\n\n-----END PGP SIGNATURE-----")


USAGES: dict[str, Callable[..., None]] = {
    # Words in capitals are placeholders. FILE and DIR stand for an existing path. Every other placeholder, such as
    # NAME, stands for an argument that is not an option.
    ".ci/run": succeed,
    "argocd app manifests APPLICATION --source git": show("live.yaml"),
    "check-jsonschema --schemafile FILE FILE": validate_report,
    "code --install-extension FILE": succeed,
    "coverage combine": succeed,
    "coverage report": succeed,
    "coverage run -m pytest -n 2": succeed,
    "curl -fsSL URL": show("manifests/schema.yaml"),
    "curl -fsSLO URL": download_manifest,
    "docker build -t apflint -f FILE DIR": succeed,
    "docker run --rm -i apflint check -": lambda: run_apflint("check", "-"),
    "docker run --rm -v MOUNT apflint check": run_container,
    "dot -Tpdf": draw_graph,
    "flux build kustomization NAME --path PATH --kustomization-file PATH --dry-run": show("live.yaml"),
    "gh attestation verify FILE --repo apflint/apflint": succeed,
    "gh release download v9.9.9 --pattern *.whl": download_wheel,
    "gh release download --repo apflint/apflint --pattern *.whl": download_wheel,
    "gpg --status-fd=2 -bsau KEY": sign,
    # helm and kustomize print a stream of manifests. Helm adds comments with the names of templates.
    "helm template CHART": show("chart.txt"),
    "helm template CHART --values VALUES --kube-version RELEASE": show("chart.txt"),
    "helm template NAME CHART --repo URL --version RELEASE --namespace NAMESPACE --set VALUES": show("chart.txt"),
    "helm template NAME CHART --version RELEASE --set VALUES": show("chart.txt"),
    "kind create cluster --image IMAGE": succeed,
    "kubectl apply -f FILE": apply_objects,
    "kubectl config view --minify --output=json": lambda: print('{"clusters": [{"cluster": {}}]}'),
    "kubectl get --raw /debug/api_priority_and_fairness/dump_priority_levels": show_recording(
        "2-slow-a.priority_levels.txt"
    ),
    "kubectl get --raw /debug/api_priority_and_fairness/dump_queues": show_recording("2-slow-a.queues.txt.gz"),
    "kubectl get --raw /debug/api_priority_and_fairness/dump_requests?includeRequestDetails=1": show_recording(
        "dump_requests.txt"
    ),
    "kubectl get --raw /metrics": show_recording("metrics.txt"),
    "kubectl get --raw /openapi/v3/apis/flowcontrol.apiserver.k8s.io/v1": show_openapi,
    "kubectl get --raw /apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
    "?labelSelector=kubernetes.io%2Fservice-name%3Dkubernetes": lambda: print('{"items": []}'),
    "kubectl get --raw PATH": show_answer,
    "kubectl get flowschemas NAME": get_flow_schema,
    "kubectl get flowschemas,prioritylevelconfigurations -o yaml": show("live.yaml"),
    "kubectl get --raw /metrics --server=https://127.0.0.1:16443 --tls-server-name=kubernetes.default.svc": show_recording(
        "metrics.txt"
    ),
    "kubectl port-forward -n kube-system POD PORTS": succeed,
    "kubectl kustomize PATH": show("live.yaml"),
    "kubectl proxy --port PORT": succeed,
    "kustomize build PATH": show("live.yaml"),
    "mypy": succeed,
    "npm --prefix DIR run get": succeed,
    "npm ci": install_packages,
    "npm run SCRIPT": run_npm_script,
    "npm run test:vscode -- --screenshots PATH": lambda _: run_npm_script("test:vscode"),
    "npm test": lambda: run_npm_script("test"),
    "pip install --quiet PROJECT": install_checkout,
    "pip install --require-hashes --requirement FILE": succeed,
    "pip install -e PROJECT": install_checkout,
    "pip install -r FILE": succeed,
    "pip install apflint": succeed,
    "pip install mutmut": succeed,
    "promtool test rules FILE": succeed,
    "ruff check DIR": succeed,
    "ruff format --check DIR": succeed,
    "uvx apflint check": lambda: run_apflint("check"),
    "uvx apflint@9.9.9 --version": lambda: run_apflint("--version"),
}
"""Functions of stand-ins by accepted command line. The arguments of a function are the words for the placeholders."""

KUBECTL_OPTIONS = ("--context=", "--kubeconfig=", "--request-timeout=")
"""Prefixes of options that kubectl accepts with every command."""


def match_usage(usage: str, words: list[str]) -> list[str] | None:
    """Return the words in place of the placeholders of `usage`, or None if the command line does not match `usage`."""
    if len(words) != len(usage.split()):
        return None
    arguments = []
    for expected, word in zip(usage.split(), words, strict=True):
        if not expected.isupper():
            if word != expected:
                return None
        elif word.startswith("-") or (expected in ("FILE", "DIR") and not Path(word).exists()):
            return None
        else:
            arguments.append(word)
    return arguments


def run_stand_in(words: list[str]) -> None:
    """Run the function in `USAGES` for a command line. Fail for any other command line."""
    if words[0] == "kubectl":
        words = [word for word in words if not word.startswith(KUBECTL_OPTIONS)]
    for usage, action in USAGES.items():
        if (arguments := match_usage(usage, words)) is not None:
            action(*arguments)
            return
    fail(f"no stand-in in tests/support/programs.py for: {' '.join(words)}")


def run_python(arguments: list[str]) -> None:
    """Run Python, except for scripts that need a network or take minutes."""
    match arguments:
        case ["-m", "venv", directory]:
            create_environment(directory)
        case ["-m", "pytest", *rest]:
            collect_tests(rest)
        case ["-m", "http.server", *rest]:
            serve_once(rest)
        case [script, *rest] if script.startswith("scripts/"):
            if " ".join([script.removeprefix("scripts/"), *rest]).startswith(SCRIPTS_TO_RUN):
                call(sys.executable, *arguments)
            else:
                parse_arguments(script, rest)
        case _:
            call(sys.executable, *arguments)


def create_environment(directory: str) -> None:
    """Create a virtual environment. Its programs are stand-ins, because nothing can be installed."""
    call(sys.executable, "-m", "venv", "--without-pip", directory)
    for name in ("python", "python3", "pip", "apflint"):
        link = Path(directory, "bin", name)
        link.unlink(missing_ok=True)
        link.symlink_to(str(shutil.which(name)))


def collect_tests(arguments: list[str]) -> None:
    """Let pytest parse the arguments and select tests without running them. Fail if it selects no tests.

    Tests are collected without worker processes, because syrupy warns if workers report no snapshots."""
    paths = [argument for argument in arguments if Path(argument).exists()]
    directories = [] if "-k" in arguments else list(filter(os.path.isdir, paths))
    for directory in directories:
        if not any(Path(directory).rglob("test_*.py")):
            fail(f"no tests in {directory}")
    arguments = [argument for argument in arguments if argument not in directories]
    arguments += [PYTEST_PATH] if paths == directories else []
    call(*(sys.executable, "-m", "pytest", "--collect-only", *arguments, "-n", "0"), stdout=subprocess.DEVNULL)


def serve_once(arguments: list[str]) -> None:
    """Start the web server on a free port, get its start page, and stop the server."""
    import urllib.request  # imported here, as below, because most stand-ins need neither

    command = [sys.executable, "-u", "-m", "http.server", *arguments, "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        port = re.search(r"port (\d+)", server.stdout.readline())
        try:
            if port is None:
                fail("http.server does not start")
            with urllib.request.urlopen(f"http://127.0.0.1:{port[1]}/") as page:
                if not page.read():
                    fail("the start page is empty")
        finally:
            server.terminate()


class NotInstalled(MetaPathFinder, Loader):
    """Import hook that provides empty modules for the packages that a page installs for a script."""

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        """Return a package if the name is mutmut, or libcst, a dependency of mutmut."""
        return ModuleSpec(name, self, is_package=True) if name.partition(".")[0] in ("libcst", "mutmut") else None

    def create_module(self, spec: ModuleSpec) -> MagicMock:
        """Return a module that has every possible attribute."""
        from unittest.mock import MagicMock

        return MagicMock(name=spec.name)

    def exec_module(self, module: object) -> None:
        """Execute nothing."""


def parse_arguments(script: str, arguments: list[str]) -> None:
    """Run a script until its arguments are parsed. For `--out DIR`, create the directory with a start page."""
    parse = argparse.ArgumentParser.parse_args

    def stop(*parsed: Any) -> NoReturn:
        out = getattr(parse(*parsed), "out", None)
        if isinstance(out, Path):
            out.mkdir(exist_ok=True)
            out.joinpath("index.html").write_text("<!doctype html>", encoding="utf-8")
        raise SystemExit(0)

    argparse.ArgumentParser.parse_args = stop  # type: ignore[method-assign, assignment]
    sys.meta_path.append(NotInstalled())
    sys.argv = [script, *arguments]
    sys.path.insert(0, str(Path(script).parent))
    if "argparse" in Path(script).read_text(encoding="utf-8"):
        runpy.run_path(script, run_name="__main__")
        fail(f"{script} does not parse its arguments")
    if arguments:
        fail(f"{script} has no arguments")
    runpy.run_path(script)


if __name__ == "__main__":
    program = sys.argv[1]
    if program in ("python", "python3"):
        run_python(sys.argv[2:])
    else:
        run_stand_in(sys.argv[1:])
