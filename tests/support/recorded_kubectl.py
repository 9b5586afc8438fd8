"""A stand-in for kubectl that needs no server: `python recorded_kubectl.py get --raw PATH ...` prints a recorded answer."""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.api_server import recorded_answers

if __name__ == "__main__":
    _, get, raw, path, *_options = sys.argv
    if [get, raw] != ["get", "--raw"]:
        sys.exit(f"unexpected arguments: {sys.argv[1:]}")
    json.dump(recorded_answers()[path][1], sys.stdout)
