r"""The hash of a line that GitHub knows an alert by while lines above it come and go.

It is the `primaryLocationLineHash` of github/codeql-action (`src/fingerprints.ts`), so that alerts stay the same whether we
work it out or the action that uploads the report does. In words:

- The text is read as UTF-16 code units, without blanks and tabs, every line end as one `\n`. Behind it stand one 0xFFFF,
  which marks the end of the file, and as many zeros as are needed.
- The hash of a line is that of the 100 units from its start on, further lines included: the value, modulo 2^64, of the
  number whose digits to the base 37 they are. It is written in hexadecimal, without leading zeros.
- After a colon follows how many lines so far, this one included, have the same hash.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

_WINDOW = 100
_BASE = 37
_MASK = (1 << 64) - 1
_BLANKS = str.maketrans("", "", " \t")


def line_hashes(text: str, lines: Collection[int]) -> dict[int, str]:
    """1-based line -> its hash, for those of `lines` that the text has.

    Lines are counted by the 100 units and not by their hash: equal units have equal hashes, and arithmetic is needed only
    for the lines that are asked for.
    """
    units = _units(re.sub("\r\n?", "\n", text).translate(_BLANKS)) + "\uffff"
    starts = [0, *(end.end() for end in re.finditer("\n", units))]
    units += "\0" * _WINDOW
    found: dict[int, str] = {}
    seen: dict[str, int] = {}
    last = max(lines, default=0)
    for number, start in enumerate(starts[:last], 1):
        window = units[start : start + _WINDOW]
        seen[window] = seen.get(window, 0) + 1
        if number in lines:
            found[number] = f"{_hash(window):x}:{seen[window]}"
    return found


def _hash(window: str) -> int:
    value = 0
    for unit in window:
        value = (value * _BASE + ord(unit)) & _MASK
    return value


def _units(text: str) -> str:
    """`text` with characters above U+FFFF as two, as UTF-16 has them."""
    if text.isascii() or max(text) <= "\uffff":
        return text
    units = memoryview(text.encode("utf-16", "surrogatepass")[2:]).cast("H")  # in the order of bytes of this machine
    return "".join(map(chr, units))
