"""`apflint schema`: the JSON Schema of a kind, or of a file of apflint's own."""

from __future__ import annotations

import os

from apflint.load.document import KINDS
from apflint.package_data import find_data_directory
from apflint.releases import API_VERSIONS
from apflint.schema import load_schema
from apflint.wording import join_words, quote, suggest

FILES = {"config": "apflint-config.json", "test": "apflint-test.json", "report": "apflint-report.json"}
"""Name -> the schema of settings, of policy tests, and of the output of `check --format json`."""
_KINDS = (*KINDS, *(f"{kind}List" for kind in KINDS))


def show(kind: str, version: str) -> str:
    """The schema as JSON text; `version` is for kinds of Kubernetes. ValueError, fit to be shown, for what is unknown."""
    import json

    if kind in FILES:
        with open(os.path.join(find_data_directory("schemas"), FILES[kind]), encoding="utf-8") as file:
            return file.read()
    if kind not in _KINDS:
        known = (*_KINDS, *FILES)
        raise ValueError(
            f"{quote(kind)} is no kind of API Priority and Fairness, and no file of apflint: {join_words(known)}."
            f"{suggest(kind, known)}"
        )
    version = version.rpartition("/")[2]
    versions = [life.name for life in API_VERSIONS]
    if version not in versions:
        raise ValueError(f"{quote(version)} is no API version: {join_words(versions)}.{suggest(version, versions)}")
    return json.dumps(load_schema(kind, version), indent=2, ensure_ascii=False) + "\n"
