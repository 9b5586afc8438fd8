r"""Hashes of lines by which GitHub recognizes an alert when lines above it are added or removed.

Equal to the `primaryLocationLineHash` of github/codeql-action (`src/fingerprints.ts`), so alerts stay the same whether
apflint or the action that uploads the report computes it:

- The text is read as UTF-16 code units, without spaces and tabs, every line end as one `\n`. At its end stand one 0xFFFF
  and as many zeros as are needed.
- The hash of a line is that of the 100 units from its start, further lines included: the value, modulo 2^64, of the
  number whose digits to the base 37 they are. It is written in hexadecimal, without leading zeros.
- A colon and the number of lines so far with this hash, this one included, follow.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

_HASHED_UNITS = 100
_BASE = 37
_MASK = (1 << 64) - 1
_SPACES = str.maketrans("", "", " \t")


def hash_lines(text: str, lines: Collection[int]) -> dict[int, str]:
    """Return the hashes of 1-based `lines`, without lines that the text does not have.

    Lines are counted by their 100 units instead of their hash: equal units have equal hashes, and only the lines that
    are asked for need to be hashed.
    """
    units = _to_code_units(re.sub("\r\n?", "\n", text).translate(_SPACES)) + "\uffff"
    starts = [0, *(match.end() for match in re.finditer("\n", units))]
    units += "\0" * _HASHED_UNITS
    hashes: dict[int, str] = {}
    counts: dict[str, int] = {}
    for number, start in enumerate(starts[: max(lines, default=0)], 1):
        window = units[start : start + _HASHED_UNITS]
        counts[window] = counts.get(window, 0) + 1
        if number in lines:
            hashes[number] = f"{_hash(window):x}:{counts[window]}"
    return hashes


def _hash(window: str) -> int:
    value = 0
    for unit in window:
        value = (value * _BASE + ord(unit)) & _MASK
    return value


def _to_code_units(text: str) -> str:
    """Split characters above U+FFFF into two, as in UTF-16."""
    if text.isascii() or max(text) <= "\uffff":
        return text
    units = memoryview(text.encode("utf-16", "surrogatepass")[2:]).cast("H")  # in the order of bytes of this machine
    return "".join(map(chr, units))
