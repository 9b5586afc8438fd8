"""The form of the files in requirements/. `.ci/run` uses the package index to check that they fit pyproject.toml."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from lock_requirements import FILES, drop_hashes

REQUIREMENTS = Path(__file__).resolve().parents[2] / "requirements"


def read_pins(name: str) -> dict[str, str]:
    """Return the version of each package in a requirements file."""
    return dict(re.findall(r"(?m)^([a-z0-9-]+)==([^\s;]+)", (REQUIREMENTS / f"{name}.txt").read_text("utf-8")))


def test_there_is_a_file_for_each_name() -> None:
    assert {path.stem for path in REQUIREMENTS.iterdir()} == set(FILES)


@pytest.mark.parametrize("name", FILES)
def test_every_package_is_pinned_with_hashes_and_without_an_index(name: str) -> None:
    text = (REQUIREMENTS / f"{name}.txt").read_text("utf-8")
    assert "://" not in text
    packages = re.split(r"(?m)^(?=[a-z0-9])", text)[1:]
    assert len({package.split("==")[0] for package in packages}) == len(read_pins(name)) > 20
    for package in packages:
        assert re.match(r"[a-z0-9-]+==[^\s;]+( ; .+)? \\\n    --hash=sha256:[0-9a-f]{64}", package), package


def test_tests_run_with_the_dependencies_of_the_container(root: Path) -> None:
    runtime, dev = read_pins("runtime"), read_pins("dev")
    assert runtime.items() <= dev.items()
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    direct = {
        re.split(r"[<>=]", name)[0].lower().replace("_", "-").replace(".", "-") for name in project["dependencies"]
    }
    assert direct <= runtime.keys()


def test_action_has_the_dependencies_of_the_container_and_the_build_backend_of_releases() -> None:
    action = read_pins("action")
    assert read_pins("runtime").items() <= action.items()
    assert action["hatchling"] == read_pins("release")["hatchling"]


def test_another_hash_is_not_another_version() -> None:
    locked = "attrs==26.1.0 \\\n    --hash=sha256:aa\n    # via jsonschema\n"
    two = "attrs==26.1.0 \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb\n    # via jsonschema\n"
    assert drop_hashes(locked) == drop_hashes(two) == ["attrs==26.1.0", "    # via jsonschema"]
