"""The figures and commands in docs/exactness.md agree with the tests."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from support.pages import read_blocks, read_page, read_table
from support.shell import environment

if TYPE_CHECKING:
    from pathlib import Path

PAGE = "exactness"


def count_lines(path: Path) -> int:
    files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    return sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)


def test_numbers_of_recordings_are_those_of_the_fixtures(root: Path) -> None:
    rows = read_table(PAGE, "recording")
    assert len(rows) == 9
    for row in rows.values():
        recorded, fixture = row.split("|")
        number, path = re.findall(r"([\d,]+) in `(.+)`", fixture)[0]
        assert count_lines(root / path) == int(number.replace(",", "")) <= int(recorded.replace(",", ""))


def test_comparisons_add_up() -> None:
    numbers = [int(row.split("|")[0].replace(",", "")) for row in read_table(PAGE, "compared").values()]
    assert sum(numbers[:-1]) == numbers[-1]


@pytest.mark.slow
def test_comparison_with_brute_force_prints_what_the_page_shows(root: Path) -> None:
    (line,) = [block.text for block in read_blocks(PAGE, "sh") if "brute_force" in block.text]
    (shown,) = [block.text for block in read_blocks(PAGE, "text")]
    command = [sys.executable, *shlex.split(line)[1:]]
    done = subprocess.run(command, cwd=root, env=environment(), capture_output=True, text=True, check=True)
    assert done.stdout == shown


def test_all_paths_exist(root: Path) -> None:
    paths = set(re.findall(r"\b((?:tests|scripts|fixtures)/[\w./-]*\w)", read_page(PAGE)))
    assert len(paths) > 10
    assert {path for path in paths if not (root / path).exists()} == set()
