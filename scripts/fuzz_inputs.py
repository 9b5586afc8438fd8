"""Inputs of the fuzzer: mutated manifests, requests, events, settings and suites, and command lines that read them."""

from __future__ import annotations

import json
import random
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"

WORDS: tuple[str, ...] = (
    "", "~", "null", "yes", "on", "0777", "1e400", "-0", ".nan", ".inf", "9" * 400, "0x1F", "1_000", "2024-01-01", "*", "&a", "*a",
    "<<: *a", "!!python/object/apply:os.system [id]", "!!binary AA=", "!!int x", "! yes", "|", ">-", "? ", "- - -", "{", "}", "[", "]",
    "{{ .Values.x }}", "${X}", "---", "...", "%YAML 1.2", "# apflint: ignore[APF203]", "# apflint: ignore[", "# apflint: file-ignore[APF1] x",
    "# Source: a/b.yaml", "\t", "\r", "\r\n", "\x00", "\x1b[31m", "\u2028", "\ufeff", "\U0001f600", "é", "\\ud800", "'", '"', '"""', "]]>",
    "::error::x", "%0A", "<script>", "|x|", "system:masters", "system:serviceaccount:a:b", "a" * 300, "/" * 50, "10%", "-1", "2147483648",
    "9223372036854775808", "apiVersion", "kind", "FlowSchema", "PriorityLevelConfiguration", "List", "items", "metadata", "name", "spec",
    "flowcontrol.apiserver.k8s.io/v1", "flowcontrol.apiserver.k8s.io/v1beta1", "rules", "subjects", "resourceRules", "nonResourceRules",
    "verbs", "limited", "exempt", "queuing", "limitResponse", "nominalConcurrencyShares", "assuredConcurrencyShares", "exempt", "catch-all",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 10**9, 2**31, 2**63, 10**400, 1.5, 1e308, "", "*", "yes", "a" * 300, "\x00\x1b", "system:masters", [], {},
    [None], [[]], {"": None}, {"a": {"a": {"a": []}}}, ["*"], ["get", "get"], "exempt", "Limited", "Queue", "Reject", "User", "\ud800",
)  # fmt: skip
FORMATS = ("text", "concise", "json", "sarif", "github", "gitlab", "junit", "markdown")
RELEASES = ("1.18", "1.20", "1.24", "1.25", "1.26", "1.28", "1.29", "1.31", "1.36", "1.37")
ARGUMENTS = (
    "",
    "-",
    "--",
    "x",
    "\x1b[0m",
    "--format",
    "json",
    "-f",
    "a.yaml",
    "APF",
    "APF999",
    "9.9",
    "1.30",
    "-1",
    "999999999999",
    "é",
    "x" * 5000,
)
COMMANDS = (
    "check",
    "explain",
    "limits",
    "shards",
    "defaults",
    "diff",
    "test",
    "fix",
    "migrate",
    "rule",
    "schema",
    "config",
    "graph",
    "completion",
)


class Input(NamedTuple):
    """The files of a directory, standard input, and a command line."""

    files: dict[str, bytes]
    stdin: bytes
    arguments: tuple[str, ...]
    format: str = ""
    """Format of standard output if a program can parse it, or an empty string."""


