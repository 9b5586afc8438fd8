"""Write a synthetic audit log for trials and measurements of `apflint replay`. Equal arguments give equal bytes.

    python scripts/synthesize_audit_log.py [--seed N] [--bytes SIZE] [--servers N] PATH

With several servers, PATH is a directory with a file for each server. All files together have SIZE bytes.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarking.audit_log import parse_size, write_audit_log


def main() -> int:
    """Write the log."""
    parser = argparse.ArgumentParser(description="Writes a synthetic audit log of a large cluster.")
    parser.add_argument("path", type=Path, metavar="PATH")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="1 by default")
    parser.add_argument("--bytes", type=parse_size, default=10**8, metavar="SIZE", help="100MB by default")
    parser.add_argument("--servers", type=int, default=1, metavar="N", help="1 by default")
    options = parser.parse_args()
    if options.servers < 1:
        parser.error("--servers: at least 1")
    if options.servers == 1:
        write_audit_log(options.path, options.bytes, options.seed)
        return 0
    options.path.mkdir(parents=True, exist_ok=True)
    for number in range(options.servers):
        name = f"server-{number + 1}"
        write_audit_log(options.path / f"{name}.log", options.bytes // options.servers, options.seed, name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
