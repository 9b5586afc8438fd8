"""`apflint graph`: reads the manifests and prints the configuration as a picture."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from apflint.cli import manifests
from apflint.graph.picture import picture, shadows

if TYPE_CHECKING:
    from apflint.cli.manifests import Cluster


def run(paths: tuple[str, ...], cluster: Cluster, output: str) -> int:
    """Prints the picture as `mermaid`, `dot`, `svg` or `html`.

    A single path may be `defaults:1.33`. ValueError, fit to be shown, for a release or a path that is none.
    """
    known = manifests.read_one(paths[0], cluster) if len(paths) == 1 else manifests.read(paths, cluster)
    drawn = picture(known, shadows(known.configuration))
    # Each writer is loaded only where it is asked for.
    if output == "dot":
        from apflint.graph.dot import render
    elif output == "svg":
        from apflint.graph.svg import render
    elif output == "html":
        from apflint.graph.page import render
    else:
        from apflint.graph.mermaid import render, too_large

        text = render(drawn)
        if too_large(text):
            sys.stderr.write(
                "apflint: GitHub and others draw no Mermaid diagram of this size. Take --format html, svg or dot\n"
            )
        sys.stdout.write(text)
        return 0
    sys.stdout.write(render(drawn))
    return 0
