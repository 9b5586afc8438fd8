"""How many fixes to try at once, when not all of them go well."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from apflint.finding import Finding


class Portions:
    """All at first; half as many, in the files concerned, each time some do not go well; then more and more again."""

    def __init__(self) -> None:
        self._fixes: dict[str, int] = {}
        """How many in a file; all where it is not named."""
        self._files: int | None = None
        """In how many files; None is all of them."""

    def of(self, findings: Iterable[Finding]) -> list[Finding]:
        """The next portion."""
        by_file = _by_file(findings)
        return [
            found
            for name in list(by_file)[: self._files]
            for found in by_file[name][: self._fixes.get(name, len(by_file[name]))]
        ]

    def grow(self, portion: list[Finding]) -> None:
        """The portion went well."""
        for name in _by_file(portion):
            if name in self._fixes:
                self._fixes[name] *= 2
        if self._files is not None:
            self._files *= 2

    def shrink(self, portion: list[Finding], to_blame: Collection[str]) -> list[Finding]:
        """The portion did not go well, because of the files `to_blame`, or nobody knows why: what is not to be tried again."""
        by_file = _by_file(portion)
        if not to_blame and len(by_file) > 1:
            self._files = len(by_file) // 2
            return []
        alone = []
        for name in to_blame or by_file:
            if len(by_file[name]) == 1:
                alone += by_file[name]
            else:
                self._fixes[name] = len(by_file[name]) // 2
        return alone


def _by_file(findings: Iterable[Finding]) -> dict[str, list[Finding]]:
    found: dict[str, list[Finding]] = {}
    for finding in findings:
        found.setdefault(finding.file, []).append(finding)
    return found