class Maker:
    """Generates inputs from a seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def make(self, number: int) -> Input:
        """Return the input with a number. The seed and the number determine the input."""
        self.random = random.Random(f"{self.seed}:{number}")
        kinds: list[tuple[int, Callable[[], Input]]] = [
            (10, self._check), (3, self._fix), (2, self._migrate), (2, self._ask), (1, self._requests), (1, self._test),
            (1, self._settings), (1, self._arguments),
        ]  # fmt: skip
        chosen = self.random.choices([make for _, make in kinds], [weight for weight, _ in kinds])[0]
        return chosen()

    def _check(self) -> Input:
        form = self.random.choice(FORMATS)
        more: list[str] = []
        for option in (
            ("--kubernetes", self.random.choice(RELEASES)), ("--complete",), ("-v",), ("--statistics",), ("--no-ignores",),
            ("--diff",), ("--fail-on", "info"), ("--extend-select", "APF903"), ("--server-concurrency", "1"),
        ):  # fmt: skip
            if self.random.random() < 0.15:
                more += option
        files = self._files()
        paths = [*files] if self.random.random() < 0.7 else ["-"]
        machine = form if "--diff" not in more and "--statistics" not in more else ""
        return Input(files, self._text(), ("check", "--isolated", "--format", form, *more, *paths), machine)

    def _fix(self) -> Input:
        more = [option for option in ("--diff", "--unsafe-fixes", "-q") if self.random.random() < 0.4]
        files = self._files()
        paths = [*files] if self.random.random() < 0.7 else ["-"]
        return Input(files, self._text(), ("fix", "--isolated", *more, *paths))

    def _migrate(self) -> Input:
        version = self.random.choice(("v1", "v1beta3", "v1beta2", "v1beta1", "v1alpha1"))
        more = [option for option in ("--accept-changes", "--diff") if self.random.random() < 0.4]
        files = self._files()
        paths = [*files] if self.random.random() < 0.7 else ["-"]
        return Input(files, self._text(), ("migrate", "--to", version, *more, *paths))

    def _ask(self) -> Input:
        files = self._files()
        sources = [part for name in files for part in ("-f", name)]
        release = self.random.choice(RELEASES)
        word = self.random.choice(WORDS) or "x"
        form = self.random.choice(("text", "json"))
        asked: list[tuple[str, ...]] = [
            ("explain", "--format", form, "list", "pods", "--as", word.lstrip("-"), *sources),
            ("explain", "--format", form, "--method", "GET", "--path", word.lstrip("-"), "--as", "x", *sources),
            ("limits", "--format", form, "--kubernetes", release, *files),
            ("graph", *files),
            ("diff", "--format", form, next(iter(files)), f"defaults:{release}"),
        ]
        arguments = self.random.choice(asked)
        return Input(files, b"", arguments, form if form == "json" and "--format" in arguments else "")

    def _requests(self) -> Input:
        lines = self.random.choices(self._recorded_requests, k=self.random.randint(1, 5))
        data = "\n".join(
            json.dumps(self._mutated(line) if self.random.random() < 0.5 else line) for line in lines
        ).encode()
        if self.random.random() < 0.5:
            data = self._bytes(data)
        option = self.random.choice(("--requests", "--event"))
        return Input({"requests.jsonl": data}, b"", ("explain", "--format", "json", option, "requests.jsonl"))

    def _test(self) -> Input:
        suite = self._bytes(self.random.choice(self._suites))
        return Input({"apf-test.yaml": suite, **self._files()}, b"", ("test", "apf-test.yaml"))

    def _settings(self) -> Input:
        lines = (
            'select = ["APF2"]', 'ignore = ["x"]', "complete = true", 'kubernetes = "1.30"', 'fail-on = "info"', "[rules]", 'APF203 = "off"',
            "[per-file-ignores]", '"*.yaml" = ["APF1"]', 'format = "json"', 'exclude = ["*"]', "server-concurrency = 0",
        )  # fmt: skip
        text = "\n".join(self.random.choices(lines, k=self.random.randint(1, 8)))
        data = self._bytes(text.encode()) if self.random.random() < 0.5 else text.encode()
        return Input({"apflint.toml": data, **self._files()}, b"", self.random.choice((("check",), ("config",))))

    def _arguments(self) -> Input:
        words = self.random.choices((*ARGUMENTS, *COMMANDS), k=self.random.randint(0, 4))
        return Input(self._files(), self._text(), (self.random.choice(COMMANDS), *words))

    def _files(self) -> dict[str, bytes]:
        names = self.random.sample(
            ("a.yaml", "b.yml", "c.json", "sub/d.yaml", "e.txt"), self.random.choice((1, 1, 1, 2, 3))
        )
        return {name: self._text() for name in names}

    def _text(self) -> bytes:
        """Return one or several manifests as bytes, some of them damaged."""
        roll = self.random.random()
        if roll < 0.05:
            return self.random.randbytes(self.random.randint(0, 300))
        parts = [self._manifest() for _ in range(self.random.choice((1, 1, 1, 2, 4)))]
        data = self.random.choice((b"\n---\n", b"\n--- \n", b"\n", b"\n...\n---\n")).join(parts)
        if self.random.random() < 0.05:
            codec = self.random.choice(("utf-16", "utf-16-le", "utf-16-be", "utf-8-sig", "utf-32"))
            data = data.decode("utf-8", "replace").encode(codec)
        return data

    def _manifest(self) -> bytes:
        recorded = self.random.choice(self._manifests)
        if not isinstance(recorded, str):
            value = self._mutated(recorded) if self.random.random() < 0.6 else recorded
            indent = self.random.choice((None, 1, 4))
            text = json.dumps(value, indent=indent, ensure_ascii=self.random.random() < 0.5)
        else:
            text = recorded
        data = text.encode("utf-8", "surrogatepass")[:20_000]
        return self._bytes(data) if self.random.random() < 0.6 else data

    def _mutated(self, value: Any) -> Any:
        """Return a copy of a value with some parts replaced, dropped, duplicated or wrapped."""
        if self.random.random() < 0.04:
            return self.random.choice((*VALUES, [value], {"items": [value]}, [value, value]))
        if isinstance(value, dict):
            kept = {key: self._mutated(item) for key, item in value.items() if self.random.random() > 0.02}
            if self.random.random() < 0.04:
                kept[self.random.choice(WORDS)] = self.random.choice(VALUES)
            return kept
        if isinstance(value, list):
            return [self._mutated(item) for item in value if self.random.random() > 0.05]
        return value

    def _bytes(self, data: bytes) -> bytes:
        """Return `data` after random changes of bytes, words, lines and indentation."""
        for _ in range(self.random.choice((1, 1, 2, 4, 16))):
            at = self.random.randint(0, len(data))
            length = min(self.random.choice((0, 1, 1, 4, 32)), len(data) - at)
            roll = self.random.randrange(7)
            if roll == 0:
                data = data[:at] + self.random.randbytes(max(length, 1)) + data[at + length :]
            elif roll == 1:
                data = data[:at] + data[at + length :]
            elif roll in (2, 3):
                word = self.random.choice(WORDS).encode("utf-8", "surrogatepass")
                data = data[:at] + word + data[at + length :]
            else:
                data = self._lines(data)
        return data

    def _lines(self, data: bytes) -> bytes:
        lines = data.split(b"\n")
        one, other = self.random.randrange(len(lines)), self.random.randrange(len(lines))
        roll = self.random.randrange(6)
        if roll == 0:
            del lines[one]
        elif roll == 1:
            lines.insert(other, lines[one])
        elif roll == 2:
            lines[one], lines[other] = lines[other], lines[one]
        elif roll == 3:
            lines[one] = self.random.choice((b" ", b"  ", b"\t", b"- ", b"# ")) + lines[one]
        elif roll == 4:
            lines[one] = lines[one].removeprefix(b"  ")
        else:
            key, colon, _ = lines[one].partition(b":")
            word = self.random.choice(WORDS).encode("utf-8", "surrogatepass")
            lines[one] = key + colon + b" " + word
        return b"\n".join(lines)

    @cached_property
    def _manifests(self) -> list[Any]:
        """The manifests in fixtures, as text or as values."""
        found: list[Any] = [file.read_text() for file in sorted(FIXTURES.glob("stories/**/*.yaml"))]
        for file in sorted(FIXTURES.glob("conformance/*.jsonl")):
            lines = file.read_text(encoding="utf-8").splitlines()
            found += (json.loads(line)["manifest"] for line in lines)
        return found

    @cached_property
    def _suites(self) -> list[bytes]:
        return [file.read_bytes() for file in sorted(FIXTURES.glob("policy/**/apf-test*.yaml"))]

    @cached_property
    def _recorded_requests(self) -> list[dict[str, Any]]:
        lines = (FIXTURES / "oracle-classify" / "requests.jsonl").read_text(encoding="utf-8").splitlines()[:300]
        return [json.loads(line) for line in lines]
