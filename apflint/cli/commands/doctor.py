"""The command `apflint doctor`."""

from __future__ import annotations

import sys
from typing import Annotated

from apflint.cli import options
from apflint.cli.app import app, examples
from apflint.cli.options import INPUT, option
from apflint.cli.terminal import style
from apflint.doctor.level_state import compute_state
from apflint.doctor.snapshot import group_servers
from apflint.errors import UserError
from apflint.inputs.server_files import read_parts
from apflint.output.doctor import render_state, state_json
from apflint.output.json_text import to_json

_METRICS_HELP = "Metrics of an API server: a file, gzip, a directory, or - for standard input; repeatable."
_DUMP_HELP = "Debug dump of an API server: a file, gzip, or a directory; repeatable."


@app.command(
    rich_help_panel="Analyze",
    epilog=examples(
        ("the metrics of a server", "kubectl get --raw /metrics | apflint doctor --metrics -"),
        ("metrics and dumps", "apflint doctor --metrics metrics.txt --dump dump_requests.txt"),
    ),
)
def doctor(
    metrics: Annotated[list[str] | None, option(INPUT, _METRICS_HELP, "--metrics", metavar="FILE")] = None,
    dump: Annotated[list[str] | None, option(INPUT, _DUMP_HELP, "--dump", metavar="FILE")] = None,
    output_format: options.Format = "text",
    color: options.Color = "auto",
) -> None:
    """Diagnose a running API server from its metrics and debug dumps."""
    paths = options.chain_paths(metrics, dump)
    if not paths:
        raise UserError("name the metrics or the dumps of an API server: --metrics FILE, --dump FILE")
    states = [compute_state(server) for server in group_servers(read_parts(paths))]
    if output_format == "json":
        sys.stdout.write(to_json({"servers": [state_json(state) for state in states]}, 2))
    else:
        sys.stdout.write("\n".join(render_state(state, style(color)) for state in states))
