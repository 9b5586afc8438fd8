"""Random numbers of a simulation.

Each number depends only on the seed, the client and the number of the request. So a request has the same arrival and
service time in every configuration. All differences between two runs are effects of the configurations.
"""

from __future__ import annotations

from hashlib import blake2b

_MASK = (1 << 64) - 1
_GAMMA = 0x9E3779B97F4A7C15


class Draws:
    """An infinite series of random numbers between 0 and 1 (exclusive). Each number is computed from its index."""

    __slots__ = ("_start",)

    def __init__(self, seed: int, *names: str | int) -> None:
        self._start = int.from_bytes(blake2b(repr((seed, *names)).encode(), digest_size=8).digest(), "big")

    def __call__(self, index: int) -> float:
        """Return the random number between 0 and 1 at position `index` of the series.

        Source: Steele and others, "Fast splittable pseudorandom number generators", 2014.
        """
        z = (self._start + index * _GAMMA) & _MASK
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        return (((z ^ (z >> 31)) >> 12) + 0.5) / (1 << 52)
