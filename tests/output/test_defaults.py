"""Built-in objects as YAML and JSON, read back."""

from __future__ import annotations

import json

import pytest
import yaml

from apflint import builtin
from apflint.output.defaults import render_defaults_json, render_defaults_yaml
from apflint.releases import RELEASES, Release, parse_release

EVERY_RELEASE = pytest.mark.parametrize("target", RELEASES, ids=lambda r: r.name)


@EVERY_RELEASE
def test_yaml_reads_back_as_the_manifest(target: Release) -> None:
    # PyYAML reads YAML 1.1, as Kubernetes does.
    values = list(yaml.safe_load_all(render_defaults_yaml(target, target.newest_version)))
    assert values == builtin.build_manifests(target, target.newest_version)


@EVERY_RELEASE
def test_json_is_a_list_of_manifests(target: Release) -> None:
    answer = json.loads(render_defaults_json(target, target.newest_version))
    assert answer == {
        "kind": "List",
        "apiVersion": "v1",
        "items": builtin.build_manifests(target, target.newest_version),
    }


def yaml_of(release: str, version: str) -> str:
    return render_defaults_yaml(parse_release(release), version)


def test_comments_name_release_source_and_role() -> None:
    text = yaml_of("1.36", "v1")
    head, _, body = text.partition("\n\n")
    assert all(line.startswith("# ") for line in head.splitlines())
    assert "Kubernetes 1.36" in head
    assert "kube-apiserver 1.36.2" in head.replace("\n# ", " ")
    documents = body.split("---\n")
    roles = [entry.role for entry in builtin.list_objects(parse_release("1.36"))]
    assert [document.splitlines()[0] for document in documents] == [f"# {role}" for role in roles]
    assert 'apf.kubernetes.io/autoupdate-spec: "true"' in text
    assert max(map(len, text.splitlines())) <= 120


def test_unserved_versions_are_printed_with_a_warning() -> None:
    assert "no longer serves v1beta1. To apply these objects, use v1beta3." in yaml_of("1.26", "v1beta1")
    assert "serves v1alpha1 only with the flag --runtime-config=" in yaml_of("1.20", "v1alpha1").replace("\n# ", " ")
    assert "serves" not in yaml_of("1.26", "v1beta2")
