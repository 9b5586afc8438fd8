r"""Hashes of lines. GitHub uses them to recognize an alert after lines above the alert were added or removed.

The hashes are equal to `primaryLocationLineHash` of github/codeql-action (`src/fingerprints.ts`). So GitHub
recognizes an alert no matter whether apflint or the action that uploads the report computes the hashes:

- The text becomes UTF-16 code units. Spaces and tabs are removed, and every line end becomes `\n`. At the end of the text,
  one unit 0xFFFF and enough zeros are added.
- The 100 units from the start of a line, including units of the next lines, are the digits of a number to the base 37.
  The hash of the line is this number modulo 2^64, in hexadecimal, without leading zeros.
- After the hash come a colon and a count: the number of lines with this hash, from the start of the text to this line.
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
    """Return the hash of each line whose number (from 1) is in `lines`. Numbers after the last line are omitted.

    Each hash ends with the number of equal lines up to this line. Lines count as equal if the 100
    UTF-16 code units from their start are equal. So only the hashes of `lines` are computed.
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
    """Split each character above U+FFFF into two surrogates, as in UTF-16."""
    if text.isascii() or max(text) <= "\uffff":
        return text
    units = memoryview(text.encode("utf-16", "surrogatepass")[2:]).cast("H")  # two bytes per unit
    return "".join(map(chr, units))
