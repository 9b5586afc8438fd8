"""Variants of the generated configurations: redefined built-in FlowSchemas, copies of built-in objects, and outdated contexts.

The name of a configuration also determines its variant."""

from __future__ import annotations

import copy
from random import Random
from typing import TYPE_CHECKING, Any

from . import server
from .configurations import HIGH, LEVELS, LOW, built_in, configuration, manifest

if TYPE_CHECKING:
    from .configurations import Configuration
    from .server import Manifest

MANDATORY = ("exempt", "catch-all")
EVERYTHING: Manifest = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"]}
HEALTH = ("/healthz", "/livez", "/readyz", "/metrics", "/livez/*", "*")


def variant(seed: int | str) -> Configuration:
    """Generate the configuration of a seed, and apply each change of this module with its own probability."""
    random = Random(f"variant {seed}")
    config = configuration(seed)
    for change, share in ((redefined, 0.6), (wide, 0.5), (outdated, 0.3), (dumped, 0.4)):
        if random.random() < share:
            config = change(config, random)
    return config


def flow_schemas_of(release: str) -> list[Manifest]:
    """Return the suggested FlowSchemas of a release."""
    schemas = (schema for schema in built_in(release) if schema["kind"] == "FlowSchema")
    return [schema for schema in schemas if server.name_of(schema) not in MANDATORY]


def redefined(config: Configuration, random: Random) -> Configuration:
    """Redefine one or two suggested FlowSchemas: with another precedence, with fewer rules, or with another level."""
    known = {server.name_of(schema) for schema in config.objects}
    candidates = [schema for schema in flow_schemas_of(config.kubernetes) if server.name_of(schema) not in known]
    more = [_narrowed(schema, random) for schema in random.sample(candidates, random.randint(1, 2))]
    return config._replace(manifests=(*config.manifests, *more))


def _narrowed(schema: Manifest, random: Random) -> Manifest:
    changed = copy.deepcopy(schema)
    spec = changed["spec"]
    if random.random() < 0.7:
        spec["matchingPrecedence"] = random.choice((*LOW, *HIGH))
    if random.random() < 0.15:
        spec["priorityLevelConfiguration"]["name"] = random.choice(LEVELS)
    for rule in spec["rules"]:
        for entry in rule.get("resourceRules") or []:
            if entry.get("namespaces") and random.random() < 0.4:
                entry.pop("clusterScope", None)
            if random.random() < 0.2:
                entry["verbs"] = random.sample(("get", "list", "watch", "create", "update"), 2)
        if rule.get("resourceRules") and rule.get("nonResourceRules") and random.random() < 0.3:
            del rule["nonResourceRules"]
        if len(rule["subjects"]) > 1 and random.random() < 0.3:
            rule["subjects"].pop()
    return changed


def wide(config: Configuration, random: Random) -> Configuration:
    """Give a FlowSchema of the user a rule for all resources, or for all methods of a few paths."""
    own = [at for at, manifest in enumerate(config.manifests) if _is_changeable(manifest) and manifest["spec"]["rules"]]
    if not own:
        return config
    at = random.choice(own)
    changed = copy.deepcopy(config.manifests[at])
    rule: dict[str, Any] = random.choice(changed["spec"]["rules"])
    rule.pop("nonResourceRules", None)
    rule.pop("resourceRules", None)
    if random.random() < 0.5:
        rule["resourceRules"] = [{**EVERYTHING, **({"clusterScope": True} if random.random() < 0.8 else {})}]
    else:
        verbs = random.choice((["*"], ["get", "delete"], ["get", "patch"]))
        paths = random.choice((["*"], random.sample(HEALTH[:-1], random.randint(1, 2))))
        rule["nonResourceRules"] = [{"verbs": verbs, "nonResourceURLs": paths}]
    return config._replace(manifests=(*config.manifests[:at], changed, *config.manifests[at + 1 :]))


def _is_changeable(manifest: Manifest) -> bool:
    """Return whether the API server accepts another spec of this object.

    The server does so only for FlowSchemas that are not mandatory.
    """
    return manifest["kind"] == "FlowSchema" and server.name_of(manifest) not in MANDATORY


def outdated(config: Configuration, random: Random) -> Configuration:
    """Add outdated definitions to the context: another spec for some of the FlowSchemas in the manifests."""
    own = filter(_is_changeable, config.manifests)
    others = [*filter(_is_changeable, configuration(f"older {random.random()}").manifests)]
    older = [
        manifest("FlowSchema", server.name_of(schema), random.choice(others)["spec"], config.kubernetes)
        for schema in own
        if others and random.random() < 0.5
    ]
    return config._replace(context=(*config.context, *older))


def dumped(config: Configuration, random: Random) -> Configuration:
    """Add copies of all other built-in objects to the manifests or the context, as in a dump of a cluster."""
    known = {(manifest["kind"], server.name_of(manifest)) for manifest in config.objects}
    copies = tuple(
        manifest
        for manifest in built_in(config.kubernetes)
        if (manifest["kind"], server.name_of(manifest)) not in known
    )
    if random.random() < 0.5:
        return config._replace(context=(*copies, *config.context))
    return config._replace(manifests=(*config.manifests, *copies))


def without_copies(config: Configuration) -> Configuration:
    """Return the configuration without copies of built-in objects, which the server has anyway."""
    stored = [
        (manifest["kind"], server.name_of(manifest), manifest["spec"]) for manifest in built_in(config.kubernetes)
    ]

    def keep(objects: tuple[Manifest, ...]) -> tuple[Manifest, ...]:
        return tuple(
            manifest
            for manifest in objects
            if (manifest["kind"], server.name_of(manifest), manifest["spec"]) not in stored
        )

    return config._replace(manifests=keep(config.manifests), context=keep(config.context))
