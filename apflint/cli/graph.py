"""`apflint graph`: reads the manifests and prints the configuration as a picture."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from apflint.cli.outcome import note
from apflint.graph.build import build_picture, find_unreachable
from apflint.inputs.cluster import read_cluster, read_configuration

if TYPE_CHECKING:
    from apflint.inputs.cluster import ClusterOptions


def run(paths: tuple[str, ...], cluster: ClusterOptions, output: str) -> int:
    """Prints the picture as `mermaid`, `dot`, `svg` or `html`.

    A single path may be `defaults:1.33`. ValueError, fit to be shown, for a release or a path that is none.
    """
    known = read_configuration(paths[0], cluster, note) if len(paths) == 1 else read_cluster(paths, cluster, note)
    drawn = build_picture(known, find_unreachable(known.configuration))
    # Each writer is loaded only where it is asked for.
    if output == "dot":
        from apflint.graph.dot import render
    elif output == "svg":
        from apflint.graph.svg import render
    elif output == "html":
        from apflint.graph.page import render
    else:
        from apflint.graph.mermaid import is_too_large, render

        text = render(drawn)
        if is_too_large(text):
            sys.stderr.write(
                "apflint: GitHub and others draw no Mermaid diagram of this size. Take --format html, svg or dot\n"
            )
        sys.stdout.write(text)
        return 0
    sys.stdout.write(render(drawn))
    return 0
